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
        PaiJupyterError: ``runtime-dir-unsafe`` if the folder belongs to somebody else or others may enter it.
    """
    override = os.environ.get("PAIJUPYTER_RUNTIME_DIR")
    if override:
        base = Path(override).expanduser().absolute()
    elif os.environ.get("XDG_RUNTIME_DIR"):
        base = Path(os.environ["XDG_RUNTIME_DIR"]) / "paijupyter"
    else:
        base = Path(tempfile.gettempdir()) / f"paijupyter-{os.getuid()}"
    digest = hashlib.sha256(os.fsencode(data_dir())).hexdigest()[:8]
    folder = base / digest
    for each in (base, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(each)
    return folder


def engine_socket() -> Path:
    """Return the path of the engine's Unix socket (its length stays below the limit of 107 bytes)."""
    return runtime_dir() / "engine.sock"


def _check_private(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PaiJupyterError(
            "runtime-dir-unsafe",
            f"The runtime folder `{folder}` is not a private folder of yours.",
            "Remove it, or set PAIJUPYTER_RUNTIME_DIR to a folder that only you may enter.",
            500,
        )
