"""Waiting for images that are built (``build: true``): one Job for all jobs that need the same image.

Every job that waits has an annotation of its own on that Job, so the last one that is stopped stops the
build. Its log is the begin of the log of the first task that runs in the image.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import building, explain, refusals
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.capabilities import Asker
from paijupyter.backends.kubernetes.create import MERGE_PATCH, Creator, path_of
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.events import Events
from paijupyter.backends.kubernetes.facts import KubeJob, Pod
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding, short
from paijupyter.backends.kubernetes.hub import Hub
from paijupyter.backends.kubernetes.logs import Follower, Lines
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.tasklog import BUILT, TaskLog
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.waiting import happens
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.names import task_key

Say = Callable[[str], None]
_LOOK = 0.5  # seconds between two looks at what the watches have told
_EVENTS = 5.0  # between two looks at why it does not start
_UNHEARD = 10.0  # for which the watches may not know of a Job that was just made
_PAUSE = 2.0  # before the next try, while the cluster is away
_LAST_LINES = 20.0
_CAUSES = (
    r"^(?:#\d+ )?[\d.]+ .*?\b(?:ERROR|error): (.+)",  # of a tool, with the seconds since it began
    r"\berror: (?:failed to solve: )?((?!child exited|command \[).+)",
    r"^buildkitd: (.+)",
    r"^(?:\[paijupyter\] )?(\S.+)",
)


class Builds:
    """The builds of one profile.

    Args:
        transport: the way to the cluster.
        settings: of the profile.
        hub: hears of Jobs and pods.
        asker: knows the cluster.
        lines: shared by all followers of the profile.
    """

    def __init__(
        self, transport: KubeTransport, settings: KubeSettings, hub: Hub, asker: Asker, lines: Lines
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._hub = hub
        self._asker = asker
        self._lines = lines
        self._creator = Creator(transport)

    async def provide(
        self, job: Job, of: Callable[[], Awaitable[Mapping[str, Build]]], stop: asyncio.Event, say: Say
    ) -> Outcome | None:
        """Wait until the images of a job are in their registry.

        Args:
            job: the job.
            of: returns them by role.
            stop: set once the job is to be stopped: then its part in the builds ends.
            say: told what is waited for.

        Returns:
            Why there is no image, None if all are there, or if the job is to stop.

        Raises:
            PaiJupyterError: what the cluster has against it.
        """
        builds = await self._told(of, say)
        first = {build: role for role, build in reversed(list(builds.items()))}
        found = await asyncio.gather(
            *(self._patiently(job, build, task_key(role, 0), stop, say) for build, role in first.items())
        )
        return next(filter(None, found), None)

    async def _told(self, of: Callable[[], Awaitable[Mapping[str, Build]]], say: Say) -> Mapping[str, Build]:
        while True:
            try:
                return await of()
            except PaiJupyterError as error:
                if error.status < 500:
                    raise
                say(f"{error.message} Trying again.")
            await asyncio.sleep(_PAUSE)

    async def _patiently(
        self, job: Job, build: Build, task: str, stop: asyncio.Event, say: Say
    ) -> Outcome | None:
        while True:
            try:
                if stop.is_set():
                    await self._leave(job, build)
                    return None
                await self._join(job, build)
                wait = _Wait(build, self._transport, self._settings, self._hub)
                outcome = await wait.end(await self._follower(job, task), stop, say)
                if wait.has_ended:
                    await asyncio.to_thread(_begin_task, _folder(job, task), build, outcome is None)
                    return outcome
            except KubeError as error:
                if not error.is_passing:
                    raise error.for_people("build the image") from error
                say(f"{error.for_people('build the image').message} Trying again.")
                await happens(stop, _PAUSE)
                if stop.is_set():
                    await asyncio.sleep(_PAUSE)

    async def _follower(self, job: Job, task: str) -> Follower | None:
        """Return what brings the log of the build home, None if an earlier engine has all of it."""
        folder = _folder(job, task)
        if (await asyncio.to_thread(TaskLog, folder)).container == BUILT:
            return None
        return Follower(self._transport, self._lines, folder, lambda: None)

    async def _join(self, job: Job, build: Build) -> None:
        """See that the Job is there, and note on it that the job waits for it.

        One that failed before this job came is made anew: what it failed of may have been mended.
        """
        mark = _mark(job)
        thing = building.object_of(build, self._settings, await self._asker.cluster(), mark)
        while True:
            found = await self._creator.find(thing)
            if found is None:
                found = await self._creator.create(thing)
            if mark in (found["metadata"].get("annotations") or {}):
                return
            conditions = (found.get("status") or {}).get("conditions") or ()
            if found["metadata"].get("deletionTimestamp"):
                await asyncio.sleep(_LOOK)
            elif any(each["type"] == "Failed" and each["status"] == "True" for each in conditions):
                await self._delete(found)
            else:
                try:
                    await self._creator.annotate(found, {mark: "1"})
                except KubeError as error:
                    if error.status != 404:
                        raise
                else:
                    return

    async def _leave(self, job: Job, build: Build) -> None:
        """Note that a job no longer waits; the last one takes the Job away, if it has not ended."""
        thing = building.object_of(build, self._settings, await self._asker.cluster())
        path = path_of(thing, self._transport.namespace, build.name)
        body = {"metadata": {"annotations": {_mark(job): None}}}
        await self._transport.open()
        try:
            left = await self._transport.request(
                "PATCH", path, body=body, content_type=MERGE_PATCH, timeout=30
            )
            status = left.get("status") or {}
            if status.get("active") or not status.get("conditions"):
                marks = left["metadata"].get("annotations") or {}
                if not any(each.startswith(building.WAITS) for each in marks):
                    await self._delete(left)
        except KubeError as error:
            if error.status != 404:
                raise

    async def _delete(self, found: Mapping[str, Any]) -> None:
        """Delete a Job, unless somebody has joined it since it was read."""
        meta = found["metadata"]
        path = path_of({"apiVersion": "batch/v1", "kind": "Job"}, self._transport.namespace, meta["name"])
        seen = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {"propagationPolicy": "Background", "preconditions": seen}
        try:
            await self._transport.request("DELETE", path, body=body, timeout=30)
        except KubeError as error:
            if error.status not in (404, 409):
                raise


class _Wait:
    """One job's wait for one image."""

    def __init__(self, build: Build, transport: KubeTransport, settings: KubeSettings, hub: Hub) -> None:
        self.has_ended = False
        self._build = build
        self._transport = transport
        self._settings = settings
        self._hub = hub
        self._told = Events(transport)
        self._events: Sequence[Event] = ()
        self._events_at = 0.0
        self._since = time.time()

    async def end(self, follower: Follower | None, stop: asyncio.Event, say: Say) -> Outcome | None:
        """Return once the Job has ended (then ``has_ended``), or is not there, or the job is to stop."""
        heard_at, said = time.monotonic(), ""
        try:
            while not stop.is_set() and time.monotonic() - heard_at < _UNHEARD:
                job = max(self._hub.jobs_of(self._build.name), key=lambda each: each.created_at, default=None)
                if job is not None and job.deleted_at is None:
                    heard_at = time.monotonic()
                    pod = self._pod(job)
                    if pod is not None and follower is not None:
                        follower.see(pod)
                    ended = {kind: one for kind, one in job.conditions.items() if one.is_true}
                    if "Complete" in ended or "Failed" in ended:
                        if follower is not None:
                            await follower.finish(_LAST_LINES)
                        self.has_ended = True
                        return None if "Complete" in ended else self._failure(job, pod)
                    words = await self._words(job, pod)
                    if words != said:
                        say(words)
                    said = words
                await happens(stop, _LOOK)
            return None
        finally:
            if follower is not None:
                await follower.close()

    def _pod(self, job: KubeJob) -> Pod | None:
        """Return its pod; one of a Job of the same name before it is older."""
        pods = [each for each in self._hub.pods_of(self._build.name) if each.created_at >= job.created_at]
        return max(pods, key=lambda each: each.created_at, default=None)

    async def _words(self, job: KubeJob, pod: Pod | None) -> str:
        image = f"the image `{self._build.image}`"
        if pod is not None and pod.container.running_since is not None:
            at = datetime.fromtimestamp(pod.container.running_since, timezone.utc).strftime("%H:%M:%S UTC")
            return f"Waiting for {image}: it is being built since {at}; the log of the first task shows how."
        finding = await self._finding(job, pod)
        if not finding.message:
            return f"Waiting for {image} to be built."
        words = f"Waiting for {image} to be built: {finding.message}. {finding.advice}".strip()
        if finding.for_ever and time.time() - self._since > self._settings.stuck_after:
            at = datetime.fromtimestamp(self._since, timezone.utc).strftime("%H:%M:%S UTC")
            words = f"Stuck since {at}: {words} It does not end by itself: correct it, or stop the job."
        return words

    async def _finding(self, job: KubeJob, pod: Pod | None) -> Finding:
        if time.monotonic() - self._events_at > _EVENTS:
            self._events_at = time.monotonic()
            uid = pod.uid if pod is not None else job.uid
            try:
                self._events = (await self._told.of([uid]))[uid]
            except KubeError:
                self._events = ()  # reasons are shorter without them
        if pod is None:
            return refusals.of_job(job, self._events)
        store = self._settings.build
        return explain.of_pod(pod, self._events, Asked(image=store.builder if store else ""))

    def _failure(self, job: KubeJob, pod: Pod | None) -> Outcome:
        said = f"The image `{self._build.image}` could not be built"
        ended = pod.ended if pod is not None else None
        if ended is not None and ended.reason == "OOMKilled":
            said += ": the build used more memory than it may (`buildImage.memoryMB` of the profile)"
        elif ended is not None and ended.message:
            said += f": {cause(ended.message)}"
        elif pod is not None and pod.message:
            said += f": {short(pod.message)}"
        else:
            failed = job.conditions.get("Failed")
            said += f": {short(failed.message)}" if failed is not None and failed.message else ""
        return Outcome("failed", "start", f"{said.rstrip('.')}. The log of the first task shows the build.")


def cause(log: str) -> str:
    """Return the line of a build's log that says why it failed: a tool's last error, else BuildKit's own."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for pattern in _CAUSES:
        for line in reversed(lines):
            found = re.search(pattern, line)
            if found and not line.startswith("[paijupyter] The image is not built"):
                return short(found[1])
    return "it does not say why"


def _mark(job: Job) -> str:
    return f"{building.WAITS}{hashlib.sha256(job.id.encode()).hexdigest()[:16]}"


def _folder(job: Job, task: str) -> Path:
    return job.folder / "tasks" / task / "0"


def _begin_task(folder: Path, build: Build, is_there: bool) -> None:
    """Let the task's own log follow that of the build. Blocking."""
    copy = TaskLog(folder)
    if is_there and copy.container != BUILT:
        copy.complete = False
        copy.note(f"The task begins, in the image {build.image}.")
        copy.begin_container(BUILT)
    copy.close()
