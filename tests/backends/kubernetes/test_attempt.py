"""What becomes of a job, from what its pods and Jobs say (O22, O23, O31, P36)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import records
from paijupyter.backends.kubernetes.attempt import Attempt
from paijupyter.backends.kubernetes.facts import Condition, Container, Ended, KubeJob, Pod
from paijupyter.backends.kubernetes.findings import Asked

NOW = 1000.0
PLACED = {"PodScheduled": Condition("True", at=NOW - 20)}
NOWHERE = {
    "PodScheduled": Condition("False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
}


def attempt_of(**roles: Any) -> Attempt:
    fields = {
        name: {"instances": 1, "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 8}, **more}
        for name, more in roles.items()
    }
    job = Job("id", "job-abc123", "amy", Path("/nowhere"), {"taskRoles": fields}, {})
    attempt = Attempt(job, 0, {name: Asked() for name in roles}, stuck_after=180)
    for role in roles:
        attempt.see_job(
            KubeJob(f"job-{role}", role, "1", "id", 0, role, created_at=NOW - 30, conditions={}), False
        )
    return attempt


def pod(role: str = "worker", index: int = 0, **more: Any) -> Pod:
    known = {"phase": "Running", "node": "n1", "created_at": NOW - 30, "conditions": PLACED}
    return Pod(f"{role}{index}", f"pod-{role}-{index}", "1", "id", 0, role, index, **{**known, **more})


def running(role: str = "worker", index: int = 0) -> Pod:
    return pod(role, index, container=Container("c", running_since=NOW - 10))


def record(code: int | None = 0, at: float = NOW, **more: Any) -> Ended:
    facts = {"schema": 1, "code": code, "startedAt": NOW - 9, "endedAt": at, "lastLines": ["bye"], **more}
    return Ended(code or 0, message=json.dumps(facts), ended_at=at)


def over(ended: Ended, role: str = "worker", index: int = 0, **more: Any) -> Pod:
    phase = "Succeeded" if ended.code == 0 else "Failed"
    return pod(role, index, phase=phase, container=Container("c", ended=ended), **more)


def test_it_runs_once_all_have_met() -> None:
    attempt = attempt_of(worker={"instances": 2})
    attempt.see_pod(running(), False)
    assert [each.state for each in attempt.look(NOW)] == ["waiting", "waiting"]
    assert attempt.position(stopping=False, has_run=False).state == "waiting"
    attempt.see_pod(running(index=1), False)
    assert [each.state for each in attempt.look(NOW)] == ["running", "running"]
    assert attempt.position(stopping=False, has_run=False).state == "running"
    assert attempt.look(NOW) == []


def test_without_a_barrier_one_is_enough() -> None:
    attempt = attempt_of(worker={"instances": 2})
    attempt.job.document["extras"] = {"gangAllocation": False}  # type: ignore[index]
    attempt.see_pod(running(), False)
    attempt.look(NOW)
    assert attempt.position(stopping=False, has_run=False).state == "running"
    assert attempt.statuses["worker-1"].state == "waiting"


def test_the_first_failure_is_the_cause() -> None:
    """Others die later, with noise; the record's time counts, not when Kubernetes saw it."""
    attempt = attempt_of(worker={"instances": 3})
    attempt.see_pod(over(record(1, NOW - 1), index=0), False)
    attempt.see_pod(over(record(7, NOW - 5), index=1), False)
    attempt.see_pod(over(record(0, NOW, reason="stopped", stoppedBy="board"), index=2), False)
    attempt.look(NOW)
    found = attempt.outcome()
    assert found is not None
    assert (found.state, found.reason, found.failed_task) == ("failed", "user", "worker-1")
    assert found.message == "worker-1 ended with exit code 7"
    assert attempt.statuses["worker-2"].state == "stopped"
    assert attempt.is_over


def test_services_end_with_the_workers() -> None:
    attempt = attempt_of(ps={}, worker={})
    attempt.see_pod(over(record(), "worker"), False)
    attempt.see_pod(over(record(0, reason="stopped", stoppedBy="board"), "ps"), False)
    attempt.look(NOW)
    found = attempt.outcome()
    assert found is not None
    assert found.state == "succeeded"


@pytest.mark.parametrize(
    ("seen", "reason", "says"),
    [
        (over(Ended(137, reason="OOMKilled")), "out-of-memory", "more memory than its limit"),
        (over(replace(record(1, reason="user"), reason="OOMKilled")), "out-of-memory", "more memory"),
        (over(record(None, signal="SIGSEGV", reason="user")), "user", "was ended by SIGSEGV"),
        (over(record(None, reason="barrier-timeout", message="It waited.")), "barrier-timeout", "waited"),
        (
            pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
            "evicted",
            "low on resource: memory",
        ),
        (
            over(
                record(143, reason="stopped", stoppedBy="signal"),
                conditions={"DisruptionTarget": Condition("True", "PreemptionByScheduler", "preempting")},
            ),
            "preempted",
            "pod of higher priority",
        ),
        (
            pod(gone=True, conditions={"DisruptionTarget": Condition("True", "DeletionByTaintManager")}),
            "node-lost",
            "its node got a taint",
        ),
        (over(record(143, reason="stopped", stoppedBy="signal")), "lost", "told to end by somebody else"),
        (pod(gone=True), "lost", "was deleted"),
        (over(Ended(137)), "lost", "killed from outside"),
        (over(Ended(128, reason="StartError", message='exec: "python3": executable file not found')), "start",
         "no `python3`"),
        (over(Ended(2, message="Traceback\nImportError: x")), "lost", "ImportError: x"),
    ],
)  # fmt: skip
def test_ends_are_told_apart(seen: Pod, reason: str, says: str) -> None:
    status = records.final_status(seen, "worker", ending=False)
    assert status is not None
    assert (status.state, status.reason) == ("failed", reason)
    assert says in status.message


def test_what_was_to_end_is_stopped() -> None:
    for seen in (pod(gone=True), over(Ended(137)), over(record(143, reason="stopped", stoppedBy="signal"))):
        status = records.final_status(seen, "worker", ending=True)
        assert status is not None
        assert status.state == "stopped"


def test_a_container_that_its_node_restarts_has_not_ended() -> None:
    """restartPolicy OnFailure."""
    seen = pod(container=Container("c", ended=Ended(1)), restarts_itself=True)
    assert records.final_status(seen, "worker", ending=False) is None
    ended = replace(seen, phase="Succeeded", container=Container("c", ended=Ended(0)))
    assert records.final_status(ended, "worker", ending=False) is not None


def test_a_partial_gang_is_reported() -> None:
    """O28: some hold GPUs while others wait; after a while, as pods come one by one."""
    attempt = attempt_of(worker={"instances": 3})
    attempt.see_pod(running(), False)
    attempt.see_pod(pod(index=1, phase="Pending", node="", conditions=NOWHERE), False)
    attempt.look(NOW - 15)
    assert attempt.position(stopping=False, has_run=False).reason == "unschedulable"
    attempt.look(NOW)
    found = attempt.position(stopping=False, has_run=False)
    assert found.reason == "partial-gang"
    assert "1 of 3 tasks have their place, holding 8 GPUs" in found.message
    assert "worker-1 and worker-2" in found.message


def test_what_never_ends_by_itself_is_called_stuck() -> None:
    container = Container(
        waiting="ImagePullBackOff", message="Back-off pulling image: not found", image="no:1"
    )
    attempt = attempt_of(worker={})
    attempt.see_pod(pod(phase="Pending", container=container), False)
    attempt.look(NOW)
    assert attempt.position(stopping=False, has_run=False).message.startswith("worker-0: image `no:1`")
    attempt.look(NOW + 200)
    found = attempt.position(stopping=False, has_run=False)
    assert found.reason == "image"
    assert found.message.startswith("Stuck since 00:16:20 UTC: image `no:1` does not exist")
    assert "stop job-abc123" in found.message


def test_a_pod_that_does_not_go_is_reported() -> None:
    attempt = attempt_of(worker={})
    attempt.ending = True
    attempt.see_pod(replace(running(), deleted_at=NOW - 100), False)
    attempt.look(NOW)
    found = attempt.position(stopping=True, has_run=True)
    assert (found.state, found.reason) == ("running", "stopping")
    assert "still there" in found.message
    assert "--force" in found.message


def test_a_node_that_does_not_answer_is_said() -> None:
    """Of its only node a cluster takes no pods away: without a word such a job would run for ever."""
    attempt = attempt_of(worker={"instances": 2})
    attempt.see_pod(running(), False)
    silent = {**PLACED, "Ready": Condition("False", at=NOW)}
    attempt.see_pod(replace(running(index=1), conditions=silent), False)
    attempt.look(NOW)
    found = attempt.position(stopping=False, has_run=True)
    assert (found.state, found.reason) == ("running", "")
    assert found.message.startswith("worker-1: node n1 does not answer")
    assert "stop job-abc123" not in found.message
    # After the user's time it is called stuck, as all that does not end by itself.
    attempt.look(NOW + 200)
    found = attempt.position(stopping=False, has_run=True)
    assert (found.state, found.reason) == ("running", "")
    assert found.message.startswith("Stuck since 00:16:40 UTC: node n1 does not answer")
    assert found.message.endswith("--force --grace-period=0. Or stop the job (stop job-abc123).")
    # A container that is not ready yet, by a probe of the user's, is another matter.
    unready = {**PLACED, "Ready": Condition("False", "ContainersNotReady")}
    attempt.see_pod(replace(running(index=1), conditions=unready), False)
    attempt.look(NOW)
    assert attempt.position(stopping=False, has_run=True).message == ""


def test_jobs_tell_of_pods_that_are_gone() -> None:
    """An engine that comes late finds finished Jobs whose pods were collected."""
    attempt = attempt_of(worker={"instances": 2})
    failed = {"Failed": Condition("True", "FailedIndexes", "Job has failed indexes", NOW)}
    job = replace(attempt.jobs["worker"], completed=frozenset({0}), failed=frozenset({1}), conditions=failed)
    attempt.see_job(job, False)
    attempt.look(NOW)
    assert attempt.statuses["worker-0"].state == "succeeded"
    assert (attempt.statuses["worker-1"].state, attempt.statuses["worker-1"].reason) == ("failed", "lost")


def test_jobs_that_vanish_are_lost() -> None:
    attempt = attempt_of(worker={})
    attempt.see_pod(running(), False)
    assert not attempt.is_lost
    attempt.see_job(attempt.jobs["worker"], True)
    assert attempt.is_lost
    attempt.ending = True
    assert not attempt.is_lost


def test_pods_of_other_attempts_and_older_ones_do_not_count() -> None:
    attempt = attempt_of(worker={})
    assert attempt.see_pod(replace(running(), attempt=1), False) is None
    new = replace(running(), uid="new", created_at=NOW)
    assert attempt.see_pod(new, False) == "worker-0"
    assert attempt.see_pod(replace(running(), gone=True), True) is None
    assert attempt.pods["worker-0"].uid == "new"
