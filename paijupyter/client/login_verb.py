"""The verb ``login``: asks for what a server wants, and says where the login is kept."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paijupyter.client.submission import Ask
from paijupyter.client.verbs import Reply
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient
    from paijupyter.client.settings import SettingsClient


def login(client: JobsClient, options: Namespace, ask: Ask) -> Reply:
    """Carry out ``login PROFILE``. No answer and no error repeats what was given.

    Raises:
        PaiJupyterError: the profile's kind has no users, the server refuses, or nothing can keep the login.
    """
    settings = client.settings
    name = options.profile or settings.profiles()["default"]
    if options.forget:
        return _forget(settings, name)
    if options.check:
        return _check(settings, name)
    told = settings.account(name)
    if told.get("noKeyring") and options.store != "file":
        raise UsageProblem(str(told["noKeyring"]))  # before anybody types a password in vain
    given = _token(told, ask) if options.token or not _takes_password(told) else _password(name, options, ask)
    found = settings.login(name, {**given, "store": options.store or "keyring"})
    return Reply(_said(found), found)


def _takes_password(told: Mapping[str, Any]) -> bool:
    return str(told.get("authn") or "basic").lower() == "basic"


def _password(name: str, options: Namespace, ask: Ask) -> dict[str, str]:
    user = options.user
    if not user:
        raise UsageProblem("Option `--user` is missing.", f"Write: login {name} --user NAME")
    return {"user": user, "password": _asked(ask, f"Password of {user}: ")}


def _token(told: Mapping[str, Any], ask: Ask) -> dict[str, str]:
    return {"token": _asked(ask, f"Token, from {told['page']}: ")}


def _asked(ask: Ask, prompt: str) -> str:
    try:
        return ask(prompt)
    except (EOFError, NotImplementedError):  # no terminal; a notebook that is executed without its user
        raise UsageProblem(
            "Logging in needs somebody who can answer, and here nobody can.",
            "Log in from a terminal or a notebook that you run yourself; `login PROFILE --check` names the "
            "variable that is read where nobody can.",
        ) from None


def _said(found: Mapping[str, Any]) -> str:
    text = f"Logged in at `{found['profile']}` as {found['user']}; the token is kept in {found['where']}."
    if found.get("expires"):
        text += f" It ends {_time(found['expires'])}."
    return text


def _check(settings: SettingsClient, name: str) -> Reply:
    found = settings.account(name)
    if found["user"]:
        until = f", until {_time(found['expires'])}" if found.get("expires") else ""
        text = f"✓ {name}: {found['user']}, by a token in {found['where']}{until}"
        return Reply(text, found)
    why = "the token has expired or was revoked" if found.get("expired") else "nobody is logged in"
    lines = [f"✕ {name}: {why}", f"  → paijob login {name}", f"  or set {found['variable']} for the engine"]
    return Reply("\n".join(lines), found, ok=False)


def _forget(settings: SettingsClient, name: str) -> Reply:
    found = settings.logout(name)
    if not found["forgotten"]:
        return Reply(f"Nothing was kept of a login at `{name}`.", found)
    where = " and ".join(found["forgotten"])
    text = f"The login at `{name}` is forgotten ({where}). The server still takes that token: revoke it at "
    return Reply(f"{text}{found['portal']}", found)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
