"""Find the engine of this user and host, or start it.

Whoever needs it first starts it. Several may try at once: the engine's lock lets one in, and all
get the same.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from paijupyter import paths
from paijupyter._version import __version__
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

COMMAND = ("-m", "paijupyter.engine", "--detach")
_START_SECONDS = 60.0
_NOT_FOR_IT = ("JPY_", "JUPYTERHUB_")


def ensure_engine(seconds: float = _START_SECONDS) -> Path:
    """Return the socket of an engine that answers.

    Args:
        seconds: how long a start may take.

    Raises:
        PaiJupyterError: ``engine-failed`` if it cannot be started; the sentence says why.
    """
    path = paths.engine_socket()
    end = time.monotonic() + seconds
    while not answers(path):
        if time.monotonic() > end:
            raise _failed("it did not answer in time", path.parent)
        _start(path.parent, end)
    return path


def answers(path: Path) -> bool:
    """Say whether somebody listens on the engine's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # its queue of connections is full
        except OSError:
            return False
        return True


def _start(runtime: Path, end: float) -> None:
    """Start a process and wait until it says what became of it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    log = os.open(runtime / "engine.log", flags, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, *COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=runtime,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(str(error), runtime) from error
    finally:
        os.close(log)
    with process:
        line = _first_line(process, end)
        if time.monotonic() > end:
            process.kill()  # it should have ended at once, when the engine left it
    if line in {"ready", "served"}:
        return
    raise _told(line, runtime)


def _first_line(process: subprocess.Popen[bytes], end: float) -> str:
    if process.stdout is None:
        return ""
    got = b""
    while not got.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(process.stdout.fileno(), 4096) if ready else b""
        if not piece:
            break
        got += piece
    return got.decode("utf-8", "replace").strip()


def _told(line: str, runtime: Path) -> PaiJupyterError:
    try:
        cause = PaiJupyterError.from_problem_json(json.loads(line))
    except (ValueError, AttributeError):
        return _failed("it ended at once", runtime)
    return _failed(str(cause), runtime)


def _failed(why: str, runtime: Path) -> PaiJupyterError:
    return PaiJupyterError(
        "engine-failed",
        f"The engine could not be started: {why.rstrip('.')}.",
        f"Its log is {runtime / 'engine.log'}.",
        503,
    )


def _environment() -> dict[str, str]:
    """Return the environment for the engine: ours, without what belongs to one kernel or server."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_FOR_IT) and not name.endswith("_TOKEN")
    }


def current_engine(client: JobsClient) -> None:
    """Replace the engine if it is older than this client; running tasks notice nothing.

    Raises:
        PaiJupyterError: ``engine-failed`` if the new one cannot be started.
    """
    from paijupyter.client.client import is_older

    if not is_older(client.version()["version"]):
        return
    try:
        client.ask("POST", "/v1/engine/handover", body={"version": __version__})
    except PaiJupyterError as error:
        if error.code != "not-newer":
            raise
        return  # somebody else has replaced it meanwhile
    ensure_engine()
