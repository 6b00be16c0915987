"""Run the cells of a notebook one after the other, and tell how far it is."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

from ..mask import Mask
from .injecting import DECLARING, INJECTED, inject, tagged, tags
from .main import USAGE, say
from .own_lines import without_job_lines
from .saving import Saver, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

FAILED = 1
_SIGNALS_FROM = 128
_SKIPPED = "pai:skip"
_LONGEST_PATH = 90  # bytes of the path of a kernel's socket: the system's limit is 107
_SHOWN = 4000  # characters of a result in the log
_FIRST_LINE = 80
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PYTHON = "python"


class Refused(Exception):
    """The notebook cannot be run; the text says why."""


def run(path: str, until: "Optional[str]", timeout: "Optional[float]") -> int:
    """Run a notebook; return the exit status: 0, 1 for a failed cell, 128 and more for a killed kernel."""
    secrets = _secrets()
    mask = Mask(secrets)

    def clean(text: str) -> str:
        if not mask.patterns:
            return text
        data = text.encode("utf-8", "surrogatepass")
        return (mask.feed(data) + mask.finish()).decode("utf-8", "surrogatepass")

    try:
        job = _Run(path, until, timeout, clean)
    except Refused as refused:
        say(str(refused))
        return USAGE
    return asyncio.run(job.complete())


def _secrets() -> "List[bytes]":
    folder = os.environ.get("PAI_SECRETS_DIR")
    found = []
    for name in sorted(os.listdir(folder)) if folder and os.path.isdir(folder) else ():
        with open(os.path.join(folder or "", name), "rb") as stream:
            found.append(stream.read())
    return found


class _Run:
    """One run: the notebook with its parameters, its kernel, and what is told of it."""

    def __init__(self, path: str, until: "Optional[str]", timeout: "Optional[float]", clean: "Any") -> None:
        self._clean = clean
        self.notebook = _read(path)
        cells = self.notebook["cells"]
        last = last_cell(cells, until)
        self._numbers: "List[Optional[int]]" = list(range(1, len(cells) + 1))
        parameters = _parameters()
        inserted = self._inject(cells, parameters)
        if inserted is not None and inserted <= last:
            last += 1
        self._last = last
        self._total = self._numbers[last] or len(cells)
        name = os.path.basename(path)
        self.notebook["metadata"]["paijupyter"] = {
            "executed": True,
            "job": (os.environ.get("PAI_JOB_NAME") or "").rpartition("~")[2],
            "jobId": os.environ.get("PAI_JOB_ID") or "",
            "notebook": path,
            "injected": None if inserted is None else inserted + 1,
            "parameters": parameters,
        }
        self._saver = Saver(_target(name), self.notebook, clean)
        self._name = name
        self._timeout = timeout
        self._index = 0
        self._flush: "Optional[asyncio.TimerHandle]" = None
        self._stopped = False
        self._client: "Any" = None

    def _inject(self, cells: "List[Dict[str, Any]]", parameters: "Dict[str, Any]") -> "Optional[int]":
        """Put the parameters in; return the index of their cell if it is a new one.

        The cells keep the numbers that they have in the source.
        """
        if not parameters:
            return None
        language = _language(self.notebook)
        if language != _PYTHON:
            raise Refused("Notebook is in `%s`; parameters can be given to Python only." % language)
        if tagged(cells, DECLARING) is None and tagged(cells, INJECTED) is None:
            say("Notebook has no cell with the tag `parameters`, so the parameters come first.")
        replaces = tagged(cells, INJECTED) is not None
        place = inject(cells, parameters)
        if place is not None:
            cells[place] = _node(cells[place])
        if place is not None and not replaces:
            self._numbers.insert(place, None)
            return place
        return None

    async def complete(self) -> int:
        """Run it, and whatever happens: leave the notebook as far as it has come."""
        from .client import make_client

        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._work(make_client))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, work)
        self._saver.write()
        status = FAILED
        try:
            status = await work
        except asyncio.CancelledError:
            self._saver.take(self._index)
            say("%s was running when the job was stopped." % self._called(self._index))
            status = _SIGNALS_FROM + signal.SIGTERM
        finally:
            if self._flush:
                self._flush.cancel()
            self._saver.write(durable=True)
        return int(status)

    def _stop(self, work: "asyncio.Future[int]") -> None:
        self._stopped = True
        work.cancel()

    async def _work(self, make_client: "Any") -> int:
        folder = _socket_folder()
        try:
            self._client = client = make_client(self, folder, self._timeout)
        except LookupError as error:
            say(str(error))
            return USAGE
        try:
            await client.begin()
            self.notebook["metadata"]["language_info"] = dict(await client.language())
            return await self._cells()
        finally:
            await client.end(at_once=self._stopped)
            shutil.rmtree(folder, ignore_errors=True)

    async def _cells(self) -> int:
        cells = self.notebook["cells"]
        for index in range(self._last + 1):
            cell = cells[index]
            if cell["cell_type"] != "code" or not cell["source"].strip():
                continue
            self._index = index
            if _SKIPPED in tags(cell):
                say("%s is left out (%s)." % (self._called(index), _SKIPPED))
                continue
            code = (
                without_job_lines(cell["source"]) if _language(self.notebook) == _PYTHON else cell["source"]
            )
            if code is None:
                say("%s is left out: it is about jobs." % self._called(index))
                continue
            self._tell(index)
            try:
                status = await self._cell(cell, index, code)
            finally:
                self._saver.take(index)
            self._save()
            if status is not None:
                return status
        self._tell(None)
        return 0

    async def _cell(self, cell: "Dict[str, Any]", index: int, code: str) -> "Optional[int]":
        """Run a cell; return the exit status if it is the last."""
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

        source, cell["source"] = cell["source"], code
        try:
            await self._client.async_execute_cell(cell, index)
        except CellTimeoutError:
            say("%s took longer than its limit of %g s." % (self._called(index), self._timeout or 0))
            return FAILED
        except DeadKernelError:
            if self._stopped:  # nbclient takes every cancellation for the death of its kernel
                raise asyncio.CancelledError from None
            return self._dead(index)
        except CellExecutionError as error:
            if error.ename == "StdinNotImplementedError":
                say("%s asks for input, and nobody answers in a job." % self._called(index))
            value = (str(error.evalue).splitlines() or [""])[0][:500]
            said = "%s raised %s%s" % (self._called(index), error.ename, ": " + value if value else "")
            say(_ANSI.sub("", said))
            return FAILED
        finally:
            cell["source"] = source
        return None

    def _dead(self, index: int) -> int:
        """Say how the kernel died; a signal becomes the status that a shell would give it."""
        code = self._client.exit_code()
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            say("%s was running when its kernel was ended by %s." % (self._called(index), name))
            return int(_SIGNALS_FROM - code)
        how = "" if code is None else " with exit code %d" % code
        say("%s was running when its kernel ended%s." % (self._called(index), how))
        return int(code or FAILED)

    def _called(self, index: int) -> str:
        number = self._numbers[index]
        return "Cell %d" % number if number else "Cell of the parameters"

    def _tell(self, index: "Optional[int]") -> None:
        """Tell that a cell begins, None: that all have run."""
        at = time.time()
        if index is None:
            told = {"cell": self._total, "cells": self._total, "line": "", "at": at, "done": True}
        elif self._numbers[index] is None:
            assigned = self.notebook["cells"][index]["source"].splitlines()[1:]
            say("parameters: %s" % ", ".join(assigned))
            return
        else:
            number = self._numbers[index] or 0
            line = first_line(self.notebook["cells"][index]["source"])
            say("cell %d of %d: %s" % (number, self._total, line))
            told = {"cell": number, "cells": self._total, "line": self._clean(line), "at": at}
        path = os.environ.get("PAI_METRICS_FILE")
        if path and _writes():
            with open(path, "a", encoding="utf-8", errors="replace") as stream:
                stream.write(json.dumps({"notebook": told}) + "\n")

    def _save(self) -> None:
        """Write the notebook now, or as soon as it may be written again."""
        self._saver.save()
        wait = self._saver.due
        if self._flush:
            self._flush.cancel()
            self._flush = None
        if wait != float("inf"):
            self._flush = asyncio.get_running_loop().call_later(wait, self._saver.settle)

    def shown(self, output: "Dict[str, Any]") -> None:
        """Show in the log what a cell puts out; tracebacks without colours."""
        kind = output.get("output_type")
        if kind == "stream":
            text = output.get("text") or ""
        elif kind == "error":
            text = _ANSI.sub("", "\n".join(output.get("traceback") or ())) + "\n"
        else:
            data = (output.get("data") or {}).get("text/plain") or ""
            text = data if len(data) <= _SHOWN else data[:_SHOWN] + " …"
            text += "\n" if text else ""
        sys.stdout.write(text)
        sys.stdout.flush()


def _node(cell: "Dict[str, Any]") -> "Any":
    """Return a cell in the form in which nbformat reads one."""
    import nbformat

    return nbformat.from_dict(cell)


def _read(path: str) -> "Dict[str, Any]":
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise Refused("Notebook `%s` is not in the package." % path) from None
    except Exception as error:  # whatever a damaged file raises there
        said = (str(error).splitlines() or [""])[0]
        raise Refused("Notebook `%s` cannot be read: %s: %s" % (path, type(error).__name__, said)) from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    if (notebook.nbformat, notebook.nbformat_minor) >= (4, 5):
        for index, cell in enumerate(notebook.cells):
            cell.setdefault("id", "cell-%d" % (index + 1))
    else:
        notebook.nbformat_minor = 5
        for index, cell in enumerate(notebook.cells):
            cell["id"] = cell.get("id") or "cell-%d" % (index + 1)
    if not any(cell.cell_type == "code" and cell.source.strip() for cell in notebook.cells):
        raise Refused("Notebook `%s` has no code." % path)
    return notebook  # type: ignore[no-any-return]


def last_cell(cells: "List[Dict[str, Any]]", until: "Optional[str]") -> int:
    """Return the index of the cell that ``--until`` names: by number from 1, by id, or by tag.

    Raises:
        Refused: there is none.
    """
    if not until:
        return len(cells) - 1
    ids = [cell.get("id") for cell in cells]
    if until in ids:
        return ids.index(until)
    if until.isdigit() and 1 <= int(until) <= len(cells):
        return int(until) - 1
    for index, cell in enumerate(cells):
        if until in tags(cell):
            return index
    raise Refused("Cell `%s` does not exist: no number up to %d, no id and no tag." % (until, len(cells)))


def _parameters() -> "Dict[str, Any]":
    path = os.environ.get("PAI_PARAMETERS_FILE")
    if not path:
        return {}
    with open(path, encoding="utf-8") as stream:
        return dict(json.load(stream))


def _language(notebook: "Dict[str, Any]") -> str:
    metadata = notebook.get("metadata") or {}
    spoken = (metadata.get("language_info") or {}).get("name")
    return str(spoken or (metadata.get("kernelspec") or {}).get("language") or _PYTHON).lower()


def _writes() -> bool:
    """Whether this task's notebook is the one that is kept: task 0 of a role."""
    return os.environ.get("PAI_TASK_INDEX") in (None, "0")


def _target(name: str) -> str:
    folder = os.environ.get("PAI_OUTPUT_DIR") if _writes() else tempfile.gettempdir()
    if not _writes():
        return os.path.join(_private(), name)
    return os.path.join(folder or ".", name)


def _private() -> str:
    """Return the folder of the task that is gone with it."""
    secrets = os.environ.get("PAI_SECRETS_DIR")
    return os.path.dirname(secrets) if secrets else tempfile.mkdtemp(prefix="pai-")


def _socket_folder() -> str:
    """Return a private folder for the kernel's sockets, with a path that is short enough for them."""
    private = _private()
    parent = private if len(os.fsencode(private)) < _LONGEST_PATH - 12 else None
    return tempfile.mkdtemp(prefix="k", dir=parent)


def first_line(source: str) -> str:
    """Return the first line of a cell that says something."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    said = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    return said if len(said) <= _FIRST_LINE else said[: _FIRST_LINE - 1] + "…"


__all__ = ["Refused", "first_line", "last_cell", "run", "shortened"]
