"""Where the token of a profile is, and where a login keeps it.

Looked for in this order: what the setting ``token`` names, ``PAIJUPYTER_TOKEN_<PROFILE>``, the keyring, and a
0600 file that only ``--store file`` writes. Nothing here waits for the server; all of it may block.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter import paths
from paijupyter.backends import ring
from paijupyter.backends.base import Profile
from paijupyter.errors import PaiJupyterError

STORES = ("keyring", "file")
_kept: dict[str, str] = {}  # profile → token of the keyring; asking one again takes milliseconds
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Found:
    """A token and where it was, in words; an empty one where there is none."""

    token: str
    where: str

    def __repr__(self) -> str:
        return f"Found({'******' if self.token else ''!r}, {self.where!r})"


def token_of(profile: Profile) -> str | None:
    """Return the token of a profile, None where nobody has logged in.

    Raises:
        PaiJupyterError: ``bad-setting`` or ``login-file-unsafe``.
    """
    return found(profile).token or None


def found(profile: Profile) -> Found:
    """Return the token of a profile and where it was found.

    Raises:
        PaiJupyterError: ``bad-setting`` or ``login-file-unsafe``.
    """
    reference = profile.settings.get("token")
    if reference:
        return _named(profile, str(reference))
    variable = variable_of(profile.name)
    if os.environ.get(variable):
        return Found(os.environ[variable].strip(), f"the variable {variable}")
    in_keyring = _in_keyring(_entry(profile.name))
    if in_keyring:
        return Found(in_keyring, "the keyring")
    return _in_file(profile.name)


def keep(profile: Profile, token: str, store: str) -> str:
    """Keep a token and return in words where it is now.

    Args:
        profile: whose it is.
        token: what a login gave.
        store: ``keyring`` or ``file``.

    Raises:
        PaiJupyterError: ``login-not-kept``: the keyring cannot take it; nothing is kept elsewhere then.
    """
    forget_cached(profile)
    if store == "file":
        _write(_file(profile.name), token)
        return f"the file {_file(profile.name)}, which only you can read"
    try:
        ring.used("", lambda found: found.set_password(ring.SERVICE, _entry(profile.name), token))
    except PaiJupyterError as error:
        raise not_kept(profile.name, error.message) from error
    with contextlib.suppress(FileNotFoundError):
        _file(profile.name).unlink()  # an older one would be found once the keyring is locked
    return "the keyring"


def check_store(profile: Profile, store: str) -> None:
    """Look whether a login could be kept, before anybody is asked for a password.

    Raises:
        PaiJupyterError: ``login-not-kept``, saying what works instead.
    """
    if store == "keyring":
        try:
            ring.used("", lambda found: found.get_password(ring.SERVICE, _entry(profile.name)))
        except PaiJupyterError as error:
            raise not_kept(profile.name, error.message) from error


def not_kept(profile: str, why: str) -> PaiJupyterError:
    """Return the error of a host without a keyring."""
    return PaiJupyterError(
        "login-not-kept",
        f"{why.rstrip('.')}, so a login cannot be kept in it.",
        f"Set {variable_of(profile)} where Jupyter is started, or have it kept in a file that only you can "
        f"read: paijob login {profile} --store file",
        422,
    )


def forget(profile: Profile) -> list[str]:
    """Forget what logins have kept of a profile, and return in words where it was."""
    forget_cached(profile)
    gone = []
    file = _file(profile.name)
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
        gone.append(f"the file {file}")

    def remove(found: Any) -> bool:
        there = found.get_password(ring.SERVICE, _entry(profile.name)) is not None
        if there:
            found.delete_password(ring.SERVICE, _entry(profile.name))
        return there

    with contextlib.suppress(PaiJupyterError):  # no keyring: it has kept nothing
        if ring.used("", remove):
            gone.append("the keyring")
    return gone


def forget_cached(profile: Profile) -> None:
    """Look into the keyring again next time: the server no longer takes what was there."""
    with _lock:
        for entry in (_entry(profile.name), str(profile.settings.get("token", "")).partition(":")[2]):
            _kept.pop(entry, None)


def variable_of(profile: str) -> str:
    """Return the variable that may hold a profile's token.

    >>> variable_of("my-pai.lab")
    'PAIJUPYTER_TOKEN_MY_PAI_LAB'
    """
    return f"PAIJUPYTER_TOKEN_{re.sub(r'[^A-Z0-9]', '_', profile.upper())}"


def _named(profile: Profile, reference: str) -> Found:
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        return Found(os.environ.get(name, "").strip(), f"the variable {name}")
    if kind == "keyring" and name:
        return Found(_in_keyring(name) or "", f"the keyring, as {name}")
    raise PaiJupyterError(
        "bad-setting",
        f"Setting `token` of profile `{profile.name}` must be keyring:NAME or env:NAME.",
        f"Leave it out and log in instead: paijob login {profile.name}",
        422,
    )


def _entry(profile: str) -> str:
    """Return the keyring's entry of a login; no stored secret can have that name."""
    return f"login to {profile}"


def _in_keyring(entry: str) -> str | None:
    with _lock:
        if entry in _kept:
            return _kept[entry]
    try:
        token = ring.used("", lambda found: found.get_password(ring.SERVICE, entry))
    except PaiJupyterError:
        return None  # no keyring here: then nothing is in it
    if token:
        with _lock:
            _kept[entry] = str(token)
    return token or None


def _file(profile: str) -> Path:
    return paths.data_dir() / "logins" / profile


def _in_file(profile: str) -> Found:
    file = _file(profile)
    try:
        with file.open() as opened:
            facts = os.fstat(opened.fileno())
            if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
                raise PaiJupyterError(
                    "login-file-unsafe",
                    f"The login in `{file}` can be read by others, so it is not used.",
                    f"Revoke that token in the portal, then: paijob login {profile} --store file",
                    422,
                )
            return Found(opened.read().strip(), f"the file {file}")
    except FileNotFoundError:
        return Found("", "")


def _write(file: Path, token: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(token)
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(file)
