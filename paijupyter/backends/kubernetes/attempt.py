"""One attempt of a job as its pods, Jobs and their events tell it: each task's status, and the whole. Pure.

Pods say more than Jobs: a Job counts, and what it counts as active need not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from paijupyter.backends.base import FINAL, Job, State, TaskStatus
from paijupyter.backends.kubernetes import explain, records, refusals, written
from paijupyter.backends.kubernetes.facts import KubeJob, Pod
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding
from paijupyter.backends.kubernetes.names import label_value
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.told import has_barrier, tasks_of
from paijupyter.protocol.completion import policies
from paijupyter.protocol.deciding import Counts, decide

_NAMED = 3  # tasks named in a sentence before "and n more"
_GANG_PATIENCE = 10.0  # seconds for which some may have a place and others none: they come one by one
_DELETION_PATIENCE = 30.0  # seconds past the time by which a pod was to be gone


@dataclass(frozen=True, slots=True)
class Position:
    """Where the whole job stands."""

    state: State
    reason: str = ""
    message: str = ""


class Attempt:
    """What is known of an attempt. It asks nobody: it is told.

    Args:
        job: the job.
        number: of the attempt.
        asked: what a task of each role asks for.
        stuck_after: seconds after which what does not end by itself is called stuck.

    Attributes:
        pods: by task key, the pod that counts.
        jobs: by role, the Job that makes its pods.
        events: by uid of a pod or Job, as far as they were fetched.
        claims: the events of volume claims by their name.
        queue: by uid of what a queue admits, why it does not.
        ending: whether the job was decided or told to stop.
        statuses: by task key, as of the last look.
    """

    def __init__(self, job: Job, number: int, asked: Mapping[str, Asked], stuck_after: float) -> None:
        self.job = job
        self.number = number
        self.pods: dict[str, Pod] = {}
        self.jobs: dict[str, KubeJob] = {}
        self.events: dict[str, Sequence[Event]] = {}
        self.claims: dict[str, Sequence[Event]] = {}
        self.queue: dict[str, str] = {}
        self.ending = False
        self.statuses = {
            task.key: TaskStatus(task.role, task.index, number, "waiting", "submitting")
            for task in tasks_of(job)
        }
        self._asked = asked
        self._stuck_after = stuck_after
        self._tasks = {task.key: task for task in tasks_of(job)}
        self._is_written = written.manifest_of(job) is not None
        self._roles = {label_value(role): role for role in job.roles}
        self._findings: dict[str, Finding] = {}
        self._events_by_kind: dict[tuple[str, str], Sequence[Event]] = {}
        self._now = 0.0

    # What it is told

    def know(self, asked: Mapping[str, Asked]) -> None:
        """Learn what a task of each role asks for."""
        self._asked = asked

    def see_pod(self, pod: Pod, gone: bool) -> str | None:
        """Hear of a pod; return the key of its task, None if it is not the pod that counts."""
        role = self._roles.get(pod.role)
        key = f"{role}-{pod.index}"
        if pod.attempt != self.number or key not in self._tasks:
            return None
        known = self.pods.get(key)
        if known is not None and known.uid != pod.uid and known.created_at > pod.created_at:
            return None
        self.pods[key] = replace(pod, gone=True) if gone else pod
        return key

    def see_job(self, job: KubeJob, gone: bool) -> str | None:
        """Hear of a Job; return its role, None if it is not of this attempt or nothing of it is new."""
        role = self._roles.get(job.role)
        if job.attempt != self.number or role is None:
            return None
        known = self.jobs.get(role)
        if gone and known is not None and known.uid != job.uid:
            return None
        self.jobs[role] = replace(job, gone=True) if gone else job
        return None if known is not None and not gone and job.is_told_by(known) else role

    def has_no_more_tries(self, key: str) -> bool:
        """Say whether no other pod of a task will follow in this attempt."""
        return not self._is_written or self.statuses[key].state in FINAL

    # What comes of it

    def look(self, now: float) -> list[TaskStatus]:
        """Bring all statuses up to date; return those that changed."""
        self._now = now
        if self.is_suspended:
            # A queue took its place away, and with it its pods: it begins again once it is admitted.
            self.pods = {key: pod for key, pod in self.pods.items() if not self._suspended(pod)}
        changed = []
        past = self._is_past_barrier()
        self._events_by_kind = {
            (pod.role, pod.container.waiting): told
            for pod in self.pods.values()
            if (told := self.events.get(pod.uid))
        }
        for key, task in self._tasks.items():
            before = self.statuses[key]
            if before.state in FINAL:
                continue
            status = self._status(key, task.role, task.index, past, now)
            if status != before:
                self.statuses[key] = status
                changed.append(status)
        return changed

    def position(self, *, stopping: bool, has_run: bool) -> Position:
        """Return where the whole job stands.

        Args:
            stopping: whether somebody asked to stop it.
            has_run: whether it was said to run.
        """
        if self.is_suspended and not stopping:
            return self._waiting()
        if self._is_past_barrier() or has_run:
            if not self.ending:
                return self._running()
            return Position("running", "stopping" if stopping else "finishing", self._ending())
        if stopping:
            return Position("waiting", "starting", self._ending())
        return self._waiting()

    def outcome(self) -> Outcome | None:
        """Ask the completion policy after each end, in order: the first that decides is the cause."""
        counted = policies(self.job.document)
        states: Counter[tuple[str, str]] = Counter()
        ended = [each for each in self.statuses.values() if each.state in FINAL]
        for each in sorted(ended, key=lambda status: status.ended_at or float("inf")):
            if each.state == "stopped":
                continue
            states[each.role, each.state] += 1
            counts = {role: Counts(states[role, "succeeded"], states[role, "failed"]) for role in counted}
            verdict = decide(counted, counts)
            if verdict is not None and verdict.state == "failed":
                return Outcome("failed", each.reason or "user", each.message, each.key)
            if verdict is not None:
                return Outcome("succeeded", "", verdict.message)
        return None

    @property
    def is_suspended(self) -> bool:
        """Whether a queue holds it back."""
        return not self.ending and any(job.suspended and not job.gone for job in self.jobs.values())

    @property
    def is_over(self) -> bool:
        """Whether every task has ended."""
        return all(each.state in FINAL for each in self.statuses.values())

    @property
    def is_lost(self) -> bool:
        """Whether its Jobs were there and are gone, though nobody here removed them."""
        return bool(self.jobs) and all(job.gone for job in self.jobs.values()) and not self.ending

    @property
    def live_pods(self) -> list[Pod]:
        """The pods that have not ended."""
        return [pod for pod in self.pods.values() if not pod.has_ended]

    @property
    def unexplained(self) -> list[str]:
        """The uids of pods and Jobs that wait, one of each kind, for a look at their events."""
        found: dict[tuple[str, str, str], str] = {}
        for key, status in self.statuses.items():
            if status.state != "waiting":
                continue
            pod, job = self.pods.get(key), self.jobs.get(status.role)
            if pod is not None and not pod.has_ended:
                found.setdefault((status.role, "Pod", pod.container.waiting), pod.uid)
            elif pod is None and job is not None and not job.gone:
                found.setdefault((status.role, "Job", ""), job.uid)
        return list(found.values())

    @property
    def unbound(self) -> list[str]:
        """The names of the volume claims that pods may wait for."""
        waiting = [pod for pod in self.live_pods if explain.may_wait_for_volume(pod)]
        return sorted({claim for pod in waiting for claim in pod.claims})

    # One task

    def _status(self, key: str, role: str, index: int, past: bool, now: float) -> TaskStatus:
        pod, job = self.pods.get(key), self.jobs.get(role)
        base = TaskStatus(role, index, self.number, "waiting", "submitting")
        if pod is None:
            return self._without_pod(base, job, now)
        ended = records.final_status(pod, role, ending=self.ending)
        if ended is not None:
            self._findings.pop(key, None)
            if ended.state == "failed" and self._is_tried_again(job, index):
                message = f"{ended.message}; the cluster tries again as often as the manifest says."
                return replace(base, reason="retry-delay", message=message)
            return _unless_deadline(ended, job)
        started = pod.container.running_since
        if pod.deleted_at is not None and now > pod.deleted_at + _DELETION_PATIENCE:
            finding = explain.stuck_deletion(pod)
            state: State = "running" if past else "waiting"
            return replace(base, state=state, reason="stopping", message=_words(finding), started_at=started)
        if started is not None:
            self._findings.pop(key, None)
            if past:
                message = self._silence(pod, now)
                return replace(base, state="running", reason="", message=message, started_at=started)
            return replace(base, reason="starting", started_at=started)
        events = list(self.events.get(pod.uid) or self._events_alike(pod))
        events += (event for claim in pod.claims for event in self.claims.get(claim, ()))
        finding = explain.of_pod(pod, events, self._asked.get(role, Asked()))
        return self._waiting_task(base, finding, pod.waits_since, now)

    def _is_tried_again(self, job: KubeJob | None, index: int) -> bool:
        """Say whether a failed pod is not yet the end of its task: of a manifest, the Job says when it is."""
        if not self._is_written or self.ending or job is None or job.gone:
            return False
        ends = [job.conditions.get(kind) for kind in ("FailureTarget", "Failed")]
        return index not in job.failed and not any(each is not None and each.is_true for each in ends)

    def _without_pod(self, base: TaskStatus, job: KubeJob | None, now: float) -> TaskStatus:
        if job is None:
            return base
        failed = job.conditions.get("Failed")
        if base.index in job.completed:
            return replace(base, state="succeeded", reason="")
        if self.ending and job.gone:
            return replace(base, state="stopped", reason="")
        if base.index in job.failed or (failed is not None and failed.is_true):
            if failed is not None and failed.reason == "DeadlineExceeded":
                return _past_deadline(base, failed.at)
            said = failed.message if failed else "no more is known"
            message = f"{base.key} failed, and its pod is gone: {said}"
            ended_at = failed.at if failed else None
            return replace(base, state="failed", reason="lost", message=message, ended_at=ended_at)
        finding = refusals.of_job(job, self.events.get(job.uid, ()), self.queue.get(job.unit, ""))
        return self._waiting_task(base, finding, job.created_at, now)

    def _waiting_task(self, base: TaskStatus, finding: Finding, since: float, now: float) -> TaskStatus:
        self._findings[base.key] = finding
        message = _words(finding)
        if finding.for_ever and now - since > self._stuck_after:
            message = self._stuck(since, f"{message} It does not end by itself: correct it, or stop")
        return replace(base, reason=finding.reason, message=message)

    def _silence(self, pod: Pod, now: float) -> str:
        """Say that a pod runs on a node of which nothing is heard; "" as long as something is."""
        finding = explain.silent_node(pod)
        if finding is None:
            return ""
        since = pod.conditions["Ready"].at or now
        if now - since > self._stuck_after:
            return self._stuck(since, f"{_words(finding)} Or stop")
        return _words(finding)

    def _stuck(self, since: float, words: str) -> str:
        at = datetime.fromtimestamp(since, timezone.utc).strftime("%H:%M:%S UTC")
        return f"Stuck since {at}: {words} the job (stop {self.job.name})."

    def _suspended(self, pod: Pod) -> bool:
        job = self.jobs.get(self._roles[pod.role])
        return job is not None and job.suspended

    def _events_alike(self, pod: Pod) -> Sequence[Event]:
        """Return the events of another pod of the role that waits for the same: one is asked for all."""
        return self._events_by_kind.get((pod.role, pod.container.waiting), ())

    # The whole

    def _is_past_barrier(self) -> bool:
        begun = [pod.container.running_since is not None or pod.has_ended for pod in self.pods.values()]
        if has_barrier(self.job) and not self._is_written:
            return len(begun) == len(self._tasks) and all(begun)
        return any(begun)

    def _running(self) -> Position:
        waiting = [key for key, each in self.statuses.items() if each.state == "waiting"]
        if not waiting:
            silent = next(
                (each for each in self.statuses.values() if each.state == "running" and each.message), None
            )
            return Position("running", "", _of_task(silent.key, silent.message) if silent else "")
        key = max(waiting, key=self._weight)
        finding = self._findings.get(key)
        if finding is not None and finding.for_ever:
            return Position("running", "", f"{key}: {self.statuses[key].message}")
        return Position("running", "", f"{_named(waiting)} not running yet.")

    def _ending(self) -> str:
        live = [
            key for key, status in self.statuses.items() if status.state not in FINAL and key in self.pods
        ]
        stuck = [self.statuses[key].message for key in live if self.statuses[key].reason == "stopping"]
        if stuck:
            return stuck[0]
        return f"Waiting for {_named(live)} to end." if live else ""

    def _waiting(self) -> Position:
        waiting = {
            key: each
            for key, each in self.statuses.items()
            if each.state == "waiting" and self._pod_runs(key) is None
        }
        if not waiting:
            return Position("waiting", "starting")
        key = max(waiting, key=lambda each: self._weight(each))
        status, finding = waiting[key], self._findings.get(key)
        placed = [each for each in self.pods.values() if each.node and not each.has_ended]
        unplaced = [each for each in waiting if each not in self.pods or not self.pods[each].node]
        since = max((each.waits_since for each in placed), default=self._now)
        if unplaced and finding is not None and self._now - since > _GANG_PATIENCE:
            gang = explain.partial_gang(
                len(placed), len(self._tasks), self._gpus(placed), _named(unplaced), finding
            )
            waited = self._waiting_task(status, gang, since, self._now)
            return Position("waiting", waited.reason, waited.message)
        if not status.message:
            return Position("waiting", status.reason, self._missing(waiting))
        others = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        return Position("waiting", status.reason, _of_task(f"{key}{others}", status.message))

    def _weight(self, key: str) -> tuple[bool, bool, bool]:
        finding = self._findings.get(key)
        if finding is None:
            return (False, False, False)
        return (finding.for_ever, finding.reason not in ("starting", "submitting"), bool(finding.message))

    def _pod_runs(self, key: str) -> float | None:
        pod = self.pods.get(key)
        return pod.container.running_since if pod else None

    def _gpus(self, pods: Sequence[Pod]) -> int:
        roles = [self._roles[pod.role] for pod in pods]
        asked = (self.job.roles[role].get("resourcePerInstance") or {} for role in roles)
        return sum(int(each.get("gpu") or 0) for each in asked)

    def _missing(self, waiting: Mapping[str, TaskStatus]) -> str:
        there = len(self._tasks) - len(waiting)
        if not there:
            return ""
        return f"{there} of {len(self._tasks)} tasks have started, waiting for {_named(list(waiting))}."


def _unless_deadline(ended: TaskStatus, job: KubeJob | None) -> TaskStatus:
    """Say what took a pod away: its own end does not know that it was the Job's deadline."""
    conditions = [job.conditions.get(kind) for kind in ("FailureTarget", "Failed")] if job else []
    passed = any(each is not None and each.reason == "DeadlineExceeded" for each in conditions)
    return _past_deadline(ended, ended.ended_at) if passed and ended.reason == "lost" else ended


def _past_deadline(status: TaskStatus, at: float | None) -> TaskStatus:
    message = f"{status.key} reached its deadline (activeDeadlineSeconds)"
    return replace(status, state="failed", reason="deadline", message=message, ended_at=at)


def _words(finding: Finding) -> str:
    if not finding.message:
        return ""
    advice = f" {finding.advice}" if finding.advice else ""
    return f"{finding.message}.{advice}"


def _of_task(key: str, message: str) -> str:
    """Say of which task a message is; what is stuck says so first."""
    return message if message.startswith("Stuck") else f"{key}: {message}"


def _named(keys: Sequence[str]) -> str:
    if len(keys) <= _NAMED:
        return " and ".join(filter(None, [", ".join(keys[:-1]), *keys[-1:]]))
    return f"{', '.join(keys[:_NAMED])} and {len(keys) - _NAMED} more"
