"""A ``batch/v1`` Job manifest that goes to the cluster as it was written, plus labels of ours (T1). Pure.

It stands in the document's ``extras.paijupyter.kubernetes.manifest``. Its pods have nothing of ours: no boot
file, no package, no variables. How often a pod is tried again is the manifest's affair (``backoffLimit``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, names, pod_options
from paijupyter.errors import Problem

Object = dict[str, Any]
_POINTER = "/extras/paijupyter/kubernetes/manifest"


def manifest_of(job: Job) -> Mapping[str, Any] | None:
    """Return the manifest that a job is, or None if it is a job of ours."""
    found = pod_options.of_document(job).get("manifest")
    return found if isinstance(found, Mapping) and found.get("kind") == "Job" else None


def name_of(job: Job) -> str:
    """Return the name of the Job: the manifest's own, or one of ours where it has none."""
    metadata = _metadata(manifest_of(job) or {})
    return str(metadata.get("name") or names.base(job.name))


def bare(job: Job) -> Object:
    """Return the Job of a manifest by its name only."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name_of(job)}}


def object_of(job: Job, role: str) -> Object:
    """Return the Job of a manifest.

    Args:
        job: the job.
        role: name of its one role.
    """
    thing: Object = copy.deepcopy(dict(manifest_of(job) or {}))
    thing["metadata"] = _labelled(thing, {**labels.of_role(job, 0, role), labels.KIND: labels.WRITTEN})
    thing["metadata"].pop("generateName", None)
    thing["metadata"].pop("namespace", None)  # the profile's, or the plan said no
    thing["metadata"]["name"] = name_of(job)
    template = thing["spec"]["template"]
    template["metadata"] = _labelled(template, {**labels.of_role(job, 0, role), labels.KIND: labels.WRITTEN})
    return thing


def problems(job: Job, namespace: str) -> Iterator[Problem]:
    """Yield what keeps a manifest from going as it is, and what its user must know.

    Args:
        job: the job.
        namespace: of the profile, "" if it is not known.
    """
    manifest = manifest_of(job)
    if manifest is None:
        return
    yield Problem(
        "hint",
        "as-written",
        "The manifest goes to the cluster as written, with labels of ours.",
        hint="Its tasks get no package and no variables; its backoffLimit says how often it is tried.",
    )
    spec = manifest.get("spec") or {}
    completions = spec.get("completions") or 1
    if isinstance(completions, int) and completions > 1 and spec.get("completionMode") != "Indexed":
        yield Problem(
            "error",
            "not-indexed",
            f"Manifest has {completions} completions that nothing tells apart.",
            f"{_POINTER}/spec/completions",
            hint="Add `completionMode: Indexed`.",
        )
    wanted = _metadata(manifest).get("namespace")
    if wanted and namespace and wanted != namespace:
        yield Problem(
            "error",
            "other-namespace",
            f"Manifest wants the namespace `{wanted}`, and the profile's is `{namespace}`.",
            f"{_POINTER}/metadata/namespace",
            hint=f"Take the namespace out of the manifest, or use a profile with `namespace: {wanted}`.",
        )


def _labelled(thing: Mapping[str, Any], more: Mapping[str, str]) -> Object:
    metadata = dict(_metadata(thing))
    metadata["labels"] = {**(metadata.get("labels") or {}), **more}
    return metadata


def _metadata(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    found = thing.get("metadata")
    return found if isinstance(found, Mapping) else {}
