"""Where things live on this host: the data folder, the runtime folder, the engine's socket.

Set ``PAIJUPYTER_DATA_DIR`` or ``PAIJUPYTER_RUNTIME_DIR`` to move them. The runtime folder is local to the
host and 0700; its name holds a digest of the data folder, so that one engine serves one data folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from paijupyter.errors import PaiJupyterError

SHORT_PLACE = Path("/tmp")  # noqa: S108 - a folder in it is used only if it is 0700 and ours
_SOCKET = "engine.sock"
_LONGEST = 103 - len(".new")  # bytes of a socket's path (107 on Linux); it is made beside its place


def data_dir() -> Path:
    """Return the folder of job records and packages (``<jupyter data dir>/paijupyter``)."""
    override = os.environ.get("PAIJUPYTER_DATA_DIR")
    if override:
        return Path(override).expanduser().absolute()
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()).absolute() / "paijupyter"


def runtime_dir() -> Path:
    """Return the 0700 folder of lock, socket and secrets, made if absent.

    Raises:
        PaiJupyterError: ``runtime-dir-unsafe`` if the folder belongs to somebody else or others may enter it;
            ``runtime-dir-too-long`` if a socket in it could not be reached.
    """
    folder = _base() / hashlib.sha256(os.fsencode(data_dir())).hexdigest()[:8]
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(each)
    return folder


def engine_socket() -> Path:
    """Return the path of the engine's Unix socket."""
    return runtime_dir() / _SOCKET


def _base() -> Path:
    """Return the folder of runtime folders: the user's choice, else the first place that is short enough."""
    override = os.environ.get("PAIJUPYTER_RUNTIME_DIR")
    if override:
        chosen = Path(override).expanduser().absolute()
        if not _is_short(chosen):
            raise PaiJupyterError(
                "runtime-dir-too-long",
                f"The runtime folder `{chosen}` has too long a name for a socket in it.",
                "Set PAIJUPYTER_RUNTIME_DIR to a shorter path on a disk of this machine.",
                500,
            )
        return chosen
    private = f"paijupyter-{os.getuid()}"
    places = [Path(tempfile.gettempdir()) / private, SHORT_PLACE / private]
    if os.environ.get("XDG_RUNTIME_DIR"):
        places.insert(0, Path(os.environ["XDG_RUNTIME_DIR"]) / "paijupyter")
    return next((place for place in places if _is_short(place)), places[-1])


def _is_short(base: Path) -> bool:
    return len(os.fsencode(base / ("0" * 8) / _SOCKET)) <= _LONGEST


def _check_private(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PaiJupyterError(
            "runtime-dir-unsafe",
            f"The runtime folder `{folder}` is not a private folder of yours.",
            "Remove it, or set PAIJUPYTER_RUNTIME_DIR to a folder that only you may enter.",
            500,
        )
