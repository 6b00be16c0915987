"""Checks of this installation, each with what mends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from paijupyter import paths
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, whether it is well, what was seen, what mends it."""

    name: str
    ok: bool
    message: str
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return asdict(self)


def examine(connect: Callable[[], JobsClient]) -> list[Check]:
    """Look at folders, engine, profiles and the programs that local tasks need.

    Args:
        connect: returns a client of the engine.
    """
    checks = [
        _guarded("data folder", _data_folder),
        _guarded("runtime folder", lambda: Check("runtime folder", True, f"`{paths.runtime_dir()}`")),
        _program("bash", "Install bash: tasks on the local profile run their command with it."),
        _program("python", "Activate an environment, so that `python` is on PATH."),
    ]
    engine = _guarded("engine", lambda: _engine(connect()))
    checks.append(engine)
    if engine.ok:
        checks.append(_guarded("profiles", lambda: _profiles(connect())))
    return checks


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except PaiJupyterError as error:
        return Check(name, False, error.message, error.hint)
    except OSError as error:
        return Check(name, False, str(error))


def _data_folder() -> Check:
    folder = paths.data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "Make it writable, or set PAIJUPYTER_DATA_DIR to another folder."
        return Check("data folder", False, f"`{folder}` cannot be written", fix)
    free = shutil.disk_usage(folder).free
    from paijupyter.client.words import size

    return Check("data folder", True, f"`{folder}`, {size(free)} free")


def _program(name: str, fix: str) -> Check:
    found = shutil.which(name)
    return Check(name, True, f"`{found}`") if found else Check(name, False, "not on PATH", fix)


def _engine(client: JobsClient) -> Check:
    from paijupyter._version import __version__

    version = client.version()
    engine = version.get("engine") or {}
    said = f"version {version.get('version')}, process {engine.get('pid')}"
    if version.get("version") != __version__:
        fix = f"This side is {__version__}. The engine hands over once its jobs have ended."
        return Check("engine", False, said, fix)
    return Check("engine", True, said)


def _profiles(client: JobsClient) -> Check:
    found = client.profiles()
    away = [each for each in found if each.get("unreachable")]
    names = ", ".join(str(each.get("name")) for each in found)
    if away:
        return Check("profiles", False, f"`{away[0]['name']}`: {away[0]['unreachable']}")
    return Check("profiles", True, names)
