"""Patches of the pod template: merged by name, and refused where they would break the job or the node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.backends.kubernetes.patch import patched, wrong

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "1"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "env": [{"name": "X", "value": "1"}],
                "volumeMounts": [{"name": "run", "mountPath": "/paijupyter/run"}],
            }
        ],
        "volumes": [{"name": "run", "emptyDir": {}}],
        "tolerations": [{"key": "a"}],
    },
}
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_named_things_are_merged_and_others_added() -> None:
    patch = {
        "metadata": {"labels": {"team": "x"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "env": [{"name": "Y", "value": "2"}],
                    "volumeMounts": [{"name": "d", "mountPath": "/d"}],
                }
            ],
            "volumes": [{"name": "d", "emptyDir": {}}],
            "tolerations": [{"key": "a"}, {"key": "b"}],
            "topologySpreadConstraints": [{"maxSkew": 1}],
        },
    }
    assert not list(wrong(patch, host_path=False))
    found = patched(TEMPLATE, patch)
    assert found["metadata"]["labels"] == {"a": "1", "team": "x"}
    main = found["spec"]["containers"][0]
    assert [each["name"] for each in main["env"]] == ["X", "Y"]
    assert [each["mountPath"] for each in main["volumeMounts"]] == ["/paijupyter/run", "/d"]
    assert [each["name"] for each in found["spec"]["volumes"]] == ["run", "d"]
    assert found["spec"]["tolerations"] == [{"key": "a"}, {"key": "b"}]
    assert TEMPLATE["spec"]["tolerations"] == [{"key": "a"}]


@pytest.mark.parametrize(
    ("patch", "place"),
    [
        ({"kind": "Pod"}, "kind"),
        ({"spec": {"hostNetwork": True}}, "spec.hostNetwork"),
        ({"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy"),
        ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken"),
        ({"spec": {"containers": [{"name": "side", "image": "x"}]}}, "spec.containers.0"),
        ({"spec": {"containers": [{"name": "main", "command": ["sh"]}]}}, "spec.containers.0.command"),
        (
            {"spec": {"containers": [{"name": "main", "securityContext": {"privileged": True}}]}},
            "spec.containers.0.securityContext.privileged",
        ),
        (
            {"spec": {"initContainers": [{"name": "i", "securityContext": {"privileged": True}}]}},
            "spec.initContainers.0.securityContext.privileged",
        ),
        (
            {"spec": {"containers": [{"name": "main", "env": [{"name": "JOB_COMPLETION_INDEX"}]}]}},
            "spec.containers.0.env.0",
        ),
        (
            {
                "spec": {
                    "containers": [{"name": "main", "volumeMounts": [{"mountPath": "/paijupyter/run/x"}]}]
                }
            },
            "spec.containers.0.volumeMounts.0",
        ),
        ({"spec": {"volumes": [{"name": "parcel-0"}]}}, "spec.volumes.0"),
        ({"spec": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}}, "spec.volumes.0"),
        ({"metadata": {"labels": {"paijupyter.io/job": "x"}}}, "metadata.labels.paijupyter.io/job"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
    ],
)
def test_what_no_patch_may_say(patch: dict[str, Any], place: str) -> None:
    assert [found for found, _ in wrong(patch, host_path=False)] == [place]


def test_folders_of_the_nodes_are_the_profiles_to_allow() -> None:
    patch = {"spec": {"volumes": [{"name": "h", "hostPath": {"path": "/data"}}]}}
    assert not list(wrong(patch, host_path=True))


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), values, max_size=3))
def test_any_patch_is_judged_without_a_fall(patch: dict[str, Any]) -> None:
    for place, why in wrong(patch, host_path=False):
        assert place
        assert why
