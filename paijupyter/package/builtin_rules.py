"""What is left out of every package: caches and environments, checkpoints, credentials.

Caches, environments and version control are never taken. Checkpoints and what looks like a credential are
taken if a ``.paiignore`` insists (``!name``).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Set
from typing import NamedTuple


class Rule(NamedTuple):
    """Why something is left out.

    Attributes:
        reason: a phrase for people, such as ``cache``.
        may_insist: whether ``!name`` in ``.paiignore`` takes it all the same.
        singly: whether each is worth a line of its own, as a credential is.
    """

    reason: str
    may_insist: bool = False
    singly: bool = False


CACHE = Rule("cache")
GIT = Rule("version control")
ENVIRONMENT = Rule("virtual environment", singly=True)
CHECKPOINT = Rule("checkpoint", may_insist=True, singly=True)
CREDENTIAL = Rule("looks like a credential", may_insist=True, singly=True)
EXECUTED = Rule("executed notebook of a job", may_insist=True)
HOME = Rule("setting in the home folder", may_insist=True)
"""A notebook may lie in the home folder itself; what begins with a dot there is not part of the work."""

_FOLDERS: dict[str, Rule] = {
    **dict.fromkeys((".git", ".hg", ".svn", ".bzr", ".jj"), GIT),
    **dict.fromkeys(
        (
            ".cache",
            ".eggs",
            ".hypothesis",
            ".ipynb_checkpoints",
            ".mypy_cache",
            ".nox",
            ".pytest_cache",
            ".ruff_cache",
            ".tox",
            ".virtual_documents",
            "__MACOSX",
            "__pycache__",
            "node_modules",
        ),
        CACHE,
    ),
    **dict.fromkeys(("checkpoints", "lightning_logs", "mlruns", "wandb"), CHECKPOINT),
    **dict.fromkeys((".aws", ".azure", ".gnupg", ".kaggle", ".kube", ".ssh"), CREDENTIAL),
}
_HUGGING_FACE = re.compile(r"checkpoint-\d+")

_FILES: dict[str, Rule] = {
    **dict.fromkeys((".DS_Store", "Thumbs.db"), CACHE),
    ".git": GIT,  # of a worktree or a submodule
    **dict.fromkeys(
        (
            ".boto",
            ".databrickscfg",
            ".dockercfg",
            ".dockerconfigjson",
            ".git-credentials",
            ".htpasswd",
            ".my.cnf",
            ".netrc",
            ".pgpass",
            ".pypirc",
            ".s3cfg",
            ".vault-token",
            "_netrc",
            "application_default_credentials.json",
            "credentials.json",
            "id_dsa",
            "id_ecdsa",
            "id_ecdsa_sk",
            "id_ed25519",
            "id_ed25519_sk",
            "id_rsa",
            "kaggle.json",
            "kubeconfig",
            "secrets.json",
            "secrets.toml",
            "secrets.yaml",
            "secrets.yml",
        ),
        CREDENTIAL,
    ),
}
_ENDINGS: dict[str, Rule] = {
    **dict.fromkeys(("pyc", "pyo"), CACHE),
    "ckpt": CHECKPOINT,
    **dict.fromkeys(("jks", "kdbx", "keystore", "kubeconfig", "p12", "pfx", "ppk"), CREDENTIAL),
}
_DOT_ENV = re.compile(r"\.env(?!\.(?:dist|example|sample|template)$)(?:\..+)?")

_LOOKED_INTO = frozenset({"cfg", "conf", "json", "key", "npmrc", "pem", "yaml", "yml"})
_LOOK_BYTES = 65_536
_SUSPICIOUS = re.compile(
    r"(?i).*\.(?:key|pem)|\.npmrc"
    r"|.*(?:account|adc|cred|firebase|gcp|google|key|kube|secret|token).*\.(?:json|ya?ml)"
    r"|.*-[0-9a-f]{12}\.json"  # as Google names the keys that it hands out
    r"|config\.json"
)
_SECRET_CONTENT = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    rb'|"type"\s*:\s*"service_account"'
    rb"|client-key-data:|current-context:"
    rb'|_authToken\s*=|"auths"\s*:\s*\{|"client_secret"\s*:'
)

_EXECUTED_NAME = re.compile(r".+-[a-z2-7]{6}\.ipynb")
_EXECUTED_CONTENT = re.compile(rb'"paijupyter": \{\s*"executed": true')
"""What a job brings back beside its notebook is no part of the work: each run would change the package."""

_CACHE_TAG, _CACHE_SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"
_MARKS = frozenset({"pyvenv.cfg", "conda-meta", _CACHE_TAG})

NOTABLE_NAMES = frozenset(_FILES)
NOTABLE_ENDINGS = frozenset(_ENDINGS) | _LOOKED_INTO | {"ipynb"}
"""A file needs no further look if its name is not in :data:`NOTABLE_NAMES`, its ending is not here, and it
does not begin with a dot. That test is cheap, and true of nearly all files."""


def folder_rule(name: str) -> Rule | None:
    """Return the rule that leaves out a folder of this name, before it has been looked into."""
    return _FOLDERS.get(name) or (CHECKPOINT if _HUGGING_FACE.fullmatch(name) else None)


def holds_source(names: Set[str]) -> bool:
    """Say whether a folder named like checkpoints is a Python package, from the names in it."""
    return any(name.endswith(".py") for name in names)


def content_rule(folder: str, names: Set[str]) -> Rule | None:
    """Return the rule that leaves out a folder because of the names in it: an environment, a tagged cache."""
    if names.isdisjoint(_MARKS):
        return None
    if _CACHE_TAG in names:
        with contextlib.suppress(OSError), open(os.path.join(folder, _CACHE_TAG), "rb") as file:
            if file.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE:
                return CACHE
    return None if names.isdisjoint({"pyvenv.cfg", "conda-meta"}) else ENVIRONMENT


def file_rule(name: str, read: Callable[[int], bytes]) -> Rule | None:
    """Return the rule that leaves out a file.

    Args:
        name: its last name.
        read: returns at most so many first bytes of it; asked only if the name raises suspicion.
    """
    rule = _FILES.get(name) or _ENDINGS.get(name.rpartition(".")[2])
    if rule:
        return rule
    if _DOT_ENV.fullmatch(name):
        return CREDENTIAL
    if _SUSPICIOUS.fullmatch(name) and _SECRET_CONTENT.search(read(_LOOK_BYTES)):
        return CREDENTIAL
    if _EXECUTED_NAME.fullmatch(name) and _EXECUTED_CONTENT.search(read(_LOOK_BYTES)):
        return EXECUTED
    return None
