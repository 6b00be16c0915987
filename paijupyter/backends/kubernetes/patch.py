"""Patches of the pod template, for what has no setting: what they may say, and how they are laid over.

Mappings are merged by key. Lists of named things (containers, volumes, variables, mounts) are merged by name,
other lists get what is new at their end. Nothing of ours can be removed or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.backends.kubernetes.volumes import RESERVED

_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}
_POD = frozenset({"metadata", "spec"})
_METADATA = frozenset({"labels", "annotations"})
_SPEC = frozenset(
    {
        *("affinity", "containers", "dnsConfig", "hostAliases", "imagePullSecrets", "initContainers"),
        *("nodeSelector", "overhead", "preemptionPolicy", "priorityClassName", "resourceClaims"),
        *("runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccountName"),
        *("tolerations", "topologySpreadConstraints", "volumes"),
    }
)
_CONTAINER = frozenset(
    {"name", "env", "envFrom", "resources", "volumeMounts", "volumeDevices", "securityContext"}
)
_OURS = "paijupyter.io/"


def patched(template: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod template with a patch laid over it; the patch has passed :func:`wrong`."""
    return _over(template, patch)


def wrong(patch: Mapping[str, Any], *, host_path: bool) -> Iterator[tuple[str, str]]:
    """Yield what a patch must not say: its place, joined by dots, and the end of a sentence.

    Args:
        patch: as somebody wrote it.
        host_path: whether folders of the nodes are allowed.
    """
    yield from _unknown(patch, _POD, "")
    metadata, spec = _part(patch, "metadata"), _part(patch, "spec")
    yield from _unknown(metadata, _METADATA, "metadata.")
    for kind in _METADATA:
        for key in _part(metadata, kind):
            if str(key).startswith(_OURS):
                yield f"metadata.{kind}.{key}", "is kept for paijupyter itself"
    yield from _unknown(spec, _SPEC, "spec.")
    for index, container in enumerate(_items(spec, "containers")):
        place = f"spec.containers.{index}"
        if container.get("name") != "main":
            yield place, "is another container, and the task would not end before it; use initContainers"
            continue
        yield from _unknown(container, _CONTAINER, f"{place}.")
        yield from _in_container(container, place)
    for index, container in enumerate(_items(spec, "initContainers")):
        yield from _privileged(container, f"spec.initContainers.{index}")
    for index, volume in enumerate(_items(spec, "volumes")):
        place = f"spec.volumes.{index}"
        if RESERVED.fullmatch(str(volume.get("name") or "")):
            yield place, f"has the name `{volume['name']}`, which a volume of ours has"
        if "hostPath" in volume and not host_path:
            yield place, "is a folder of the nodes, which the profile does not allow"


def _in_container(container: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    for index, variable in enumerate(_items(container, "env")):
        name = str(variable.get("name") or "")
        if name.startswith("PAIJUPYTER_") or name == "JOB_COMPLETION_INDEX":
            yield f"{place}.env.{index}", f"sets `{name}`, which is set already"
    for index, mount in enumerate(_items(container, "volumeMounts")):
        path = str(mount.get("mountPath") or "")
        if f"{path}/".startswith("/paijupyter/") or "/paijupyter".startswith(f"{path.rstrip('/')}/"):
            yield f"{place}.volumeMounts.{index}", f"is mounted at `{path}`, over files of ours"
    yield from _privileged(container, place)


def _privileged(container: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    if _part(container, "securityContext").get("privileged"):
        yield f"{place}.securityContext.privileged", "would give the task the whole node"


def _unknown(value: Mapping[str, Any], known: frozenset[str], place: str) -> Iterator[tuple[str, str]]:
    for key in value:
        if key not in known:
            yield f"{place}{key}", f"cannot be patched; what can: {', '.join(sorted(known))}"


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _items(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = value.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _over(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(mine)
    for key, value in theirs.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _over(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = _lists(old, value, _KEYS.get(key))
        elif value is not None:
            merged[key] = value
    return merged


def _lists(mine: list[Any], theirs: list[Any], key: str | None) -> list[Any]:
    merged = list(mine)
    for value in theirs:
        place = None
        if key and isinstance(value, Mapping):
            named = value.get(key)
            place = next((i for i, each in enumerate(merged) if each.get(key) == named), None)
        if place is not None:
            merged[place] = _over(merged[place], value)
        elif value not in merged:
            merged.append(value)
    return merged
