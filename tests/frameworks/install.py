"""Make the interpreters that tests/frameworks needs, outside of the tree, once (``make test-frameworks``).

PyPI's packages go into virtual environments below ``$XDG_CACHE_HOME/paijupyter-tests``; PyTorch and MPI are
Debian's, for ``/usr/bin/python3`` (PyPI's ``torch`` brings gigabytes of CUDA libraries). What cannot be
installed here is said, and its test is skipped with the same words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ENVIRONMENTS = {"paddle": "paddlepaddle==3.*", "jax": "jax>=0.5,<1"}
DEBIAN = {"torch": ("torch", ["python3-torch"]), "mpi": ("mpi4py", ["python3-mpi4py", "openmpi-bin"])}
_SYSTEM = "/usr/bin/python3"


def cache() -> Path:
    """Return the folder of the environments."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "paijupyter-tests"


def interpreter(name: str) -> Path:
    """Return the interpreter of a framework, whether it is there or not."""
    if name in DEBIAN:
        return Path(_SYSTEM)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache() / f"{name}-py{version}" / "bin" / "python"


def lacks(name: str) -> str:
    """Say why a framework cannot be used here, "" if it can."""
    python = interpreter(name)
    module = DEBIAN[name][0] if name in DEBIAN else name
    if python.exists():
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True)
        if found.returncode == 0:
            return ""
    reason = _reason(name)
    return reason.read_text() if reason.exists() else f"{name} is not installed: make test-frameworks"


def main() -> int:
    """Install all of them; return 0 also if some cannot be: their tests say so."""
    cache().mkdir(parents=True, exist_ok=True)
    for name in (*DEBIAN, *ENVIRONMENTS):
        if not lacks(name):
            continue
        begin = time.monotonic()
        problem = _debian(DEBIAN[name][1]) if name in DEBIAN else _environment(name, ENVIRONMENTS[name])
        if problem:
            _reason(name).write_text(f"{name} cannot be installed: {problem}")
        else:
            _reason(name).unlink(missing_ok=True)
        print(f"{name}: {problem or 'installed'} ({time.monotonic() - begin:.0f} s)", flush=True)
    return 0


def _reason(name: str) -> Path:
    return cache() / f"{name}.reason"


def _environment(name: str, requirement: str) -> str:
    folder = interpreter(name).parents[1]
    shutil.rmtree(folder, ignore_errors=True)
    pip = [
        str(interpreter(name)),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        requirement,
    ]
    problem = _run([sys.executable, "-m", "venv", str(folder)]) or _run(pip)
    if problem:
        shutil.rmtree(folder, ignore_errors=True)
    return problem


def _debian(packages: list[str]) -> str:
    wanted = " ".join(packages)
    if not shutil.which("apt-get"):
        return f"this is no Debian, which has {wanted}"
    if os.geteuid() != 0:
        return f"only root can: apt-get install {wanted}"
    get = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
    return _run([*get, "update"]) or _run([*get, "install", "--no-install-recommends", *packages])


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    )
    said = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"exit code {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
