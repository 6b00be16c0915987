"""A folder's ``.paijupyter.yaml``: which profile its jobs use, and defaults for the options of ``submit``.

::

    profile: team
    defaults:
      role: worker:4,gpu=1
      param: {epochs: 20}
      secret: {HF_TOKEN: "keyring:hf"}

The file comes with the folder, perhaps from somebody else. So it may choose among the profiles that are set
up here, and never says where that is or with which credential.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.client.parser import Option
from paijupyter.client.submit_options import SUBMIT_OPTIONS
from paijupyter.errors import Problem, UsageProblem

NAME = ".paijupyter.yaml"
_LARGEST = 64 * 1024
# What belongs to one submission, not to a folder.
_WHAT = frozenset({"name", "sh", "yaml", "file", "command", "profile", "resume-from"})
_HOW = frozenset({"plan", "wait", "as", "json", "again", "replace", "kernel-free"})
_ONE_ROLE = frozenset({"gpu", "cpu", "mem"})
_WITH_DOCUMENT = frozenset({"package", "secret", "param"})


@dataclass(frozen=True, slots=True)
class FolderDefaults:
    """What a folder's file says.

    Attributes:
        file: the file.
        profile: name of the profile, or None.
        options: per option's name (without dashes) its words, as they would be typed.
    """

    file: Path
    profile: str | None
    options: Mapping[str, list[str]]


def with_defaults(
    options: Namespace, folder: Path, *, document: Callable[[], str] | None = None
) -> tuple[Namespace, tuple[Problem, ...]]:
    """Return the options with a folder's defaults where they say nothing, and a hint of what was taken.

    Args:
        options: parsed options of ``submit`` or ``plan``; not changed.
        folder: the folder of the submission.
        document: returns the text of the whole document that is submitted; None where we write it.

    Raises:
        UsageProblem: the file cannot be read, or says what it may not.
    """
    found = find(folder)
    if found is None:
        return options, ()
    filled, taken = Namespace(**vars(options)), []
    if found.profile and not options.profile:
        filled.profile = found.profile
        taken.append(f"profile {found.profile}")
    named = _secrets_of(document()) if document is not None and "secret" in found.options else None
    for name, words in found.options.items():
        if document is not None and name not in _WITH_DOCUMENT:
            continue
        new = [word for word in words if name != "secret" or named is None or word.split("=")[0] in named]
        taken += [f"--{name} {word}" for word in _fill(filled, options, name, new)]
    if not taken:
        return filled, ()
    said = f"File `{found.file.name}` sets {', '.join(taken)}."
    return filled, (Problem("hint", "folder-defaults", said, hint="Options that you give go before it."),)


def _fill(filled: Namespace, given: Namespace, name: str, words: list[str]) -> list[str]:
    """Set one option where the user has said nothing; return the words that were taken."""
    option = _known()[name]
    now = getattr(given, option.attribute, None)
    if name in _ONE_ROLE and given.role:
        return []
    if option.kind == "list":
        # NAME=VALUE: single names; all else as a whole.
        own = {word.split("=")[0] for word in now or ()}
        by_name = name in ("param", "env", "secret", "data")
        new = [word for word in words if word.split("=")[0] not in own] if by_name or not now else []
        setattr(filled, option.attribute, [*new, *(now or ())])
        return new
    if now not in (None, False) or not words:
        return []
    setattr(filled, option.attribute, True if option.kind == "flag" else words[0])
    return words


def find(folder: Path) -> FolderDefaults | None:
    """Return what the nearest file says: the folder's, or one above it in the same git repository."""
    places = [folder, *folder.parents]
    root = next((place for place in places if (place / ".git").exists()), folder)
    for place in places[: places.index(root) + 1]:
        file = place / NAME
        if file.is_file():
            return read(file)
    return None


def read(file: Path) -> FolderDefaults:
    """Read a folder's file.

    Raises:
        UsageProblem: it cannot be read, or says what it may not; values are not repeated.
    """
    import yaml

    try:
        content = file.read_bytes()
        if len(content) > _LARGEST:
            raise _wrong(file, f"is larger than {_LARGEST // 1024} KiB")
        data = yaml.safe_load(content) or {}
    except OSError as error:
        raise _wrong(file, f"cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise _wrong(file, f"is not valid YAML{f' in line {mark.line + 1}' if mark else ''}") from None
    if not isinstance(data, dict):
        raise _wrong(file, "is not a mapping", "It may have `profile` and `defaults`.")
    for key in data:
        if key not in ("profile", "defaults"):
            raise _forbidden(file, str(key))
    profile, defaults = data.get("profile"), data.get("defaults") or {}
    if profile is not None and not isinstance(profile, str):
        raise _wrong(file, "sets `profile` to something that is no name", _MAY)
    if not isinstance(defaults, dict):
        raise _wrong(file, "sets `defaults` to something that is no mapping of options", _MAY)
    options = {str(name).lstrip("-"): value for name, value in defaults.items()}
    return FolderDefaults(
        file, profile or None, {name: _words(file, name, value) for name, value in options.items()}
    )


_MAY = (
    "A folder may choose a profile and defaults, never an endpoint or a credential: "
    "those belong into your profiles (`profile add`) and your keyring (`secret set`)."
)


def _known() -> dict[str, Option]:
    options = {option.name.lstrip("-"): option for option in SUBMIT_OPTIONS if option.name.startswith("--")}
    return {name: option for name, option in options.items() if name not in _WHAT | _HOW}


def _words(file: Path, name: str, value: Any) -> list[str]:
    option = _known().get(name)
    if option is None:
        raise _forbidden(file, name)
    if option.kind == "flag":
        if not isinstance(value, bool):
            raise _wrong(file, f"sets `{name}` to something that is neither true nor false")
        return ["true"] if value else []
    words = _listed(file, name, value) if option.kind == "list" else [_scalar(file, name, value)]
    _refuse_credentials(file, name, words)
    if name == "package":
        words = [_below(file, words[0])]
    return words


def _listed(file: Path, name: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        typed = name == "param"  # its values keep their type, as JSON
        return [
            f"{key}={json.dumps(item) if typed else _scalar(file, name, item)}" for key, item in value.items()
        ]
    items = value if isinstance(value, list) else [value]
    return [_scalar(file, name, item) for item in items]


def _scalar(file: Path, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong(file, f"sets `{name}` to something that is neither a text nor a number")
    return str(value)


def _refuse_credentials(file: Path, name: str, words: list[str]) -> None:
    from paijupyter.protocol.credentials import plain_credentials
    from paijupyter.protocol.secrets import parse_secret

    for word in words:
        key, _, value = word.partition("=")
        if name == "secret":
            try:
                parse_secret(word)
            except UsageProblem as error:
                raise _wrong(file, f"is wrong: {error.message}", error.hint) from None
        elif list(plain_credentials({key: value} if name in ("env", "param") else word)):
            shown = f"{name}: {key}" if name in ("env", "param") else name
            raise _wrong(file, f"has a credential in `{shown}`", _MAY)


def _below(file: Path, text: str) -> str:
    place = Path(text)
    if place.is_absolute() or text.startswith("~"):
        raise _wrong(file, "sets `package` to a folder elsewhere", "Write a path that begins at this file.")
    return str(file.parent / place)


def _secrets_of(text: str) -> frozenset[str]:
    from paijupyter.protocol import read as read_document

    return frozenset(map(str, read_document(text).data.get("secrets") or ()))


def _forbidden(file: Path, key: str) -> UsageProblem:
    return _wrong(file, f"sets `{key[:40]}`, which is not for a folder to say", _MAY)


def _wrong(file: Path, what: str, hint: str = "") -> UsageProblem:
    return UsageProblem(f"File `{file}` {what}.", hint)
