"""Whether a job can ever fit: the largest node, the namespace's quotas and its limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import names, pod, pod_options
from paijupyter.backends.kubernetes.amounts import in_words, number
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.errors import Problem

_FIELDS = {"cpu": "cpu", "memory": "memoryMB"}
_WORDS = {"cpu": "CPUs", "memory": "memory"}


def problems(job: Job, settings: KubeSettings, cluster: Cluster) -> Iterator[Problem]:
    """Yield what of a job can never start, or not now, as far as the cluster may be looked at."""
    if cluster.silent:
        said = "No node of the cluster is ready: the job waits until one is."
        yield Problem(
            "warning", "no-node", said, hint="Ask whoever keeps the cluster; or use another profile."
        )
    asked = {
        role: pod.resources(job, role, settings, pod_options.of_role(settings.pods, job, role))
        for role in job.roles
    }
    for role, amounts in asked.items():
        for resource, quantity in amounts.items():
            yield from _on_nodes(role, resource, number(quantity), settings, cluster)
            yield from _in_limits(role, resource, number(quantity), settings, cluster)
    yield from _in_quotas(job, asked, settings, cluster)


def starts(job: Job, settings: KubeSettings, cluster: Cluster) -> str:
    """Return one phrase on when a job would start, as far as quotas say."""
    total = _total(
        job,
        {
            role: pod.resources(job, role, settings, pod_options.of_role(settings.pods, job, role))
            for role in job.roles
        },
    )
    for resource, amount in total.items():
        for _, hard, used in _quotas_of(resource, cluster):
            if hard - used < amount <= hard:
                return "when the namespace's quota has room"
    return "once a node is ready" if cluster.silent else "now, if nodes are free"


def _on_nodes(
    role: str, resource: str, amount: float, settings: KubeSettings, cluster: Cluster
) -> Iterator[Problem]:
    if not cluster.nodes or not amount:
        return
    largest = max((number(node.get(resource, 0)) for node in cluster.nodes), default=0.0)
    if amount <= largest:
        return
    what = _what(resource, settings)
    severity, code = ("hint", "new-node") if settings.autoscaling else ("error", "never-fits")
    if not largest:
        code = code if settings.autoscaling else "no-gpu" if resource == settings.gpu_resource else code
        message = f"Role `{role}` asks for {in_words(resource, amount)} {what}, which no node has."
    else:
        message = (
            f"Role `{role}` asks for {in_words(resource, amount)} {what} in each task, "
            f"but the largest node has {in_words(resource, largest)}."
        )
    hint = "Ask for less; or set `autoscaling: true` in the profile, if the cluster adds larger nodes."
    if settings.autoscaling:
        hint = "It waits until the cluster has added such a node."
    yield Problem(severity, code, message, _pointer(role, resource, settings), hint=hint)  # type: ignore[arg-type]


def _in_limits(
    role: str, resource: str, amount: float, settings: KubeSettings, cluster: Cluster
) -> Iterator[Problem]:
    for limit in cluster.limits:
        for item in (limit.get("spec") or {}).get("limits") or ():
            most = (item.get("max") or {}).get(resource)
            if item.get("type") in ("Container", "Pod") and most is not None and amount > number(most):
                yield Problem(
                    "error",
                    "over-limit",
                    f"Role `{role}` asks for {in_words(resource, amount)} {_what(resource, settings)} "
                    f"in each task, but the namespace allows {in_words(resource, number(most))} "
                    f"(LimitRange `{limit['metadata']['name']}`).",
                    _pointer(role, resource, settings),
                    hint="Ask for less, or have the limit raised.",
                )


def _in_quotas(
    job: Job, asked: Mapping[str, Mapping[str, str]], settings: KubeSettings, cluster: Cluster
) -> Iterator[Problem]:
    total = _total(job, asked)
    total["pods"] = float(sum(names.instances_of(role) for role in job.roles.values()))
    for resource, amount in total.items():
        for name, hard, used in _quotas_of(resource, cluster):
            what = _what(resource, settings)
            if amount > hard:
                yield Problem(
                    "error",
                    "over-quota",
                    f"Job asks for {in_words(resource, amount)} {what} together, but the namespace may have "
                    f"{in_words(resource, hard)} (ResourceQuota `{name}`).",
                    "/taskRoles",
                    hint="Ask for less, or have the quota raised.",
                )
            elif amount > hard - used:
                yield Problem(
                    "warning",
                    "quota-full",
                    f"Job asks for {in_words(resource, amount)} {what} together, and of the namespace's "
                    f"{in_words(resource, hard)} only {in_words(resource, max(hard - used, 0.0))} are free "
                    f"(ResourceQuota `{name}`).",
                    "/taskRoles",
                    hint="Its tasks wait until other jobs of the namespace have ended.",
                )


def _quotas_of(resource: str, cluster: Cluster) -> Iterator[tuple[str, float, float]]:
    """Yield name, limit and use of the quotas of a resource. A request equals its limit, so either counts."""
    for quota in cluster.quotas:
        if (quota.get("spec") or {}).get("scopes") or (quota.get("spec") or {}).get("scopeSelector"):
            continue  # for some pods only; the dry run knows
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        for key in (resource, f"requests.{resource}", f"limits.{resource}"):
            if key in hard:
                yield str(quota["metadata"]["name"]), number(hard[key]), number(used.get(key, 0))
                break


def _total(job: Job, asked: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for role, amounts in asked.items():
        for resource, quantity in amounts.items():
            each = number(quantity) * names.instances_of(job.roles[role])
            total[resource] = total.get(resource, 0.0) + each
    return total


def _what(resource: str, settings: KubeSettings) -> str:
    if resource == settings.gpu_resource:
        return "GPUs"
    return _WORDS.get(resource, resource)


def _pointer(role: str, resource: str, settings: KubeSettings) -> str:
    field = "gpu" if resource == settings.gpu_resource else _FIELDS.get(resource)
    return (
        f"/taskRoles/{role}/resourcePerInstance/{field}"
        if field
        else "/extras/paijupyter/kubernetes/resources"
    )
