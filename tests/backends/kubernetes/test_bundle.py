"""Experiments that are one Indexed Job: which are, what they are made of, what each hears (T3, T4)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jobs import job_of, role, settings

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import bundle, gang, labels, owner_record, render
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.facts import job_of as kube_job
from paijupyter.backends.kubernetes.facts import pod_of
from paijupyter.backends.kubernetes.hub import Hub
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.transport import KubeTransport

NEW, OLD = Cluster(version=(1, 34)), Cluster(version=(1, 28))
KUEUE = Cluster(version=(1, 34), groups=frozenset({"kueue.x-k8s.io"}), queues={"team": "all"})


def experiment(key: int, group: str = "tried", roles: Any = None, **more: Any) -> Job:
    job = job_of(
        roles or {"main": role(commands=[f"train {key}"])},
        name=f"try-{key}-abc23{key % 10}",
        commands=f"train {key}",
        parameters={"key": key},
        **more,
    )
    return replace(job, id=f"id{key}", group=group, experiment=str(key))


def split(
    jobs: list[Job], cluster: Cluster = NEW, secrets: Any = None, **values: Any
) -> tuple[list[list[str]], list[str]]:
    given = [(job, (secrets or {}).get(job.id, {})) for job in jobs]
    bundles, alone = bundle.split(given, settings(**{"indexedFrom": 3, **values}), cluster)
    return [[job.id for job, _ in each] for each in bundles], [job.id for job, _ in alone]


FIVE = [experiment(key) for key in range(5)]
IDS = [f"id{key}" for key in range(5)]


def test_what_differs_by_values_only_is_one() -> None:
    assert split(FIVE) == ([IDS], [])
    assert split(FIVE[:2]) == ([], IDS[:2])


@pytest.mark.parametrize(
    ("more", "values"),
    [
        ({"cluster": OLD}, {}),
        ({"cluster": KUEUE}, {"queue": "team"}),
        ({}, {"indexedFrom": 0}),
        ({}, {"keepClaim": "team"}),
    ],
)
def test_where_there_is_none(more: dict[str, Any], values: dict[str, Any]) -> None:
    assert split(FIVE, **more, **values) == ([], IDS)


def test_jobs_that_stay_alone() -> None:
    large = role(commands=["x"], resourcePerInstance={"cpu": 9, "memoryMB": 1, "gpu": 0})
    others = [
        experiment(5, group=""),
        experiment(6, roles={"main": large}),
        experiment(7, roles={"main": role(2)}),
        experiment(8, roles={"a": role(), "b": role()}),
        experiment(9, ours={"kubernetes": {"manifest": {"kind": "Job"}}}),
    ]
    bundles, alone = split(FIVE + others)
    assert bundles == [IDS] and sorted(alone) == ["id5", "id6", "id7", "id8", "id9"]
    assert split(FIVE, secrets={"id4": {"KEY": "other"}}) == ([IDS[:4]], ["id4"])


def test_one_that_would_be_too_large_is_cut() -> None:
    """A ConfigMap holds 1 MiB."""
    jobs = [replace(job, document={**job.document, "description": "x" * 90_000}) for job in FIVE]
    bundles, alone = split(jobs)
    assert bundles == [IDS[:3]] and alone == IDS[3:]


def frame_of(jobs: list[Job]) -> Frame:
    of = settings()
    return Frame(bundle.as_one(jobs), of, NEW, gang.Gang(), "paijupyter-boot-0123", [])


def test_each_index_is_told_what_its_job_is() -> None:
    spec, job = bundle.attempt(frame_of(FIVE), FIVE)
    told = json.loads(spec["data"]["spec.json"])["members"]
    assert [each["commands"] for each in told] == [{"main": f"train {key}"} for key in range(5)]
    name = job["metadata"]["name"]
    service = render.own(frame_of(FIVE), {}, "0" * 64, {})[1]["metadata"]["name"]
    assert [each["hosts"] for each in told] == [{"main-0": f"{name}-{key}.{service}"} for key in range(5)]
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (5, 5)
    assert job["spec"]["backoffLimitPerIndex"] == 0
    assert kube_job(made(job)).members == tuple(IDS)
    assert bundle.as_one(FIVE) == bundle.as_one(FIVE) != bundle.as_one(FIVE[:4])


def test_its_owner_remembers_each_of_them() -> None:
    found = bundle.record(frame_of(FIVE), FIVE)
    owner = render.owner(frame_of(FIVE), found)
    assert [each["id"] for each in owner_record.read(owner)["jobs"]] == IDS
    assert owner_record.parcels(owner, 4) == owner_record.parcels(owner, 9) == []


def made(thing: dict[str, Any], **status: Any) -> dict[str, Any]:
    """Return a rendered object as the cluster has it."""
    metadata = {"uid": "u", "creationTimestamp": "2026-11-30T00:00:00Z", **thing["metadata"]}
    return {**thing, "metadata": metadata, "status": status}


class Hears:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.pods: list[Any] = []
        self.jobs: list[Any] = []

    def see_pod(self, pod: Any, gone: bool) -> None:
        self.pods.append(pod)

    def see_job(self, job: Any, gone: bool) -> None:
        self.jobs.append(job)


def test_a_job_hears_of_its_own_index_only() -> None:
    rendered = bundle.attempt(frame_of(FIVE), FIVE)[1]
    job = kube_job(made(rendered, completedIndexes="0,2", failedIndexes="1"))
    hub, hears = Hub(KubeTransport(kubeconfig=None)), [Hears() for _ in FIVE]
    for index, member in enumerate(bundle.members(FIVE)):
        hub.enroll(f"id{index}", member)
        hub.join(f"id{index}", hears[index])
    hub._tell_job(job, False)
    assert [(each.jobs[0].completed, each.jobs[0].failed) for each in hears[:3]] == [
        ({0}, set()),
        (set(), {0}),
        ({0}, set()),
    ]
    assert [each.jobs[0].has_more for each in hears] == [False, False, False, True, True]
    template = rendered["spec"]["template"]
    annotations = {"batch.kubernetes.io/job-completion-index": "3"}
    meta = {**template["metadata"], "name": "p", "annotations": annotations}
    hub._tell_pod(pod_of(made({"metadata": meta, "spec": template["spec"]})), False)
    assert [len(each.pods) for each in hears] == [0, 0, 0, 1, 0]
    assert (hears[3].pods[0].job, hears[3].pods[0].index) == ("id3", 0)
    hub.leave("id3")
    hub._tell_job(job, False)
    assert [len(each.jobs) for each in hears] == [2, 2, 2, 1, 2]


def test_labels_select_the_group() -> None:
    """T9."""
    job = bundle.attempt(frame_of(FIVE), FIVE)[1]
    assert job["metadata"]["labels"][labels.GROUP] == "tried"
