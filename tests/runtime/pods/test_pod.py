"""One task in a pod (P8, P20, O31): the local boot process below a keeper, its log on standard output."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest


def test_a_task_runs_and_leaves_its_record(make_job):
    job = make_job(worker=1)
    ended = job.run(worker="echo one; printf 'half a line'")["worker-0"]
    assert ended["status"] == 0
    assert job.pods["worker-0"].log == "one\nhalf a line"
    assert (ended["code"], ended["signal"], ended["reason"], ended["message"]) == (0, None, "", "")
    assert ended["lastLines"] == ["one", "half a line"]
    assert ended["startedAt"] <= ended["endedAt"]
    assert ended["stoppedBy"] is None
    assert ended["schema"] == 1


@pytest.mark.parametrize(
    ("command", "status", "fields"),
    [
        ("exit 3", 3, {"code": 3, "signal": None, "reason": "user"}),
        ("kill -KILL $$", 137, {"code": None, "signal": "SIGKILL", "reason": "user"}),
        ("nosuchcommand", 127, {"code": 127, "reason": "user"}),
    ],
)
def test_the_status_is_the_users(make_job, command, status, fields):
    """O31."""
    ended = make_job(worker=1).run(worker=command)["worker-0"]
    assert ended["status"] == status
    assert ended.items() >= fields.items()


def test_our_own_failures_have_a_status_of_their_own(make_job):
    job = make_job(worker=1)
    job.spec["secrets"] = str(job.home / "nowhere.json")
    ended = job.run(worker="true")["worker-0"]
    assert (ended["status"], ended["reason"], ended["code"]) == (45, "secret", None)
    assert job.pods["worker-0"].log == "[paijupyter] The secrets of this job are gone from this machine.\n"


def test_a_pod_that_cannot_begin_says_so(make_job):
    job = make_job(worker=1)
    job.pods["worker-0"].variables["PAIJUPYTER_ROLE"] = "stranger"
    ended = job.run(worker="true")["worker-0"]
    assert (ended["status"], ended["reason"]) == (49, "internal")
    assert "stranger-0" in ended["message"]
    assert ended["message"] in job.pods["worker-0"].log


def test_an_index_of_several_jobs_is_the_only_task_of_its_job(make_job):
    """T3: experiments that are one Indexed Job have one spec file, with a member for each index."""
    job = make_job(worker=1)
    pod = job.pods["worker-0"]
    mine = {"run": str(pod.run_folder), "terminationLog": str(pod.home / "termination-log")}
    commands = {"worker": "echo mine $PAI_TASK_INDEX; echo out > $PAI_OUTPUT_DIR/file"}
    pod.changes = {"members": [{}, {}, {**job.spec, **mine, "commands": commands, "fetchSeconds": 0}]}
    pod.variables["JOB_COMPLETION_INDEX"] = "2"
    pod.start()
    while not pod.log.count("Outputs wait"):
        assert not pod.ended, pod.log
        time.sleep(0.02)
    assert b"out\n" in pod.outputs("send")
    pod.outputs("taken")
    assert pod.end()["status"] == 0
    assert pod.log.startswith("mine 0\n")


def test_secrets_are_masked_and_there(make_job):
    """O20."""
    job = make_job(worker=1)
    job.secrets(TOKEN="a-secret-value")
    job.run(worker='echo "$TOKEN"; cat "$PAI_SECRETS_DIR/TOKEN"')
    assert job.pods["worker-0"].log == "***\n***"


def test_the_record_fits_whatever_was_said(make_job):
    """Kubernetes cuts a message at 4096 bytes, in the middle of a character if need be."""
    job = make_job(worker=1)
    ended = job.run(worker="for i in 1 2 3 4 5 6; do printf 'ą%.0s' $(seq 1500); echo $i; done; exit 1")
    record = ended["worker-0"]
    assert record["code"] == 1
    assert record["lastLines"], "the newest line is kept as far as it fits"
    assert record["lastLines"][-1].endswith("ą6")


def test_a_stop_from_outside_is_no_success(make_job, until):
    """T14: a pod that Kubernetes deletes has not succeeded, even if its command ends well on TERM."""
    job = make_job(worker=1)
    job.spec["commands"]["worker"] = "trap 'echo bye; exit 0' TERM; echo on; while true; do sleep 0.05; done"
    pod = job.pods["worker-0"].start()
    until(lambda: pod.log == "on\n")
    pod.stop()
    ended = pod.end()
    assert (ended["status"], ended["reason"], ended["stoppedBy"]) == (143, "stopped", "signal")
    assert pod.log.splitlines()[-2:] == ["bye", "[paijupyter] The task was stopped on request."]


def test_a_stop_at_the_very_start_is_not_lost(make_job):
    job = make_job(worker=1)
    job.spec["commands"]["worker"] = "sleep 600"
    pod = job.pods["worker-0"].start()
    pod.stop()
    status = pod.process.wait(30)
    assert status in (143, -15), "-15: before Python could listen"


def test_a_user_without_home_or_name_gets_them(make_job):
    """P8: images run by a number."""
    job = make_job(worker=1)
    pod = job.pods["worker-0"]
    pod.variables["HOME"] = "/"
    job.run(worker='echo "$HOME $USER"; touch "$HOME/x"')
    home, user = pod.log.split()
    assert home == str(pod.run_folder / "home")
    assert user


def test_the_environment_is_that_of_every_backend(make_job):
    """Architecture, decision 11."""
    job = make_job(worker=1)
    job.run(worker='env | grep ^PAI_ | cut -d= -f1 | sort | tr "\\n" " "; cat "$PAI_JOB_KEY_FILE" | wc -c')
    log = job.pods["worker-0"].log
    for name in (
        "PAI_JOB_ID",
        "PAI_OUTPUT_DIR",
        "PAI_CHECKPOINT_DIR",
        "PAI_HOST_IP_worker_0",
        "PAI_WORK_DIR",
    ):
        assert f"{name} " in log
    assert log.endswith("64\n")


def test_a_task_alone_makes_its_key_itself(make_job):
    """Architecture, decision 11: the file is there on every backend; here nobody else has to know it."""
    job = make_job(worker=1)
    job.spec["keyFile"] = None
    job.run(worker='cat "$PAI_JOB_KEY_FILE"')
    assert len(set(job.pods["worker-0"].log)) > 4
    assert len(job.pods["worker-0"].log) == 64


def test_the_key_of_the_board_is_not_given_away(make_job):
    job = make_job(worker=1)
    job.run(worker='cat "$PAI_JOB_KEY_FILE"')
    key = (job.home / "board-key").read_text()
    assert len(job.pods["worker-0"].log) == len(key)
    assert job.pods["worker-0"].log != key


def test_a_killed_boot_process_leaves_a_record_and_nothing_else(make_job, until):
    job = make_job(worker=1)
    job.spec["commands"]["worker"] = "echo $PPID $$; sleep 600"
    pod = job.pods["worker-0"].start()
    until(lambda: pod.log.endswith("\n"))
    boot, command = map(int, pod.log.split())
    os.kill(boot, signal.SIGKILL)
    ended = pod.end()
    assert (ended["status"], ended["reason"], ended["signal"]) == (48, "lost", "SIGKILL")
    until(lambda: not os.path.exists(f"/proc/{command}"))


def test_the_time_limit_holds(make_job):
    """T10."""
    job = make_job(worker=1)
    job.spec["timeLimit"] = 0.3
    ended = job.run(worker="sleep 600")["worker-0"]
    assert (ended["status"], ended["reason"]) == (47, "deadline")


def test_python_3_6_is_enough(make_job, python):
    job = make_job(worker=2)
    for pod in job.pods.values():
        pod.python = python
    ended = job.run(worker="echo $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX")
    assert [each["status"] for each in ended.values()] == [0, 0], job.logs()
    assert job.logs() == {"worker-0": "0\n", "worker-1": "1\n"}


def test_the_spec_of_all_pods_is_one(make_job):
    job = make_job(worker=2)
    job.run(worker="true")
    own = [json.loads(pod.spec_file.read_text()) for pod in job.pods.values()]
    for each in own:
        del each["run"], each["terminationLog"]
    assert own[0] == own[1] == job.spec
