"""Checks of this installation, each with what mends it.

What this side sees is looked at here: runtime folder, programs, interpreter, Jupyter. What only the engine
sees (its folders, disk, clock, keyring, profiles) it is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter import paths
from paijupyter.backends.accounts import Check
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs import checks as looks

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

SOCKET_LIMIT = 107  # bytes; what Linux takes for the path of a Unix socket
_OLDEST = (3, 6)  # of the interpreter that a task runs with
_SECONDS = 20


def examine(connect: Callable[[], JobsClient], python: str | None = None) -> list[Check]:
    """Look at everything that a job needs.

    Args:
        connect: returns a client of the engine.
        python: the interpreter that local tasks would run with; None: `python` on PATH.
    """
    checks = [
        _guarded("runtime folder", _runtime_folder),
        _guarded("socket path", _socket_path),
        _program("bash", "Install bash: tasks on the local profile run their command with it."),
        _interpreter(python or shutil.which("python")),
        _guarded("Jupyter extension", _extension),
    ]
    engine = _guarded("engine", lambda: _engine(connect()))
    checks.append(engine)
    return [*checks, *(_engines_checks(connect()) if engine.ok else _in_its_place())]


def _engines_checks(client: JobsClient) -> list[Check]:
    try:
        return [_of_engine(each) for each in client.settings.doctor()]
    except PaiJupyterError as error:
        return [Check("engine's checks", False, error.message, error.hint)]


def _in_its_place() -> list[Check]:
    """Look at what may be the reason why there is no engine."""
    data = paths.data_dir()
    checks = [looks.folder("data folder", data)]
    return [*checks, _guarded("disk", lambda: looks.room(data))] if data.is_dir() else checks


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except PaiJupyterError as error:
        return Check(name, False, error.message, error.hint)
    except OSError as error:
        return Check(name, False, str(error))


def _of_engine(facts: Mapping[str, Any]) -> Check:
    return Check(**{name: facts[name] for name in Check.__dataclass_fields__ if name in facts})


def _runtime_folder() -> Check:
    return Check("runtime folder", True, f"`{paths.runtime_dir()}`, private")


def _socket_path() -> Check:
    path = paths.engine_socket()
    length = len(os.fsencode(path))
    said = f"{length} of at most {SOCKET_LIMIT} bytes"
    if length <= SOCKET_LIMIT:
        return Check("socket path", True, said)
    fix = f"export PAIJUPYTER_RUNTIME_DIR=/tmp/paijupyter-{os.getuid()}"
    return Check("socket path", False, f"`{path}` has {said}", fix)


def _program(name: str, fix: str) -> Check:
    found = shutil.which(name)
    return Check(name, True, f"`{found}`") if found else Check(name, False, "not on PATH", fix)


def _interpreter(python: str | None) -> Check:
    """Start the interpreter of tasks and ask for its version; an environment may be half removed."""
    name, fix = "interpreter", "Activate an environment, so that `python` is on PATH."
    if python is None:
        return Check(name, False, "`python` is not on PATH", fix)
    try:
        done = subprocess.run(
            [python, "-c", "import sys, ssl, zlib; print(*sys.version_info[:3], sep='.')"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, f"`{python}` cannot be started: {error}", fix)
    version = done.stdout.strip()
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it fails"])[-1]
        return Check(name, False, f"`{python}` is broken: {said}", fix)
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        return Check(name, False, f"`{python}` is Python {version}; tasks need 3.6 or later", fix)
    return Check(name, True, f"Python {version}, `{python}`")


def _extension() -> Check:
    """Look whether a Jupyter server started here would load the extension."""
    name, fix = "Jupyter extension", "jupyter server extension enable paijupyter"
    enabled, file = None, ""
    for path, content in _server_configurations():
        found = ((content.get("ServerApp") or {}).get("jpserver_extensions") or {}).get("paijupyter")
        if isinstance(found, bool):
            enabled, file = found, str(path)
    if enabled:
        return Check(name, True, f"enabled in `{file}`", needed=False)
    said = f"disabled in `{file}`" if enabled is False else "not enabled in this environment"
    return Check(name, False, said, fix, needed=False)


def _server_configurations() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Return the files of configuration of a Jupyter server, in the order in which later ones win."""
    from jupyter_core.paths import jupyter_config_path

    for folder in reversed(jupyter_config_path()):
        parts = sorted((Path(folder) / "jupyter_server_config.d").glob("*.json"))
        for path in [*parts, Path(folder) / "jupyter_server_config.json"]:
            try:
                content = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            if isinstance(content, dict):
                yield path, content


def _engine(client: JobsClient) -> Check:
    from paijupyter._version import __version__

    version = client.version()
    engine = version.get("engine") or {}
    said = f"version {version.get('version')}, process {engine.get('pid')}"
    if version.get("version") != __version__:
        fix = "pip install --upgrade paijupyter (here and where the server runs), then restart the kernel."
        return Check("engine", False, f"{said}; this side is {__version__}", fix)
    return Check("engine", True, said)
