"""The lab's own processes: started detached, known by pid and start time, ended one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cluster.lab.places import STATE, LabError

_PIDS = STATE / "pids"
_LOGS = STATE / "logs"


def log_of(name: str) -> Path:
    """Return the file that has what a process printed."""
    return _LOGS / f"{name}.log"


def running(name: str) -> int:
    """Return the pid of a process of the lab, 0 if it does not run; never that of another that came later."""
    try:
        pid, born = (_PIDS / name).read_text().split()
    except (OSError, ValueError):
        return 0
    return int(pid) if _born(int(pid)) == born else 0


def start(
    name: str,
    command: Sequence[str | Path],
    ready: Callable[[], bool],
    seconds: float = 90,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start a process unless it runs, and wait until it is ready.

    Raises:
        LabError: It ended, or is not ready after ``seconds``; with the end of its log.
    """
    for folder in (_PIDS, _LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    if not running(name):
        # No Popen: it would complain that the process outlives it, which is what it is there for.
        log = (os.POSIX_SPAWN_OPEN, 1, str(log_of(name)), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), log, (os.POSIX_SPAWN_DUP2, 1, 2)]
        place = ["env", f"--chdir={STATE}", *(str(part) for part in command)]
        variables = os.environ | dict(environment or {})
        pid = os.posix_spawnp("env", place, variables, file_actions=streams, setsid=True)
        (_PIDS / name).write_text(f"{pid} {_born(pid)}")
        _favour(pid)
    wait(lambda: ready() or not running(name), seconds, f"{name} to be ready", name)
    if not running(name):
        raise LabError(f"{name} ended when it was started.\n{tail(name)}")


def stop(name: str, seconds: float = 20, kill: int = signal.SIGTERM) -> None:
    """End a process: first politely, then not. One that does not run is no error."""
    for number in (kill, signal.SIGKILL):
        pid = running(name)
        if not pid:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        with contextlib.suppress(LabError):
            wait(lambda: not running(name), seconds, f"{name} to end")
    (_PIDS / name).unlink(missing_ok=True)


def wait(condition: Callable[[], object], seconds: float, why: str, name: str = "") -> None:
    """Wait for a condition.

    Raises:
        LabError: It is not true after ``seconds``; with the end of the log of process ``name``.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise LabError(f"Waited {seconds:.0f} s for {why}.\n{tail(name) if name else ''}".rstrip())
        time.sleep(0.05)


def tail(name: str) -> str:
    """Return the last lines that a process printed, with the place of the rest."""
    try:
        lines = log_of(name).read_text(errors="replace").splitlines()[-15:]
    except OSError:
        lines = []
    return "\n".join([f"The end of {log_of(name)}:", *lines])


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        LabError: It failed; with what it said.
    """
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise LabError(f"{' '.join(str(part) for part in command[:6])} failed ({done.returncode}): {said}")
    return done.stdout


def _favour(pid: int) -> None:
    """Put a process before the tests: a control plane that is late looks like one that is down."""
    # Where the kernel shares the processor between sessions, the niceness of the session counts.
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("-7")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -7)


def _born(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; "" for none and for one that ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
