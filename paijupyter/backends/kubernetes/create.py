"""Creating objects so that asking twice does no harm, and taking back what was created."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from paijupyter.backends.kubernetes import labels, paths
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import Conflict

Object = dict[str, Any]
_log = logging.getLogger(__name__)
_PLURALS = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "Job": "jobs",
    "JobSet": "jobsets",
    "PodGroup": "podgroups",
    "Pod": "pods",
}
MERGE_PATCH = "application/merge-patch+json"
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between tries when the server is away or busy
_FRESH = 300.0  # seconds for which a shared object that was seen counts as there
_TIMEOUT = 30.0


def path_of(thing: Mapping[str, Any], namespace: str, name: str = "") -> str:
    """Return the path of an object's collection, or of one object in it."""
    return paths.api(thing["apiVersion"], _PLURALS[thing["kind"]], name, namespace=namespace)


class Creator:
    """Creates the objects of one profile's jobs."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._seen: dict[str, float] = {}

    async def create(self, thing: Object) -> Object:
        """Create an object and return it as it is there; one of the same job that is there already will do.

        A server that is away or busy is asked again for some seconds: an answer that got lost shows as a
        conflict with an object of ours.

        Raises:
            KubeError: the server said no.
            Conflict: ``name-taken`` by an object that is not of this job.
        """
        await self._transport.open()
        path = path_of(thing, self._transport.namespace)
        for pause in (*_PAUSES, None):
            try:
                return cast("Object", await self._send("POST", path, body=thing))
            except KubeError as error:
                if error.status == 409 and error.reason == "AlreadyExists":
                    found = await self._existing(thing)
                    if found is not None:
                        return found
                elif not error.is_passing or pause is None:
                    raise
                # Many engines may come back to a server at the same moment.
                await asyncio.sleep((pause or 0) * random.uniform(0.5, 1.0))  # noqa: S311
        raise KubeError(409, "AlreadyExists", f"{thing['kind']} {thing['metadata']['name']} comes and goes")

    async def share(self, thing: Object) -> None:
        """See that an object of many jobs is there, and note on it that it is used now.

        Raises:
            KubeError: the server said no.
        """
        name = thing["metadata"]["name"]
        if time.monotonic() - self._seen.get(name, -_FRESH) < _FRESH:
            return
        used = {labels.USED_AT: str(int(time.time()))}
        metadata = {**thing["metadata"], "annotations": used}
        await self._transport.open()
        one = path_of(thing, self._transport.namespace, name)
        for _ in range(3):
            try:
                # Usually it is there, and then nothing large travels.
                await self._send("PATCH", one, body={"metadata": {"annotations": used}}, kind=MERGE_PATCH)
                break
            except KubeError as error:
                if error.status != 404:
                    raise
            with contextlib.suppress(Conflict):  # another engine was faster
                await self.create({**thing, "metadata": metadata})
                break
        self._seen[name] = time.monotonic()

    async def annotate(self, thing: Mapping[str, Any], annotations: Mapping[str, str], **more: Any) -> None:
        """Set annotations of an object, and other fields of its top by ``more``."""
        path = path_of(thing, self._transport.namespace, thing["metadata"]["name"])
        body = {"metadata": {"annotations": dict(annotations)}, **more}
        await self._send("PATCH", path, body=body, kind=MERGE_PATCH)

    async def remove(self, thing: Mapping[str, Any]) -> None:
        """Delete an object and what it owns; one that is gone is no failure."""
        await self._transport.open()
        path = path_of(thing, self._transport.namespace, thing["metadata"]["name"])
        try:
            await self._send("DELETE", path, body={"propagationPolicy": "Background"})
        except KubeError as error:
            if error.status != 404:
                raise

    async def take_back(self, things: Sequence[Object]) -> None:
        """Delete what a submission has made, the last first; what cannot be deleted is left to the sweep."""
        for thing in reversed(things):
            try:
                await self.remove(thing)
            except KubeError as error:
                _log.warning("%s %s stays: %s", thing["kind"], thing["metadata"]["name"], error)

    async def find(self, thing: Mapping[str, Any]) -> Object | None:
        """Return an object as it is there, or None."""
        await self._transport.open()
        path = path_of(thing, self._transport.namespace, thing["metadata"]["name"])
        try:
            return cast("Object", await self._send("GET", path))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    async def _existing(self, thing: Object) -> Object | None:
        if thing["kind"] == "Secret":
            # Nobody gives us the right to read one. Its name is the job's, and its owner was looked at.
            return thing
        found = await self.find(thing)
        if found is None:
            return None
        if found["metadata"].get("deletionTimestamp"):
            return None
        mine, theirs = (_labels(each) for each in (thing, found))
        if mine.get(labels.JOB) != theirs.get(labels.JOB) or labels.MANAGED_BY not in theirs:
            raise _name_taken(thing)
        return found

    async def _send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        return await self._transport.request(method, path, body=body, content_type=kind, timeout=_TIMEOUT)


def _name_taken(thing: Object) -> Conflict:
    what = f"{thing['kind']} `{thing['metadata']['name']}`"
    if _labels(thing).get(labels.KIND) == labels.WRITTEN:
        return Conflict(
            "name-taken",
            f"{what} is in the namespace already, and the manifest names it.",
            "Delete it, or let --replace stop and delete the former job first.",
        )
    return Conflict(
        "name-taken",
        f"{what} of another job is in the namespace already.",
        "Submit again: the job gets another name.",
    )


def owned(thing: Object, owner: Mapping[str, Any]) -> Object:
    """Return an object that goes when its owner goes."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**thing, "metadata": {**thing["metadata"], "ownerReferences": [reference]}}


def _labels(thing: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = thing["metadata"].get("labels") or {}
    return found
