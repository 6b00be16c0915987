"""The local backend: the contract, and what only this backend promises."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from contract import BackendContract
from staging import document, log_of, make_job, role, watching

from paijupyter.backends import retries
from paijupyter.backends.base import Backend, Job, Place, Profile
from paijupyter.backends.local import LocalBackend, attempt, course, run, spec
from paijupyter.backends.local.files import secrets_file
from paijupyter.errors import PaiJupyterError


class TestContract(BackendContract):
    kind = "local"

    @pytest.fixture(autouse=True)
    def only_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is lost is lost, and not tried again: the tries are tests of their own."""
        monkeypatch.setattr(retries, "DELAYS", ())

    def lose(self, backend: Backend, job: Job) -> None:
        for pid in boots(job).values():
            os.kill(pid, signal.SIGKILL)


@pytest_asyncio.fixture
async def backend(place: Place) -> AsyncIterator[LocalBackend]:
    backend = LocalBackend(Profile("local", "local"), place)
    yield backend
    await backend.close()


@pytest.fixture
def only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No further try after a failure of the platform."""
    monkeypatch.setattr(retries, "DELAYS", ())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of grace instead of ten, for tests of what does not end by itself."""
    monkeypatch.setattr(spec, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(course, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(course, "_PATIENCE", 0.5)


def boots(job: Job) -> dict[str, int]:
    return {
        path.parent.parent.name: json.loads(path.read_text())["pid"]
        for path in job.folder.glob("tasks/*/*/started.json")
    }


def processes_of(job: Job) -> list[int]:
    """Every process whose environment has the job's id, wherever it hides."""
    mark = f"PAI_JOB_ID={job.id}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def log_has(backend: Backend, job: Job, text: bytes) -> None:
    """Wait until the log of worker-0 has a text."""
    seen = b""
    async for piece in backend.logs(job, "worker", 0, 0, 0):
        seen += piece
        if text in seen:
            return
    raise AssertionError(f"the log ended without {text!r}: {seen!r}")


DAEMONS = """
trap '' TERM
setsid bash -c 'trap "" TERM; sleep 602 & wait' &
(setsid nohup sleep 603 >/dev/null 2>&1 &)
python -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(604)
    os._exit(0)
os.wait()
'
echo hidden
sleep 600 & wait
"""


@pytest.mark.asyncio
async def test_stop_leaves_no_process(backend: LocalBackend, place: Place, impatient: None) -> None:
    """O31: not even one that daemonised and ignores TERM."""
    job = make_job(place, document({"worker": role(DAEMONS)}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await log_has(backend, job, b"hidden")
        assert len(processes_of(job)) >= 6
        await backend.stop(job)
        assert not processes_of(job)
        assert (await watch.final(job)).state == "stopped"


@pytest.mark.asyncio
async def test_a_killed_boot_process_leaves_no_process(
    backend: LocalBackend, place: Place, only_once: None
) -> None:
    """Also what left its session, and then lost the boot process that it came from."""
    job = make_job(place, document({"worker": role(DAEMONS)}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await log_has(backend, job, b"hidden")
        os.kill(boots(job)["worker-0"], signal.SIGKILL)
        final = await watch.final(job)
        assert not processes_of(job)
        ended = watch.tasks(job)["worker-0"]
    assert (final.state, final.reason, final.failed_task) == ("failed", "lost", "worker-0")
    assert ended.exit is not None
    assert ended.exit.last_lines == ("hidden",)
    assert not list((place.runtime / "tasks").iterdir())


@pytest.mark.asyncio
async def test_a_boot_process_that_fails_is_quoted(
    backend: LocalBackend, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_once: None
) -> None:
    broken = tmp_path / "boot.py"
    broken.write_text("raise SystemExit('no space left')")
    monkeypatch.setattr(backend._hall, "boot", lambda: broken)
    job = make_job(place, document({"worker": role("echo ran")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.reason, final.message) == (
        "lost",
        "worker-0 was lost: its boot process failed with `no space left`.",
    )


@pytest.mark.asyncio
async def test_a_frozen_boot_process_is_killed(backend: LocalBackend, place: Place, impatient: None) -> None:
    """A stop does not depend on the boot process doing its part."""
    job = make_job(place, document({"worker": role("echo begun; sleep 600")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await log_has(backend, job, b"begun")
        os.kill(boots(job)["worker-0"], signal.SIGSTOP)
        await backend.stop(job)
        assert not processes_of(job)
        assert (await watch.final(job)).state == "stopped"
        assert watch.tasks(job)["worker-0"].state == "stopped"


@pytest.mark.asyncio
async def test_a_killed_user_process_is_the_users_failure(backend: LocalBackend, place: Place) -> None:
    """architecture.md, decision 11."""
    job = make_job(place, document({"worker": role("echo $$; exec sleep 600")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await log_has(backend, job, b"\n")
        async for line in backend.logs(job, "worker", 0, 0, 0):
            os.kill(int(line), signal.SIGKILL)
            break
        final = await watch.final(job)
        ended = watch.tasks(job)["worker-0"].exit
    assert (final.state, final.failed_task) == ("failed", "worker-0")
    assert final.message == "worker-0 was ended by SIGKILL"
    assert ended is not None
    assert (ended.code, ended.signal) == (None, "SIGKILL")


@pytest.mark.asyncio
async def test_a_half_failed_start_is_rolled_back(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D7: nothing is left, and the same job can be submitted again."""
    job = make_job(place, document({"worker": role("echo ran", instances=3)}, secrets={"KEY": ""}))
    really = attempt.spawn
    calls: list[object] = []

    def refuse_the_third(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(attempt, "spawn", refuse_the_third)
    async with watching(backend) as watch:
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(job, {"KEY": "value"})
        assert caught.value.code == "cannot-start"
        assert not processes_of(job)
        assert not [path for path in (job.folder / "tasks").rglob("*")]
        assert not secrets_file(place, job.id).exists()
        assert not watch.of(job)
        free = await backend.capabilities()
        assert free.free == free.capacity
        await backend.submit(job, {"KEY": "value"})
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_a_start_that_fails_after_the_queue_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LocalBackend(Profile("local", "local", {"cpu": 1}), place)
    first, second = (make_job(place, document({"worker": role("sleep 600")})) for _ in range(2))

    def refuse(*arguments: object) -> object:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(run, "_START_AGAIN_AFTER", (0.01, 0.01))
    async with watching(backend) as watch:
        await backend.submit(first, {})
        await backend.submit(second, {})
        monkeypatch.setattr(attempt, "spawn", refuse)
        await backend.stop(first)
        final = await watch.final(second)
        assert sum(change.reason == "retry-delay" for change in watch.of(second)) == 2
        assert (final.state, final.reason) == ("failed", "start")
        assert "Cannot allocate memory" in final.message
        assert (await backend.capabilities()).free["cpu"] == 1
    await backend.close()


@pytest.mark.asyncio
async def test_a_start_that_fails_for_a_moment_is_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LocalBackend(Profile("local", "local", {"cpu": 1}), place)
    first, second = (make_job(place, document({"worker": role("sleep 0.2; echo ran")})) for _ in range(2))
    really, refused = attempt.spawn, []

    def refuse_once(*arguments: object) -> object:
        if not refused:
            refused.append(arguments)
            raise OSError(12, "Cannot allocate memory")
        return really(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "_START_AGAIN_AFTER", (0.01, 0.01))
    async with watching(backend) as watch:
        await backend.submit(first, {})
        await backend.submit(second, {})
        monkeypatch.setattr(attempt, "spawn", refuse_once)
        assert (await watch.final(second)).state == "succeeded"
        assert refused
        assert await log_of(backend, second, "worker-0") == b"ran\n"
    await backend.close()


@pytest.mark.asyncio
async def test_a_mistake_of_ours_leaves_no_job_without_an_end(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*arguments: object, **named: object) -> object:
        raise KeyError("mistake")

    job = make_job(place, document({"worker": role("sleep 600")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.running(job)
        monkeypatch.setattr(course, "decide", stumble)
        os.kill(boots(job)["worker-0"], signal.SIGKILL)
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "internal")
        assert "mistake" in final.message
        assert not processes_of(job)
    free = await backend.capabilities()
    assert free.free == free.capacity


@pytest.mark.asyncio
async def test_the_queue_is_first_in_first_out(place: Place) -> None:
    """O28: a position and what it waits for, said again when it changes; a small job does not overtake."""
    backend = LocalBackend(Profile("local", "local", {"cpu": 4}), place)
    big, bigger = (make_job(place, document({"worker": role("sleep 600", instances=3)})) for _ in range(2))
    small = make_job(place, document({"worker": role("echo small")}))
    async with watching(backend) as watch:
        await backend.submit(big, {})
        await backend.submit(bigger, {})
        await backend.submit(small, {})
        assert (await backend.plan(small)).starts == "after 2 queued jobs"
        first = await watch.until(bigger, lambda change: change.reason == "queued")
        assert first.message == "Number 1 in this machine's queue, waiting for 2 more CPUs."
        second = await watch.until(small, lambda change: change.reason == "queued")
        assert second.message == "Number 2 in this machine's queue, waiting for 1 job before it."
        await watch.running(big)
        assert not boots(small)
        await backend.stop(bigger)  # while queued: nothing to end, and the next one moves up
        assert (await watch.final(bigger)).state == "stopped"
        assert not boots(bigger)
        assert (await watch.final(small)).state == "succeeded"
        await backend.stop(big)
    await backend.close()


@pytest.mark.asyncio
async def test_what_never_fits_is_refused(backend: LocalBackend, place: Place) -> None:
    job = make_job(place, document({"worker": role("true", instances=100_000)}))
    with pytest.raises(PaiJupyterError, match="would never start") as caught:
        await backend.submit(job, {})
    assert caught.value.code == "never-fits"


@pytest.mark.asyncio
async def test_no_credential_of_the_engine_reaches_a_task(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "canary")
    monkeypatch.setenv("JPY_API_TOKEN", "canary")
    monkeypatch.setenv("GITHUB_TOKEN", "canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("CUDA_TOKEN", "canary")
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    command = "env; tr '\\0' '\\n' < /proc/$PPID/environ"
    job = make_job(place, document({"worker": role(command)}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.final(job)
    lines = (await log_of(backend, job, "worker-0")).decode().splitlines()
    assert not [line for line in lines if "canary" in line]
    assert "https_proxy=http://proxy.invalid:3128" in lines
    assert "LC_ALL=C.UTF-8" in lines


@pytest.mark.asyncio
async def test_python_is_that_of_the_kernel(backend: LocalBackend, place: Place) -> None:
    """architecture.md, decision 9."""
    job = make_job(place, document({"worker": role("python -c 'import sys; print(sys.executable)'")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.final(job)
    assert job.python is not None
    found = (await log_of(backend, job, "worker-0")).decode().strip()
    assert os.path.samefile(found, job.python)
    assert os.path.dirname(found) == os.path.dirname(job.python)


@pytest.mark.asyncio
async def test_ports_are_new_for_every_task_and_attempt(backend: LocalBackend, place: Place) -> None:
    """O22."""
    ports = {"ports": {"data": 3}, "cpu": 1, "memoryMB": 64, "gpu": 0}
    roles = {"worker": role("exit 1", instances=4, resourcePerInstance=ports)}
    job = make_job(place, document(roles, jobRetryCount=1))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.final(job)
    for number in (0, 1):
        told = json.loads((job.folder / f"tasks/worker-0/{number}/spec.json").read_text())["ports"]
        found = [port for labels in told.values() for ports in labels.values() for port in ports]
        assert len(found) == len(set(found)) == 4 * (3 + 2)
        assert list(told["worker-0"]) == ["data", "ssh", "http"]


@pytest.mark.asyncio
async def test_nothing_private_can_be_read_by_others(backend: LocalBackend, place: Place) -> None:
    job = make_job(place, document({"worker": role("echo begun; sleep 600")}, secrets={"KEY": ""}))
    async with watching(backend):
        await backend.submit(job, {"KEY": "value"})
        await log_has(backend, job, b"begun")
        for path in (secrets_file(place, job.id), *job.folder.glob("tasks/*/*/spec.json")):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE((place.runtime / "tasks" / job.id / "worker-0").stat().st_mode) == 0o700
        await backend.stop(job)
    assert not secrets_file(place, job.id).exists()
    assert not [path for path in place.runtime.rglob("*") if path.is_file()]


@pytest.mark.asyncio
async def test_works_without_pidfd(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel has none, or no descriptor is left, looking does it."""

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    roles = {"ps": role("sleep 600"), "worker": role("echo ran", instances=2)}
    job = make_job(place, document(roles))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        assert watch.tasks(job)["ps-0"].state == "stopped"


@pytest.mark.asyncio
async def test_many_jobs_at_once(backend: LocalBackend, place: Place) -> None:
    jobs = [make_job(place, document({"worker": role(f"echo job {number}")})) for number in range(12)]
    async with watching(backend) as watch:
        await asyncio.gather(*(backend.submit(job, {}) for job in jobs))
        for number, job in enumerate(jobs):
            assert (await watch.final(job)).state == "succeeded"
            assert await log_of(backend, job, "worker-0") == f"job {number}\n".encode()
        free = await backend.capabilities()
        assert free.free == free.capacity


@pytest.mark.asyncio
async def test_the_barrier_names_who_is_missing(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P28: a task that cannot get ready keeps the others waiting, and the job says for whom."""
    monkeypatch.setattr(course, "_NEWS_EVERY", 0.1)
    really = attempt.spawn

    def freeze_the_second(boot: Path, files: object, environment: dict[str, str]) -> object:
        process = really(boot, files, environment)  # type: ignore[arg-type]
        if environment["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == "1":
            os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr(attempt, "spawn", freeze_the_second)
    job = make_job(place, document({"worker": role("echo ran", instances=2)}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        change = await watch.until(job, lambda change: "waiting for" in change.message)
        assert change.message == "1 of 2 tasks are ready, waiting for worker-1."
        (pid,) = (pid for pid in processes_of(job) if _is_stopped(pid))
        os.kill(pid, signal.SIGCONT)
        assert (await watch.final(job)).state == "succeeded"


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.asyncio
async def test_a_time_limit_ends_the_job(backend: LocalBackend, place: Place) -> None:
    extras = {"paijupyter": {"version": 1, "timeLimit": 1}}
    job = make_job(place, document({"worker": role("sleep 600")}, extras=extras, jobRetryCount=2))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.state, final.reason, final.attempt) == ("failed", "deadline", 0)
    assert final.message.startswith("worker-0 reached its time limit")
