"""How tasks end: by themselves, on request, at their time limit; and that nothing is left (O31, P24)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paijupyter.runtime import exits
from paijupyter.runtime.exits import of_command
from paijupyter.runtime.memory import kills
from paijupyter.runtime.process import Outcome, find


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def pids(task) -> list[int]:
    """Return the pids that the command has printed."""
    return [int(number) for number in re.findall(r"pid=(\d+)", task.log)]


def test_stop_sends_term_and_keeps_the_log(task, until):
    """P24: a stopped job's log stays. Differences: TERM comes first."""
    task.spec["command"] = "trap 'echo saving; exit 0' TERM\necho go\nwhile true; do sleep 0.05; done"
    task.start()
    until(lambda: "go" in task.log)
    os.kill(task.process.pid, signal.SIGTERM)
    record = task.end()
    assert (record["reason"], record["code"], record["signal"]) == ("stopped", 0, None)
    assert record["message"] == "The task was stopped on request."
    assert "saving" in task.log.splitlines()
    assert task.log.splitlines()[-1] == "[paijupyter] The task was stopped on request."


def test_a_child_may_use_the_grace_after_its_shell_has_gone(task, until):
    task.package(
        {
            "train.py": """
import signal, sys, time
def save(*_):
    time.sleep(0.5)
    print("checkpoint written", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("training", flush=True)
time.sleep(60)
"""
        }
    )
    task.spec["command"] = "python train.py"
    task.start()
    until(lambda: "training" in task.log)
    os.kill(task.process.pid, signal.SIGTERM)
    record = task.end()
    assert "checkpoint written" in task.log
    assert (record["reason"], record["signal"], record["code"]) == ("stopped", "SIGTERM", None)


def test_a_tree_that_ignores_term_is_killed(task, until):
    task.spec["graceSeconds"] = 0.3
    task.spec["command"] = (
        "trap '' TERM\n"
        "(trap '' TERM; echo pid=$BASHPID; while true; do sleep 1; done) &\n"
        "setsid bash -c 'trap \"\" TERM; echo pid=$$; while true; do sleep 1; done' &\n"
        "echo pid=$$; while true; do sleep 1; done"
    )
    task.start()
    until(lambda: len(pids(task)) == 3)
    os.kill(task.process.pid, signal.SIGTERM)
    record = task.end()
    assert (record["reason"], record["signal"]) == ("stopped", "SIGKILL")
    assert not any(map(alive, pids(task)))


def test_a_stopped_process_can_be_stopped(task, until):
    task.spec["command"] = "echo pid=$$; kill -STOP $$"
    task.start()
    until(lambda: pids(task))
    os.kill(task.process.pid, signal.SIGTERM)
    assert task.end()["signal"] == "SIGTERM"


def test_the_time_limit_ends_it(task):
    task.spec["timeLimit"] = 0.6
    record = task.run("echo begin; sleep 60")
    assert (record["reason"], record["message"]) == ("deadline", "The task reached its time limit of 0.6 s.")
    assert record["lastLines"][-1] == "[paijupyter] The task reached its time limit of 0.6 s."


def test_daemons_end_with_the_command(task):
    """O31: nothing is left behind, whatever it did with sessions and parents."""
    record = task.run(
        "setsid bash -c 'echo pid=$$; touch a; exec sleep 300 >/dev/null 2>&1' &\n"
        "(bash -c 'echo pid=$$; trap \"\" TERM; touch b; exec >&- 2>&-; while true; do sleep 1; done' &)\n"
        "until [ -e a ] && [ -e b ]; do sleep 0.01; done"
    )
    assert record["code"] == 0
    assert len(pids(task)) == 2
    assert not any(map(alive, pids(task)))


def test_a_background_child_that_keeps_the_pipe_does_not_hold_the_task(task):
    """Differences: in the original it holds the task until it ends."""
    record = task.run("sleep 300 & echo pid=$!")
    assert record["code"] == 0
    assert record["endedAt"] - record["startedAt"] < 60
    assert not alive(pids(task)[0])


def test_a_background_child_that_never_falls_silent_is_ended_too(task):
    task.spec["graceSeconds"] = 0.3
    assert task.run("while true; do echo again; sleep 0.01; done & echo pid=$!")["code"] == 0
    assert not alive(pids(task)[0])


def test_late_output_of_a_background_child_is_kept(task):
    assert task.run("(sleep 0.1; echo late) & echo early")["code"] == 0
    assert task.log == "early\nlate\n"


def test_a_command_that_closes_its_output_goes_on(task):
    record = task.run("exec >&- 2>&-; sleep 0.3; exit 5")
    assert record["code"] == 5


def test_kill_0_ends_the_command_and_not_its_boot(task):
    record = task.run("echo a; kill 0; sleep 60")
    assert (record["signal"], record["reason"]) == ("SIGTERM", "user")


@pytest.mark.parametrize("code", [137, 143])
def test_137_and_143_are_the_users_failure(task, code):
    """Architecture, decision 11."""
    record = task.run(f"exit {code}")
    assert (record["code"], record["reason"]) == (code, "user")


def test_a_child_killed_by_a_signal_is_named(task):
    record = task.run("bash -c 'kill -SEGV $$'")
    assert record["code"] == 139
    assert record["message"] == "The command exited with status 139, as after SIGSEGV."


def test_the_shell_killed_by_a_signal(task):
    record = task.run("kill -KILL $$")
    assert (record["code"], record["signal"], record["reason"]) == (None, "SIGKILL", "user")
    assert "ran out of memory" in record["message"]


def outcome(status: int) -> Outcome:
    return Outcome(status, "", None)


@pytest.mark.parametrize(
    ("status", "memory_kills", "lines", "reason"),
    [
        (9, 1, [], "out-of-memory"),
        (137 << 8, 1, [], "out-of-memory"),
        (
            1 << 8,
            2,
            ["RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."],
            "out-of-memory",
        ),
        (1 << 8, 2, ["ValueError: x"], "user"),
        (137 << 8, 0, [], "user"),
        (0, 1, ["killed"], ""),
    ],
)
def test_out_of_memory_needs_the_control_groups_word(status, memory_kills, lines, reason):
    assert of_command(outcome(status), "", memory_kills, lines).reason == reason


def test_memory_kills_of_both_versions_of_control_groups(tmp_path):
    groups = tmp_path / "cgroup"
    mount = tmp_path / "fs"
    groups.write_text("0::/user/x\n")
    (mount / "user" / "x").mkdir(parents=True)
    (mount / "user" / "x" / "memory.events").write_text("low 0\noom 4\noom_kill 3\n")
    assert kills(str(groups), str(mount)) == 3
    groups.write_text("5:cpu:/\n4:memory:/job\n0::/\n")
    (mount / "memory").mkdir()
    (mount / "memory" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert kills(str(groups), str(mount)) == 2
    assert kills(str(tmp_path / "none"), str(mount)) == 0


def test_a_full_disk_delays_the_record_and_shortens_it(tmp_path, monkeypatch):
    tries = []

    def full(path, record):
        tries.append(dict(record))
        if len(tries) < 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(exits, "write_json", full)
    monkeypatch.setattr(exits.time, "sleep", lambda seconds: None)
    exits.write(str(tmp_path / "exit.json"), {"code": 1, "lastLines": ["x"]})
    assert [record["lastLines"] for record in tries] == [["x"], [], []]


def test_find_looks_for_files_that_may_be_executed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "tool").write_text("")
    (tmp_path / "b" / "tool").write_text("")
    (tmp_path / "b" / "tool").chmod(0o755)
    path = f"{tmp_path}/a:{tmp_path}/b"
    assert find("tool", path) == f"{tmp_path}/b/tool"
    assert find("other", path) is None


def test_it_outlives_its_parent(task, until):
    """Architecture, decision 4: kill -9 of kernel, server or engine loses nothing."""
    task.spec["command"] = "echo one; sleep 0.5; echo two"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "subprocess.Popen(sys.argv[1:], start_new_session=True, stdin=subprocess.DEVNULL)\n"
            "time.sleep(60)",
            *task.prepare(),
        ]
    )
    until(lambda: "one" in task.log)
    parent.kill()
    parent.wait()
    until(lambda: (task.folder / "exit.json").exists())
    assert task.log == "one\ntwo\n"
    assert task.exit["code"] == 0
