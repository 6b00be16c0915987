"""Jobs that are planned, submitted and removed on a real cluster: packages, secrets, rights, refusals."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.base import Data, Job
from paijupyter.backends.kubernetes import names, sweep
from paijupyter.backends.kubernetes.journal import Journal
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.data import DataSource
from tests.cluster.lab import addons, lifecycle
from tests.cluster.profile import Lab, on, role, store_package
from tests.cluster.profile import place as place
from tests.cluster.profile import shared as shared
from tests.cluster.profile import there as there

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
BUCKET = "packages"
READ = "cat data.txt; sha256sum big.bin | cut -c1-64"


def files() -> tuple[dict[str, bytes | str], str]:
    """Return files of a package, and what a task prints of them."""
    big = os.urandom(200_000)
    return {"data.txt": "some data\n", "big.bin": big}, f"some data\n{hashlib.sha256(big).hexdigest()}\n"


# Packages: every rung of the ladder


@pytest.mark.asyncio
async def test_a_package_in_configmaps(there: Lab) -> None:
    """P15, P18: and the next job of the namespace shares them."""
    async with on(there):
        content, printed = files()
        job = there.job(READ, content)
        assert await there.run(job) == printed
        first = there.everything()
        again = there.job(READ, content)
        assert await there.run(again) == printed
        new = {each for each in there.everything() - first if names.base(again.name) not in each}
        assert new == set()


@pytest.mark.asyncio
async def test_a_package_of_several_parts(there: Lab) -> None:
    async with on(there):
        big = os.urandom(3_500_000)
        pieces = {f"{i}.bin": big[i * 250_000 : (i + 1) * 250_000] for i in range(14)}
        log = await there.run(there.job("cat {0..13}.bin | sha256sum | cut -c1-64", dict(pieces)))
        assert log.strip() == hashlib.sha256(big).hexdigest()
        parts = [each for each in there.everything() if each.startswith("ConfigMap paijupyter-package-")]
        assert len(parts) == 4


@pytest.mark.asyncio
async def test_a_package_on_a_claim(there: Lab, shared: Path) -> None:
    async with on(there):
        there.use(packageWays=["claim"], packageClaim={"claim": "shared", "path": str(shared)})
        content, printed = files()
        job = there.job(READ, content)
        assert await there.run(job) == printed
        assert job.package
        assert (shared / "paijupyter-packages" / job.package.sha256 / "manifest.json").is_file()
        assert not any("paijupyter-package-" in each for each in there.everything())


@pytest.mark.asyncio
async def test_a_package_as_an_image_volume(there: Lab, lab: lifecycle.Facts) -> None:
    async with on(there):
        store = {"repository": f"{lab.registry}/packages/{there.namespace}", "plainHttp": True}
        there.use(packageWays=["image"], packageImage=store)
        content, printed = files()
        assert await there.problems(there.job(READ, content)) == {}
        assert await there.run(there.job(READ, content)) == printed


@pytest.mark.asyncio
async def test_a_package_in_an_object_store(
    there: Lab, lab: lifecycle.Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is a secret of the attempt."""
    async with on(there):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", addons.S3_USER)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", addons.S3_SECRET)
        (addons.BUCKETS / BUCKET).mkdir(exist_ok=True)
        store = {"bucket": BUCKET, "endpoint": lab.s3, "prefix": there.namespace}
        there.use(packageWays=["object"], packageObject=store)
        content, printed = files()
        job = there.job(READ, content)
        assert await there.run(job) == printed
        for kind in ("configmaps", "jobs", "pods", "services"):
            assert "X-Amz-Signature" not in json.dumps(there.of(kind, job))
        await there.submitter.start_attempt(job, Journal(attempt=1))
        secrets = {each["metadata"]["name"] for each in there.of("secrets", job)}
        name = names.base(job.name)
        assert secrets == {f"{name}-a0-urls", f"{name}-a1-urls"}


@pytest.mark.asyncio
async def test_data_of_this_host_travels_beside_the_package(there: Lab) -> None:
    """O18, P8."""
    async with on(there):
        data = store_package(there.place, {"set.csv": "1,2\n"})
        source = Data(DataSource("train", "file", "set.csv"), data)
        ours = {"paijupyter": {"version": 1, "data": [source.source.to_json()]}}
        job = replace(
            there.job("cat $PAI_DATA_TRAIN/set.csv", {"a": "b"}, extras=ours),
            data=(source,),
        )
        assert (await there.run(job)).endswith("1,2\n")


# Secrets, images, storages


@pytest.mark.asyncio
async def test_a_secret_is_only_in_its_secret(there: Lab) -> None:
    """O20: in no other object, no argument, no environment of the pod's template."""
    async with on(there):
        value = "s3cret-value-of-a-test"
        job = there.job('echo "${TOKEN:0:6} $(wc -c < $PAI_SECRETS_DIR/TOKEN)"', secrets={"TOKEN": ""})
        assert (await there.run(job, {"TOKEN": value})).split() == ["s3cret", str(len(value))]
        secret = there.of("secrets", job)[0]
        assert secret["immutable"]
        assert json.loads(base64.b64decode(secret["data"]["secrets.json"])) == {"TOKEN": value}
        encoded = base64.b64encode(value.encode()).decode()
        for kind in ("configmaps", "jobs", "pods", "services"):
            text = json.dumps(there.of(kind, job))
            assert value not in text
            assert encoded not in text


@pytest.mark.asyncio
async def test_an_image_behind_a_password(there: Lab, lab: lifecycle.Facts) -> None:
    """O8: credentials of the document become a Secret of the job's."""
    async with on(there):
        job = there.job("echo in", secrets={"PW": ""})
        auth = {"username": "lab", "password": "<% $secrets.PW %>", "registryuri": lab.locked_registry}
        uri = there.image.replace(lab.registry, lab.locked_registry)
        item = {"name": "image", "type": "dockerimage", "uri": uri, "auth": auth}
        ours = {"paijupyter": {"version": 1, "kubernetes": {"imagePullPolicy": "Always"}}}
        job = _with(job, prerequisites=[item], extras=ours)
        assert await there.run(job, {"PW": "lab-password"}) == "in\n"


@pytest.mark.asyncio
async def test_a_storage_is_mounted(there: Lab, shared: Path) -> None:
    """O16, P37."""
    async with on(there):
        (shared / "team").mkdir()
        (shared / "team" / "x.txt").write_text("from the storage\n")
        there.use(
            storages={"team": {"pvc": "shared", "subPath": "team", "default": True}, "raw": {"pvc": "shared"}}
        )
        log = await there.run(
            there.job("cat $PAI_STORAGE_TEAM/x.txt /mnt/team/x.txt; ls -d /mnt/raw || true")
        )
        assert log.splitlines()[:2] == ["from the storage"] * 2
        missing = there.job("true", extras={"storages": [{"name": "raw"}]})
        there.use(storages={"raw": {"pvc": "not-there"}})
        assert "no-claim" in await there.problems(missing)


@pytest.mark.asyncio
async def test_pods_run_as_the_restricted_profile_wants(there: Lab) -> None:
    async with on(there):
        label = "pod-security.kubernetes.io/enforce=restricted"
        there.cluster.kubectl("label", "namespace", there.namespace, label)
        content, printed = files()
        job = there.job(f"{READ}; id -u; touch x; ls ~ >/dev/null && echo home", content)
        assert await there.problems(job) == {}
        assert await there.run(job) == f"{printed}1000\nhome\n"


@pytest.mark.asyncio
async def test_who_may_not_look_at_a_restricted_namespace_is_told_what_to_set(
    there: Lab, account_with: Callable[..., Path]
) -> None:
    """P27: without the optional Role nobody tells that it refuses root; with one setting the job runs."""
    async with on(there):
        label = "pod-security.kubernetes.io/enforce=restricted"
        there.cluster.kubectl("label", "namespace", there.namespace, label)
        account = account_with("paijupyter", "paijupyter-tasks")
        there.use(account)
        refused = (await there.problems(there.job("id -u")))["pod-security"]
        assert "runAsNonRoot" in refused.message
        assert refused.hint.startswith("Set `runAsUser` in the profile to a number above 0")
        there.use(account, runAsUser=1000)
        job = there.job("id -u")
        assert await there.problems(job) == {}
        assert await there.run(job) == "1000\n"


# What the plan says


@pytest.mark.asyncio
async def test_what_the_cluster_refuses_is_said_before(there: Lab) -> None:
    """Quota, limits, pod security, classes that are not there: as one list, and nothing is created."""
    async with on(there):
        before = there.everything()
        job = there.job("true")
        assert await there.problems(job) == {}

        ours = {"paijupyter": {"version": 1, "kubernetes": {"priorityClass": "nope", "runtimeClass": "nope"}}}
        found = await there.problems(_with(job, extras=ours))
        assert any("nope" in each.message for each in found.values() if each.severity == "error")

        label = "pod-security.kubernetes.io/enforce=restricted"
        there.cluster.kubectl("label", "namespace", there.namespace, label)
        there.use(security="baseline")
        assert "violates PodSecurity" in (await there.problems(job))["pod-security"].message
        there.cluster.kubectl("label", "namespace", there.namespace, "pod-security.kubernetes.io/enforce-")

        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small"},
            "spec": {"hard": {"limits.memory": "64Mi"}},
        }
        there.cluster.apply(there.namespace, quota)
        there.use()
        assert "ResourceQuota `small`" in (await there.problems(job))["over-quota"].message
        assert there.everything() == before


@pytest.mark.asyncio
async def test_limits_of_the_namespace_are_said_before(there: Lab) -> None:
    async with on(there):
        limit = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]},
        }
        there.cluster.apply(there.namespace, limit)
        assert "LimitRange `small`" in (await there.problems(there.job("true")))["over-limit"].message


@pytest.mark.asyncio
async def test_what_never_fits_on_a_node(there: Lab, lab: lifecycle.Facts) -> None:
    async with on(there):
        job = there.job({"worker": role("true", resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 16})})
        assert "asks for 16 GPUs in each task, but the largest node has 8" in (
            (await there.problems(job))["never-fits"].message
        )


@pytest.mark.asyncio
async def test_a_plan_shows_manifests_without_secrets(there: Lab) -> None:
    """T8."""
    async with on(there):
        plan = await there.planner.plan(there.job("true", {"a": "b"}, secrets={"TOKEN": ""}))
        kinds = [each["kind"] for each in plan.objects]
        assert kinds == ["ConfigMap", "ConfigMap", "ConfigMap", "Secret", "ConfigMap", "Job"]
        secret = next(each for each in plan.objects if each["kind"] == "Secret")
        assert set(secret["manifest"]["data"].values()) == {"*****"}
        assert "binaryData" not in json.dumps(plan.objects)


# Rights


@pytest.mark.asyncio
async def test_the_documented_role_is_enough(there: Lab, limited: Path) -> None:
    """P23, P27: capabilities, plan, submission, a further attempt and the end, with exactly that Role."""
    async with on(there):
        there.use(limited)
        facts = await there.asker.cluster()
        assert not facts.unreachable
        assert facts.may("create", "jobs", "batch")
        assert facts.may("get", "secrets") is False
        assert facts.nodes is None
        content, printed = files()
        job = there.job(READ, content, secrets={"TOKEN": ""})
        assert await there.problems(job) == {}
        assert await there.run(job, {"TOKEN": "x" * 20}) == printed
        await there.submitter.create(job, {"TOKEN": "x" * 20})
        await there.submitter.start_attempt(job, Journal(attempt=1))
        assert len(there.of("jobs", job)) == 2
        await there.submitter.remove(job)
        assert await sweep.sweep(there.transport) == []


@pytest.mark.asyncio
async def test_a_missing_right_is_said_with_what_it_is(there: Lab, limited: Path) -> None:
    async with on(there):
        there.use(limited)
        there.cluster.kubectl("delete", "role", "paijupyter", "-n", there.namespace)
        found = await there.problems(there.job("true"))
        assert found["not-allowed"].severity == "error"
        assert "jobs" in "".join(each.message for each in found.values()) or "cannot create" in (
            found["not-allowed"].message
        )
        with pytest.raises(PaiJupyterError) as caught:
            await there.submitter.create(there.job("true"), {})
        assert caught.value.code == "not-allowed"


# Once, all or nothing


@pytest.mark.asyncio
async def test_deleting_the_owner_deletes_all(there: Lab, until: Callable[..., Any]) -> None:
    async with on(there):
        job = there.job("sleep 600", {"a": "b"}, secrets={"TOKEN": ""})
        await there.submitter.create(job, {"TOKEN": "x" * 20})
        await there.pod(job, "Running")
        await there.submitter.remove(job)
        name = names.base(job.name)

        def gone() -> bool:
            return not any(name in each for each in there.everything())

        await asyncio.to_thread(until, gone, 100, "the job's objects to go")
        assert any("paijupyter-boot" in each for each in there.everything())


@pytest.mark.asyncio
async def test_a_submission_that_the_cluster_refuses_leaves_nothing(
    there: Lab, until: Callable[..., Any]
) -> None:
    """D7: the second role's Job is refused by a quota that the plan could not know of."""
    async with on(there):
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "one"},
            "spec": {"hard": {"count/jobs.batch": "1"}},
        }
        there.cluster.apply(there.namespace, quota)
        job = there.job({"ps": role("sleep 60"), "worker": role("sleep 60")})
        with pytest.raises(PaiJupyterError) as caught:
            await there.submitter.create(job, {})
        assert caught.value.code == "over-quota"

        def gone() -> bool:
            return not any(names.base(job.name) in each for each in there.everything())

        await asyncio.to_thread(until, gone, 100, "what was created to go")


@pytest.mark.asyncio
async def test_submitting_at_once_from_two_engines_creates_one_job(there: Lab) -> None:
    async with on(there):
        job = there.job("echo once")
        first = there.submitter
        there.use()
        await asyncio.gather(first.create(job, {}), there.submitter.create(job, {}))
        assert len(there.of("jobs", job)) == 1
        assert len(there.of("configmaps", job)) == 2


def _with(job: Job, **changes: Any) -> Job:
    return replace(job, document={**job.document, **changes})
