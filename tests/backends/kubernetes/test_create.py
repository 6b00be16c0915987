"""Creating objects against servers that lose answers, are busy, or have something of that name already."""

from __future__ import annotations

import asyncio
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, ApiServer, Reply, Request, answering, status
from jobs import job_of, role, settings

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import create as creating
from paijupyter.backends.kubernetes import labels, render, sweep
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.create import Creator, owned
from paijupyter.backends.kubernetes.dry_run import Rehearsal
from paijupyter.backends.kubernetes.journal import Journal
from paijupyter.backends.kubernetes.paths import batch, core
from paijupyter.backends.kubernetes.submit import Submitter
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import Conflict, PaiJupyterError

CONFIG_MAPS = core("configmaps", namespace="team")
JOBS = batch("jobs", namespace="team")
TAKEN = answering(status(409, "AlreadyExists", "exists"), 409)
JOB = job_of({"ps": role(), "worker": role(2)})


def thing(name: str = "a", job: str = "1") -> dict[str, Any]:
    marks = {labels.MANAGED_BY: labels.OURS, labels.JOB: job}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": marks}}


class Store:
    """Answers of a server that keeps what is posted; ``refuse`` names paths that say no."""

    def __init__(self, server: ApiServer) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, Answer] = {}
        self._server = server
        server.answers = _Everything(self)  # type: ignore[assignment]

    async def answer(self, request: Request, reply: Reply) -> None:
        refused = self.refuse.get(f"{request.method} {request.path}")
        if refused:
            await refused(request, reply)
            return
        body = json.loads(request.body) if request.body else {}
        if request.method == "POST":
            named = body["metadata"].get("name") or f"{body['metadata']['generateName']}{len(self.kept)}"
            path = f"{request.path}/{named}"
            if "dryRun" in request.query:
                await reply.json(body)
                return
            if path in self.kept:
                await TAKEN(request, reply)
                return
            body["metadata"]["uid"] = f"uid-{len(self.kept)}"
            self.kept[path] = body
        elif request.path not in self.kept:
            await reply.json(status(404, "NotFound", "not found"), 404)
            return
        elif request.method == "PATCH":
            notes = self.kept[request.path]["metadata"].setdefault("annotations", {})
            notes.update(body["metadata"].get("annotations") or {})
        elif request.method == "DELETE":
            gone = self.kept.pop(request.path)
            await reply.json(gone)
            return
        await reply.json(body if request.method == "POST" else self.kept[request.path])


class _Everything(dict[str, Answer]):
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: str, default: Any = None) -> Answer:
        return self._store.answer


@pytest.mark.asyncio
async def test_a_post_whose_answer_is_lost_creates_nothing_twice(
    server: ApiServer, transport: KubeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creating, "_PAUSES", (0.01,))
    kept = {**thing(), "metadata": {**thing()["metadata"], "uid": "1"}}

    async def lost(_: Request, reply: Reply) -> None:
        reply.cut()

    server.answers = {f"POST {CONFIG_MAPS}": [lost, TAKEN], f"GET {CONFIG_MAPS}/a": answering(kept)}
    assert await Creator(transport).create(thing()) == kept
    assert server.count(f"POST {CONFIG_MAPS}") == 2


@pytest.mark.asyncio
async def test_what_belongs_to_another_job_is_left_alone(server: ApiServer, transport: KubeTransport) -> None:
    """D11, microsoft/pai#203."""
    server.answers = {f"POST {CONFIG_MAPS}": TAKEN, f"GET {CONFIG_MAPS}/a": answering(thing(job="2"))}
    with pytest.raises(Conflict) as caught:
        await Creator(transport).create(thing())
    assert caught.value.code == "name-taken"


@pytest.mark.asyncio
async def test_what_is_being_deleted_is_waited_for(
    server: ApiServer, transport: KubeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creating, "_PAUSES", (0.01, 0.01))
    going = {**thing(), "metadata": {**thing()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    made = answering({**thing(), "made": True}, 201)
    server.answers = {f"POST {CONFIG_MAPS}": [TAKEN, made], f"GET {CONFIG_MAPS}/a": answering(going)}
    assert (await Creator(transport).create(thing()))["made"]


@pytest.mark.asyncio
async def test_shared_things_travel_once(server: ApiServer, transport: KubeTransport) -> None:
    store, creator = Store(server), Creator(transport)
    for _ in range(3):
        await creator.share(thing("boot"))
    assert server.count(f"POST {CONFIG_MAPS}") == 1
    assert labels.USED_AT in store.kept[f"{CONFIG_MAPS}/boot"]["metadata"]["annotations"]
    await Creator(transport).share(thing("boot"))
    assert server.count(f"POST {CONFIG_MAPS}") == 1


def submitter(transport: KubeTransport, folder: Path, boots: str = "print(1)") -> Submitter:
    async def cluster() -> Cluster:
        return Cluster(version=(1, 34), namespace="team")

    folder.mkdir(exist_ok=True)
    boot = folder / "boot.pyz"
    with zipfile.ZipFile(boot, "w") as archive:
        archive.writestr("__main__.py", boots)
    return Submitter(transport, settings(), cluster, lambda: boot, folder)


@pytest.mark.asyncio
async def test_a_submission_is_made_once_and_marked_when_whole(
    server: ApiServer, transport: KubeTransport, tmp_path: Path
) -> None:
    store, submit = Store(server), submitter(transport, tmp_path)
    await submit.create(JOB, {})
    first = dict(store.kept)
    posted = [each.path for each in server.requests if each.method == "POST"]
    await submit.create(JOB, {})
    await submitter(transport, tmp_path).create(JOB, {})
    assert store.kept == first
    owner = store.kept[f"{CONFIG_MAPS}/train-abc234"]
    assert labels.SUBMITTED in owner["metadata"]["annotations"]
    for path, each in store.kept.items():
        if each is not owner and "paijupyter-boot" not in path:
            assert each["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert posted[0] == CONFIG_MAPS
    assert posted[-2:] == [JOBS, JOBS]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "at", [CONFIG_MAPS, core("secrets", namespace="team"), core("services", namespace="team"), JOBS]
)
async def test_a_submission_that_fails_leaves_nothing(
    at: str, server: ApiServer, transport: KubeTransport, tmp_path: Path
) -> None:
    """D7."""
    store = Store(server)
    store.refuse[f"POST {at}"] = answering(status(403, "Forbidden", "no"), 403)
    with pytest.raises(PaiJupyterError) as caught:
        await submitter(transport, tmp_path).create(JOB, {"TOKEN": "s3cret"})
    assert caught.value.code == "not-allowed"
    assert "s3cret" not in str(caught.value)
    assert [path for path in store.kept if "paijupyter-boot" not in path] == []


@pytest.mark.asyncio
async def test_a_submission_that_was_cut_off_is_completed(
    server: ApiServer, transport: KubeTransport, tmp_path: Path
) -> None:
    """The engine was killed after any number of steps."""
    store = Store(server)
    await submitter(transport, tmp_path).create(JOB, {})
    whole = dict(store.kept)
    for keep in range(len(whole)):
        store.kept = {path: json.loads(json.dumps(each)) for path, each in list(whole.items())[:keep]}
        for each in store.kept.values():
            each["metadata"].get("annotations", {}).pop(labels.SUBMITTED, None)
        await submitter(transport, tmp_path).create(JOB, {})
        assert store.kept.keys() == whole.keys()


@pytest.mark.asyncio
async def test_a_further_attempt_has_its_own_objects(
    server: ApiServer, transport: KubeTransport, tmp_path: Path
) -> None:
    """O21."""
    store, submit = Store(server), submitter(transport, tmp_path)
    with pytest.raises(PaiJupyterError) as caught:
        await submit.start_attempt(JOB, Journal(attempt=1))
    assert caught.value.code == "not-found"
    await submit.create(JOB, {})
    before = set(store.kept)
    await submit.start_attempt(JOB, Journal(attempt=1))
    await submit.start_attempt(JOB, Journal(attempt=1))
    assert {path.rpartition("/")[2] for path in set(store.kept) - before} == {
        "train-abc234-a1-spec",
        "train-abc234-a1-ps",
        "train-abc234-a1-worker",
    }
    # A newer engine brings a boot file of its own, and says that the job needs it.
    newer = submitter(transport, tmp_path / "newer", "print(2)")
    await newer.start_attempt(JOB, Journal(attempt=2))
    needs = store.kept[f"{CONFIG_MAPS}/train-abc234"]["metadata"]["annotations"][labels.NEEDS].split()
    assert len(needs) == 2
    assert all(f"{CONFIG_MAPS}/{each}" in store.kept for each in needs)
    await submit.remove(JOB)
    await submit.remove(JOB)
    assert f"{CONFIG_MAPS}/train-abc234" not in store.kept


def test_an_object_names_its_owner() -> None:
    found = owned(thing(), {**thing("o"), "metadata": {"name": "o", "uid": "7"}})
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "7"}
    ]


# The dry run


def one_job(job: Job = JOB) -> list[dict[str, Any]]:
    frame = render.Frame(job, settings(), Cluster(), render.Gang(), "boot", [])
    return render.attempt(frame, 0, {})


@pytest.mark.asyncio
async def test_everything_the_server_says_comes_as_one_list(
    server: ApiServer, transport: KubeTransport
) -> None:
    store = Store(server)
    store.refuse[f"POST {JOBS}"] = answering(status(422, "Invalid", "spec.completions: no"), 422)
    pods = core("pods", namespace="team")
    quota = "pods is forbidden: exceeded quota: q, requested: cpu=2"
    store.refuse[f"POST {pods}"] = answering(status(403, "Forbidden", quota), 403)
    found = await Rehearsal(transport).problems(JOB, Cluster(), one_job())
    assert {(each.code, each.path) for each in found} == {
        ("cluster-refused", "/taskRoles/ps"),
        ("cluster-refused", "/taskRoles/worker"),
        ("over-quota", "/taskRoles/ps"),
        ("over-quota", "/taskRoles/worker"),
    }
    assert all(each.query == {"dryRun": "All", "fieldValidation": "Strict"} for each in server.requests)


@pytest.mark.asyncio
async def test_who_may_not_create_pods_may_still_plan(server: ApiServer, transport: KubeTransport) -> None:
    store = Store(server)
    no = 'pods is forbidden: User "ada" cannot create resource "pods" in API group ""'
    store.refuse[f"POST {core('pods', namespace='team')}"] = answering(status(403, "Forbidden", no), 403)
    assert await Rehearsal(transport).problems(JOB, Cluster(), one_job()) == ()


@pytest.mark.asyncio
async def test_experiments_that_are_planned_at_once_are_asked_about_once(
    server: ApiServer, transport: KubeTransport
) -> None:
    """They differ by name and by the label of the experiment; none waits for its own answer."""
    Store(server)
    rehearsal = Rehearsal(transport)
    one = job_of({"worker": role()})
    jobs = [
        replace(one, id=f"id{key}", name=f"train-abc{key}", group="g", experiment=str(key))
        for key in range(100, 120)
    ]
    found = await asyncio.gather(*(rehearsal.problems(job, Cluster(), one_job(job)) for job in jobs))
    assert found == [()] * 20
    assert server.count(f"POST {JOBS}") == 1
    other = replace(job_of({"worker": role(3)}), group="g", experiment="7")
    await rehearsal.problems(other, Cluster(), one_job(other))
    assert server.count(f"POST {JOBS}") == 2, "another shape is another question"


@pytest.mark.asyncio
async def test_jobs_of_a_batch_are_asked_about_once(server: ApiServer, transport: KubeTransport) -> None:
    Store(server)
    rehearsal = Rehearsal(transport)
    for name in ("train-abc234", "train-abc235", "train-abc236"):
        job = job_of({"worker": role()}, name=name)
        assert await rehearsal.problems(job, Cluster(), one_job(job)) == ()
    assert server.count(f"POST {JOBS}") == 1


# The sweep


def owner(name: str, age: float, needs: str, submitted: bool = True) -> dict[str, Any]:
    notes = {labels.NEEDS: needs, **({labels.SUBMITTED: "x"} if submitted else {})}
    return {"metadata": {"name": name, "creationTimestamp": stamp(age), "annotations": notes}}


def part(name: str, age: float, used: float | None = None) -> dict[str, Any]:
    notes = {} if used is None else {labels.USED_AT: str(int(NOW - used))}
    return {"metadata": {"name": name, "creationTimestamp": stamp(age), "annotations": notes}}


NOW = 1_800_000_000.0


def stamp(age: float) -> str:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(NOW - age, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_only_what_nobody_needs_is_swept() -> None:
    owners = [owner("a", 9e5, "p1 boot"), owner("half", 1000, "p2", False), owner("new", 60, "p3", False)]
    shared = [
        part("p1", 9e5),
        part("p2", 9e5),
        part("p3", 9e5),
        part("p4", 9e5),
        part("p5", 9e5, 60),
        part("p6", 60),
    ]
    found = [each["metadata"]["name"] for each in sweep.unneeded(owners, shared, NOW)]
    assert found == ["half", "p2", "p4"]


@pytest.mark.asyncio
async def test_the_sweep_takes_a_thing_only_as_it_was(server: ApiServer, transport: KubeTransport) -> None:
    old = part("p", 0)
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    marks = {labels.MANAGED_BY: labels.OURS, labels.KIND: labels.PACKAGE}
    old["metadata"].update(labels=marks, uid="u", resourceVersion="7")
    server.answers = {
        f"GET {CONFIG_MAPS}": [
            answering({"items": [old], "metadata": {"continue": "more"}}),
            answering({"items": [], "metadata": {}}),
        ],
        f"DELETE {CONFIG_MAPS}/p": answering(status(409, "Conflict", "changed"), 409),
    }
    assert await sweep.sweep(transport) == []
    asked = json.loads(server.requests[-1].body)
    assert asked["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert server.count(f"GET {CONFIG_MAPS}") == 2
    server.answers[f"GET {CONFIG_MAPS}"] = answering({"items": [old], "metadata": {}})
    server.answers[f"DELETE {CONFIG_MAPS}/p"] = answering({})
    assert await sweep.sweep(transport) == ["p"]
