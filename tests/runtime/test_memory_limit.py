"""A task keeps to its memory: by a control group of its own, or by looking; and what is said if not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from paijupyter.runtime import control_group, tree
from paijupyter.runtime.memory_limit import MemoryLimit

GROWS = """
import time
held = []
while True:
    held.append(bytearray(b"x" * 2**20))
    time.sleep(0.002)
"""
CHILD_GROWS = f"""
import subprocess, sys
code = subprocess.call([sys.executable, "-c", {GROWS!r}])
print("child ended with", code, flush=True)
sys.exit(3)
"""
needs_groups = pytest.mark.skipif(
    not list(control_group._parents("/proc/self/cgroup", "/sys/fs/cgroup")),
    reason="no control group of memory may be made here",
)


def ask(task, how: str, megabytes: int = 100) -> None:
    task.spec.update(memoryLimitMB=megabytes, memoryLimit=how)


@pytest.mark.parametrize("how", ["auto", "sampling"])
def test_a_command_that_grows_beyond_its_memory_is_ended(task, how):
    """P25, O31: reason out-of-memory, in the group and without one."""
    ask(task, how)
    task.package({"grow.py": GROWS})
    record = task.run("exec python grow.py")
    assert (record["reason"], record["code"]) == ("out-of-memory", None)
    assert record["message"] == "The task ran out of memory: it may use 100 MB."
    assert record["signal"] in ("SIGKILL", "SIGTERM")


@needs_groups
def test_a_child_that_is_killed_for_memory_is_the_reason(task):
    """As OpenPAI's -1200: also when only a child was ended, and its parent gave another code."""
    ask(task, "auto")
    task.package({"parent.py": CHILD_GROWS})
    record = task.run("python parent.py")
    assert "child ended with -9" in task.log
    assert (record["reason"], record["code"]) == ("out-of-memory", 3)


@needs_groups
def test_the_group_is_there_while_the_command_runs_and_no_longer(task):
    ask(task, "auto")
    record = task.run('cat "$(dirname "$PAI_PACKAGE_DIR")/cgroup"; echo; cat /proc/self/cgroup')
    group, *rest = task.log.splitlines()
    assert record["reason"] == ""
    assert Path(group).name == "paijupyter-j1-worker-0-0"
    assert any(line.endswith("/paijupyter-j1-worker-0-0") for line in rest)
    assert not Path(group).exists()
    assert not (task.folder / "cgroup").exists()


@needs_groups
def test_the_group_of_a_boot_process_that_was_killed_is_taken_over(task):
    parent, _ = next(control_group._parents("/proc/self/cgroup", "/sys/fs/cgroup"))
    left = Path(parent) / "paijupyter-j1-worker-0-0"
    left.mkdir()
    ask(task, "auto")
    assert task.run("true")["reason"] == ""
    assert not left.exists()


@pytest.mark.parametrize("how", ["auto", "sampling", "none"])
def test_a_command_within_its_memory_is_left_alone(task, how):
    ask(task, how, 400)
    task.package(
        {"hold.py": "held = bytearray(b'x' * 2**27)\nimport time\ntime.sleep(1.2)\nprint(len(held))\n"}
    )
    assert task.run("python hold.py")["reason"] == ""
    assert task.log.strip() == str(2**27)


def test_what_forked_processes_share_counts_once(task):
    """A data loader's workers share the pages of their parent."""
    ask(task, "sampling", 250)
    task.package(
        {
            "loader.py": """
import os, time
held = bytearray(b"x" * 2**27)
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        time.sleep(1.5)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
print("done")
"""
        }
    )
    record = task.run("python loader.py")
    assert (record["reason"], task.log) == ("", "done\n")


def test_without_a_number_there_is_no_limit(tmp_path):
    limit = MemoryLimit(0, "auto", "x", str(tmp_path))
    assert (limit.door, limit.period, limit.kills(), limit.is_exceeded()) == (None, None, None, False)


def test_version_2_wants_a_parent_that_hands_memory_on(tmp_path):
    """A group with processes of its own cannot; the nearest above that does, can."""
    mount = tmp_path / "fs"
    own = mount / "user" / "scope"
    own.mkdir(parents=True)
    for folder, controllers in ((mount, "cpu"), (mount / "user", "cpu memory"), (own, "")):
        (folder / "cgroup.subtree_control").write_text(controllers)
        (folder / "cgroup.procs").write_text("")
    listed = tmp_path / "cgroup"
    listed.write_text("0::/user/scope\n")
    assert list(control_group._parents(str(listed), str(mount))) == [(str(mount / "user"), 2)]
    group = control_group.ControlGroup(str(own), 2)
    for name in ("memory.max", "memory.swap.max"):
        (own / name).write_text("max")
    group.limit(5 * 2**20)
    assert (own / "memory.max").read_text().startswith(str(5 * 2**20))
    assert (own / "memory.swap.max").read_text().startswith("0")
    (own / "memory.events").write_text("oom 1\noom_kill 2\n")
    (own / "cgroup.procs").write_text("7\n77\n")
    assert (group.kills(), group.has(7), group.has(8)) == (2, True, False)
    (mount / "user" / "cgroup.subtree_control").write_text("cpu")
    assert control_group.make("x", 1, str(listed), str(mount)) is None


def unified() -> Path:
    """Return where a hierarchy of version 2 is mounted and ours to write; skip without one."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2" and os.access(place, os.W_OK):
            return Path(place)
    pytest.skip("no control groups of version 2 are ours to write here")


def test_a_real_group_of_version_2_takes_the_command_in():
    """Its door, its members and its end; whether it can hold memory is the machine's affair."""
    group = control_group.ControlGroup(str(unified() / f"paijupyter-test-{os.getpid()}"), 2)
    os.mkdir(group.path)
    try:
        enter = f"echo 0 > {group.door}; echo in; read end"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(["bash", "-c", enter], **pipes) as command:
            assert command.stdout.readline() == b"in\n"
            assert group.has(command.pid) and not group.has(os.getpid())
            command.stdin.close()
        assert group.kills() == 0
    finally:
        group.remove()
    assert not os.path.exists(group.path)


def test_a_system_that_refuses_leaves_nothing(tmp_path):
    """No memory.max appears in a plain folder, as in a group whose controller is off."""
    mount = tmp_path / "fs"
    mount.mkdir()
    (mount / "cgroup.subtree_control").write_text("memory")
    (mount / "cgroup.procs").write_text("")
    (tmp_path / "cgroup").write_text("0::/\n")
    assert control_group.make("x", 1, str(tmp_path / "cgroup"), str(mount)) is None
    assert not (mount / "x").exists()


def test_resident_counts_what_is_below_us():
    pid = os.fork()
    if pid == 0:
        held = bytearray(b"x" * 2**25)
        os.write(1, b"")
        signal_wait = os.pipe()
        os.read(signal_wait[0], 1)
        os._exit(len(held))
    try:
        while tree.resident() < 2**25:
            pass
        assert 0 < tree.resident(shared_once=True) <= tree.resident() + 2**24
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
