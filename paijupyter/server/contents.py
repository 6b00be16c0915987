"""Contents paths of a Jupyter server: what a browser calls a folder, and where it lies on this host."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from jupyter_core.paths import is_hidden
from jupyter_server.services.contents.fileio import FileManagerMixin
from tornado.web import HTTPError

from paijupyter.errors import NotFound, PaiJupyterError


def folder_of(manager: Any, path: str) -> Path:
    """Return the absolute folder of a contents path.

    Args:
        manager: the server's contents manager.
        path: the contents path; "" is the root.

    Raises:
        PaiJupyterError: ``contents-not-files`` if the manager keeps no files on this host.
        NotFound: if there is no such folder below the root, or it is hidden.
    """
    found = place_of(manager, path)
    if not found.is_dir():
        raise _nowhere(path)
    return found


def place_of(manager: Any, path: str) -> Path:
    """Return where a contents path lies, whether it exists or not; raises as :func:`folder_of`."""
    if not isinstance(manager, FileManagerMixin):
        raise PaiJupyterError(
            "contents-not-files",
            f"The contents of this server ({type(manager).__name__}) are not files on its host.",
            "Use a notebook cell (%%paijob, %paijob pull): its kernel works in its own folder.",
            409,
        )
    root = Path(manager.root_dir).resolve()
    try:
        found = Path(manager._get_os_path(path.strip("/")))
    except (HTTPError, ValueError):
        raise _nowhere(path) from None
    # Also what is reached by a link must lie below the root: the server shows it, a job would carry it off.
    real = found.resolve()
    if real != root and root not in real.parents:
        raise _nowhere(path)
    below = Path(os.path.abspath(found))
    if not manager.allow_hidden and (
        is_hidden(str(below), manager.root_dir) or is_hidden(str(real), str(root))
    ):
        raise _nowhere(path)
    return found


def interpreter_of(manager: Any, kernelspec: str) -> str | None:
    """Return the interpreter of a kernel of this server: where forms and buttons run jobs of this host.

    Args:
        manager: the server's kernel spec manager.
        kernelspec: name of the kernel.
    """
    try:
        first = manager.get_kernel_spec(kernelspec).argv[0]
    except (KeyError, IndexError):  # NoSuchKernel is a KeyError
        return None
    if first in {"python", "python3"}:  # as the server's own kernels are started
        return sys.executable
    return shutil.which(first)


def _nowhere(path: str) -> NotFound:
    return NotFound("Folder", path, "Name a folder as the file browser does, below the server's root.")
