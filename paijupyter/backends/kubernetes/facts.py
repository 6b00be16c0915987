"""What is kept of the cluster's objects: the few facts that states and explanations are made of. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from paijupyter.backends.kubernetes import labels

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z")
_INDEX = "batch.kubernetes.io/job-completion-index"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object; ``at`` is when it last changed, seconds since the epoch."""

    status: str
    reason: str = ""
    message: str = ""
    at: float | None = None

    @property
    def is_true(self) -> bool:
        """Whether it holds."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended; ``message`` is what it wrote to its termination log, or the end of its log."""

    code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """State of the one container of a pod.

    Attributes:
        id: of the container, "" while there is none; another one after a restart.
        waiting: why it does not run yet, "" if it does or did.
        message: more on ``waiting``.
        running_since: when it began to run, None unless it runs.
        ended: how it ended, None unless it has.
        ended_before: how the one before it ended, if it was restarted.
        restarts: how often it was restarted.
        image: as the pod names it.
        image_id: what the node has pulled for it, "" before that.
    """

    id: str = ""
    waiting: str = ""
    message: str = ""
    running_since: float | None = None
    ended: Ended | None = None
    ended_before: Ended | None = None
    restarts: int = 0
    image: str = ""
    image_id: str = ""

    @property
    def digest(self) -> str:
        """The digest of its image (``sha256:…``), "" while it is not known."""
        found = re.search(r"sha256:[0-9a-f]{64}", self.image_id)
        return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a task.

    Attributes:
        job: label value of the job's id.
        role: label value of its role.
        deleted_at: when it was to be gone by, None unless it was told to go.
        conditions: by type; of all that Kubernetes knows only those that say something here.
        restarts_itself: whether its node restarts the container (restartPolicy other than Never).
        gone: whether it was seen to vanish.
        main: name of the container that is the task.
        written: whether it is of a manifest of the user's, and so has no boot process.
        claims: names of the volume claims that it mounts.
    """

    uid: str
    name: str
    version: str
    job: str
    attempt: int
    role: str
    index: int
    phase: str
    node: str = ""
    reason: str = ""
    message: str = ""
    created_at: float = 0.0
    deleted_at: float | None = None
    conditions: Mapping[str, Condition] = ()  # type: ignore[assignment]  # always given
    container: Container = Container()
    restarts_itself: bool = False
    gone: bool = False
    main: str = "main"
    written: bool = False
    claims: tuple[str, ...] = ()

    @property
    def ended(self) -> Ended | None:
        """How its container ended for good."""
        return None if self.restarts_itself and self.phase == "Running" else self.container.ended

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.gone or self.ended is not None or self.phase in ("Failed", "Succeeded")

    @property
    def waits_since(self) -> float:
        """When it began to wait for what it waits for now."""
        placed = self.conditions.get("PodScheduled")
        return (placed.at if placed and placed.is_true and placed.at else None) or self.created_at


@dataclass(frozen=True, slots=True)
class KubeJob:
    """A Job of a role.

    Attributes:
        jobset: name of the JobSet that made it, or "".
        unit: uid of what a queue admits: the JobSet's, or its own.
        completed: indexes that have succeeded.
        failed: indexes that have failed, where the Job counts them.
        base: what the names of the job's objects begin with.
        members: ids of the jobs that it is, an index each; empty for a Job of one job.
        shared: whether this is the view of one of them: what is said of indexes is of its own, as 0.
        settled: of such a view, all indexes that have ended.
        gone: whether it was seen to vanish.
    """

    uid: str
    name: str
    version: str
    job: str
    attempt: int
    role: str
    jobset: str = ""
    unit: str = ""
    completed: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    suspended: bool = False
    created_at: float = 0.0
    deleted_at: float | None = None
    conditions: Mapping[str, Condition] = ()  # type: ignore[assignment]  # always given
    base: str = ""
    members: tuple[str, ...] = ()
    shared: bool = False
    settled: frozenset[int] = frozenset()
    gone: bool = False

    @property
    def has_more(self) -> bool:
        """Whether a pod of it may still come or run."""
        return not self.gone and not (self.shared and (self.completed or self.failed))

    def is_told_by(self, before: KubeJob) -> bool:
        """Say whether it is the view of one of many jobs that has not changed since: others' ends are."""
        return self.shared and self == replace(before, version=self.version, settled=self.settled)

    def of_member(self, index: int, job: str) -> KubeJob:
        """Return it as the job of one index sees it; how the others fare is none of its affairs."""
        return replace(
            self,
            job=job,
            completed=frozenset({0} if index in self.completed else ()),
            failed=frozenset({0} if index in self.failed else ()),
            conditions={key: each for key, each in self.conditions.items() if key == "Suspended"},
            settled=self.completed | self.failed,
            shared=True,
        )


def pod_of(data: Object) -> Pod:
    """Read a pod."""
    meta, status = data["metadata"], data.get("status") or {}
    marks = meta.get("labels") or {}
    statuses = status.get("containerStatuses") or [{}]
    return Pod(
        uid=str(meta["uid"]),
        name=str(meta["name"]),
        version=str(meta.get("resourceVersion") or ""),
        job=str(marks.get(labels.JOB) or ""),
        attempt=_number(marks.get(labels.ATTEMPT)),
        role=str(marks.get(labels.ROLE) or ""),
        index=_number((meta.get("annotations") or {}).get(_INDEX, marks.get(_INDEX))),
        phase=str(status.get("phase") or "Pending"),
        node=str((data.get("spec") or {}).get("nodeName") or ""),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or ""),
        created_at=seconds(meta.get("creationTimestamp")) or 0.0,
        deleted_at=seconds(meta.get("deletionTimestamp")),
        conditions=_conditions(
            status, ("PodScheduled", "DisruptionTarget", "Ready", "PodReadyToStartContainers")
        ),
        container=_container(_first_that_speaks(status.get("initContainerStatuses"), statuses, _main(data))),
        restarts_itself=(data.get("spec") or {}).get("restartPolicy") != "Never",
        main=_main(data),
        written=marks.get(labels.KIND) == labels.WRITTEN,
        claims=_claims(data),
    )


def job_of(data: Object) -> KubeJob:
    """Read a Job."""
    meta, status = data["metadata"], data.get("status") or {}
    marks = meta.get("labels") or {}
    jobset: Object = next(
        (each for each in meta.get("ownerReferences") or () if each["kind"] == "JobSet"), {}
    )
    return KubeJob(
        uid=str(meta["uid"]),
        name=str(meta["name"]),
        version=str(meta.get("resourceVersion") or ""),
        job=str(marks.get(labels.JOB) or ""),
        attempt=_number(marks.get(labels.ATTEMPT)),
        role=str(marks.get(labels.ROLE) or ""),
        jobset=str(jobset.get("name") or ""),
        unit=str(jobset.get("uid") or meta["uid"]),
        completed=_indexes(status.get("completedIndexes")),
        failed=_indexes(status.get("failedIndexes")),
        suspended=bool((data.get("spec") or {}).get("suspend")),
        created_at=seconds(meta.get("creationTimestamp")) or 0.0,
        deleted_at=seconds(meta.get("deletionTimestamp")),
        conditions=_conditions(
            status, ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
        ),
        base=str(marks.get(labels.NAME) or ""),
        members=_members(meta),
    )


def _members(meta: Object) -> tuple[str, ...]:
    noted = str((meta.get("annotations") or {}).get(labels.MEMBERS) or "")
    return tuple(noted.split(",")) if noted else ()


def seconds(text: Any) -> float | None:
    """Read a time of the API as seconds since the epoch."""
    return _seconds(text) if isinstance(text, str) else None


@lru_cache(maxsize=1024)  # what begins together says the same time over and over
def _seconds(text: str) -> float | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    return calendar.timegm(tuple(map(int, found.groups()[:6]))) + float(found[7] or 0)


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _indexes(text: Any) -> frozenset[int]:
    """Read ``0,2-4``."""
    found: set[int] = set()
    for part in str(text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _claims(data: Object) -> tuple[str, ...]:
    volumes = (data.get("spec") or {}).get("volumes") or ()
    return tuple(
        str(each["persistentVolumeClaim"]["claimName"])
        for each in volumes
        if each.get("persistentVolumeClaim")
    )


def _conditions(status: Object, wanted: tuple[str, ...]) -> dict[str, Condition]:
    return {
        each["type"]: Condition(
            str(each.get("status") or ""),
            str(each.get("reason") or ""),
            str(each.get("message") or ""),
            seconds(each.get("lastTransitionTime")),
        )
        for each in status.get("conditions") or ()
        if each.get("type") in wanted
    }


def _first_that_speaks(inits: Any, mains: list[Any], main: str) -> Object:
    """Return the init container that holds the pod up, where a pod template has one; else the task's."""
    for each in inits or ():
        state = each.get("state") or {}
        ended = state.get("terminated") or {}
        if (state.get("waiting") or {}).get("reason") not in (None, "PodInitializing") or ended.get(
            "exitCode"
        ):
            return dict(each)
    return next((each for each in mains if each.get("name") == main), mains[0])


def _main(data: Object) -> str:
    """Return the name of the container that is the task: ours, or the first one of a manifest."""
    named = [str(each.get("name")) for each in (data.get("spec") or {}).get("containers") or ()]
    return "main" if "main" in named or not named else named[0]


def _container(data: Object) -> Container:
    state = data.get("state") or {}
    waiting, running = state.get("waiting") or {}, state.get("running") or {}
    return Container(
        id=str(data.get("containerID") or ""),
        waiting=str(waiting.get("reason") or ""),
        message=str(waiting.get("message") or ""),
        running_since=seconds(running.get("startedAt")),
        ended=_ended(state.get("terminated")),
        ended_before=_ended((data.get("lastState") or {}).get("terminated")),
        restarts=_number(data.get("restartCount")),
        image=str(data.get("image") or ""),
        image_id=str(data.get("imageID") or ""),
    )


def _ended(data: Object | None) -> Ended | None:
    if not data:
        return None
    return Ended(
        code=_number(data.get("exitCode")),
        signal=_number(data.get("signal")),
        reason=str(data.get("reason") or ""),
        message=str(data.get("message") or ""),
        started_at=seconds(data.get("startedAt")),
        ended_at=seconds(data.get("finishedAt")),
    )
