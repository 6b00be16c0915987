"""Runs the job documents below this folder on a backend and holds them to what is expected of them.

Each folder is a theme. In its ``expected.yaml`` stands for each document:

============= ==========================================================================================
proves        ids of the requirements that the document stands for
files         the trainer package: path → text
data          files that travel as the job's data: name → path → text
secrets       values that the surface would have resolved
lineEnds      what the document's lines end with, if not with a plain newline
refused       codes of the errors with which nothing is submitted; then nothing more is expected
stopAt        a task and a line: once its log has that line, the job is stopped
state         final state of the job; ``reason`` and ``failedTask`` (one, or several possible) of a failure
attempt       number of the last attempt, 0 unless given
tasks         final state of every task of the last attempt, and ``code`` or ``signal`` of its exit
earlier       the same of earlier attempts, by their number
log           lines that the log of a task has, whole and in this order, among others; ``worker-0@1`` is that
              of attempt 1. A line between slashes is a regular expression
whole         all of a task's log, but for our own lines; bytes that are no text as ``\\xff``
notInLog      texts that no log of the job has
outputs       files of each task that are kept, path → text; no others are
differs       what is different somewhere: place → ``because`` and the facts that replace those above, or
              ``not`` and why the document is not run there
============= ==========================================================================================

The places are ``local``, ``kubernetes`` and ``openpai``; ``stand-in`` is an OpenPAI server that is not real.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from staging import Watch, log_of, make_job, store_package, watching

from paijupyter.backends.base import Backend, Data, Job, Place, Profile, load_backend
from paijupyter.errors import InvalidDocument, has_errors
from paijupyter.protocol import check, read
from paijupyter.protocol.data import DataSource

HERE = Path(__file__).parent
PLACES = frozenset({"local", "kubernetes", "openpai", "stand-in"})
_INPUTS = frozenset({"proves", "files", "data", "secrets", "lineEnds", "stopAt"})
_ENDS = frozenset({"state", "reason", "failedTask", "attempt", "tasks", "earlier", "refused"})
_TRACES = frozenset({"log", "whole", "notInLog", "outputs"})
_THERE = frozenset({"because", "not"})
_PATIENCE = 60.0  # seconds for a line to appear in a log
_OURS = re.compile(r"^\[paijupyter\] .*\n", re.MULTILINE)
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A document with what is expected of it."""

    theme: str
    name: str
    text: str
    expected: Json

    def on(self, *places: str) -> Case:
        """Return it with what is expected in a place, which may have several names, from wide to narrow."""
        expected = dict(self.expected)
        for place in places:
            expected |= (self.expected.get("differs") or {}).get(place) or {}
        return replace(self, expected=expected)


def _cases() -> dict[str, Case]:
    found = {}
    for path in sorted(HERE.glob("*/expected.yaml")):
        for name, expected in yaml.safe_load(path.read_text("utf-8")).items():
            text = (path.parent / f"{name}.yaml").read_text("utf-8")
            found[name] = Case(path.parent.name, name, text, expected)
    return found


CASES = _cases()
THEMES = sorted({case.theme for case in CASES.values()})


class Conformance:
    """Subclass it for a backend: set ``kind`` and ``places``, override what differs."""

    kind: str
    places: tuple[str, ...]
    settings: dict[str, Any] = {}  # noqa: RUF012 - overridden, not changed
    seconds = 60.0  # for a job to end
    at_once = 1000  # jobs
    user = "tester"
    python: str | None = None  # of the tasks, where the backend lets us choose; None: this one
    only: frozenset[str] = frozenset(CASES)  # documents to run

    def case(self, name: str) -> Case:
        """Return a document as it is run in this place, with what is expected of it here."""
        return CASES[name].on(*self.places)

    @pytest_asyncio.fixture
    async def backend(self, place: Place) -> AsyncIterator[Backend]:
        """The backend under test."""
        backend = load_backend(Profile("conformance", self.kind, self.settings), place)
        yield backend
        await backend.close()

    async def outputs(self, job: Job, key: str) -> dict[str, str]:
        """Return the files that are kept of a task."""
        folder = job.folder / "output" / key
        return {
            str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()
        }

    @pytest.mark.parametrize("theme", THEMES)
    @pytest.mark.asyncio
    async def test_documents(
        self, backend: Backend, place: Place, theme: str, subtests: pytest.Subtests
    ) -> None:
        """All documents of a theme side by side: plan without an error, run, compare."""
        cases = [self.case(name) for name in CASES if CASES[name].theme == theme and name in self.only]
        for case in cases:
            if "not" in case.expected:
                with subtests.test(case.name):
                    pytest.skip(str(case.expected["not"]))
        runs = [_Run(self, backend, place, case) for case in cases if "not" not in case.expected]
        async with watching(backend) as watch:
            turn = asyncio.Semaphore(self.at_once)

            async def in_turn(run: _Run) -> None:
                async with turn:
                    await run.complete(watch)

            found = await asyncio.gather(*map(in_turn, runs), return_exceptions=True)
        for run, error in zip(runs, found, strict=True):
            with subtests.test(run.case.name):
                if error is not None:
                    raise error


class _Run:
    """One document, from its text to what is left of its job."""

    def __init__(self, suite: Conformance, backend: Backend, place: Place, case: Case) -> None:
        self._suite, self._backend, self._place = suite, backend, place
        self.case = case
        self._expected = case.expected

    async def complete(self, watch: Watch) -> None:
        text = self.case.text.replace("\n", self._expected.get("lineEnds") or "\n")
        if "refused" in self._expected:
            assert await self._refusals(text) == set(self._expected["refused"])
            return
        assert not has_errors(check(read(text)))
        job = self._job(text)
        plan = await self._backend.plan(job)
        assert not has_errors(plan.problems), plan.problems
        _compare_extras(job, plan.submitted)
        await self._backend.submit(job, self._expected.get("secrets") or {})
        if "stopAt" in self._expected:
            await asyncio.wait_for(self._stop(job), _PATIENCE)
        await watch.final(job, self._suite.seconds)
        self._compare_end(watch, job)
        await self._compare_logs(job)
        for key, files in (self._expected.get("outputs") or {}).items():
            assert await self._suite.outputs(job, key) == files

    def _job(self, text: str) -> Job:
        job = make_job(self._place, text, self._expected.get("files"))
        files = self._expected.get("data") or {}
        sources = job.extras.get("data") or ()
        return replace(
            job,
            python=self._suite.python or job.python,
            data=tuple(
                Data(
                    DataSource(each["name"], each["kind"], each["uri"]),
                    store_package(self._place, files[each["name"]]),
                )
                for each in sources
            ),
        )

    async def _refusals(self, text: str) -> set[str]:
        """Return the codes of the errors of a document, here and in this place."""
        problems = list(check(read(text)))
        try:
            problems += (await self._backend.plan(self._job(text))).problems
        except InvalidDocument as error:
            problems += error.problems
        return {problem.code for problem in problems if problem.severity == "error"}

    async def _stop(self, job: Job) -> None:
        key, line = self._expected["stopAt"]
        role, _, index = key.rpartition("-")
        seen = b""
        async for piece in self._backend.logs(job, role, int(index), 0, 0):
            seen += piece
            if f"{line}\n".encode() in seen:
                break
        await self._backend.stop(job)

    def _compare_end(self, watch: Watch, job: Job) -> None:
        expected = self._expected
        final = watch.of(job)[-1]
        assert final.state == expected["state"], (final, watch.tasks(job))
        assert final.attempt == expected.get("attempt", 0)
        if "reason" in expected:
            assert final.reason == expected["reason"], final
        possible = expected.get("failedTask")
        assert final.failed_task in (possible if isinstance(possible, list) else [possible])
        _compare_tasks(watch, job, final.attempt, expected["tasks"])
        for attempt, tasks in (expected.get("earlier") or {}).items():
            _compare_tasks(watch, job, attempt, tasks)

    async def _compare_logs(self, job: Job) -> None:
        expected = self._expected
        last = expected.get("attempt", 0)
        logs = {key: await self._log(job, key, last) for key in expected["tasks"]}
        for name, lines in (expected.get("log") or {}).items():
            key, _, attempt = name.partition("@")
            log = await self._log(job, key, int(attempt)) if attempt else logs[key]
            found = iter(log.splitlines())
            for line in lines:
                assert any(_is(each, self._of_user(line)) for each in found), (
                    f"{name} has no line {line!r} in its place:\n{log[:5000]}"
                )
        for key, text in (expected.get("whole") or {}).items():
            assert _OURS.sub("", logs[key]) == text
        for text in expected.get("notInLog") or ():
            assert not any(text in log for log in logs.values())

    async def _log(self, job: Job, key: str, attempt: int) -> str:
        return (await log_of(self._backend, job, key, attempt)).decode("utf-8", "backslashreplace")

    def _of_user(self, line: Any) -> str:
        return str(line).replace("tester", self._suite.user)


def _is(line: str, wanted: str) -> bool:
    if len(wanted) > 2 and wanted[0] == wanted[-1] == "/":
        return re.fullmatch(wanted[1:-1], line) is not None
    return line == wanted


def _compare_extras(job: Job, submitted: str) -> None:
    """What others keep in a document stays in it."""
    found = read(submitted).data.get("extras") or {}
    for key, value in (job.document.get("extras") or {}).items():
        assert key == "paijupyter" or found[key] == value


def _compare_tasks(watch: Watch, job: Job, attempt: int, expected: Json) -> None:
    tasks = watch.tasks(job, attempt)
    assert tasks.keys() == expected.keys()
    for key, wanted in expected.items():
        found = tasks[key]
        assert found.state == wanted.get("state", found.state), found
        for fact in ("code", "signal"):
            if fact in wanted:
                assert getattr(found.exit, fact) == wanted[fact], found


def test_every_document_is_expected() -> None:
    """A document without expectations would prove nothing."""
    documents = sorted(path.stem for path in HERE.glob("*/*.yaml") if path.stem != "expected")
    assert sorted(CASES) == documents, "each once: a name stands for one document in all themes"
    assert len(documents) >= 40


def test_every_difference_has_its_reason() -> None:
    """A difference between backends is said, or is a bug; nothing is said that nobody looks at."""
    known = _INPUTS | _ENDS | _TRACES
    for case in CASES.values():
        assert case.expected.keys() <= known | {"differs"}, case.name
        for place, there in (case.expected.get("differs") or {}).items():
            assert place in PLACES
            assert there.keys() <= known | _THERE, case.name
            assert there.get("because") or there.get("not"), f"{case.name} on {place}"
