"""Profiles: named, configured backends, from the administrator's and the user's files.

::

    default: team
    profiles:
      team: {kind: local, cpu: 16}

Administrators' files are ``paijupyter/profiles.d/*.yaml`` on the Jupyter configuration path, from its end to
its start; the user's is ``paijupyter/profiles.yaml`` in the Jupyter configuration folder, read last. Later
ones replace single fields. ``local`` always exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paijupyter.backends import base
from paijupyter.backends.base import Profile
from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)
_Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Profiles:
    """All profiles at one moment.

    Attributes:
        default: name of the profile that is taken when none is named.
        by_name: the profiles.
        problems: one sentence per file that could not be used.
    """

    default: str = "local"
    by_name: Mapping[str, Profile] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

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

    def to_json(self) -> list[dict[str, Any]]:
        """Return the profiles as screens list them: the default first, then by name."""
        kinds = base.backend_kinds()
        ordered = sorted(self.by_name.values(), key=lambda each: (each.name != self.default, each.name))
        return [
            {
                "name": each.name,
                "kind": each.kind,
                "default": each.name == self.default,
                "usable": each.kind in kinds,
                "reason": "" if each.kind in kinds else _not_installed(each.kind, kinds),
                "settings": dict(each.settings),
            }
            for each in ordered
        ]


class ProfileFiles:
    """Reads the files again whenever one of them has changed."""

    def __init__(self) -> None:
        self._seen: _Signature | None = None
        self._profiles = Profiles()

    def read(self) -> Profiles:
        """Return the profiles as the files are now; a file that cannot be read is left out and named."""
        files = list(_files())
        signature = tuple(_signature(file) for file in files)
        if signature != self._seen:
            self._profiles = load(files)
            self._seen = signature
            for problem in self._profiles.problems:
                _log.warning("%s", problem)
        return self._profiles


def load(files: list[Path]) -> Profiles:
    """Read profile files, the least important first."""
    default, problems = "local", list[str]()
    fields: dict[str, dict[str, Any]] = {"local": {"kind": "local"}}
    for file in files:
        try:
            content = yaml.safe_load(file.read_bytes()) or {}
            named = _checked(content)
        except FileNotFoundError:
            continue
        except (OSError, yaml.YAMLError, ValueError) as error:
            problems.append(f"Profile file `{file}` is left out: {_one_line(error)}")
            continue
        default = content.get("default") or default
        for name, settings in named.items():
            fields[name] = {**fields.get(name, {}), **settings}
    profiles = {
        name: Profile(
            name, str(settings.get("kind", name)), {k: v for k, v in settings.items() if k != "kind"}
        )
        for name, settings in fields.items()
    }
    if default not in profiles:
        problems.append(f"Default profile `{default}` does not exist; `local` is taken.")
        default = "local"
    return Profiles(default, profiles, tuple(problems))


def _checked(content: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(content, dict):
        raise ValueError("it is not a mapping with `profiles` and `default`")
    named = content.get("profiles") or {}
    if not isinstance(named, dict) or not all(isinstance(each, dict | None) for each in named.values()):
        raise ValueError("`profiles` is not a mapping of names to settings")
    if not isinstance(content.get("default", ""), str | None):
        raise ValueError("`default` is not a name")
    return {str(name): settings or {} for name, settings in named.items()}


def _files() -> Iterator[Path]:
    from jupyter_core.paths import jupyter_config_dir, jupyter_config_path

    for folder in reversed(jupyter_config_path()):
        yield from sorted((Path(folder) / "paijupyter" / "profiles.d").glob("*.yaml"))
    yield Path(jupyter_config_dir()) / "paijupyter" / "profiles.yaml"


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
