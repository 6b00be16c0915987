"""Attempts: what is tried again, how often, and what survives (architecture.md, decision 11; O21)."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from staging import document, log_of, make_job, role, watching

from paijupyter.backends import retries
from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.local import LocalBackend
from paijupyter.backends.local.journal import Journal, load
from paijupyter.backends.outcome import Outcome


@pytest_asyncio.fixture
async def backend(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalBackend]:
    monkeypatch.setattr(retries, "DELAYS", (0.01, 0.01, 0.01))
    backend = LocalBackend(Profile("local", "local"), place)
    yield backend
    await backend.close()


def spec_of(job: Job, attempt: int) -> dict:
    return json.loads((job.folder / "tasks" / "worker-0" / str(attempt) / "spec.json").read_text())


KILLS_ITS_BOOT = """
echo "attempt $PAI_ATTEMPT"
if test "$PAI_ATTEMPT" -lt {n}; then
  until grep -q "attempt $PAI_ATTEMPT" "$PAI_PACKAGE_DIR/../log"; do sleep 0.02; done
  kill -9 $PPID
  sleep 600
fi
"""


@pytest.mark.asyncio
async def test_a_failure_of_the_platform_costs_no_retry(backend: LocalBackend, place: Place) -> None:
    """jobRetryCount is 0, and yet a boot process that was killed does not end the job."""
    job = make_job(place, document({"worker": role(KILLS_ITS_BOOT.format(n=2))}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
        words = [change.message for change in watch.of(job) if change.reason == "retry-delay"]
    assert (final.state, final.attempt) == ("succeeded", 2)
    assert [await log_of(backend, job, "worker-0", number) for number in range(3)] == [
        b"attempt %d\n" % number for number in range(3)
    ]
    assert len(words) == 2
    assert words[0].endswith("trying again in 0.01 s, which costs no retry of the job's, 1 of 3.")


@pytest.mark.asyncio
async def test_the_platform_gets_three_more_tries(backend: LocalBackend, place: Place) -> None:
    """Not without end, as the original does."""
    job = make_job(place, document({"worker": role(KILLS_ITS_BOOT.format(n=99))}, jobRetryCount=5))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.state, final.reason, final.attempt) == ("failed", "lost", 3)


@pytest.mark.asyncio
@pytest.mark.parametrize("command", ["exit 137", "exit 143", "kill -9 $$", "kill -15 $$"])
async def test_137_and_143_are_the_users(backend: LocalBackend, place: Place, command: str) -> None:
    """The original retries them for ever (openpai.md 6.4); here they count as every failure does."""
    job = make_job(place, document({"worker": role(command)}, jobRetryCount=1))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.state, final.reason, final.attempt) == ("failed", "user", 1)


@pytest.mark.asyncio
async def test_the_pause_before_a_try_can_be_stopped(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "DELAYS", (600.0,))
    job = make_job(place, document({"worker": role(KILLS_ITS_BOOT.format(n=99))}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.reason == "retry-delay")
        await backend.stop(job)
        assert (await watch.final(job)).state == "stopped"
    free = await backend.capabilities()
    assert free.free == free.capacity


@pytest.mark.asyncio
async def test_a_port_that_was_taken_gives_new_ports(backend: LocalBackend, place: Place) -> None:
    """O22: taken after it was chosen; a new attempt, which is no retry of the user's."""
    resources = {"cpu": 1, "memoryMB": 64, "gpu": 0, "ports": {"tb": 1}}
    command = 'echo "$PAI_ATTEMPT $PAI_CONTAINER_HOST_tb_PORT_LIST"'
    job = make_job(place, document({"worker": role(command, resourcePerInstance=resources)}))
    really = backend._hall.boot
    held: list[socket.socket] = []

    def take_first() -> object:
        """Called between the choice of the ports and the start of the task."""
        if not held and (job.folder / "tasks" / "worker-0" / "0" / "spec.json").exists():
            thief = socket.socket()
            thief.bind(("", spec_of(job, 0)["ports"]["worker-0"]["tb"][0]))
            thief.listen()
            held.append(thief)
        return really()

    backend._hall.boot = take_first  # type: ignore[assignment]
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
        words = [change.message for change in watch.of(job) if change.reason == "retry-delay"]
        lost = watch.tasks(job, 0)["worker-0"]
    number = held[0].getsockname()[1]
    held[0].close()
    assert (final.state, final.attempt) == ("succeeded", 1)
    assert lost.reason == "ports"
    assert words == [
        f"worker-0 lost its port {number} (`tb`) to another program; "
        "trying again in 0.01 s, with new ports, 1 of 3."
    ]
    attempt, again = (await log_of(backend, job, "worker-0", 1)).split()
    assert attempt == b"1"
    assert int(again) != number


SAVES = """
echo "$PAI_ATTEMPT $(cat "$PAI_CHECKPOINT_DIR/step" 2>/dev/null)"
if test -e "$PAI_CHECKPOINT_DIR/step"; then exit 0; fi
test "$PAI_TASK_INDEX" = 0 && echo 7 > "$PAI_CHECKPOINT_DIR/step"
until test -e "$PAI_CHECKPOINT_DIR/step"; do sleep 0.02; done
exit 1
"""


@pytest.mark.asyncio
async def test_checkpoints_survive_attempts_and_are_seen_by_all_tasks(
    backend: LocalBackend, place: Place
) -> None:
    """Task 0 saves, every task of the next attempt finds it; outputs are another folder."""
    job = make_job(place, document({"worker": role(SAVES, instances=2)}, jobRetryCount=1))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.state, final.attempt) == ("succeeded", 1)
    for key in ("worker-0", "worker-1"):
        assert await log_of(backend, job, key, 1) == b"1 7\n"
    assert (job.folder / "checkpoints" / "step").read_text() == "7\n"


@pytest.mark.asyncio
async def test_the_counts_outlive_the_engine(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new engine gives no new tries."""
    monkeypatch.setattr(retries, "DELAYS", (600.0,))
    job = make_job(place, document({"worker": role(KILLS_ITS_BOOT.format(n=99))}))
    first = LocalBackend(Profile("local", "local"), place)
    async with watching(first) as watch:
        await first.submit(job, {})
        await watch.until(job, lambda change: change.reason == "retry-delay")
    await first.close()
    found = load(job)
    assert found is not None
    assert (found.attempt, found.platform_retries, found.user_retries) == (1, 1, 0)
    second = LocalBackend(Profile("local", "local"), place)
    async with watching(second, [job]) as watch:
        final = await watch.final(job)
    await second.close()
    assert (final.reason, final.attempt) == ("lost", 1)


@pytest.mark.asyncio
async def test_memory_that_ran_out_is_not_tried_again(backend: LocalBackend, place: Place) -> None:
    """As the original's -1200; nothing of the control group is left (O31)."""
    grow = "exec python -c 'held = []\nwhile True: held.append(bytearray(b\"x\" * 2**20))'"
    job = make_job(place, document({"worker": role(grow)}, jobRetryCount=3))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job)
    assert (final.state, final.reason, final.attempt) == ("failed", "out-of-memory", 0)
    assert final.message == "worker-0 ran out of memory: it may use 64 MB."
    assert not list((job.folder / "tasks").rglob("cgroup"))


@pytest.mark.asyncio
async def test_the_group_of_a_killed_boot_process_is_removed(
    backend: LocalBackend, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "DELAYS", ())
    job = make_job(place, document({"worker": role("echo begun; sleep 600")}))
    record = job.folder / "tasks" / "worker-0" / "0" / "cgroup"
    async with watching(backend) as watch:
        await backend.submit(job, {})
        async for _ in backend.logs(job, "worker", 0, 0, 0):
            break
        if not record.exists():
            pytest.skip("no control group may be made here")
        group = record.read_text()
        os.kill(json.loads((record.parent / "started.json").read_text())["pid"], signal.SIGKILL)
        await watch.final(job)
    assert not os.path.exists(group)
    assert not record.exists()


def failed(reason: str) -> Outcome:
    return Outcome("failed", reason, "It failed.")


def test_users_and_platforms_failures_are_counted_apart() -> None:
    journal = Journal(queued_at=time.time())
    reasons = ["lost", "user", "ports", "user", "internal", "lost"]
    answers = [retries.again(failed(reason), journal, 1) for reason in reasons]
    assert [bool(answer) for answer in answers] == [True, True, True, False, True, False]
    assert (journal.user_retries, journal.platform_retries) == (1, 3)
    assert [answer.delay for answer in answers if answer] == [1, 0, 8, 30]


@pytest.mark.parametrize(
    "reason", ["out-of-memory", "deadline", "package", "secret", "machine-restarted", "start"]
)
def test_what_would_only_fail_again_is_not_tried(reason: str) -> None:
    assert retries.again(failed(reason), Journal(), 9) is None


def test_nothing_is_tried_after_a_stop_or_a_success() -> None:
    assert retries.again(failed("user"), Journal(stop=True), 9) is None
    assert retries.again(Outcome("succeeded"), Journal(), 9) is None
