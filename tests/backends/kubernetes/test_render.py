"""The objects of jobs, held to golden files. To write them anew: ``PAIJUPYTER_GOLDEN=write pytest …``."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jobs import gpus, job_of, role, settings

from paijupyter.backends.base import Job
from paijupyter.backends.delivery.archive import Archive
from paijupyter.backends.kubernetes import gang, labels, owner_record, registries, render
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.delivery import parcels
from paijupyter.backends.kubernetes.delivery.parcels import Parcel
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.settings import ClaimStore, KubeSettings
from paijupyter.errors import PaiJupyterError

GOLDEN = Path(__file__).parent / "golden"
SHA = "ab" * 32
KUEUE = Cluster(version=(1, 34), groups=frozenset({"kueue.x-k8s.io"}), queues={"team": "all"})
BOTH = Cluster(
    version=(1, 34), groups=frozenset({"kueue.x-k8s.io", "jobset.x-k8s.io"}), queues={"team": "all"}
)


def frame(job: Job, of: KubeSettings, cluster: Cluster, *carried: Parcel) -> Frame:
    name = "train-abc234-registry" if registries.has_logins(job) else ""
    return Frame(job, of, cluster, gang.choose(job, of, cluster), "paijupyter-boot-0123", carried, name)


def rendered(found: Frame, number: int = 0) -> list[dict[str, Any]]:
    """Return all objects of a job with one attempt; what its tasks are told is another test's."""
    values = {"TOKEN": "s3cret"} if found.job.document.get("secrets") else {}
    logins = registries.logins(found.job, values)
    return [
        render.owner(found, {"schema": 1}),
        *(dict(each) for parcel in found.parcels for each in parcel.shared),
        *render.own(found, values, "0" * 64, logins),
        *render.attempt(found, number, {"schema": 1}),
    ]


CASES = {
    "one-worker": lambda: frame(job_of({"worker": role()}), settings(), Cluster()),
    "gpus-secrets-storages": lambda: frame(
        job_of(
            {
                "ps": role(1),
                "worker": role(4, resourcePerInstance=gpus(8), extraContainerOptions={"shmMB": 8192}),
            },
            secrets={"TOKEN": ""},
            image={
                "auth": {"username": "ada", "password": "<% $secrets.TOKEN %>", "registryuri": "reg.example"}
            },
            extras={"storages": [{"name": "team", "mountPath": "/data"}]},
            ours={"kubernetes": {"roles": {"worker": {"resources": {"rdma/hca": 1}}}}},
        ),
        settings(
            storages={
                "team": {"pvc": "team-claim", "subPath": "a/b", "readOnly": True},
                "raw": {"pvc": "raw"},
            },
            imagePullSecrets=["mine"],
            nodeSelector={"pool": "gpu"},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
            priorityClass="low",
            keepClaim="kept",
            cacheClaim="cache",
        ),
        Cluster(),
        parcels.in_configmaps(0, SHA, b"x" * 10),
    ),
    "restricted": lambda: frame(
        job_of({"worker": role()}), settings(fsGroup=100), Cluster(pod_security="restricted")
    ),
    "claim-and-url": lambda: frame(
        job_of({"worker": role()}),
        settings(),
        Cluster(),
        parcels.in_claim(0, SHA, ClaimStore("shared", "/mnt/shared")),
        parcels.from_url(1, "cd" * 32, Archive("ef" * 32, 1234), "https://store.example/x?signature"),
    ),
    "kueue": lambda: frame(
        job_of({"worker": role(2)}, defaults={"virtualCluster": "team"}),
        settings(queuePriority="high"),
        KUEUE,
    ),
    "kueue-jobset": lambda: frame(job_of({"ps": role(1), "worker": role(2)}), settings(queue="team"), BOTH),
    "volcano": lambda: frame(
        job_of({"ps": role(1), "worker": role(2)}), settings(gang="volcano", queue="team"), Cluster()
    ),
    "coscheduling": lambda: frame(job_of({"worker": role(2)}), settings(gang="coscheduling"), Cluster()),
    "patched": lambda: frame(
        job_of(
            {"worker": role()},
            ours={
                "kubernetes": {
                    "restartPolicy": "OnFailure",
                    "backoffLimit": 1,
                    "activeDeadlineSeconds": 60,
                    "imagePullPolicy": "Always",
                    "security": "baseline",
                }
            },
        ),
        settings(podTemplate={"spec": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}}),
        Cluster(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_objects_are_those_of_the_golden_file(case: str) -> None:
    """T10, T11, O8, O12, O16, P21, P26: the whole of what is sent."""
    found = yaml.safe_dump_all(rendered(CASES[case]()), sort_keys=False)
    file = GOLDEN / f"{case}.yaml"
    if os.environ.get("PAIJUPYTER_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
    assert found == file.read_text()


@pytest.mark.parametrize("case", CASES)
def test_no_secret_is_anywhere_but_in_secrets(case: str) -> None:
    """O20."""
    for thing in rendered(CASES[case]()):
        text = json.dumps(thing)
        if thing["kind"] != "Secret":
            assert "s3cret" not in text
            assert "signature" not in text
            assert base64.b64encode(b"s3cret").decode() not in text


@pytest.mark.parametrize("case", CASES)
def test_quantities_are_texts_and_requests_equal_limits(case: str) -> None:
    """T11; the Kubernetes client refuses numbers."""
    for container in containers(rendered(CASES[case]())):
        wanted = container["resources"]
        assert wanted["limits"] == wanted["requests"]
        assert all(isinstance(each, str) for each in wanted["limits"].values())


def test_memory_that_nobody_asked_for_is_no_limit() -> None:
    """Counted with by the scheduler; a task that needs more is not killed for it."""
    job = job_of({"worker": role()}, ours={"roles": {"worker": {"limitMemory": False}}})
    for container in containers(rendered(frame(job, settings(), Cluster()))):
        assert container["resources"]["limits"] == {"cpu": "2"}
        assert container["resources"]["requests"] == {"cpu": "2", "memory": "4096Mi"}


@pytest.mark.parametrize("case", CASES)
def test_pods_get_no_rights_and_no_word_of_the_user_in_their_command(case: str) -> None:
    """P27, O17."""
    for thing in rendered(CASES[case]()):
        for spec in specs(thing):
            assert spec["automountServiceAccountToken"] is False
            assert spec["enableServiceLinks"] is False
            assert "hostPath" not in json.dumps(spec["volumes"])
            assert spec["containers"][0]["command"][0] == "python3"
            assert "train.py" not in json.dumps(spec)


@pytest.mark.parametrize("case", CASES)
def test_rendering_is_pure(case: str) -> None:
    assert rendered(CASES[case]()) == rendered(CASES[case]())


def test_a_root_that_the_namespace_refuses_becomes_an_ordinary_user() -> None:
    found = CASES["restricted"]()
    context = specs(rendered(found)[-1])[0]["securityContext"]
    assert (context["runAsUser"], context["runAsNonRoot"]) == (1000, True)


def test_attempts_share_nothing_that_can_clash() -> None:
    """O21: attempts are kept apart."""
    found = CASES["gpus-secrets-storages"]()
    first, second = ({each["metadata"]["name"] for each in render.attempt(found, n, {})} for n in (0, 1))
    assert not first & second


def test_a_cluster_that_drops_image_volumes_is_caught() -> None:
    """The pod would run without its files."""
    found = frame(
        job_of({"worker": role()}), settings(), Cluster(), parcels.in_image(0, SHA, "reg/x@sha256:1")
    )
    asked = render.attempt(found, 0, {})[-1]
    render.check_kept(asked, asked)
    got = json.loads(json.dumps(asked))
    for volume in got["spec"]["template"]["spec"]["volumes"]:
        volume.pop("image", None)
    with pytest.raises(PaiJupyterError) as caught:
        render.check_kept(asked, got)
    assert caught.value.code == "image-volume-dropped"


def test_the_owner_holds_what_another_host_needs() -> None:
    found = CASES["gpus-secrets-storages"]()
    owner = render.owner(found, owner_record.record(found))
    read = owner_record.read(owner)
    assert (read["id"], read["name"], read["commands"]) == (found.job.id, found.job.name, found.job.commands)
    assert read["document"] == found.job.document
    again = owner_record.parcels(owner)
    assert [(each.sha256, each.told, each.mounted) for each in again] == [
        (each.sha256, each.told, each.mounted) for each in found.parcels
    ]
    assert owner["metadata"]["annotations"][labels.NEEDS].split() == [
        "paijupyter-boot-0123",
        found.parcels[0].shared[0]["metadata"]["name"],
    ]


def test_credentials_need_their_secret() -> None:
    """O8."""
    found = CASES["gpus-secrets-storages"]().job
    with pytest.raises(PaiJupyterError) as caught:
        registries.logins(found, {})
    assert caught.value.code == "secret-missing"


def specs(thing: dict[str, Any]) -> list[dict[str, Any]]:
    return render._pod_specs(thing) if thing["kind"] in render.STARTING else []  # type: ignore[return-value]


def containers(things: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for thing in things for spec in specs(thing) for each in spec["containers"]]
