"""Changes to the user's own file of profiles; all else in it stays byte for byte, comments too.

An administrator's file is never touched: a changed field of such a profile goes into the user's file, which
is read last. A file that would not be valid is not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, InvalidDocument, PaiJupyterError
from paijupyter.jobs.files import replace_synced
from paijupyter.jobs.profiles import Profiles, admin_files, load, user_file
from paijupyter.protocol import edit_mapping
from paijupyter.protocol.credentials import plain_credentials

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NEW = "# Profiles: places where jobs run. `paijob profile` edits this file and keeps what you write here.\n"
Patch = list[dict[str, Any]]
Check = Callable[[Profiles, str], None]


def add(name: str, settings: Mapping[str, Any], check: Check) -> None:
    """Write a new profile.

    Args:
        name: its name.
        settings: its fields, ``kind`` among them.
        check: raises if the profile, as it would be, cannot be used.

    Raises:
        PaiJupyterError: ``invalid-profile``: no name or kind, or a credential that is written out.
        Conflict: ``profile-exists``.
    """
    if not _NAME.fullmatch(name):
        raise refused(
            f"Profile name `{name[:70]}` is not possible.",
            "Use letters, digits, `.`, `_` and `-`, at most 63, a letter or digit first.",
        )
    if name in _now().by_name:
        raise Conflict(
            "profile-exists", f"Profile `{name}` exists already.", f"Change it: profile edit {name}."
        )
    if not isinstance(settings.get("kind"), str) or not settings["kind"]:
        raise refused(f"Profile `{name}` needs a kind.", "Say --kind local, for example.")
    _write([_set(name, None, _referring(dict(settings)))], lambda after: check(after, name))


def edit(name: str, changes: Mapping[str, Any], unset: Sequence[str], check: Check) -> None:
    """Change fields of a profile in the user's file, and take others out of it.

    Raises:
        PaiJupyterError: ``unknown-profile``; ``invalid-profile`` if a field to take out is not in the
            user's file, or a credential is written out.
    """
    before = _now()
    profile = before.get(name)
    patch = [_set(profile.name, key, value) for key, value in _referring(dict(changes)).items()]
    for key in unset:
        source = before.sources[profile.name].get(key)
        if source is None:
            raise refused(f"Profile `{name}` has no setting `{key}`.")
        if source.by != "user":
            raise refused(
                f"Setting `{key}` of `{name}` comes from {_whose(source.by)}, so it cannot be removed.",
                "Give it another value instead: yours is read last.",
            )
        patch.append({"op": "remove", "path": _path("profiles", profile.name, key)})
    if patch:
        _write(patch, lambda after: check(after, name))


def remove(name: str) -> None:
    """Take a profile out of the user's file; what an administrator says of it stays.

    Raises:
        PaiJupyterError: ``unknown-profile``.
        Conflict: ``not-yours`` if nothing of it is in the user's file.
    """
    before = _now()
    profile = before.get(name)
    if not before.has_of(profile.name, "user"):
        by: str = "administrator" if before.has_of(profile.name, "administrator") else "built-in"
        raise Conflict(
            "not-yours",
            f"Profile `{name}` comes from {_whose(by)}, so it cannot be removed.",
            "Nothing of it is in your profiles.yaml.",
        )
    others = any(before.has_of(each, "user") for each in before.by_name if each != profile.name)
    patch: Patch = [
        {"op": "remove", "path": _path("profiles", profile.name) if others else _path("profiles")}
    ]
    gone = not any(before.has_of(profile.name, each) for each in ("administrator", "built-in"))
    if gone and before.default == profile.name and before.default_by.by == "user":
        patch.append({"op": "remove", "path": "/default"})
    _write(patch)


def choose(name: str) -> None:
    """Make a profile the default one.

    Raises:
        PaiJupyterError: ``unknown-profile``.
    """
    _write([{"op": "replace", "path": "/default", "value": _now().get(name).name}])


def _now() -> Profiles:
    return load([*admin_files(), user_file()])


def _referring(settings: dict[str, Any]) -> dict[str, Any]:
    found = next(plain_credentials(settings), None)
    if found is not None:
        raise refused(
            f"Setting `{found}` looks like a credential itself, and this file would keep it.",
            f"Store it with `paijob secret set NAME`, then set {found}=keyring:NAME.",
        )
    return settings


def _set(name: str, key: str | None, value: Any) -> dict[str, Any]:
    where = _path("profiles", name) if key is None else _path("profiles", name, key)
    return {"op": "replace", "path": where, "value": value}


def _path(*keys: str) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def _whose(by: str) -> str:
    return "your administrator" if by == "administrator" else "paijupyter itself"


def _write(patch: Patch, check: Callable[[Profiles], None] | None = None) -> None:
    # A link to a file elsewhere (a repository of settings) stays one.
    file = Path(os.path.realpath(user_file()))
    try:
        text, mode = file.read_bytes().decode("utf-8"), file.stat().st_mode & 0o777
    except FileNotFoundError:
        text, mode = _NEW, 0o600
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(file, str(error)) from error
    changed = _edited(file, text, patch)
    if check is not None:
        check(load([*admin_files(), user_file()], changed.encode()))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_synced(file, changed.encode(), mode)
    except OSError as error:
        raise _unusable(file, f"it cannot be written: {error.strerror or error}") from error


def _edited(file: Path, text: str, patch: Patch) -> str:
    try:
        comments = _only_comments(text)
        if comments is not None:
            return comments + edit_mapping("profiles:\n", patch)
        changed = edit_mapping(text, patch)
        return changed if changed.endswith("\n") else changed + "\n"
    except InvalidDocument as error:
        raise _unusable(file, str(error.problems[0])) from error


def _only_comments(text: str) -> str | None:
    """Return what to keep of a text that says nothing yet, so has no mapping to edit; else None."""
    lines = [line for line in text.splitlines() if line.strip() not in ("{}", "---")]
    if any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        return None
    return "".join(f"{line}\n" for line in lines)


def refused(message: str, hint: str = "") -> PaiJupyterError:
    """Return the error of a change that would make no valid profile."""
    return PaiJupyterError("invalid-profile", message, hint, 422)


def _unusable(file: Path, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "profiles-unusable",
        f"File `{file}` cannot be edited: {why.rstrip('.')}.",
        "Mend it in an editor, then try again.",
        422,
    )
