"""What tasks use now: as the cluster's metrics server has measured it, else as they say themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from paijupyter.backends.base import Usage
from paijupyter.backends.kubernetes import amounts, labels
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.paths import api
from paijupyter.backends.kubernetes.transport import KubeTransport

_METRICS = "metrics.k8s.io/v1beta1"


async def measure(
    transport: KubeTransport, label: str, pods: Mapping[str, Pod], said: Callable[[str], Usage | None]
) -> dict[str, Usage]:
    """Return what each running task uses, by its key.

    Args:
        transport: the way to the cluster.
        label: label value of the job's id.
        pods: of the job, by task key.
        said: returns what a task says that it uses.
    """
    running = {key: pod for key, pod in pods.items() if not pod.has_ended}
    measured = await _measured(transport, label)
    found = {key: _of_both(measured.get(pod.name), said(key)) for key, pod in running.items()}
    return {key: used for key, used in found.items() if used is not None}


def _of_both(measured: Usage | None, said: Usage | None) -> Usage | None:
    """Return what was measured, with the GPUs that only the task knows of."""
    if measured is None or said is None:
        return measured or said
    return replace(measured, gpus=said.gpus)


async def _measured(transport: KubeTransport, label: str) -> dict[str, Usage]:
    """Return what the metrics server knows by name of pod; nothing where there is none (metrics.k8s.io)."""
    await transport.open()
    path = api(_METRICS, "pods", namespace=transport.namespace)
    try:
        found = await transport.request(
            "GET", path, query={"labelSelector": f"{labels.JOB}={label}"}, timeout=10
        )
    except KubeError:
        return {}
    used = {}
    for each in found.get("items") or ():
        containers = [one.get("usage") or {} for one in each.get("containers") or ()]
        used[str(each["metadata"]["name"])] = Usage(
            cpu=sum(amounts.number(one.get("cpu")) for one in containers),
            memory_mb=sum(amounts.number(one.get("memory")) for one in containers) / amounts.MEBIBYTE,
        )
    return used
