"""What submitting a job would post, by which way its package travels, and everything against it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from paijupyter.backends.base import BackendPlan, Job
from paijupyter.backends.delivery.commits import Mirror
from paijupyter.backends.openpai import emit, features, ladder, payload
from paijupyter.backends.openpai.capabilities import Cluster
from paijupyter.backends.openpai.ladder import Load
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.backends.told import instances
from paijupyter.data.storages import used_by
from paijupyter.errors import PaiJupyterError, Problem, has_errors, in_order
from paijupyter.protocol.checking import check
from paijupyter.protocol.document import read

_PLUGINS = "com.microsoft.pai.runtimeplugin"
# What our own commands have, and what is told in other words here.
_OURS = frozenset({"kubernetes-expansion", "secret-argument", "secret-value", "escaped-secret"})


class Planner:
    """Plans the jobs of one profile.

    Args:
        settings: of the profile.
        cluster: returns what is known of the cluster.
        mirror: the commits of the profile's git remote.
    """

    def __init__(
        self, settings: OpenPaiSettings, cluster: Callable[[], Awaitable[Cluster]], mirror: Mirror | None
    ) -> None:
        self._mirror = mirror
        self._settings = settings
        self._cluster = cluster

    async def plan(self, job: Job) -> BackendPlan:
        """Return what submitting would do; no side effect."""
        cluster = await self._cluster()
        return await asyncio.to_thread(self._plan, job, cluster)

    def _plan(self, job: Job, cluster: Cluster) -> BackendPlan:
        settings = self._settings
        problems: list[Problem] = []
        load: Load | None = None
        if emit.carries(job):
            try:
                load = ladder.load(job, job.name, settings, {}, self._mirror)
            except PaiJupyterError as error:
                problems.append(Problem("error", error.code, error.message, hint=error.hint))
        text = emit.text_of(job, job.name, settings, {}, load.carried if load else None)
        found = check(read(text), "openpai")
        # Values of secrets and hints on our own text are nobody's concern here.
        problems += [each for each in found if each.code not in _OURS and each.severity != "hint"]
        problems += [
            *_cluster_problems(job, settings, cluster),
            *(features.problems(job, cluster.version, cluster.release) if not cluster.unreachable else ()),
            *_package_problems(load, settings),
            *_left_out(job, settings, load),
            *_readers(job),
            *_plugins(job),
        ]
        return BackendPlan(
            submitted=text,
            objects=tuple(_objects(job, settings, load, cluster)),
            problems=tuple(in_order(dict.fromkeys(problems))),
            starts=_starts(job, settings, cluster, problems),
        )


def virtual_cluster(job: Job, settings: OpenPaiSettings) -> str:
    """Return the virtual cluster that a job goes to."""
    named = (job.document.get("defaults") or {}).get("virtualCluster")
    return str(named or settings.virtual_cluster or "default")


def _objects(
    job: Job, settings: OpenPaiSettings, load: Load | None, cluster: Cluster
) -> Iterator[Mapping[str, Any]]:
    yield {
        "kind": "Framework",
        "name": f"{cluster.user or settings.user or job.user}~{job.name}",
        "virtualCluster": virtual_cluster(job, settings),
        "tasks": sum(instances(role) for role in job.roles.values()),
    }
    for leg in load.legs if load else ():
        yield {
            "kind": "package",
            "name": leg.package.sha256[:12],
            "way": leg.way,
            "how": ladder.in_words(leg, settings),
            "bytes": leg.size,
        }


def _starts(job: Job, settings: OpenPaiSettings, cluster: Cluster, problems: list[Problem]) -> str:
    name = virtual_cluster(job, settings)
    if has_errors(problems):
        return "not as it is"
    if cluster.unreachable:
        return "once the server answers"
    total, used = cluster.virtual_clusters.get(name, ({}, {}))
    for key, asked in _asked(job).items():
        if total.get(key) and asked > total[key] - used.get(key, 0.0):
            return f"when virtual cluster `{name}` has room"
    return f"when virtual cluster `{name}` schedules it"


def _asked(job: Job) -> dict[str, float]:
    """Return what the whole job asks for."""
    total = {"cpu": 0.0, "memoryMB": 0.0, "gpu": 0.0}
    for role in job.roles.values():
        for key in total:
            total[key] += instances(role) * float(role["resourcePerInstance"].get(key) or 0)
    return total


def _cluster_problems(job: Job, settings: OpenPaiSettings, cluster: Cluster) -> Iterator[Problem]:
    if cluster.unreachable:
        yield Problem(
            "warning",
            "cluster-unreachable",
            f"Profile `{settings.name}` cannot be asked now: {cluster.unreachable}",
            hint="What it has against the job only shows on submission.",
        )
        return
    name = virtual_cluster(job, settings)
    if cluster.virtual_clusters and name not in cluster.virtual_clusters:
        yield Problem(
            "error",
            "no-virtual-cluster",
            f"Virtual cluster `{name}` is not one that user `{cluster.user}` may use.",
            "/defaults/virtualCluster",
            hint=f"Yours are: {', '.join(sorted(cluster.virtual_clusters))}.",
        )
    else:
        yield from _too_big(job, name, cluster)
    for storage, _ in used_by(job.document, settings.storages):
        if storage and storage not in cluster.storages:
            known = f"Yours are: {', '.join(cluster.storages)}." if cluster.storages else "You have none."
            message = f"Storage `{storage}` is not granted on the cluster."
            yield Problem("error", "no-storage", message, "/extras/storages", hint=known)


def _too_big(job: Job, name: str, cluster: Cluster) -> Iterator[Problem]:
    total, _ = cluster.virtual_clusters.get(name, ({}, {}))
    words = {"cpu": ("CPUs", ""), "memoryMB": ("Memory", " MB"), "gpu": ("GPUs", "")}
    gang = (job.document.get("extras") or {}).get("gangAllocation") is not False
    for key, asked in _asked(job).items():
        one = max(float(role["resourcePerInstance"].get(key) or 0) for role in job.roles.values())
        needed = asked if gang else one
        there = total.get(key, 0.0)
        if needed > there and (there or (key == "gpu" and total.get("cpu"))):
            thing, unit = words[key]
            yield Problem(
                "error",
                "never-fits",
                f"{thing} asked for are {needed:g}{unit}; virtual cluster `{name}` has {there:g}{unit} "
                "in all, so the job would wait for ever.",
                "/taskRoles",
                hint="Ask for less, or choose another virtual cluster.",
            )


def _package_problems(load: Load | None, settings: OpenPaiSettings) -> Iterator[Problem]:
    yield from load.problems if load else ()
    for leg in load.legs if load else ():
        yield Problem(
            "hint",
            "package-way",
            f"Package `{leg.package.sha256[:12]}` ({leg.size / 1000:.1f} kB) travels "
            f"{ladder.in_words(leg, settings)}.",
            hint="Its hash is checked in every task.",
        )


def _left_out(job: Job, settings: OpenPaiSettings, load: Load | None) -> Iterator[Problem]:
    if load is None:
        return
    if job.extras.get("outputs"):
        yield _outputs(settings)
    images = [image for image in _images(job) if "python" not in image]
    if images and not payload.works_without_python(job):
        yield Problem(
            "hint",
            "needs-python",
            f"Python 3.6 or newer must be in image `{images[0]}`: it unpacks what travels with the job.",
            "/prerequisites",
            hint="Without one a task ends at once and says so.",
        )


def _outputs(settings: OpenPaiSettings) -> Problem:
    place, words = "/extras/paijupyter/outputs", ladder.outputs_in_words(settings)
    if words:
        hint = "Each task sends them when its command has ended; one that is stopped sends nothing."
        return Problem("hint", "outputs-way", f"Outputs come back {words}.", place, hint=hint)
    return Problem(
        "warning",
        "outputs-stay",
        "Outputs cannot be brought back: nothing is known that this host and the tasks both reach.",
        place,
        hint="Set `storage` (with `storages`), `packageObject` or `packageWebHdfs` in the profile, or let "
        "the command write into a storage.",
    )


def _images(job: Job) -> Iterator[str]:
    used = {role.get("dockerImage") for role in job.roles.values()}
    for item in job.document.get("prerequisites") or ():
        if item.get("type") == "dockerimage" and item.get("name") in used:
            yield str(item.get("uri") or "")


def _readers(job: Job) -> Iterator[Problem]:
    """Say who can read what (openpai.md 4.6)."""
    if job.document.get("secrets"):
        yield Problem(
            "hint",
            "who-reads",
            "Secrets are masked in the job's text, and can be read inside its tasks; all users of the "
            "cluster see its text and its log.",
            "/secrets",
            hint="Print none of them. A copy may stay in the cluster after the job's end.",
        )


def _plugins(job: Job) -> Iterator[Problem]:
    extras = job.document.get("extras") or {}
    plugins = extras.get(_PLUGINS)
    for index, item in enumerate(plugins if isinstance(plugins, list) else ()):
        if isinstance(item, Mapping) and item.get("plugin") == "ssh":
            yield Problem(
                "warning",
                "ssh-plugin",
                "The ssh plug-in needs openssh in the image, or a network to install it from: else each task "
                "fails after some seconds with 255.",
                f"/extras/{_PLUGINS}/{index}",
                hint="Leave it out unless somebody logs in to the tasks.",
            )
