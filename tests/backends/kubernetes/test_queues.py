"""A job in a queue says why it waits, and begins again when its place was taken (O4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes.attempt import Attempt
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Condition, Container, KubeJob, Pod
from paijupyter.backends.kubernetes.queues import Standing, why_waiting, words_of

NEEDS = "insufficient unused quota for nvidia.com/gpu in flavor default, 2 more needed"


def workload(*conditions: dict[str, str]) -> dict[str, object]:
    return {"spec": {"queueName": "team"}, "status": {"conditions": list(conditions)}}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def test_the_queue_is_translated() -> None:
    pending = condition("QuotaReserved", "False", "Pending", f"couldn't assign flavors: {NEEDS}.")
    assert words_of(workload(pending)) == f"it waits in queue `team`: couldn't assign flavors: {NEEDS}"
    assert words_of(workload()) == "it waits in queue `team`"
    taken = condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload")
    assert words_of(workload(taken, pending)).startswith("its place was taken (Preempted to accommodate")
    assert "waits for its checks" in words_of(workload(condition("QuotaReserved", "True")))


def test_its_place_is_said() -> None:
    pending = condition("QuotaReserved", "False", "Pending", f"{NEEDS}.")
    assert words_of(workload(pending), Standing(0, 0)) == f"it waits in queue `team` at place 1: {NEEDS}"
    said = words_of(workload(), Standing(1, 4))
    assert said == "it waits in queue `team` at place 2 (5 with other queues)"


class Kueue:
    """Answers as the API server does."""

    namespace = "ns"

    def __init__(self, visible: bool) -> None:
        self.visible = visible

    async def request(self, method: str, path: str, *, query: dict[str, str], timeout: float) -> Any:
        if path.endswith("/workloads"):
            name = query["labelSelector"].rpartition("=")[2]
            return {"items": [{"metadata": {"name": name}, **workload()}]}
        if not self.visible:
            raise KubeError(404 if "v1beta2" in path else 403, "Forbidden", "no")
        assert path.endswith("/namespaces/ns/localqueues/team/pendingworkloads")
        places = {"positionInLocalQueue": 1, "positionInClusterQueue": 1}
        return {"items": [{"metadata": {"name": "u1"}}, {"metadata": {"name": "u2"}, **places}]}


@pytest.mark.asyncio
async def test_places_are_asked_for_once_for_each_queue() -> None:
    known: Any = Kueue(True)
    assert await why_waiting(known, ["u1", "u2"]) == {
        "u1": "it waits in queue `team` at place 1",
        "u2": "it waits in queue `team` at place 2",
    }
    unknown: Any = Kueue(False)
    assert await why_waiting(unknown, ["u1"]) == {"u1": "it waits in queue `team`"}


def test_a_place_that_was_taken_is_waited_for_again() -> None:
    """Kueue suspends the Job: its pods go, which is no failure, and the same attempt begins again."""
    role = {"instances": 1, "resourcePerInstance": {"cpu": 1}}
    job = Job("id", "job-abc123", "amy", Path("/nowhere"), {"taskRoles": {"worker": role}}, {})
    attempt = Attempt(job, 0, {}, stuck_after=180)
    suspended = KubeJob("u", "worker", "1", "id", 0, "worker", unit="u", suspended=True, conditions={})
    attempt.see_job(suspended, False)
    attempt.queue["u"] = f"it waits in queue `team`: {NEEDS}"
    attempt.look(1.0)
    found = attempt.position(stopping=False, has_run=False)
    assert (found.state, found.reason) == ("waiting", "queued")
    assert NEEDS in found.message
    admitted = replace(suspended, suspended=False)
    placed = {"PodScheduled": Condition("True", at=1.0)}
    running = Container("c", running_since=2.0)
    pod = Pod("p", "pod", "1", "id", 0, "worker", 0, "Running", "n", conditions=placed, container=running)
    attempt.see_job(admitted, False)
    attempt.see_pod(pod, False)
    attempt.look(3.0)
    assert attempt.position(stopping=False, has_run=False).state == "running"
    attempt.see_job(suspended, False)
    attempt.see_pod(pod, True)
    attempt.look(4.0)
    assert attempt.statuses["worker-0"].state == "waiting"
    assert attempt.outcome() is None
    assert attempt.position(stopping=False, has_run=True).reason == "queued"
    attempt.see_job(admitted, False)
    attempt.see_pod(replace(pod, uid="p2", created_at=5.0), False)
    attempt.look(6.0)
    assert attempt.position(stopping=False, has_run=False).state == "running"
