"""Jobs of the scripted server: what a test makes of them, and how the API shows it.

Keys and combinations of states are those of the original server (1.8), by recorded exchanges. A job never
moves by itself: a test says `job.run()`, `job.fail(3)`, and so on.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from tests.openpai.logs import LogFiles

# Jobs of several servers and test processes run beside each other on one machine, and some really listen.
_PORTS = itertools.count(os.getpid() * 1709)

NODE = "node-1"
FINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
STOPPED_JOB, STOPPED_TASK, NOT_CREATABLE = -210, -220, -1100
Json = dict[str, Any]


@dataclass
class Run:
    """One attempt of one task: a pod."""

    pod: str | None
    created: int
    ports: dict[str, str]
    node: str = ""
    state: str = "WAITING"
    launched: int | None = None
    completed: int | None = None
    code: int | None = None
    said: Json = field(default_factory=dict)
    logs: LogFiles = field(default_factory=LogFiles)

    def end(self, state: str, code: int, at: int, said: Json | None = None) -> None:
        """Let it end; what has ended stays so."""
        if self.state not in FINAL:
            self.state, self.code, self.completed, self.said = state, code, at, said or {}
            self.launched = self.launched or at


@dataclass
class Task:
    """A task of one attempt of the job, with its own attempts."""

    role: str
    index: int
    uid: str
    runs: list[Run]

    @property
    def run(self) -> Run:
        """The latest attempt."""
        return self.runs[-1]


@dataclass
class Attempt:
    """One attempt of the job."""

    number: int
    app: str
    created: int
    tasks: list[Task]
    launched: int | None = None
    completed: int | None = None
    code: int | None = None
    state: str = "WAITING"
    trigger: tuple[str, str, int] | None = None  # message, role, index
    said: Json = field(default_factory=dict)


class ScriptedJob:
    """A job that was submitted, and its life as a test tells it.

    Args:
        user: its owner.
        posted: the text of its job document.
        data: the values of that text.
        stored: the values as the server keeps them, secrets masked.
        clock: returns milliseconds since the epoch.
    """

    def __init__(self, user: str, posted: str, data: Json, stored: Json, clock: Callable[[], int]) -> None:
        self.user, self.posted, self.data, self.stored = user, posted, data, stored
        self.name = str(data["name"])
        self.submitted = clock()
        self.state, self.sub_state, self.execution = "WAITING", "AttemptCreationPending", "START"
        self.retries = {"user": 0, "platform": 0, "resource": 0}
        self.retry_delay: int | None = None
        self.launched: int | None = None
        self.completed: int | None = None
        self.tags: list[str] = []
        self.attempts: list[Attempt] = []
        self.events: list[Json] = []
        self.unreadable = ""  # why its detail answers 500
        self.refusal = ""  # what Kubernetes has against it
        self.broken = ""  # why its tasks fail before the user's command
        self._clock = clock

    @property
    def framework(self) -> str:
        """``user~name``."""
        return f"{self.user}~{self.name}"

    @property
    def debug_id(self) -> str:
        """The name of its object in Kubernetes."""
        return hashlib.md5(self.framework.encode(), usedforsecurity=False).hexdigest()

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    # -- its life ----------------------------------------------------------------------------------------

    def prepare(self, scheduled: bool = True) -> ScriptedJob:
        """Let its tasks exist, with or without a node: WAITING / AttemptPreparing.

        What the server has accepted and Kubernetes refuses ends here, as it does there.
        """
        if self.refusal:
            return self.refuse(self.refusal)
        if not self.attempts or self.sub_state == "AttemptCompleted":
            self._new_attempt()
        self.state, self.sub_state, self.retry_delay = "WAITING", "AttemptPreparing", None
        if scheduled:
            for task in self.tasks():
                task.run.node = NODE
        return self

    def run(self, *keys: str) -> ScriptedJob:
        """Let all tasks run, or those named ``role-index``."""
        if self.state != "WAITING" or not self.attempts:
            self.prepare()
        if self.broken and not self.final:
            said = {"diagnostics": f"Pod failed: PodPattern unmatched: {self.broken}"}
            for task in self.tasks():
                task.run.end("FAILED", 1, self._clock(), said)
            return self._complete("FAILED", 1, self.tasks()[-1], said)
        if self.final:
            return self
        now = self._clock()
        for task in self.tasks():
            if (not keys or f"{task.role}-{task.index}" in keys) and task.run.state not in FINAL:
                task.run.node, task.run.state = NODE, "RUNNING"
                task.run.launched = task.run.launched or now
        attempt = self.attempts[-1]
        attempt.state, attempt.launched = "RUNNING", attempt.launched or now
        self.launched = self.launched or now
        self.state, self.sub_state = "RUNNING", "AttemptRunning"
        return self

    def finish(self, role: str, index: int, code: int = 0, **said: Any) -> ScriptedJob:
        """Let one task end; the job goes on."""
        self.task(role, index).run.end("FAILED" if code else "SUCCEEDED", code, self._clock(), said)
        return self

    def succeed(self, by: tuple[str, int] | None = None) -> ScriptedJob:
        """Let every task that still runs, and the job, succeed; `by`: the task that decides it."""
        now = self._begun()
        for task in self.tasks():
            task.run.end("SUCCEEDED", 0, now)
        return self._complete("SUCCEEDED", 0, self.task(*by) if by else self.tasks()[-1])

    def fail(self, code: int = 255, role: str | None = None, index: int = 0, **said: Any) -> ScriptedJob:
        """Let a task fail and the job with it; its peers are stopped.

        Args:
            code: OpenPAI's exit code.
            role: role of the task; None: the first one.
            index: its index.
            said: `origin` (exit status of the command), `user` (last lines), `matched`.
        """
        now = self._begun()
        task = self.task(role or self.tasks()[0].role, index)
        task.run.end("FAILED", code, now, said)
        for other in self.tasks():
            other.run.end("STOPPED", STOPPED_TASK, now)
        return self._complete("FAILED", code, task, said)

    def reject(self, message: str) -> ScriptedJob:
        """Let Kubernetes refuse the pods: FAILED -200, the tasks without a container."""
        self._begun()
        for task in self.tasks():
            task.run.pod, task.run.ports, task.run.node = None, {}, ""
        return self.fail(-200, diagnostics=message)

    def refuse(self, message: str) -> ScriptedJob:
        """Let Kubernetes refuse it: FAILED -1100, without attempt or tasks."""
        self.state, self.sub_state, self.completed = "FAILED", "Completed", self._clock()
        self.attempts.clear()
        at = datetime.fromtimestamp(self.completed / 1000, timezone.utc).isoformat(timespec="milliseconds")
        at = at.replace("+00:00", "Z")
        self.event("CreateFrameworkPermanentFailed", message, "Warning", None, at=at, count=1)
        return self

    def retry(self, kind: str = "user", code: int = 255, **said: Any) -> ScriptedJob:
        """Let this attempt fail and the next one wait."""
        task = self.tasks()[0]
        if self.sub_state != "AttemptCompleted":
            self._try_over(code, task, said)
        self.retries[kind] += 1
        self.sub_state = "AttemptCompleted"
        return self.prepare(scheduled=False)

    def delay_retry(self, seconds: int = 454, code: int = 251) -> ScriptedJob:
        """Let this attempt fail and the next one be announced: RUNNING / AttemptCompleted."""
        self._begun()
        self._try_over(code, self.tasks()[0], {})
        self.state, self.sub_state, self.retry_delay = "RUNNING", "AttemptCompleted", seconds
        return self

    def retry_task(self, role: str, index: int, code: int = 255, **said: Any) -> ScriptedJob:
        """Let a task fail and be tried again, the job going on (gangAllocation false)."""
        task = self.task(role, index)
        task.run.end("FAILED", code, self._clock(), said)
        task.runs.append(self._new_run(role))
        return self

    def stopping(self) -> ScriptedJob:
        """Show that it is being stopped."""
        self.execution = "STOP"
        self.state, self.sub_state = "STOPPING", "AttemptDeleting"
        for task in self.tasks():
            if task.run.state not in FINAL:
                task.run.state, task.run.code = "STOPPING", STOPPED_TASK
        self.attempts[-1].state, self.attempts[-1].code = "STOPPING", STOPPED_JOB
        return self

    def stopped(self) -> ScriptedJob:
        """Let it end as stopped."""
        self.execution = "STOP"
        now = self._clock()
        if not self.attempts:
            self._new_attempt()
        for task in self.tasks():
            task.run.end("STOPPED", STOPPED_TASK, now)
        return self._complete("STOPPED", STOPPED_JOB, None)

    def event(
        self,
        reason: str,
        message: str,
        kind: str = "Normal",
        role: str | None = "",
        index: int = 0,
        at: str | None = None,
        count: int | None = None,
    ) -> ScriptedJob:
        """Add an event of Kubernetes.

        Args:
            reason: for example FailedScheduling.
            message: its sentence.
            kind: Normal or Warning.
            role: role of its task; "": the first one; None: none.
            index: index of its task.
            at: time as the API writes it; None as scheduler events have it.
            count: how often it came.
        """
        shown = self._first_role() if role == "" else role
        task = next((each for each in self.tasks() if (each.role, each.index) == (shown, index)), None)
        self.events.append({
            "uid": str(uuid.uuid4()),
            "frameworkName": self.debug_id,
            "podUid": task.run.pod if task else None,
            "taskroleName": shown,
            "taskName": f"{self.debug_id}-{shown}-{index}" if shown else None,
            "taskIndex": index if shown else None,
            "type": kind,
            "reason": reason,
            "message": message,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": count,
            "sourceComponent": "kubelet" if at and shown else None,
            "sourceHost": NODE if at and shown else None,
        })  # fmt: skip
        return self

    def log(self, role: str, index: int, text: bytes | str, name: str = "all") -> ScriptedJob:
        """Let a task say something more; `all` has stdout too."""
        self.task(role, index).run.logs.add(text.encode() if isinstance(text, str) else text, name)
        return self

    def rotate(self, role: str, index: int) -> ScriptedJob:
        """Rotate a task's logs: what was there is now the older file, and what that was is gone."""
        self.task(role, index).run.logs.rotate()
        return self

    def task(self, role: str, index: int, attempt: int | None = None) -> Task:
        """Return a task of an attempt, of the latest if none is named."""
        for task in self.tasks(attempt):
            if (task.role, task.index) == (role, index):
                return task
        raise KeyError(f"{role}-{index}")

    def tasks(self, attempt: int | None = None) -> list[Task]:
        """Return the tasks of an attempt, of the latest if none is named."""
        if not self.attempts:
            return []
        return self.attempts[-1 if attempt is None else attempt].tasks

    def _try_over(self, code: int, task: Task, said: Json) -> None:
        """Let an attempt fail that another one will follow: the job goes on."""
        launched = self.launched
        self.fail(code, task.role, task.index, **said)
        self.launched, self.completed = launched, None

    def _first_role(self) -> str:
        return converted(next(iter(self.data["taskRoles"])))

    def _begun(self) -> int:
        if not self.attempts:
            self.prepare()
        return self._clock()

    def _complete(self, state: str, code: int, by: Task | None, said: Json | None = None) -> ScriptedJob:
        now = self._clock()
        attempt = self.attempts[-1]
        attempt.state, attempt.code, attempt.completed = state, code, now
        attempt.launched = attempt.launched or now
        attempt.said = said or {}
        if by is not None:
            word = "Failed" if code else "Succeeded"
            ended = [task.run.code for task in self.tasks() if task.role == by.role]
            count = sum(each == code for each in ended) if word == "Succeeded" else 1
            message = f"{word}TaskCount {count} has reached Min{word}TaskCount {count} in the TaskRole"
            attempt.trigger = (message, by.role, by.index)
        self.state, self.sub_state, self.completed = state, "Completed", now
        self.launched = self.launched or now
        return self

    def _new_attempt(self) -> None:
        number, now = len(self.attempts), self._clock()
        tasks = [
            Task(converted(role), index, str(uuid.uuid4()), [self._new_run(converted(role))])
            for role, settings in self.data["taskRoles"].items()
            for index in range(settings["instances"])
        ]
        self.attempts.append(Attempt(number, f"{number}_{uuid.uuid4()}", now, tasks))

    def _new_run(self, role: str) -> Run:
        settings = next(each for name, each in self.data["taskRoles"].items() if converted(name) == role)
        asked = settings["resourcePerInstance"].get("ports") or {}
        labels = {**asked, **{label: 1 for label in ("ssh", "http") if label not in asked}}
        ports = {label: ",".join(str(_free_port()) for _ in range(count)) for label, count in labels.items()}
        return Run(str(uuid.uuid4()), self._clock(), ports)

    # -- as the API shows it -----------------------------------------------------------------------------

    @property
    def virtual_cluster(self) -> str:
        """Where it runs."""
        named = (self.data.get("defaults") or {}).get("virtualCluster")
        return "default" if named is None else str(named)

    @property
    def code(self) -> int | None:
        """Its exit code so far: of the latest attempt."""
        if not self.attempts:
            return NOT_CREATABLE if self.final else None
        return self.attempts[-1].code


def converted(role: str) -> str:
    """Return a role's name as OpenPAI shows it and names its objects."""
    return "".join(letter for letter in role if letter.isalnum()).lower()


def _free_port() -> int:
    """Return a port that nobody listens on, another one each time: below those that the system hands out."""
    while True:
        number = 15000 + next(_PORTS) % 17000
        with socket.socket() as probe:
            try:
                probe.bind(("", number))
            except OSError:
                continue
            return number
