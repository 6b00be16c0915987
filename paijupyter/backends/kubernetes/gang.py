"""How the tasks of a job get their nodes together: the queue or scheduler that takes the job as one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import names, pod_options
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.settings import KubeSettings

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


@dataclass(frozen=True, slots=True)
class Gang:
    """How a job is admitted and placed.

    Attributes:
        queue: Kueue's LocalQueue or Volcano's queue, "" for none.
        kueue: whether Kueue admits the job: its objects are created suspended.
        jobset: whether its roles are one JobSet.
        scheduler: ``volcano`` or ``coscheduling`` where that places the pods together, else "".
        priority: Kueue's WorkloadPriorityClass, or "".
    """

    queue: str = ""
    kueue: bool = False
    jobset: bool = False
    scheduler: str = ""
    priority: str = ""

    @property
    def whole(self) -> bool:
        """Whether all tasks of the job are placed together or not at all."""
        return self.kueue or bool(self.scheduler)


def queue_of(job: Job, settings: KubeSettings) -> str:
    """Return the queue that a job wants: its options', its virtual cluster, the profile's, or ""."""
    defaults = job.document.get("defaults") or {}
    wanted = pod_options.of_document(job).get("queue") or defaults.get("virtualCluster")
    if wanted and str(wanted) != "default":
        return str(wanted)
    return settings.queue


def choose(job: Job, settings: KubeSettings, cluster: Cluster) -> Gang:
    """Return how a job is admitted and placed: as the profile says, by default with what the cluster has."""
    queue, kind = queue_of(job, settings), settings.gang
    several_roles = len(job.roles) > 1
    if kind == "none":
        return Gang()
    if kind == "volcano":
        return Gang(queue, scheduler="volcano")
    if kind == "coscheduling":
        return Gang(scheduler="coscheduling")
    kueue = bool(queue) and (kind == "kueue" or cluster.has_kueue)
    if kind == "jobset":
        return Gang(queue, kueue and cluster.has_kueue, jobset=True, priority=settings.priority)
    if kueue:
        # Jobs of a queue are admitted one by one; roles are admitted together only as one JobSet.
        together = several_roles and cluster.has_jobset
        return Gang(queue, True, jobset=together, priority=settings.priority)
    if kind == "auto" and cluster.has_volcano and not names.is_alone(job):
        return Gang(queue, scheduler="volcano")
    return Gang()
