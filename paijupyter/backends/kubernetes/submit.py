"""Submitting a job: its objects in order, once however often it is asked, all of them or none."""

from __future__ import annotations

import asyncio
import logging
import secrets as randomness
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from paijupyter.backends import fetched
from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import (
    building,
    bundle,
    ending,
    gang,
    image_requirements,
    labels,
    names,
    owner_record,
    registries,
    render,
    volumes,
    written,
)
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.create import Creator, Object, owned
from paijupyter.backends.kubernetes.delivery import boot_file, ladder
from paijupyter.backends.kubernetes.delivery.parcels import Parcel
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.journal import Journal, Member
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.spec import task_spec
from paijupyter.backends.kubernetes.sweep import sweep
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import NotFound, PaiJupyterError

_log = logging.getLogger(__name__)
_KEY_BYTES = 32
_SWEEP_EVERY = 600.0  # seconds
_GONE_SECONDS, _LOOK_SECONDS = 60.0, 0.2  # for which a deleted Job is waited for, between two looks


class Submitter:
    """Creates jobs and their further attempts.

    Args:
        transport: the way to the cluster.
        settings: of the profile.
        cluster: returns what is known of the cluster.
        boot: returns the zipapp that the tasks run. Blocking.
        data: the data folder of this host.
    """

    def __init__(
        self,
        transport: KubeTransport,
        settings: KubeSettings,
        cluster: Callable[[], Awaitable[Cluster]],
        boot: Callable[[], Path],
        data: Path,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._boot = boot
        self._data = data
        self._transport = transport
        self._creator = Creator(transport)
        self._underway: dict[str, asyncio.Task[None]] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._swept = -_SWEEP_EVERY

    async def create(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Create a job with its first attempt; asked twice, it is created once.

        A job whose images are to be built gets its first attempt later, by :meth:`start_attempt`.

        Goes on if the caller is cancelled: a job is there as a whole or not at all.

        Raises:
            PaiJupyterError: what the cluster has against it; nothing is left of it then.
        """
        task = self._underway.get(job.id)
        if task is None:
            task = self._underway[job.id] = asyncio.create_task(self._create(job, secrets))
            task.add_done_callback(lambda _: self._underway.pop(job.id, None))
        await asyncio.shield(task)

    async def create_bundle(self, jobs: Sequence[Job], secrets: Mapping[str, str]) -> None:
        """Create the first attempts of jobs as one Indexed Job; all of them or none.

        Raises:
            PaiJupyterError: what the cluster has against it; nothing is left of it then.
        """
        made: list[Object] = []
        try:
            frame = await self._frame(bundle.as_one(jobs), await self._parcels(jobs[0]))
            wanted = render.owner(frame, await asyncio.to_thread(bundle.record, frame, jobs))
            made.append(wanted)
            owner = await self._creator.create(wanted)
            await self._share_and_own(frame, secrets, {}, owner, made)
            await self._make_all(bundle.attempt(frame, jobs), owner, made)
            await self._note_submitted(owner)
        except BaseException as error:
            await asyncio.shield(self._creator.take_back(made))
            raise _explained(error, "create the jobs") from error

    async def start_attempt(self, job: Job, journal: Journal) -> None:
        """Create the objects of a further attempt of a job that is there; asked twice, once.

        Args:
            job: the job.
            journal: with the number of the attempt.

        Raises:
            NotFound: the job is no longer there.
            PaiJupyterError: what the cluster has against it; nothing is left of the attempt then.
        """
        made: list[Object] = []
        try:
            owner = await self._creator.find(_bare_owner(job))
            if owner is None and journal.member is not None:
                owner = await self._out_of_bundle(job, journal.member, made)
            if owner is None:
                raise NotFound("Job", job.name, "Its owner ConfigMap is gone from the cluster.")
            frame = await self._frame(job, await self._parcels_again(job, owner))
            frame = replace(frame, builds=owner_record.builds(owner))
            if journal.member is not None:
                frame = replace(frame, secret=journal.member.name)
            await self._share_boot(frame, owner)
            await self._attempt(frame, journal.attempt, owner, made)
        except BaseException as error:
            await asyncio.shield(self._creator.take_back(made))
            raise _explained(error, "start the next attempt") from error

    async def builds(self, job: Job) -> Mapping[str, Build]:
        """Return the images that are built for a job, by role.

        Raises:
            NotFound: the job is no longer there.
            PaiJupyterError: the cluster does not say.
        """
        try:
            owner = await self._creator.find(_bare_owner(job))
        except KubeError as error:
            raise error.for_people("say what is built") from error
        if owner is None:
            raise NotFound("Job", job.name, "Its owner ConfigMap is gone from the cluster.")
        return owner_record.builds(owner)

    async def remove(self, job: Job) -> None:
        """Delete everything of a job; idempotent.

        Raises:
            PaiJupyterError: the cluster did not.
        """
        try:
            await self._creator.remove(_bare_owner(job))
            if written.manifest_of(job):
                await self._until_gone(job)
        except KubeError as error:
            raise error.for_people("delete the job") from error
        self._sweep_now_and_then()

    async def _until_gone(self, job: Job) -> None:
        """Wait for the end of a Job whose name is the user's: the next one of that name may follow (T5)."""
        thing, mine = written.bare(job), labels.of_job(job)[labels.JOB]
        found = await self._creator.find(thing)
        if found is not None and (found["metadata"].get("labels") or {}).get(labels.JOB) == mine:
            await self._creator.remove(thing)
        end = time.monotonic() + _GONE_SECONDS
        while time.monotonic() < end:
            if not await ending.objects_left(self._transport, mine, 0):
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise KubeError(0, "Timeout", f"Job {written.name_of(job)} is still being deleted")

    async def close(self) -> None:
        """Wait until submissions that are under way have been decided."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await asyncio.gather(*self._underway.values(), return_exceptions=True)

    def _sweep_now_and_then(self) -> None:
        if time.monotonic() - self._swept >= _SWEEP_EVERY:
            self._swept = time.monotonic()
            self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        try:
            gone = await sweep(self._transport)
        except (KubeError, PaiJupyterError) as error:
            _log.warning("nothing is swept: %s", error)
        else:
            _log.info("swept: %s", ", ".join(gone) or "nothing")

    async def _create(self, job: Job, secrets: Mapping[str, str]) -> None:
        made: list[Object] = []
        try:
            logins = registries.logins(job, secrets)
            builds = await asyncio.to_thread(self._builds, job)
            frame = replace(await self._frame(job, await self._parcels(job)), builds=builds)
            owner = await self._own(frame, made)
            if labels.SUBMITTED in (owner["metadata"].get("annotations") or {}):
                return
            await self._share_and_own(frame, secrets, logins, owner, made)
            if not builds:
                await self._attempt(frame, 0, owner, made)
            await self._note_submitted(owner)
        except BaseException as error:
            await asyncio.shield(self._creator.take_back(made))
            raise _explained(error, "create the job") from error

    async def _share_and_own(
        self,
        frame: Frame,
        secrets: Mapping[str, str],
        logins: Mapping[str, Any],
        owner: Object,
        made: list[Object],
    ) -> None:
        """See that what jobs share is there, and create what lasts as long as the job."""
        shared = [dict(o) for each in frame.parcels for o in each.shared]
        if frame.boot:
            shared.append(render.boot_object(frame.boot, await asyncio.to_thread(self._boot_bytes)))
        own = render.own(frame, secrets, randomness.token_hex(_KEY_BYTES), logins)
        await _all(
            *(self._creator.share(each) for each in shared),
            *(self._make(each, owner, made) for each in own),
        )

    async def _note_submitted(self, owner: Object) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        await self._creator.annotate(owner, {labels.SUBMITTED: now})
        self._sweep_now_and_then()

    async def _out_of_bundle(self, job: Job, member: Member, made: list[Object]) -> Object | None:
        """Create the owner and the Service of a job that was one of a bundle until now.

        The bundle's Secret stays until the last of its jobs has ended, and serves this one too.
        """
        bundled = await self._creator.find({**_bare_owner(job), "metadata": {"name": member.name}})
        if bundled is None:
            return None
        parcels = owner_record.parcels(bundled, member.index)
        frame = replace(await self._frame(job, parcels), secret=member.name)
        owner = await self._own(frame, made)
        await self._share_and_own(frame, {}, {}, owner, made)
        await self._note_submitted(owner)
        return owner

    async def _own(self, frame: Frame, made: list[Object]) -> Object:
        """Create the owner. One of an earlier, interrupted submission is brought up to date and goes on."""
        wanted = render.owner(frame, owner_record.record(frame))
        made.append(wanted)
        owner = await self._creator.create(wanted)
        annotations = owner["metadata"].get("annotations") or {}
        if labels.SUBMITTED in annotations:
            made.clear()
        elif annotations.get(labels.NEEDS) != wanted["metadata"]["annotations"][labels.NEEDS]:
            await self._creator.annotate(owner, wanted["metadata"]["annotations"], data=wanted["data"])
        return owner

    async def _attempt(self, frame: Frame, number: int, owner: Object, made: list[Object]) -> None:
        job, settings = frame.job, self._settings
        spec = task_spec(
            job,
            number,
            settings.told(),
            hosts=names.hosts(job, number, jobset=frame.gang.jobset),
            parcels=[each.told for each in frame.parcels],
            storages=volumes.storages_told(job, settings),
            kept=bool(settings.keep_claim),
        )
        await self._make_all(render.attempt(frame, number, spec), owner, made)

    async def _make_all(self, objects: Sequence[Object], owner: Object, made: list[Object]) -> None:
        starting = [each for each in objects if each["kind"] in render.STARTING]
        await _all(*(self._make(each, owner, made) for each in objects if each not in starting))
        # Pods wait long for a ConfigMap that comes after them, so what starts them comes last.
        created = await _all(*(self._make(each, owner, made) for each in starting))
        for asked, got in zip(starting, created, strict=True):
            render.check_kept(asked, got)

    async def _make(self, thing: Object, owner: Object, made: list[Object]) -> Object:
        made.append(thing)  # before the answer: it may get lost
        return await self._creator.create(owned(thing, owner))

    async def _frame(self, job: Job, parcels: Sequence[Parcel]) -> Frame:
        cluster, plain = await self._cluster(), written.manifest_of(job) is not None
        return Frame(
            job=job,
            settings=self._settings,
            cluster=cluster,
            gang=gang.choose(job, self._settings, cluster),
            boot="" if plain else render.boot_name(await asyncio.to_thread(self._boot_bytes)),
            parcels=parcels,
            pull_secret=f"{names.base(job.name)}-registry" if registries.has_logins(job) else "",
        )

    async def _parcels(self, job: Job) -> list[Parcel]:
        """Send the packages of a job to where its pods find them; a manifest's code lies in its image."""
        if written.manifest_of(job):
            return []
        legs = await asyncio.to_thread(self._legs, job, self._settings)
        return await ladder.send(legs, self._settings, self._data / "staging")

    async def _share_boot(self, frame: Frame, owner: Object) -> None:
        """See that the boot file is there: a newer engine than the job's first has another one."""
        needs = (owner["metadata"].get("annotations") or {}).get(labels.NEEDS, "").split()
        if frame.boot not in needs:
            await self._creator.annotate(owner, {labels.NEEDS: " ".join([*needs, frame.boot])})
        boot = await asyncio.to_thread(self._boot_bytes)
        await self._creator.share(render.boot_object(frame.boot, boot))

    async def _parcels_again(self, job: Job, owner: Object) -> list[Parcel]:
        """Return the parcels of a job that was created before; addresses that expire are made anew."""
        found = owner_record.parcels(owner)
        if any(each.way == "object" for each in found):
            legs = await asyncio.to_thread(self._legs, job, replace(self._settings, ways=("object",)))
            fresh = await ladder.send(legs, self._settings, self._data / "staging")
            found = [new if old.way == "object" else old for old, new in zip(found, fresh, strict=True)]
        return found

    def _builds(self, job: Job) -> dict[str, Build]:
        """Return the images that are to be built for a job, by role. Blocking."""
        if not building.is_wanted(job):
            return {}
        text = image_requirements.text_of(job, image_requirements.file_of(job), self._data)
        return building.builds_of(job, self._settings, text or "")

    def _legs(self, job: Job, settings: KubeSettings) -> list[ladder.Leg]:
        return ladder.choose(fetched.packed(job, self._data), settings)

    def _boot_bytes(self) -> bytes:
        return boot_file.packed(self._boot())


def _bare_owner(job: Job) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.base(job.name)}}


async def _all(*steps: Awaitable[Any]) -> list[Any]:
    """Take steps at once and wait for all of them, also when one fails: only then can they be taken back."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _explained(error: BaseException, doing: str) -> BaseException:
    return error.for_people(doing) if isinstance(error, KubeError) else error
