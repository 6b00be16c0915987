"""What a plan says before it asks the cluster (T13, P16, O4, O28)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jobs import gpus, job_of, role, settings

from paijupyter.backends.base import Data, Job
from paijupyter.backends.kubernetes import fits, gang, layout, lint, volumes
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.spec import task_spec
from paijupyter.errors import Problem
from paijupyter.protocol.data import DataSource

NODE = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}
KUEUE = Cluster(groups=frozenset({"kueue.x-k8s.io"}), queues={"team": "all"}, namespace="ns")


def found(job: Job, of: KubeSettings | None = None, cluster: Cluster | None = None) -> dict[str, Problem]:
    """Return what is said, by code."""
    of, cluster = of or settings(), cluster or Cluster(namespace="ns")
    chosen = gang.choose(job, of, cluster)
    everything = [*lint.problems(job, of, cluster, chosen), *fits.problems(job, of, cluster)]
    for each in everything:
        assert each.message.endswith(".")
        assert each.message[0].isupper()
    return {each.code: each for each in everything}


def kubernetes(**options: Any) -> dict[str, Any]:
    return {"kubernetes": options}


def test_a_plain_job_has_nothing_against_it() -> None:
    assert found(job_of({"worker": role()})) == {}


# T13


@pytest.mark.parametrize("kind", ["cephfs", "rbd", "glusterfs"])
def test_a_dead_kind_of_volume(kind: str) -> None:
    """T13: the field still validates, and nothing is mounted."""
    volume = {"name": "sets", kind: {"monitors": ["a:6789"]}}
    job = job_of({"worker": role()}, ours=kubernetes(podTemplate={"spec": {"volumes": [volume]}}))
    problem = found(job)["dead-volume"]
    assert problem.severity == "error"
    assert "empty folder" in problem.message
    assert "csi" in problem.hint


def test_a_volume_that_nobody_mounts() -> None:
    """T13: the article's `cache-volume`."""
    spec = {"volumes": [{"name": "cache-volume", "emptyDir": {}}]}
    job = job_of({"worker": role()}, ours=kubernetes(podTemplate={"spec": spec}))
    assert "`cache-volume`" in found(job)["unmounted-volume"].message
    mounted = {
        **spec,
        "containers": [{"name": "main", "volumeMounts": [{"name": "cache-volume", "mountPath": "/c"}]}],
    }
    assert found(job_of({"worker": role()}, ours=kubernetes(podTemplate={"spec": mounted}))) == {}


@pytest.mark.parametrize(
    ("env", "wrong"),
    [
        ({"DATASET_DIR": "/datasets/cifar"}, True),
        ({"DATASET_DIR": "/data/cifar"}, False),
        ({"DATASET_DIR": "/tmp/x"}, False),
        ({"DATASET_DIR": "cifar"}, False),
        ({"URL": "/datasets/x"}, False),
    ],
)
def test_a_path_outside_every_mount(env: dict[str, str], wrong: bool) -> None:
    """T13: the article's `{7}` against its mountPath."""
    of = settings(storages={"team": {"pvc": "c", "mount": "/data", "default": True}})
    assert ("path-not-mounted" in found(job_of({"worker": role()}, ours={"env": env}), of)) is wrong


def test_a_path_of_one_role() -> None:
    ours = {"roles": {"ps": {"env": {"MODEL_PATH": "/models/x"}}}}
    problem = found(job_of({"ps": role(), "worker": role()}, ours=ours))["path-not-mounted"]
    assert problem.path == "/extras/paijupyter/roles/ps/env/MODEL_PATH"


# Storages and claims


def test_storages_that_are_not_there() -> None:
    job = job_of({"worker": role()}, extras={"storages": [{"name": "x"}]})
    assert found(job)["no-storage"].hint == "It has: none."


def test_a_missing_claim_is_said_before_pods_wait_for_ever() -> None:
    of = settings(storages={"team": {"pvc": "claim", "default": True}}, keepClaim="kept")
    cluster = Cluster(namespace="ns", claims={"kept": "Bound"})
    assert "`claim`" in found(job_of({"worker": role()}), of, cluster)["no-claim"].message
    assert "no-claim" not in found(job_of({"worker": role()}), of, Cluster(namespace="ns"))


def test_checkpoints_need_a_claim_to_outlive_their_pods() -> None:
    """O29."""
    plain, kept = job_of({"worker": role()}), settings(keepClaim="kept")
    saves = job_of({"worker": role()}, commands="python train.py --save $PAI_CHECKPOINT_DIR")
    resumes = replace(plain, resumes="train-before1")
    cases = [(saves, "hint"), (job_of({"worker": role()}, jobRetryCount=2), "hint"), (resumes, "error")]
    for job, severity in cases:
        problem = found(job)["checkpoints-not-kept"]
        assert problem.severity == severity
        assert "--set keepClaim=CLAIM" in problem.hint
        assert "checkpoints-not-kept" not in found(job, kept)
    assert "checkpoints-not-kept" not in found(plain)


def test_the_earlier_job_s_folder_is_mounted_beside_the_own_one() -> None:
    of = settings(keepClaim="kept", keepFolder="jobs")
    job = replace(job_of({"worker": role()}), resumes="train-before1")
    mounted = volumes.of_role(job, "worker", 0, of, "boot", [], "")
    (kept,) = [each for each in mounted if each.volume["name"] == "kept"]
    assert [(each["mountPath"], each["subPath"], each["readOnly"]) for each in kept.mounts] == [
        (layout.KEPT, "jobs/train-abc234", False),
        (layout.EARLIER, "jobs/train-before1", True),
    ]
    told = {
        each.resumes: task_spec(each, 0, {}, hosts={}, parcels=[], storages=[], kept=True)["earlier"]
        for each in (job, job_of({"worker": role()}))
    }
    assert told == {"train-before1": f"{layout.EARLIER}/checkpoints", "": None}


def test_two_storages_at_one_place() -> None:
    of = settings(storages={"a": {"pvc": "a"}, "b": {"pvc": "b"}})
    both = [{"name": "a", "mountPath": "/d"}, {"name": "b", "mountPath": "/d"}]
    assert "mounted-twice" in found(job_of({"worker": role()}, extras={"storages": both}), of)


def test_data_of_a_storage_that_the_job_does_not_get() -> None:
    of = settings(storages={"team": {"pvc": "a"}})
    data = (Data(DataSource("train", "storage", "storage://team/x")),)
    assert found(job_of({"worker": role()}, data=data), of)["no-storage"].hint.startswith(
        "Add --storage team."
    )


# Options


def test_unknown_and_unusable_options_have_their_place() -> None:
    options = kubernetes(nodeSelektor={}, runAsUser="x", roles={"boss": {}, "worker": {"queue": "x"}})
    problems = found(job_of({"worker": role()}, ours=options))
    assert problems["unknown-role"].path == "/extras/paijupyter/kubernetes/roles/boss"
    assert problems["bad-option"].path == "/extras/paijupyter/kubernetes/runAsUser"
    assert problems["unknown-option"].path == "/extras/paijupyter/kubernetes/roles/worker/queue"


def test_a_patch_that_would_break_the_job() -> None:
    options = kubernetes(podTemplate={"spec": {"hostNetwork": True}})
    assert found(job_of({"worker": role()}, ours=options))["bad-template"].severity == "error"
    of = settings(podTemplate={"spec": {"hostPID": True}})
    problem = found(job_of({"ps": role(), "worker": role()}), of)["bad-template"]
    assert "profile `lab`" in problem.message


@pytest.mark.parametrize("options", [{"restartPolicy": "OnFailure"}, {"backoffLimit": 3}])
def test_one_task_is_not_started_anew_beside_the_others(options: dict[str, Any]) -> None:
    """T10."""
    assert "restarts-alone" in found(job_of({"worker": role(2)}, ours=kubernetes(**options)))
    assert found(job_of({"worker": role()}, ours=kubernetes(**options))) == {}


def test_what_root_would_be_needed_for() -> None:
    job = job_of({"worker": role()}, commands="set -e\napt-get install -y git\npython train.py")
    assert found(job)["needs-root"].severity == "hint"
    assert found(job, settings(security="baseline")) == {}


def test_infiniband_needs_a_name() -> None:
    job = job_of({"worker": role(extraContainerOptions={"infiniband": True})})
    assert "no-infiniband" in found(job)
    assert found(job, settings(infinibandResource="rdma/hca")) == {}


# Queues and gangs


def test_a_partial_gang_is_warned_of() -> None:
    """O28, kubeflow/trainer#165."""
    job = job_of({"worker": role(2, resourcePerInstance=gpus(1))})
    assert found(job)["partial-gang"].severity == "warning"
    assert found(job_of({"worker": role(2)}))["partial-gang"].severity == "hint"
    for of in (settings(gang="volcano"), settings(gang="coscheduling")):
        assert "partial-gang" not in found(job, of)


def test_roles_in_a_queue_need_jobset_to_be_admitted_together() -> None:
    """O4, O28."""
    job = job_of({"ps": role(), "worker": role(2)}, defaults={"virtualCluster": "team"})
    assert "each role is admitted by itself" in found(job, cluster=KUEUE)["partial-gang"].message
    both = Cluster(
        groups=frozenset({"kueue.x-k8s.io", "jobset.x-k8s.io"}), queues={"team": "all"}, namespace="ns"
    )
    assert found(job, cluster=both) == {}
    assert found(job_of({"worker": role(2)}), settings(queue="team"), KUEUE) == {}


def test_a_queue_that_is_not_there() -> None:
    job = job_of({"worker": role()}, defaults={"virtualCluster": "x"})
    assert found(job, cluster=KUEUE)["no-queue"].hint == "There are: team."
    assert found(job)["queue-not-used"].severity == "hint"


# What can ever fit


@pytest.mark.parametrize(
    ("resources", "code", "words"),
    [
        (
            {"cpu": 9, "memoryMB": 64, "gpu": 0},
            "never-fits",
            "asks for 9 CPUs in each task, but the largest node has 8",
        ),
        ({"cpu": 1, "memoryMB": 32768, "gpu": 0}, "never-fits", "32 GiB memory in each task"),
        (
            {"cpu": 1, "memoryMB": 64, "gpu": 8},
            "never-fits",
            "asks for 8 GPUs in each task, but the largest node has 4",
        ),
    ],
)
def test_no_node_is_large_enough(resources: dict[str, Any], code: str, words: str) -> None:
    job = job_of({"worker": role(resourcePerInstance=resources)})
    problem = found(job, cluster=Cluster(nodes=(NODE,)))[code]
    assert problem.severity == "error"
    assert words in problem.message
    assert found(job, settings(autoscaling=True), Cluster(nodes=(NODE,)))["new-node"].severity == "hint"


def test_no_node_has_a_gpu() -> None:
    job = job_of({"worker": role(resourcePerInstance=gpus(1))})
    node = {"cpu": "64", "memory": "512Gi"}
    assert "which no node has" in found(job, cluster=Cluster(nodes=(node,)))["no-gpu"].message


def quota(hard: Mapping[str, str], used: Mapping[str, str]) -> Cluster:
    return Cluster(quotas=({"metadata": {"name": "q"}, "status": {"hard": dict(hard), "used": dict(used)}},))


def test_quotas_count_the_whole_job() -> None:
    job = job_of({"worker": role(3)})
    more = found(job, cluster=quota({"requests.cpu": "4"}, {}))["over-quota"]
    assert "6 CPUs together, but the namespace may have 4 (ResourceQuota `q`)" in more.message
    later = found(job, cluster=quota({"limits.memory": "16Gi"}, {"limits.memory": "8Gi"}))["quota-full"]
    assert later.severity == "warning"
    assert (
        fits.starts(job, settings(), quota({"cpu": "8"}, {"cpu": "4"}))
        == "when the namespace's quota has room"
    )
    assert "over-quota" in found(job, cluster=quota({"pods": "2"}, {}))


def test_limits_of_the_namespace() -> None:
    limit = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}}
    problem = found(job_of({"worker": role()}), cluster=Cluster(limits=(limit,)))["over-limit"]
    assert "4 GiB memory" in problem.message
    assert "1 GiB (LimitRange `l`)" in problem.message
