"""Where the Jupyter server is that this process belongs to: for links that a browser can follow."""

from __future__ import annotations

import json
import os
from pathlib import Path


def server_base() -> str:
    """Return the server's whole address, or its path, each with a slash at its end; "" if there is none.

    A terminal of JupyterLab knows the address. A kernel knows its Hub's path, or its server's process id,
    whose file in the runtime folder has the path.
    """
    url = os.environ.get("JUPYTER_SERVER_URL", "")
    if url.startswith(("http://", "https://")):
        return url.partition("?")[0].rstrip("/") + "/"
    prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "")
    if prefix.startswith("/"):
        return prefix.rstrip("/") + "/"
    parent = os.environ.get("JPY_PARENT_PID", "")
    return _of_process(parent) if parent.isdigit() else ""


def _of_process(pid: str) -> str:
    from jupyter_core.paths import jupyter_runtime_dir

    try:
        found = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{pid}.json").read_bytes())
        base = found["base_url"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return base.rstrip("/") + "/" if isinstance(base, str) and base.startswith("/") else ""


def server_address() -> str:
    """Return the server's whole address; "" where only its path is known, which leads nowhere in text."""
    base = server_base()
    return base if "://" in base else ""
