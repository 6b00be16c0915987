"""Job manifests that go to the cluster as they were written (T1, T5, T10, T14)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from jobs import job_of, role, settings

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import gang, labels, render, written
from paijupyter.backends.kubernetes.attempt import Attempt
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.facts import Condition, pod_of
from paijupyter.backends.kubernetes.facts import job_of as kube_job
from paijupyter.backends.kubernetes.findings import Asked
from paijupyter.backends.kubernetes.render import Frame

POD = {
    "restartPolicy": "Never",
    "containers": [
        {"name": "training", "image": "lab/train:1", "command": ["python"], "imagePullPolicy": "Always"},
        {"name": "log", "image": "lab/log:1"},
    ],
    "volumes": [{"name": "cache", "emptyDir": {}}],
}


def manifest(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "ann-experiment-4", "labels": {"jobgroup": "group-small"}},
        "spec": {"backoffLimit": 1, **spec, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}},
    }


def one(found: dict[str, Any] | None = None, **more: Any) -> Job:
    return job_of({"main": role(**more)}, ours={"kubernetes": {"manifest": found or manifest()}})


def frame(job: Job) -> Frame:
    of = settings()
    return Frame(job, of, Cluster(), gang.choose(job, of, Cluster()), "", [])


def test_nothing_is_changed_but_labels() -> None:
    """T1, T9, T10: and the manifest itself is left alone."""
    job = one()
    (thing,) = render.attempt(frame(job), 0, {})
    ours = {**labels.of_role(job, 0, "main"), labels.KIND: labels.WRITTEN}
    assert thing["metadata"] == {"name": "ann-experiment-4", "labels": {"jobgroup": "group-small", **ours}}
    assert thing["spec"]["template"]["metadata"] == {"labels": {"a": "b", **ours}}
    assert thing["spec"]["template"]["spec"] == POD and thing["spec"]["backoffLimit"] == 1
    assert written.manifest_of(job) == manifest()
    assert render.own(frame(job), {"KEY": "x"}, "0" * 64, {}) == []
    assert render.owner(frame(job), {})["metadata"]["annotations"] == {labels.NEEDS: ""}


def test_a_name_that_is_left_to_the_cluster_is_ours() -> None:
    """P13: asked twice, created once."""
    found = manifest()
    found["metadata"] = {"generateName": "ann-", "namespace": "lab"}
    (thing,) = render.attempt(frame(one(found)), 0, {})
    assert thing["metadata"]["name"] == "train-abc234"
    assert not {"generateName", "namespace"} & thing["metadata"].keys()


@pytest.mark.parametrize(
    ("found", "namespace", "codes"),
    [
        (manifest(), "lab", ["as-written"]),
        (manifest(completions=3), "lab", ["as-written", "not-indexed"]),
        (manifest(completions=3, completionMode="Indexed"), "lab", ["as-written"]),
        ({**manifest(), "metadata": {"name": "x", "namespace": "lab"}}, "lab", ["as-written"]),
        (
            {**manifest(), "metadata": {"name": "x", "namespace": "lab"}},
            "team",
            ["as-written", "other-namespace"],
        ),
    ],
)
def test_what_a_plan_says(found: dict[str, Any], namespace: str, codes: list[str]) -> None:
    """T14."""
    assert [each.code for each in written.problems(one(found), namespace)] == codes


def test_any_other_job_is_ours() -> None:
    assert written.manifest_of(job_of({"worker": role()})) is None
    assert list(written.problems(job_of({"worker": role()}), "team")) == []


def pod(name: str, created: str, state: dict[str, Any], phase: str) -> Any:
    job = one()
    marks = {**labels.of_role(job, 0, "main"), labels.KIND: labels.WRITTEN}
    statuses = [{"name": "log", "state": {}}, {"name": "training", "containerID": name, "state": state}]
    return pod_of(
        {
            "metadata": {"uid": name, "name": name, "labels": marks, "creationTimestamp": created},
            "spec": {"restartPolicy": "Never", "containers": POD["containers"]},
            "status": {"phase": phase, "containerStatuses": statuses},
        }
    )


def test_a_pod_that_failed_is_not_the_end_until_the_job_says_so() -> None:
    """T10: how often it is tried again is the manifest's `backoffLimit`."""
    job = one()
    attempt = Attempt(job, 0, {"main": Asked()}, stuck_after=180)
    meta = {"uid": "j", "name": "x", "labels": labels.of_role(job, 0, "main")}
    kube = kube_job({"metadata": {**meta, "creationTimestamp": "2026-11-30T00:00:00Z"}})
    attempt.see_job(kube, False)
    failed = pod("p1", "2026-11-30T00:00:01Z", {"terminated": {"exitCode": 3}}, "Failed")
    assert failed.main == "training" and failed.written
    attempt.see_pod(failed, False)
    (status,) = attempt.look(0)
    assert (status.state, status.reason) == ("waiting", "retry-delay") and "exit code 3" in status.message
    attempt.see_pod(pod("p2", "2026-11-30T00:00:20Z", {"terminated": {"exitCode": 4}}, "Failed"), False)
    over = {"FailureTarget": Condition("True", "BackoffLimitExceeded")}
    attempt.see_job(replace(kube, conditions=over), False)
    (status,) = attempt.look(0)
    assert (status.state, status.reason, status.message) == (
        "failed",
        "user",
        "main-0 ended with exit code 4",
    )
    outcome = attempt.outcome()
    assert outcome is not None and (outcome.state, outcome.reason) == ("failed", "user")


def test_a_further_try_that_succeeds_ends_it() -> None:
    attempt = Attempt(one(), 0, {"main": Asked()}, stuck_after=180)
    attempt.see_pod(pod("p1", "2026-11-30T00:00:20Z", {"terminated": {"exitCode": 0}}, "Succeeded"), False)
    (status,) = attempt.look(0)
    assert status.state == "succeeded"
