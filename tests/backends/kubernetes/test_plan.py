"""The plan as a whole, against a server that agrees, one that is away, and one that refuses."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from api_server import ApiServer, Reply, Request, answering, serving, status
from jobs import job_of, role, settings
from staging import store_package

from paijupyter.backends.base import Place
from paijupyter.backends.kubernetes.capabilities import Asker, ask, capabilities_of
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.paths import batch, core
from paijupyter.backends.kubernetes.plan import Planner
from paijupyter.backends.kubernetes.transport import KubeTransport


async def agrees(request: Request, reply: Reply) -> None:
    await reply.json(json.loads(request.body))


KINDS = ("configmaps", "secrets", "services", "pods")
AGREES = {f"POST {core(kind, namespace='team')}": agrees for kind in KINDS} | {
    f"POST {batch('jobs', namespace='team')}": agrees
}
GROUPS = [
    {"name": name, "preferredVersion": {"groupVersion": f"{name}/v1beta2"}} for name in ("kueue.x-k8s.io",)
]
QUEUES = [{"metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}}]
RULES = {
    "resourceRules": [{"verbs": ["create"], "apiGroups": ["batch"], "resources": ["jobs"]}],
    "incomplete": False,
}
QUOTA = {
    "metadata": {"name": "q"},
    "status": {"hard": {"requests.cpu": "8", "limits.memory": "1Gi"}, "used": {"requests.cpu": "2"}},
}
FACTS = {
    "GET /version": answering({"major": "1", "minor": "34+", "gitVersion": "v1.34.4"}),
    "GET /apis": answering({"groups": GROUPS}),
    "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews": answering({"status": RULES}),
    "GET /apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues": answering({"items": QUEUES}),
    f"GET {core('namespaces', 'team')}": answering(
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    ),
    f"GET {core('resourcequotas', namespace='team')}": answering({"items": [QUOTA]}),
    f"GET {core('nodes')}": answering(status(403, "Forbidden", "no"), 403),
}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ApiServer]:
    """Give a server that agrees to everything of ours."""
    async with serving({**AGREES, **FACTS}) as found:
        yield found


def planner(transport: KubeTransport, folder: Path) -> Planner:
    boot = folder / "boot.pyz"
    with zipfile.ZipFile(boot, "w") as archive:
        archive.writestr("__main__.py", "")
    return Planner(transport, settings(), Asker(transport).cluster, lambda: boot)


@pytest.mark.asyncio
async def test_a_cluster_is_asked_what_may_be_known(transport: KubeTransport, server: ApiServer) -> None:
    """P31: what may not be seen is empty, and no error."""
    found = await ask(transport)
    assert (found.version, found.text, found.namespace) == ((1, 34), "v1.34.4", "team")
    assert found.queues == {"team": "all"}
    assert found.refuses_root
    assert found.nodes is None
    assert found.claims is None
    assert found.may("create", "jobs", "batch") is True
    assert found.may("create", "pods") is False
    said = capabilities_of(found, settings(), frozenset({"exec"}))
    assert said.features == {"exec", "image", "queue"}
    assert (said.capacity, said.free) == ({"cpu": 8.0, "memoryMB": 1024.0}, {"cpu": 6.0, "memoryMB": 1024.0})
    await server.stop()
    assert "did not answer" in (await ask(transport)).unreachable


@pytest.mark.parametrize(("ready", "silent"), [("Unknown", True), ("False", True), ("True", False)])
@pytest.mark.asyncio
async def test_a_cluster_none_of_whose_nodes_answers_is_said(
    transport: KubeTransport, server: ApiServer, tmp_path: Path, ready: str, silent: bool
) -> None:
    """O31: of a node whose kubelet is dead the cluster does not know; a cordoned one is no help."""
    nodes = [
        {"status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"cpu": "4"}}},
        {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    ]
    server.answers[f"GET {core('nodes')}"] = answering({"items": nodes})
    plan = await planner(transport, tmp_path).plan(job_of({"worker": role()}))
    said = {each.code: each for each in plan.problems}
    assert ("no-node" in said) is silent
    assert plan.starts == ("once a node is ready" if silent else "now, if nodes are free")


@pytest.mark.parametrize(
    ("counts", "code", "severity"),
    [
        ("requested: pods=1, used: pods=3, limited: pods=3", "quota-full", "warning"),
        (
            "requested: limits.cpu=500m,pods=1, used: limits.cpu=1, limited: limits.cpu=1,pods=9",
            "quota-full",
            "warning",
        ),
        (
            "requested: limits.memory=2Gi, used: limits.memory=0, limited: limits.memory=1Gi",
            "over-quota",
            "error",
        ),
        ("requested: pods=1, used: pods=0, limited: pods=0", "over-quota", "error"),
    ],
)
@pytest.mark.asyncio
async def test_a_quota_that_is_full_is_waited_for(
    transport: KubeTransport, server: ApiServer, tmp_path: Path, counts: str, code: str, severity: str
) -> None:
    """O31: what others hold now is no error, as the job waits for it; what the quota never allows is one."""
    said = f'pods "paijupyter-plan-x" is forbidden: exceeded quota: small, {counts}'
    rules = {"verbs": ["create"], "apiGroups": ["", "batch"], "resources": ["*"]}
    path = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    server.answers[path] = answering({"status": {"resourceRules": [rules], "incomplete": False}})
    server.answers[f"GET {core('resourcequotas', namespace='team')}"] = answering({"items": []})
    server.answers[f"POST {core('pods', namespace='team')}"] = answering(status(403, "Forbidden", said), 403)
    plan = await planner(transport, tmp_path).plan(job_of({"worker": role()}))
    [found] = [each for each in plan.problems if "quota" in each.code]
    assert (found.code, found.severity, found.path) == (code, severity, "/taskRoles/worker")
    assert counts in found.message


def test_rights_with_stars_and_subresources() -> None:
    rules = (
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/log"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]},
    )
    found = Cluster(rules=rules, rules_incomplete=False)
    assert found.may("get", "pods/log")
    assert found.may("get", "secrets") is False
    assert Cluster(rules=rules).may("get", "secrets") is None


@pytest.mark.asyncio
async def test_a_plan_has_everything_that_would_be_created(
    transport: KubeTransport, server: ApiServer, tmp_path: Path
) -> None:
    """P26, T8."""
    package = store_package(Place(tmp_path, tmp_path), {"requirements.txt": "numpy\n"})
    small = role(2, resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 0})
    job = job_of({"worker": small}, package=package, secrets={"TOKEN": ""})
    plan = await planner(transport, tmp_path).plan(job)
    assert [each["kind"] for each in plan.objects] == [
        *("ConfigMap", "ConfigMap", "ConfigMap", "Secret", "Service", "ConfigMap", "Job")
    ]
    posted = [each for each in server.requests if each.method == "POST" and "/namespaces/team/" in each.path]
    assert {each.path.rpartition("/")[2] for each in posted} == {"configmaps", "secrets", "services", "jobs"}
    assert all(each.query["dryRun"] == "All" for each in posted)


@pytest.mark.asyncio
async def test_what_is_good_to_know(
    transport: KubeTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = store_package(Place(tmp_path, tmp_path), {"requirements.txt": "numpy\n"})
    small = role(resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 0})
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/")
    plan = await planner(transport, tmp_path).plan(job_of({"worker": small}, package=package))
    assert {each.code for each in plan.problems} == {"requirements-checked", "logs-while-here"}
    assert {each.severity for each in plan.problems} == {"hint"}


@pytest.mark.asyncio
async def test_a_server_that_is_away_is_an_error_of_the_plan(
    transport: KubeTransport, server: ApiServer, tmp_path: Path
) -> None:
    await server.stop()
    plan = await planner(transport, tmp_path).plan(job_of({"worker": role()}))
    assert [each.code for each in plan.problems] == ["cluster-unreachable"]
    assert [each["name"] for each in plan.objects] == ["train-abc234-a0-worker"]
