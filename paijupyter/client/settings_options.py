"""Rows of the table of verbs for what is set up beside jobs: profiles and stored secrets."""

from __future__ import annotations

from paijupyter.client.parser import Option, Verb
from paijupyter.client.submit_options import SECRET

_JSON = Option("--json", "Print JSON for machines", kind="flag", default="text for people")

PROFILE_VERB = Verb(
    "profile",
    "List, show, change and test profiles: places where jobs run.",
    (
        Option(
            "action",
            "What to do",
            kind="word",
            choices=("list", "show", "add", "edit", "rm", "default", "test"),
            default="list",
        ),
        Option("name", "Name of the profile", kind="word", default="show and test: the default profile"),
        Option("--kind", "With add: the kind of place, for example local", metavar="KIND", default="local"),
        Option(
            "--set",
            "With add and edit: a setting, {a: b} a mapping; a credential by reference: token=keyring:NAME",
            kind="list",
            metavar="KEY=VALUE",
            default="none",
        ),
        Option(
            "--unset",
            "With edit: take a setting out of your file",
            kind="list",
            metavar="KEY",
            default="none",
        ),
        _JSON,
    ),
    (
        "profile list",
        "profile add half --set cpu=4 --set memoryMB=8192",
        "profile edit half --set cpu=2 --unset memoryMB",
        "profile show half",
        "profile default half",
    ),
    aliases=("profiles",),
)
LOGIN_VERB = Verb(
    "login",
    "Log in at a profile's server; the password is asked for, and only a token is kept.",
    (
        Option("profile", "Name of the profile", kind="word", default="the default profile"),
        Option("--user", "Your name there; the password is asked for", metavar="NAME", default="none"),
        Option(
            "--token",
            "Ask for a token instead: for servers where one logs in on a page",
            kind="flag",
            default="a password, where the server takes one",
        ),
        Option(
            "--store",
            "Where the token is kept; `file` is a file that only you can read, for hosts without a keyring",
            choices=("keyring", "file"),
            default="keyring",
        ),
        Option("--check", "Only say who is logged in", kind="flag", default="log in"),
        Option("--forget", "Forget the login", kind="flag", default="log in"),
        _JSON,
    ),
    (
        "login pai --user alice",
        "login pai --token",
        "login pai --check",
        "login pai --forget",
    ),
    confidential=True,
)
SECRET_VERB = Verb(
    "secret",
    "Store secrets in the keyring, list their names, remove them; or give a waiting job what it lacks.",
    (
        Option(
            "action",
            "What to do; `set` asks for the value without showing it, or reads it from a pipe",
            kind="word",
            choices=("list", "set", "rm", "give"),
            default="list",
        ),
        Option(
            "name",
            "Name of the secret; with give: the job that waits for its secrets",
            kind="word",
            default="give: `last`",
        ),
        SECRET,
        _JSON,
    ),
    (
        "secret set HF_TOKEN",
        "secret list",
        "secret rm HF_TOKEN",
        "secret give mnist-k3f9qd",
    ),
    aliases=("secrets",),
    confidential=True,
)
