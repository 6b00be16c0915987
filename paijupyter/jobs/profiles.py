"""Profiles: named, configured backends, from the administrator's and the user's files.

::

    default: team
    profiles:
      team: {kind: local, cpu: 16}

Administrators' files are ``paijupyter/profiles.d/*.yaml`` on the Jupyter configuration path, from its end to
its start; the user's is ``paijupyter/profiles.yaml`` in the Jupyter configuration folder, read last. Later
ones replace single fields. ``local`` always exists. A credential is never written in one, only a reference.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from paijupyter.backends import base
from paijupyter.backends.base import Profile
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.credentials import plain_credentials

_log = logging.getLogger(__name__)
_Signature = tuple[tuple[str, int, int], ...]
By = Literal["built-in", "administrator", "user"]


@dataclass(frozen=True, slots=True)
class Source:
    """Who has said something, and in which file ("" where it is built in)."""

    by: By
    file: str = ""


_BUILT_IN = Source("built-in")


@dataclass(frozen=True, slots=True)
class Profiles:
    """All profiles at one moment.

    Attributes:
        default: name of the profile that is taken when none is named.
        by_name: the profiles.
        problems: one sentence per file, or setting in one, that could not be used.
        sources: of each profile and field (``kind`` too), who has said it.
        default_by: who has chosen the default.
    """

    default: str = "local"
    by_name: Mapping[str, Profile] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    sources: Mapping[str, Mapping[str, Source]] = field(default_factory=dict)
    default_by: Source = _BUILT_IN

    def get(self, name: str | None) -> Profile:
        """Return a profile, or the default one.

        Raises:
            PaiJupyterError: ``unknown-profile`` (422).
        """
        wanted = name or self.default
        if wanted in self.by_name:
            return self.by_name[wanted]
        hint = f"Profiles: {', '.join(sorted(self.by_name))}."
        raise PaiJupyterError(
            "unknown-profile",
            f"Profile `{wanted}` does not exist.",
            " ".join([hint, *self.problems]),
            422,
        )

    def has_of(self, name: str, by: By) -> bool:
        """Say whether somebody has said something of a profile."""
        return any(source.by == by for source in self.sources.get(name, {}).values())

    def to_json(self) -> list[dict[str, Any]]:
        """Return the profiles as screens list them: the default first, then by name."""
        ordered = sorted(self.by_name, key=lambda name: (name != self.default, name))
        return [self.one_to_json(name) for name in ordered]

    def one_to_json(self, name: str) -> dict[str, Any]:
        """Return one profile as screens show it, each field with who has said it."""
        kinds, profile = base.backend_kinds(), self.get(name)
        sources = self.sources.get(profile.name, {})
        usable = profile.kind in kinds
        return {
            "name": profile.name,
            "kind": profile.kind,
            "default": profile.name == self.default,
            "usable": usable,
            "reason": "" if usable else _not_installed(profile.kind, kinds),
            "settings": dict(profile.settings),
            "sources": {key: {"by": each.by, "file": each.file} for key, each in sources.items()},
        }


class ProfileFiles:
    """Reads the files again whenever one of them has changed."""

    def __init__(self) -> None:
        self._seen: _Signature | None = None
        self._profiles = Profiles()

    def read(self) -> Profiles:
        """Return the profiles as the files are now; a file that cannot be read is left out and named."""
        files = [*admin_files(), user_file()]
        signature = tuple(_signature(file) for file in files)
        if signature != self._seen:
            self._profiles = load(files)
            self._seen = signature
            for problem in self._profiles.problems:
                _log.warning("%s", problem)
        return self._profiles


def load(files: Sequence[Path], draft: bytes | None = None) -> Profiles:
    """Read profile files, the least important first.

    Args:
        files: the files; the last one is the user's.
        draft: what to take in place of the user's file's content.
    """
    merged = _Merged()
    for file in files:
        by: By = "user" if file == files[-1] else "administrator"
        try:
            content = draft if draft is not None and by == "user" else file.read_bytes()
            merged.take(yaml.safe_load(content) or {}, Source(by, str(file)))
        except FileNotFoundError:
            continue
        except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
            merged.problems.append(f"Profile file `{file}` is left out: {_one_line(error)}")
    return merged.result()


class _Merged:
    """What the files so far say together."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._default, self._default_by = "local", _BUILT_IN
        self._fields: dict[str, dict[str, Any]] = {"local": {"kind": "local"}}
        self._sources: dict[str, dict[str, Source]] = {"local": {"kind": _BUILT_IN}}

    def take(self, content: Any, source: Source) -> None:
        """Let a file replace single fields.

        Raises:
            ValueError: if it is no file of profiles; nothing of it is taken then.
        """
        named = _checked(content)
        if content.get("default"):
            self._default, self._default_by = content["default"], source
        for name, settings in named.items():
            fields, sources = self._fields.setdefault(name, {}), self._sources.setdefault(name, {})
            for key, value in settings.items():
                found = next(plain_credentials(value, str(key)), None)
                if found is not None:
                    self.problems.append(
                        f"Profile `{name}` has a credential itself in `{found}` ({source.file}); it is left "
                        "out. Write a reference, for example keyring:NAME."
                    )
                    continue
                fields[str(key)], sources[str(key)] = value, source
            if not settings:
                sources.setdefault("kind", source)

    def result(self) -> Profiles:
        profiles = {
            name: Profile(
                name, str(fields.get("kind", name)), {k: v for k, v in fields.items() if k != "kind"}
            )
            for name, fields in self._fields.items()
        }
        if self._default not in profiles:
            self.problems.append(f"Default profile `{self._default}` does not exist; `local` is taken.")
            self._default, self._default_by = "local", _BUILT_IN
        return Profiles(self._default, profiles, tuple(self.problems), self._sources, self._default_by)


def _checked(content: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(content, dict):
        raise ValueError("it is not a mapping with `profiles` and `default`")
    named = content.get("profiles") or {}
    if not isinstance(named, dict) or not all(isinstance(each, dict | None) for each in named.values()):
        raise ValueError("`profiles` is not a mapping of names to settings")
    if not isinstance(content.get("default", ""), str | None):
        raise ValueError("`default` is not a name")
    return {str(name): settings or {} for name, settings in named.items()}


def admin_files() -> Iterator[Path]:
    """Return the administrators' files, the least important first."""
    from jupyter_core.paths import jupyter_config_path

    for folder in reversed(jupyter_config_path()):
        yield from sorted((Path(folder) / "paijupyter" / "profiles.d").glob("*.yaml"))


def user_file() -> Path:
    """Return where the user's profiles are, or would be."""
    from jupyter_core.paths import jupyter_config_dir

    return Path(jupyter_config_dir()) / "paijupyter" / "profiles.yaml"


def _signature(file: Path) -> tuple[str, int, int]:
    try:
        found = file.stat()
    except OSError:
        return (str(file), 0, 0)
    return (str(file), found.st_mtime_ns, found.st_size)


def _not_installed(kind: str, kinds: Mapping[str, Any]) -> str:
    return f"No installed package has the kind `{kind}` (installed: {', '.join(sorted(kinds)) or 'none'})."


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
