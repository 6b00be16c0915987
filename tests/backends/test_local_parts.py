"""The parts of the local backend, each alone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging import document, make_job, role

from paijupyter.backends.base import Change, Exit, Job, Place, Profile, TaskStatus
from paijupyter.backends.changes import Changes
from paijupyter.backends.jsonfiles import read_json, write_json, write_json_once
from paijupyter.backends.local import ends, host, journal, tree
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.environment import inherited
from paijupyter.backends.local.files import task_files
from paijupyter.backends.local.gpus import Gpus
from paijupyter.backends.local.journal import Journal
from paijupyter.backends.local.plan import plan
from paijupyter.backends.local.ports import allocate
from paijupyter.backends.local.process import BootProcess
from paijupyter.backends.local.queue import Entry, Queue, Resources, capacity_of
from paijupyter.backends.local.share import Hall, Share
from paijupyter.backends.local.spawn import AlreadyRuns, _lock, is_claimed, spawn
from paijupyter.backends.local.spec import specs
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.told import Task, tasks_of
from paijupyter.errors import PaiJupyterError, has_errors

LOCAL = Profile("local", "local", {"cpu": 8, "memoryMB": 4096, "gpu": 0})

# The queue


@given(
    needs=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=20),
    ends_at=st.lists(st.integers(0, 100), max_size=40),
)
def test_the_queue_never_overbooks_and_never_overtakes(
    needs: list[tuple[int, int]], ends_at: list[int]
) -> None:
    """O28."""
    queue = Queue(Resources(4, 3, 0))
    started: list[int] = []
    running: list[int] = []

    def start(number: int) -> None:
        started.append(number)
        running.append(number)

    entries = [
        Entry(Resources(cpu, memory), lambda number=number: start(number), lambda message: None)
        for number, (cpu, memory) in enumerate(needs)
    ]
    for entry in entries:
        queue.enter(entry)
    for choice in [*ends_at, *range(len(needs))]:
        assert queue.used.fits(queue.capacity)
        assert queue.free == queue.capacity - queue.used
        if running:
            ended = running.pop(choice % len(running))
            queue.give(entries[ended].needs)
    while running:
        queue.give(entries[running.pop()].needs)
    assert started == list(range(len(needs)))
    assert queue.used == Resources()


def test_the_queue_speaks_only_when_something_changed() -> None:
    said: list[str] = []
    queue = Queue(Resources(2, 100, 1))
    queue.take(Resources(2, 50, 1))
    waiting = [
        Entry(Resources(1, 60, 1), lambda: None, said.append),
        Entry(Resources(1, 0, 0), lambda: None, said.append),
    ]
    for entry in waiting:
        queue.enter(entry)
    assert said == [
        "Number 1 in this machine's queue, waiting for 1 more CPU and 10 MB more memory and 1 more GPU.",
        "Number 2 in this machine's queue, waiting for 1 job before it.",
    ]
    queue.leave(waiting[0])
    assert said[2:] == ["Number 1 in this machine's queue, waiting for 1 more CPU."]
    queue.leave(waiting[0])
    assert len(said) == 3


def test_capacity_is_four_times_the_cores_by_default() -> None:
    """architecture.md, decision 9."""
    found = capacity_of(Profile("local", "local"))
    assert found.cpu == 4 * host.cores()
    assert 0 < found.memory_mb <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    assert capacity_of(LOCAL) == Resources(8, 4096, 0)


@pytest.mark.parametrize("value", ["many", -1, True, [4]])
def test_a_setting_that_is_no_number_is_named(value: object) -> None:
    with pytest.raises(PaiJupyterError, match="`cpu` of profile `big`") as caught:
        capacity_of(Profile("big", "local", {"cpu": value}))
    assert caught.value.code == "bad-setting"


def make_hall(
    place: Place, capacity: Resources, profile: Profile = LOCAL, gpus: tuple[str, ...] = ()
) -> Hall:
    return Hall(profile, place, Queue(capacity), Changes(), Path, gpus, Disk(place.data, profile))


def test_each_gpu_goes_to_one_task(place: Place) -> None:
    hall = make_hall(place, Resources(8, 4096, 3), gpus=("0", "1", "2"))
    one_each = {"resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 1}}
    roles = {"worker": role("true", instances=2, **one_each), "watcher": role("true")}
    share = Share(make_job(place, document(roles)), hall, lambda: None, lambda message: None)
    share.ask()
    assert share.has_room
    assert share.choose()[1] == {"worker-0": ["0"], "worker-1": ["1"], "watcher-0": []}
    assert hall.busy_gpus == {"0", "1"}
    share.give_back()
    assert (hall.busy_gpus, hall.ports, hall.queue.used) == (set(), set(), Resources())


# Ports


def test_ports_are_free_and_differ() -> None:
    with socket.socket() as holder:
        holder.bind(("", 0))
        found = allocate({f"t-{n}": {"a": 2, "ssh": 1} for n in range(50)}, {holder.getsockname()[1]})
    numbers = [port for labels in found.values() for ports in labels.values() for port in ports]
    assert len(numbers) == len(set(numbers)) == 150
    for port in numbers:
        with socket.socket() as probe:
            probe.bind(("", port))


def test_ports_of_other_jobs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paijupyter.backends.local.ports._LAST", 16000)
    taken = set(range(15000, 16001))
    with pytest.raises(PaiJupyterError) as caught:
        allocate({"t-0": {"a": 1}}, taken)
    assert caught.value.code == "no-free-port"
    taken.discard(15999)
    assert allocate({"t-0": {"a": 1}}, taken) == {"t-0": {"a": [15999]}}


# Environment


def test_only_allowed_variables_are_inherited() -> None:
    allowed = {"HOME": "h", "LC_TIME": "C", "CUDA_HOME": "c", "OMP_NUM_THREADS": "1", "NO_PROXY": "x"}
    denied = {"JUPYTERHUB_USER": "u", "JPY_SESSION_NAME": "s", "CUDA_TOKEN": "t", "PYTHONPATH": "p", "A": "a"}
    found = inherited({**allowed, **denied, "PATH": "/bin"}, "/venv/bin/python")
    assert found == {**allowed, "PATH": f"/venv/bin{os.pathsep}/bin"}
    assert inherited({}, None)["PATH"]


# Processes


@pytest.mark.asyncio
async def test_a_process_that_is_another_now_counts_as_ended() -> None:
    """A pid is reused; with its start time it names one process."""
    ended = asyncio.Event()
    stranger = BootProcess(os.getpid(), "1")
    stranger.watch(ended.set)
    await asyncio.wait_for(ended.wait(), 5)
    stranger.terminate()  # would end this test
    stranger.close()


@pytest.mark.asyncio
async def test_the_end_of_a_process_of_others_is_noticed() -> None:
    """An adopted boot process is nobody's child here."""
    command = "sleep 600 >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout)
    ended = asyncio.Event()
    process = BootProcess(pid, host.start_time(pid))
    process.watch(ended.set)
    await asyncio.sleep(0)
    assert not ended.is_set()
    process.terminate()
    await asyncio.wait_for(ended.wait(), 5)
    assert process.ended
    process.close()


@pytest.mark.asyncio
async def test_a_tree_is_ended_with_its_members_only() -> None:
    child = subprocess.Popen(["bash", "-c", "sleep 600 & sleep 600"], start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    owner = tree.Owner(child.pid, host.start_time(child.pid), {})
    try:
        table = tree.snapshot()
        assert other.pid not in tree.members(owner, table)
        assert not tree.members(tree.Owner(child.pid, "1", {}), table), "a reused pid must not match"
        await tree.end([owner])
        assert not tree.members(owner, tree.snapshot())
        assert child.wait() in (-signal.SIGKILL, 128 + signal.SIGKILL)  # its own, or that of its child
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_marks_find_what_left_its_session() -> None:
    marks = {"PAI_JOB_ID": f"test-{os.getpid()}", "PAI_ATTEMPT": "0"}
    hidden = subprocess.Popen(["sleep", "600"], start_new_session=True, env={**os.environ, **marks})
    try:
        table = tree.snapshot()
        assert tree.members(tree.Owner(0, "", marks), table) == {hidden.pid}
        assert not tree.members(tree.Owner(0, "", {**marks, "PAI_ATTEMPT": "1"}), table)
    finally:
        hidden.kill()
        hidden.wait()


def test_a_claimed_task_cannot_be_spawned(place: Place, job: Job) -> None:
    files = task_files(job, place, "worker-0", 0)
    assert not is_claimed(files)
    claim = _lock(files.lock)
    assert claim is not None
    assert is_claimed(files)
    with pytest.raises(AlreadyRuns):
        spawn(Path("boot.pyz"), files, {})
    os.close(claim)
    assert not is_claimed(files)


# Files


@pytest.fixture
def job(place: Place) -> Job:
    return make_job(place, document({"worker": role("true", instances=2)}))


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    write_json(path, {"a": 1})
    assert not write_json_once(path, {"a": 2})
    assert read_json(path) == {"a": 1}
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["facts.json"]
    path.write_text('{"a": ')
    assert read_json(path) is None


def test_the_journal_comes_back_as_it_was(job: Job) -> None:
    assert journal.load(job) is None
    status = TaskStatus("worker", 1, 2, "failed", "user", "m", Exit(3, None, ("a", "b")), 1.5, 2.5)
    state = Journal(
        phase="final",
        attempt=2,
        boot_id="b",
        devices={"worker-1": ["0"]},
        stop=True,
        outcome=Outcome("failed", "user", "m", "worker-1"),
        last=Change(job.id, 2, "failed", 3.0, "user", "m", (status,), "worker-1"),
    )
    journal.save(job, state)
    assert journal.load(job) == state


def test_a_torn_journal_means_that_it_may_run(place: Place, job: Job) -> None:
    journal.save(job, Journal())
    (job.folder / "tasks" / "backend.json").write_text("{")
    assert journal.load(job) is None
    tasks = [task_files(job, place, task.key, 1) for task in tasks_of(job)]
    write_json(tasks[0].spec, {})
    write_json(task_files(job, place, "worker-0", 0).started, {"bootId": "elsewhere"})
    found = journal.load(job)
    assert found is not None
    assert (found.phase, found.attempt) == ("queued", 1), "tasks start once all have been told"
    for files in tasks[1:]:
        write_json(files.spec, {})
    found = journal.load(job)
    assert found is not None
    assert (found.phase, found.attempt, found.boot_id) == ("started", 1, "elsewhere")


# Ends


@pytest.mark.parametrize(
    ("facts", "ending", "state", "reason", "message"),
    [
        ({"code": 0, "reason": ""}, False, "succeeded", "", ""),
        ({"code": 0, "reason": ""}, True, "succeeded", "", ""),
        ({"code": 0, "reason": "stopped"}, True, "stopped", "", "worker-1: said"),
        ({"code": 3, "reason": "user"}, False, "failed", "user", "worker-1 ended with exit code 3"),
        ({"code": 3, "reason": "user"}, True, "failed", "user", "worker-1 ended with exit code 3"),
        (
            {"signal": "SIGTERM", "reason": "stopped"},
            False,
            "failed",
            "user",
            "worker-1 was ended by SIGTERM",
        ),
        (
            {"reason": "deadline", "message": "The task reached its limit."},
            False,
            "failed",
            "deadline",
            "worker-1 reached its limit.",
        ),
        ({"reason": "package"}, False, "failed", "package", "worker-1: said"),
        ({"reason": "machine-restarted"}, True, "failed", "machine-restarted", "worker-1: said"),
    ],
)
def test_an_exit_record_becomes_a_status(
    facts: dict[str, Any], ending: bool, state: str, reason: str, message: str
) -> None:
    found = ends.status(Task("worker", 1), 0, {"message": "said", **facts}, ending=ending)
    assert (found.state, found.reason, found.message) == (state, reason, message)


# Plan


def planned(job: Job, profile: Profile = LOCAL) -> dict[str, Any]:
    place = Place(job.folder.parent.parent, job.folder.parent.parent)
    found = plan(job, make_hall(place, capacity_of(profile), profile), Gpus())
    return {problem.code: problem for problem in found.problems}


def test_a_plain_job_has_no_problem(job: Job) -> None:
    """An image that nobody chose is not worth a word."""
    assert planned(job) == {}


def test_what_this_machine_cannot_do_is_said(place: Place) -> None:
    """architecture.md, decision 9; O13."""
    many = {"cpu": 5, "memoryMB": 3000, "gpu": 1}
    roles = {
        "one": role("true", resourcePerInstance=many, extraContainerOptions={"infiniband": True}),
        "two": role("true", resourcePerInstance=many, taskRetryCount=1),
    }
    images = [{"name": "image", "type": "dockerimage", "uri": "mine:1"}]
    extras = {"paijupyter": {"version": 1, "roles": {"two": {"launcher": "warp"}}}}
    source = document(roles, prerequisites=images)
    job = make_job(place, source)
    job = Job(
        **{**{name: getattr(job, name) for name in Job.__slots__}, "document": {**source, "extras": extras}}
    )
    found = planned(job)
    assert found.keys() == {
        "never-fits",
        "no-gpu",
        "no-infiniband",
        "unknown-launcher",
        "image-not-used",
        "no-task-retry",
    }
    assert found["image-not-used"].severity == "hint"
    assert "mine:1" in found["image-not-used"].message
    assert found["never-fits"].path.startswith("/taskRoles/one/resourcePerInstance/")
    assert found["no-gpu"].path == "/taskRoles/one/resourcePerInstance/gpu"


def test_an_interpreter_that_is_gone_is_an_error(job: Job) -> None:
    gone = Job(**{**{name: getattr(job, name) for name in Job.__slots__}, "python": "/nowhere/python"})
    assert planned(gone)["no-python"].severity == "error"
    assert has_errors(planned(gone).values())


# Spec


def test_the_spec_tells_all(place: Place) -> None:
    """The agreement with the boot process."""
    roles = {
        "ps": role("serve", resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 0, "ports": {"ssh": 2}}),
        "worker": role("train", instances=2, completion={"minFailedInstances": 2}),
    }
    extras = {
        "paijupyter": {
            "version": 1,
            "env": {"A": "1"},
            "outputs": ["model"],
            "timeLimit": 60,
            "install": "never",
            "roles": {"worker": {"env": {"B": "2"}, "launcher": "torchrun"}},
        }
    }
    job = make_job(place, document(roles, extras=extras, parameters={"lr": 0.1}), {"a.py": "pass"})
    ports = {"ps-0": {"ssh": [1, 2], "http": [3]}, "worker-0": {"ssh": [4]}, "worker-1": {"ssh": [5]}}
    told = specs(job, 1, ports, place, Profile("local", "local"))
    assert told.keys() == {"ps-0", "worker-0", "worker-1"}
    spec = told["worker-1"]
    assert (spec["schema"], spec["role"], spec["index"], spec["command"]) == (1, "worker", 1, "train")
    assert spec["job"] == {
        "id": job.id,
        "name": job.name,
        "user": "tester",
        "virtualCluster": "default",
        "defaultFsUri": "",
        "attempt": 1,
    }
    assert [(each["name"], each["minFailed"], each["minSucceeded"]) for each in spec["roles"]] == [
        ("ps", 1, -1),
        ("worker", 2, 2),
    ]
    assert spec["roles"][0]["ports"] == {"ssh": 2, "http": 1}
    assert spec["roles"][1]["launcher"] == "torchrun"
    assert spec["roles"][1]["env"] == {"B": "2"}
    assert spec["hosts"] == {key: "127.0.0.1" for key in ports}
    assert spec["barrier"]["tasks"].keys() == told.keys()
    assert (spec["env"], spec["outputs"], spec["timeLimit"]) == ({"A": "1"}, ["model"], 60)
    assert spec["parameters"] == {"lr": 0.1}
    assert spec["requirements"]["policy"] == "never"
    assert spec["secrets"] is None
    assert job.package is not None
    assert spec["package"]["manifest"] == str(job.package.folder / "manifest.json")


def test_without_a_gang_there_is_no_barrier(place: Place) -> None:
    job = make_job(place, document({"worker": role("true")}, extras={"gangAllocation": False}))
    told = specs(job, 0, {"worker-0": {}}, place, LOCAL)
    assert told["worker-0"]["barrier"] is None
