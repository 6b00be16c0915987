"""TensorBoard on the outputs of jobs: one process per job on the loopback, opened through the Jupyter server.

A board ends when nobody has asked it anything for a while, when its job is deleted, and with the engine,
however that ends: it reads a pipe whose other end is here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.outputs import list_outputs

TASK = "outputs"
"""Where a port's address names its task, this stands for a job's outputs; a task's name has an index."""
LABEL = "tensorboard"
IDLE_SECONDS = 1800.0
_BEGIN_SECONDS = 120.0  # the first import of TensorBoard on a slow disk
_END_SECONDS = 5.0
_MARK = "tfevents"  # in the name of every file of events that TensorBoard reads

# By TensorBoard's interface for programs (tensorboard.program). Run by -c: no module beside it hides another.
_PROGRAM = """\
import importlib.util, json, os, sys

def begin(folder):
    if importlib.util.find_spec("tensorboard") is None:
        return {"missing": sys.prefix}
    try:
        from tensorboard import program
        board = program.TensorBoard()
        board.configure(["tensorboard", "--logdir", folder, "--host", "127.0.0.1", "--port", "0"])
        return {"url": board.launch()}
    except (Exception, SystemExit) as error:
        return {"problem": f"{type(error).__name__}: {error}"}

print(json.dumps(begin(sys.argv[1])), flush=True)
os.dup2(2, 1)
sys.stdin.read()
os._exit(0)
"""


@dataclass
class Board:
    """A TensorBoard that runs.

    Attributes:
        number: of its port on this host.
        used: when somebody asked for it last, on the monotonic clock.
    """

    process: asyncio.subprocess.Process
    number: int
    used: float


class Boards:
    """Starts boards and ends them.

    Args:
        catalog: where jobs are kept.
        idle: seconds without a question after which a board ends.
    """

    def __init__(self, catalog: Catalog, idle: float = IDLE_SECONDS) -> None:
        self._catalog = catalog
        self._idle = idle
        self._boards: dict[str, Board] = {}
        self._starting = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    @property
    def busy(self) -> int:
        """How many boards run."""
        return len(self._boards)

    async def open(self, ref: str, python: str | None = None) -> dict[str, Any]:
        """Start the board of a job, or find it: ``{task, label, port, path}``, as a port of a task.

        Args:
            ref: the job.
            python: the interpreter whose TensorBoard it is; None: this one's.

        Raises:
            Conflict: ``no-events`` where the outputs have no file of events, ``no-tensorboard`` where it is
                not installed.
            PaiJupyterError: ``tensorboard-failed``.
        """
        row = self._catalog.find(ref)
        folder = self._catalog.job(row).record.folder
        async with self._starting:
            if self._running(row.id) is None:
                if not await asyncio.to_thread(_has_events, folder):
                    raise Conflict(
                        "no-events",
                        f"Job `{row.name}` has left no file of events that TensorBoard reads.",
                        f"Write them below $PAI_OUTPUT_DIR; their names have `{_MARK}` in them.",
                    )
                self._boards[row.id] = await _started(python or sys.executable, folder / "output")
                if self._watch is None:
                    self._watch = asyncio.create_task(self._end_idle())
        number = self._boards[row.id].number
        path = f"paijupyter/v1/jobs/{row.id}/ports/{TASK}/{LABEL}/"
        return {"task": TASK, "label": LABEL, "port": number, "path": path}

    def number(self, ref: str, label: int | str) -> int:
        """Return the port of a job's board on this host; to ask is to use it.

        Raises:
            NotFound: ``label`` is no board's.
            Conflict: ``not-running``.
        """
        row = self._catalog.find(ref)
        if label != LABEL:
            raise NotFound("Port", f"{TASK} {label}", f"Outputs are shown by: {LABEL}.")
        board = self._running(row.id)
        if board is None:
            raise Conflict(
                "not-running",
                f"TensorBoard of `{row.name}` does not run (any more).",
                "Open it from the job's card, below Outputs.",
            )
        board.used = time.monotonic()
        return board.number

    async def end(self, job: str) -> None:
        """End the board of a job, if it has one."""
        board = self._boards.pop(job, None)
        if board is not None:
            await _ended(board.process)

    async def close(self) -> None:
        """End all boards."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await asyncio.gather(*(self.end(job) for job in list(self._boards)))

    def _running(self, job: str) -> Board | None:
        board = self._boards.get(job)
        return board if board is not None and board.process.returncode is None else None

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(min(60.0, self._idle / 4))
            for job, board in list(self._boards.items()):
                if board.process.returncode is not None or time.monotonic() - board.used >= self._idle:
                    await self.end(job)


def _has_events(job: Path) -> bool:
    return any(_MARK in str(each["path"]).rpartition("/")[2] for each in list_outputs(job))


async def _started(python: str, folder: Path) -> Board:
    try:
        process = await asyncio.create_subprocess_exec(
            python,
            "-c",
            _PROGRAM,
            str(folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(f"{python}: {error.strerror or error}") from error
    try:
        number = await asyncio.wait_for(_number(process, python), _BEGIN_SECONDS)
    except asyncio.TimeoutError:
        await _ended(process)
        raise _failed(f"it does not serve after {_BEGIN_SECONDS:.0f} s") from None
    except BaseException:
        await _ended(process)
        raise
    return Board(process, number, time.monotonic())


async def _number(process: asyncio.subprocess.Process, python: str) -> int:
    """Return the port that a board says it serves on."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe, as asked for
    line = await process.stdout.readline()
    said = json.loads(line) if line else {"problem": "it ended at once"}
    if "missing" in said:
        raise Conflict(
            "no-tensorboard",
            f"TensorBoard is not installed in `{said['missing']}`, the environment of this Jupyter server.",
            f"Install it there: {python} -m pip install tensorboard",
        )
    if "problem" in said:
        raise _failed(str(said["problem"]))
    return int(said["url"].rstrip("/").rpartition(":")[2])


def _failed(why: str) -> PaiJupyterError:
    return PaiJupyterError("tensorboard-failed", f"TensorBoard cannot be started: {why}.", "", 409)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Let a process go by the end of its input; kill it where that does not do."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_SECONDS)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
