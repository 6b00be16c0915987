"""What tasks use now, as the cluster's metrics server has measured it (metrics.k8s.io)."""

from __future__ import annotations

from collections.abc import Mapping

from paijupyter.backends.base import Usage
from paijupyter.backends.kubernetes import amounts, labels
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.paths import api
from paijupyter.backends.kubernetes.transport import KubeTransport

_METRICS = "metrics.k8s.io/v1beta1"


async def measure(transport: KubeTransport, label: str, pods: Mapping[str, Pod]) -> dict[str, Usage]:
    """Return what each running task uses, by its key; nothing where the cluster does not measure.

    Args:
        transport: the way to the cluster.
        label: label value of the job's id.
        pods: of the job, by task key.
    """
    await transport.open()
    path = api(_METRICS, "pods", namespace=transport.namespace)
    try:
        found = await transport.request(
            "GET", path, query={"labelSelector": f"{labels.JOB}={label}"}, timeout=10
        )
    except KubeError:
        return {}
    by_name = {str(each["metadata"]["name"]): each for each in found.get("items") or ()}
    used = {}
    for key, pod in pods.items():
        measured = by_name.get(pod.name)
        if measured is None or pod.has_ended:
            continue
        containers = [each.get("usage") or {} for each in measured.get("containers") or ()]
        used[key] = Usage(
            cpu=sum(amounts.number(each.get("cpu")) for each in containers),
            memory_mb=sum(amounts.number(each.get("memory")) for each in containers) / amounts.MEBIBYTE,
        )
    return used
