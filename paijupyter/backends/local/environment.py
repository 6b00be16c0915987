"""What the boot process of a task inherits: an allow list, so that no credential of the engine leaks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_ALLOWED = re.compile(
    r"HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|SHELL|PATH|LD_LIBRARY_PATH|DYLD_\w+"
    r"|(CUDA|NVIDIA|OMP|OPENBLAS|MKL|SSL_CERT)_\w+|\w+_(proxy|PROXY)"
)
_DENIED = re.compile(r"(?i)(JUPYTERHUB_|JPY_)\w*|\w*(TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY)")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def inherited(environment: Mapping[str, str], python: str | None) -> dict[str, str]:
    """Return the part of an environment that a task may see, its interpreter's folder first on PATH."""
    kept = {
        name: value
        for name, value in environment.items()
        if _ALLOWED.fullmatch(name) and not _DENIED.fullmatch(name)
    }
    path = kept.get("PATH", _DEFAULT_PATH)
    if python:
        # Not resolved: the folder of a virtual environment is what makes its packages found.
        path = os.pathsep.join([os.path.dirname(python), path])
    kept["PATH"] = path
    return kept
