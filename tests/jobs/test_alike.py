"""Many requests at once: each is made ready as it would be alone; the backend is asked once for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paijupyter.backends.base import BackendPlan, Job
from paijupyter.jobs.alike import AlikePlanner
from paijupyter.jobs.planning import Prepared
from paijupyter.jobs.request import Request

TEMPLATE = """\
protocolVersion: 2
name: {name}
type: job
parameters: {{lr: {lr}}}
prerequisites: [{{protocolVersion: 2, name: image, type: dockerimage, uri: python}}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: {cpu}, memoryMB: 64, gpu: 0}}
    commands: ["train --lr <% $parameters.lr %>{more}"]
"""
EXPERIMENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([1, 0.5, "text"]),
        st.sampled_from([1, 2]),
        st.sampled_from(["", " <% $parameters.nowhere %>"]),
    ),
    max_size=8,
)


class Cluster:
    """Plans with what a plan has of its job, and takes many."""

    def __init__(self) -> None:
        self.planned = 0

    async def plan(self, job: Job) -> BackendPlan:
        self.planned += 1
        return BackendPlan(self.submitted(job), ({"kind": "Job"},), (), "now")

    async def submit_many(self, jobs: Sequence[Any]) -> Sequence[None]:
        raise AssertionError("nothing is submitted here")

    def submitted(self, job: Job) -> str:
        return repr(job.document | {"name": "its own"})


async def test_each_is_ready_as_if_it_were_alone(bench: Any, monkeypatch: Any) -> None:
    """O25, T3: values, commands, document and problems of each; a plan for each kind."""
    await bench.service.plan(bench.request())
    planner, cluster = bench.service._planner, Cluster()
    monkeypatch.setattr(bench.backend, "plan", cluster.plan)
    monkeypatch.setattr(planner, "_backends", _Backends(cluster))
    monkeypatch.setattr("paijupyter.jobs.image_building.problems", _none)
    checked = []

    @settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(EXPERIMENTS)
    def collect(experiments: list[tuple[str, Any, int, str]]) -> None:
        checked.append(experiments)

    collect()
    for experiments in checked:
        requests = [
            Request(TEMPLATE.format(name=name, lr=lr, cpu=cpu, more=more), request_id=str(number))
            for number, (name, lr, cpu, more) in enumerate(experiments)
        ]
        alone = [await planner.prepare(each) for each in requests]
        cluster.planned = 0
        many = await AlikePlanner(planner).prepare(requests, cluster)
        assert [_seen(each) for each in many] == [_seen(each) for each in alone]
        assert all(each.ok == (not more) for each, (*_, more) in zip(many, experiments, strict=True))
        sound = [(cpu, more) for _, _, cpu, more in experiments if not more]
        assert cluster.planned == len(set(sound))
        assert len({each.job.id for each in many if each.job}) == sum(each.job is not None for each in many)


def _seen(prepared: Prepared) -> Any:
    job = prepared.job and replace(prepared.job, id="", name="", folder=prepared.job.folder.parent)
    if job is not None:
        job = replace(job, document={**job.document, "name": ""})
    return replace(prepared, job=job)


class _Backends:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def of(self, name: str) -> Cluster:
        return self.cluster


async def _none(*_: Any) -> list[Any]:
    return []
