"""Runs the job documents of this folder on a backend and holds them to ``expected.yaml``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from staging import Watch, log_of, make_job, watching

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend
from paijupyter.errors import has_errors
from paijupyter.protocol import check, read

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "expected.yaml").read_text())
DOCUMENTS = sorted(path.stem for path in HERE.glob("*.yaml") if path.stem != "expected")


class Conformance:
    """Subclass it for a backend: set ``kind``, override what differs."""

    kind: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - overridden, not changed
    seconds = 60.0  # for a job to end

    def text_of(self, name: str) -> str:
        """Return a document."""
        return (HERE / f"{name}.yaml").read_text()

    def expected_of(self, name: str) -> dict[str, Any]:
        """Return what must happen to it; a subclass changes what its place cannot do, and says why."""
        return EXPECTED[name]

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

    @pytest.mark.parametrize("name", DOCUMENTS)
    @pytest.mark.asyncio
    async def test_document(self, backend: Backend, place: Place, name: str) -> None:
        """Plan without an error, run, compare."""
        expected = self.expected_of(name)
        text = self.text_of(name)
        assert not has_errors(check(read(text)))
        job = make_job(place, text, expected.get("files"))
        plan = await backend.plan(job)
        assert not has_errors(plan.problems)
        async with watching(backend) as watch:
            await backend.submit(job, expected.get("secrets") or {})
            await watch.final(job, self.seconds)
            _compare_end(watch, job, expected)
        await _compare_logs(backend, job, expected)
        for key, files in (expected.get("outputs") or {}).items():
            assert await self.outputs(job, key) == files


def test_every_document_is_expected() -> None:
    """A document without expectations would prove nothing."""
    assert sorted(EXPECTED) == DOCUMENTS
    assert len(DOCUMENTS) >= 10


def _compare_end(watch: Watch, job: Job, expected: dict[str, Any]) -> None:
    final = watch.of(job)[-1]
    assert final.state == expected["state"], final
    assert final.attempt == expected.get("attempt", 0)
    if "reason" in expected:
        assert final.reason == expected["reason"]
    possible = expected.get("failedTask")
    assert final.failed_task in (possible if isinstance(possible, list) else [possible])
    tasks = watch.tasks(job)
    assert tasks.keys() == expected["tasks"].keys()
    for key, wanted in expected["tasks"].items():
        found = tasks[key]
        assert found.state == wanted.get("state", found.state), found
        for fact in ("code", "signal"):
            if fact in wanted:
                assert getattr(found.exit, fact) == wanted[fact], found


async def _compare_logs(backend: Backend, job: Job, expected: dict[str, Any]) -> None:
    attempt = expected.get("attempt", 0)
    logs = {key: (await log_of(backend, job, key, attempt)).decode() for key in expected["tasks"]}
    for key, lines in (expected.get("log") or {}).items():
        found = iter(logs[key].splitlines())
        for line in lines:
            assert line in found, f"{key} has no line {line!r} in its place:\n{logs[key]}"
    for text in expected.get("notInLog") or ():
        assert not any(text in log for log in logs.values())
