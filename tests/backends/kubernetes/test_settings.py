"""Settings of a profile: read once, everything wrong in one error, each with what to do."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from jobs import job_of, role, settings

from paijupyter.backends.base import Profile
from paijupyter.backends.kubernetes import pod_options
from paijupyter.backends.kubernetes.pod_options import OPTIONS, PodOptions
from paijupyter.backends.kubernetes.settings import SETTINGS, settings_of
from paijupyter.errors import PaiJupyterError


def test_every_option_of_a_pod_has_a_key() -> None:
    assert {field for field, _, _ in OPTIONS.values()} == {each.name for each in fields(PodOptions)}


def test_every_setting_is_described() -> None:
    """P22: what it does, its default, no jargon unexplained."""
    assert all(words and not words.endswith(".") for words in SETTINGS.values())


def test_defaults_need_nothing() -> None:
    found = settings()
    assert (found.gpu_resource, found.install, found.stuck_after) == ("nvidia.com/gpu", "never", 180)
    assert found.ways == ("configmap", "claim", "object", "image")


def test_amounts_may_have_suffixes() -> None:
    """P40."""
    found = settings(shmMB="2Gi", stuckAfter="5m", outputsWait=90, barrierTimeout="1h")
    assert (found.shm_mb, found.stuck_after, found.outputs_wait, found.barrier_timeout) == (
        2048,
        300,
        90,
        3600,
    )


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(PaiJupyterError) as caught:
        settings(
            namespace="Not A Name",
            gpuResource="gpu",
            security="none",
            tolerations="x",
            storages={"team": {"pvc": "claim", "nfs": {"server": "s"}}, "dir": {"hostPath": "/data"}},
            packageObject={"prefix": "x"},
        )
    error = caught.value
    assert error.code == "bad-setting"
    assert error.hint == "Correct it; where it stands says: paijob profile show lab"
    said = "\n".join(each.message for each in error.problems)
    for key in ("namespace", "gpuResource", "security", "tolerations", "storages.team", "storages.dir"):
        assert f"Setting `{key}` of profile `lab`" in said
    assert "`packageObject` of profile `lab` must have `bucket`" in said
    assert "allowHostPath" in said


@pytest.mark.parametrize(
    ("fields", "volume"),
    [
        ({"pvc": "team-data"}, {"persistentVolumeClaim": {"claimName": "team-data"}}),
        (
            {"pvc": "team-data", "readOnly": True},
            {"persistentVolumeClaim": {"claimName": "team-data", "readOnly": True}},
        ),
        ({"nfs": {"server": "files", "path": "/x"}}, {"nfs": {"server": "files", "path": "/x"}}),
        (
            {"csi": {"driver": "cephfs.csi.ceph.com", "volumeAttributes": {"a": "b"}}},
            {"csi": {"driver": "cephfs.csi.ceph.com", "volumeAttributes": {"a": "b"}}},
        ),
        ({"hostPath": "/data"}, {"hostPath": {"path": "/data", "type": "Directory"}}),
    ],
)
def test_kinds_of_storages(fields: dict[str, Any], volume: dict[str, Any]) -> None:
    """O16, P9."""
    found = settings(allowHostPath=True, storages={"team": fields})
    assert found.storages["team"].volume == volume
    assert found.storages["team"].storage.mount_path == "/mnt/team"


@pytest.mark.parametrize(
    "fields",
    [{}, {"pvc": "X Y"}, {"pvc": "a", "subPath": "../b"}, {"pvc": "a", "mount": "b"}, {"pvc": "a", "x": 1}],
)
def test_storages_that_cannot_be(fields: dict[str, Any]) -> None:
    with pytest.raises(PaiJupyterError) as caught:
        settings(storages={"team": fields})
    assert "storages.team" in caught.value.message


def test_a_role_lays_its_options_over_the_documents_and_the_profiles() -> None:
    profile = settings(
        nodeSelector={"zone": "a"}, tolerations=[{"key": "x"}], runAsUser=7, priorityClass="low"
    )
    ours = {
        "kubernetes": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "y"}, {"key": "x"}],
            "roles": {"ps": {"nodeSelector": {"zone": "b"}, "runAsUser": 0, "resources": {"rdma/hca": 1}}},
        }
    }
    job = job_of({"ps": role(), "worker": role()}, ours=ours)
    ps, worker = (pod_options.of_role(profile.pods, job, name) for name in ("ps", "worker"))
    assert ps.node_selector == {"zone": "b", "disk": "ssd"}
    assert worker.node_selector == {"zone": "a", "disk": "ssd"}
    assert worker.tolerations == ({"key": "x"}, {"key": "y"})
    assert (ps.run_as_user, worker.run_as_user) == (0, 7)
    assert (ps.resources, worker.resources) == ({"rdma/hca": "1"}, {})
    assert ps.priority_class == "low"


def test_a_profile_of_another_kind_of_values() -> None:
    with pytest.raises(PaiJupyterError):
        settings_of(Profile("p", "kubernetes", {"storages": []}))
    with pytest.raises(PaiJupyterError):
        settings_of(Profile("p", "kubernetes", {"shmMB": True}))
