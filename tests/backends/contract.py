"""What every backend must do. A backend, also of another package, is proved by a subclass (P30).

To use it: subclass :class:`BackendContract`, set ``kind``, and override what differs. Commands use only bash,
coreutils and the variables ``PAI_CURRENT_TASK_ROLE_NAME``, ``PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX``,
``PAI_ATTEMPT``, ``PAI_JOB_ID`` and ``PAI_OUTPUT_DIR``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import staging
import yaml
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import FINAL, Backend, Job, Place, Profile, backend_kinds, load_backend
from paijupyter.errors import has_errors

MakeJob = Callable[..., Job]
FOREVER = "sleep 600"
LINES = "for i in 1 2 3; do echo line $i; done"


class BackendContract:
    """The suite."""

    kind: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - overridden, not changed

    # What a subclass may override

    def new_backend(self, place: Place) -> Backend:
        """Make one more backend of the same profile, as a new engine would."""
        return load_backend(Profile("contract", self.kind, self.settings), place)

    def lose(self, backend: Backend, job: Job) -> None:
        """Make what runs of a job vanish behind the backend's back, if the place has a way to."""
        pytest.skip("this place loses no jobs")

    def too_big(self) -> dict[str, int]:
        """Return resources that no task of this profile can ever get."""
        return {"cpu": 10_000, "memoryMB": 64, "gpu": 0}

    # Fixtures

    @pytest_asyncio.fixture
    async def backend(self, place: Place) -> AsyncIterator[Backend]:
        """The backend under test."""
        backend = self.new_backend(place)
        yield backend
        await backend.close()

    @pytest.fixture
    def job_of(self, place: Place) -> MakeJob:
        """Makes a job: of a command (one ``worker``), of roles, or of a whole document."""

        def make(what: str | dict[str, Any], files: dict[str, bytes | str] | None = None, **more: Any) -> Job:
            if isinstance(what, str):
                what = {"worker": role(what)}
            source = what if "taskRoles" in what else document(what, **more)
            return make_job(place, source, files)

        return make

    # Being found, and asked

    def test_is_found_by_its_kind(self, place: Place) -> None:
        """P30: by entry point."""
        assert self.kind in backend_kinds()
        assert isinstance(self.new_backend(place), Backend)

    @pytest.mark.asyncio
    async def test_says_what_it_can(self, backend: Backend) -> None:
        found = await backend.capabilities()
        assert found.kind == self.kind
        assert not found.unreachable
        assert found.capacity.keys() >= found.free.keys()

    # Plan

    @pytest.mark.asyncio
    async def test_plan_changes_nothing(self, backend: Backend, place: Place, job_of: MakeJob) -> None:
        job = job_of({"ps": role(LINES), "worker": role(LINES, instances=2)})
        job.folder.rmdir()
        before = _tree(place.data)
        plan = await backend.plan(job)
        assert _tree(place.data) == before
        assert not has_errors(plan.problems)
        assert plan.starts
        submitted = yaml.safe_load(plan.submitted)
        assert submitted["name"] == job.name
        assert all({"kind", "name"} <= each.keys() for each in plan.objects)
        assert plan.objects

    @pytest.mark.asyncio
    async def test_plan_refuses_what_can_never_run(self, backend: Backend, job_of: MakeJob) -> None:
        job = job_of({"worker": role(LINES, resourcePerInstance=self.too_big())})
        plan = await backend.plan(job)
        errors = [each for each in plan.problems if each.severity == "error"]
        assert errors
        for each in errors:
            assert each.message.endswith(".")
            assert each.hint

    # Run

    @pytest.mark.asyncio
    async def test_runs_to_success(self, backend: Backend, job_of: MakeJob) -> None:
        """O32: waiting, running, final, and the final state exactly once."""
        job = job_of(LINES)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
            states = [change.state for change in watch.of(job)]
            tasks = watch.tasks(job)
        assert final.state == "succeeded"
        assert states == sorted(states, key=["waiting", "running", "succeeded"].index)
        assert set(states) == {"waiting", "running", "succeeded"}
        assert sum(state in FINAL for state in states) == 1
        ended = tasks["worker-0"]
        assert (ended.state, ended.attempt) == ("succeeded", 0)
        assert ended.exit is not None
        assert ended.exit.code == 0
        assert ended.started_at is not None
        assert ended.ended_at is not None
        assert ended.started_at <= ended.ended_at
        assert await log_of(backend, job, "worker-0") == b"line 1\nline 2\nline 3\n"

    @pytest.mark.asyncio
    async def test_submitting_twice_creates_once(self, backend: Backend, job_of: MakeJob) -> None:
        job = job_of("echo once; sleep 0.2")
        async with watching(backend) as watch:
            await asyncio.gather(backend.submit(job, {}), backend.submit(job, {}))
            await backend.submit(job, {})
            await watch.final(job)
            await backend.submit(job, {})
            changes = list(watch.of(job))
        assert sum(change.state in FINAL for change in changes) == 1
        assert await log_of(backend, job, "worker-0") == b"once\n"

    @pytest.mark.asyncio
    async def test_every_task_knows_its_place(self, backend: Backend, job_of: MakeJob) -> None:
        """O10, O11, O24."""
        command = 'echo "$PAI_CURRENT_TASK_ROLE_NAME $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX $PAI_ATTEMPT"'
        all_of_them = {"minSucceededInstances": -1}
        roles = {
            "a": role(command, completion=all_of_them),
            "b": role(command, instances=2, completion=all_of_them),
        }
        job = job_of(roles)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.final(job)
            assert watch.tasks(job).keys() == {"a-0", "b-0", "b-1"}
        assert await log_of(backend, job, "a-0") == b"a 0 0\n"
        assert await log_of(backend, job, "b-1") == b"b 1 0\n"

    @pytest.mark.asyncio
    async def test_the_package_is_the_working_folder(self, backend: Backend, job_of: MakeJob) -> None:
        """P11."""
        job = job_of("cat sub/data.txt; bash train.sh", {"sub/data.txt": "data\n", "train.sh": "echo ran"})
        async with watching(backend) as watch:
            await backend.submit(job, {})
            assert (await watch.final(job)).state == "succeeded"
        assert await log_of(backend, job, "worker-0") == b"data\nran\n"

    @pytest.mark.asyncio
    async def test_a_secret_reaches_the_task(self, backend: Backend, job_of: MakeJob) -> None:
        """O20: as a variable; the log does not show it."""
        job = job_of('test "$KEY" = "s3cret value" && echo "got $KEY"', secrets={"KEY": ""})
        async with watching(backend) as watch:
            await backend.submit(job, {"KEY": "s3cret value"})
            assert (await watch.final(job)).state == "succeeded"
        log = await log_of(backend, job, "worker-0")
        assert log.startswith(b"got ")
        assert b"s3cret" not in log

    # Ends

    @pytest.mark.asyncio
    async def test_a_failure_names_its_task(self, backend: Backend, job_of: MakeJob) -> None:
        """O31: exit code, reason, last lines; the peer is stopped and gone before the final change."""
        command = (
            'if [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 1 ]; then echo why >&2; exit 3; fi; '
            + FOREVER
        )
        job = job_of({"worker": role(command, instances=2)})
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
            tasks = watch.tasks(job)
        assert (final.state, final.reason, final.failed_task) == ("failed", "user", "worker-1")
        assert "worker-1" in final.message
        assert "3" in final.message
        failed = tasks["worker-1"]
        assert failed.state == "failed"
        assert failed.exit is not None
        assert (failed.exit.code, failed.exit.signal) == (3, None)
        assert failed.exit.last_lines[-1] == "why"
        assert tasks["worker-0"].state == "stopped"

    @pytest.mark.asyncio
    async def test_a_signal_is_named(self, backend: Backend, job_of: MakeJob) -> None:
        """O31; a local 137 is the user's failure (architecture.md, decision 11)."""
        job = job_of("kill -KILL $$")
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
            ended = watch.tasks(job)["worker-0"].exit
        assert final.state == "failed"
        assert ended is not None
        assert ended.signal == "SIGKILL" or ended.code == 137

    @pytest.mark.asyncio
    async def test_services_end_with_the_workers(self, backend: Backend, job_of: MakeJob) -> None:
        """P36."""
        roles = {"ps": role(FOREVER), "worker": role("echo done", instances=2)}
        job = job_of(roles)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
            tasks = watch.tasks(job)
        assert final.state == "succeeded"
        assert tasks["ps-0"].state == "stopped"
        assert tasks["worker-1"].state == "succeeded"

    @pytest.mark.asyncio
    async def test_failures_may_be_forgiven(self, backend: Backend, job_of: MakeJob) -> None:
        """O23: minFailedInstances -1."""
        command = 'exit "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"'
        completion = {"minFailedInstances": -1}
        job = job_of({"worker": role(command, instances=2, completion=completion)})
        async with watching(backend) as watch:
            await backend.submit(job, {})
            assert (await watch.final(job)).state == "succeeded"
            assert watch.tasks(job)["worker-1"].state == "failed"

    @pytest.mark.asyncio
    async def test_attempts_are_kept_apart(self, backend: Backend, job_of: MakeJob) -> None:
        """O21."""
        job = job_of('echo "attempt $PAI_ATTEMPT"; test "$PAI_ATTEMPT" = 1', jobRetryCount=2)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
            first = watch.tasks(job, 0)["worker-0"]
            attempts = [change.attempt for change in watch.of(job)]
        assert (final.state, final.attempt) == ("succeeded", 1)
        assert first.state == "failed"
        assert attempts == sorted(attempts)
        assert await log_of(backend, job, "worker-0", 0) == b"attempt 0\n"
        assert await log_of(backend, job, "worker-0", 1) == b"attempt 1\n"

    @pytest.mark.asyncio
    async def test_retries_are_used_up(self, backend: Backend, job_of: MakeJob) -> None:
        """O21."""
        job = job_of("exit 7", jobRetryCount=1)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
        assert (final.state, final.attempt, final.failed_task) == ("failed", 1, "worker-0")

    # Stop

    @pytest.mark.asyncio
    async def test_stop_ends_all_and_keeps_logs(self, backend: Backend, job_of: MakeJob) -> None:
        """P24: the log of a stopped job stays."""
        job = job_of({"worker": role(f"echo begun; {FOREVER}", instances=2)})
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            await _first_bytes(backend, job, "worker-0")
            await asyncio.wait_for(asyncio.gather(backend.stop(job), backend.stop(job)), staging.DEADLINE)
            await backend.stop(job)
            final = await watch.final(job)
            tasks = watch.tasks(job)
            assert sum(change.state in FINAL for change in watch.of(job)) == 1
        assert final.state == "stopped"
        assert {task.state for task in tasks.values()} == {"stopped"}
        assert (await log_of(backend, job, "worker-0")).startswith(b"begun\n")

    @pytest.mark.asyncio
    async def test_stop_at_once(self, backend: Backend, job_of: MakeJob) -> None:
        """A stop right after the submit is not lost (openpai.md 6.5 has the opposite)."""
        job = job_of(FOREVER)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await asyncio.wait_for(backend.stop(job), staging.DEADLINE)
            assert (await watch.final(job)).state == "stopped"

    @pytest.mark.asyncio
    async def test_stopping_what_has_ended_changes_nothing(self, backend: Backend, job_of: MakeJob) -> None:
        job, never = job_of("true"), job_of("true")
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.final(job)
            await backend.stop(job)
            await backend.stop(never)
            await backend.delete(job)
            await backend.delete(job)
            assert [change.state for change in watch.of(job) if change.state in FINAL] == ["succeeded"]

    # Logs

    @pytest.mark.asyncio
    async def test_a_log_is_followed_from_an_offset(self, backend: Backend, job_of: MakeJob) -> None:
        """O30: live, to the last byte, also without a newline at its end."""
        job = job_of("printf 'one\\n'; sleep 0.3; printf 'two'")
        async with watching(backend) as watch:
            await backend.submit(job, {})
            whole, rest = await asyncio.gather(
                log_of(backend, job, "worker-0"), log_of(backend, job, "worker-0", offset=4)
            )
            await watch.final(job)
        assert (whole, rest) == (b"one\ntwo", b"two")
        assert await log_of(backend, job, "worker-0", offset=2) == b"e\ntwo"
        assert await log_of(backend, job, "worker-0", offset=7) == b""

    @pytest.mark.asyncio
    async def test_a_long_log_is_whole(self, backend: Backend, job_of: MakeJob) -> None:
        job = job_of("seq 1 200000")
        async with watching(backend) as watch:
            await backend.submit(job, {})
            log = await log_of(backend, job, "worker-0")
            await watch.final(job)
        assert log == b"".join(b"%d\n" % number for number in range(1, 200001))

    # Coming back

    @pytest.mark.asyncio
    async def test_jobs_outlive_the_backend(self, backend: Backend, place: Place, job_of: MakeJob) -> None:
        """The engine is never what a task needs to live; the new one says the current state first."""
        job = job_of("echo begun; sleep 1.5; echo ended")
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            await _first_bytes(backend, job, "worker-0")
        await backend.close()
        again = self.new_backend(place)
        try:
            async with watching(again, [job]) as watch:
                final = await watch.final(job)
                changes = watch.of(job)
            assert changes[0].state in ("running", "succeeded")
            assert final.state == "succeeded"
            assert sum(change.state in FINAL for change in changes) == 1
            assert await log_of(again, job, "worker-0") == b"begun\nended\n"
        finally:
            await again.close()

    @pytest.mark.asyncio
    async def test_an_end_nobody_saw_is_told(self, backend: Backend, place: Place, job_of: MakeJob) -> None:
        job = job_of("exit 4")
        await backend.submit(job, {})
        await log_of(backend, job, "worker-0")
        await backend.close()
        again = self.new_backend(place)
        try:
            async with watching(again, [job]) as watch:
                final = await watch.final(job)
                assert watch.tasks(job)["worker-0"].state == "failed"
            assert (final.state, final.failed_task) == ("failed", "worker-0")
        finally:
            await again.close()

    @pytest.mark.asyncio
    async def test_a_second_watch_begins_with_the_state(self, backend: Backend, job_of: MakeJob) -> None:
        job = job_of(FOREVER)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            begun = watch.tasks(job)["worker-0"].started_at
            assert begun is not None
        async with watching(backend, [job]) as watch:
            change = await watch.until(job, lambda change: True)
            assert change.state == "running"
            assert {key: task.started_at for key, task in watch.tasks(job).items()} == {"worker-0": begun}
            await backend.stop(job)

    @pytest.mark.asyncio
    async def test_closing_ends_the_watch(self, place: Place) -> None:
        backend = self.new_backend(place)
        stream = backend.watch([])
        reading = asyncio.create_task(_read_all(stream))
        await asyncio.sleep(0)
        await backend.close()
        assert await asyncio.wait_for(reading, 10) == []

    @pytest.mark.asyncio
    async def test_what_vanished_is_lost(self, backend: Backend, job_of: MakeJob) -> None:
        job = job_of(FOREVER)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            self.lose(backend, job)
            final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "lost")
        assert final.message


async def _first_bytes(backend: Backend, job: Job, key: str) -> bytes:
    name, _, index = key.rpartition("-")
    stream = backend.logs(job, name, int(index), 0, 0)
    try:
        return await asyncio.wait_for(stream.__anext__(), 40)  # type: ignore[arg-type]
    finally:
        await stream.aclose()  # type: ignore[attr-defined]


async def _read_all(stream: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in stream]


def _tree(folder: Path) -> list[str]:
    """Return all files but the boot file, which is made of the program alone."""
    found = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if not path.startswith(os.path.join(folder, "boot", "")))
