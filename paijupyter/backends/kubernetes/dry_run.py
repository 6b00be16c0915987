"""What the API server would say to the objects of a job, as one list.

Quota, limits, pod security, webhooks, schema errors and missing rights, by a server-side dry run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, names, render
from paijupyter.backends.kubernetes.amounts import number
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.create import Object, path_of
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import PaiJupyterError, Problem

_FRESH = 30.0  # seconds for which the answer to the same objects is believed: jobs of a batch differ in names
_TIMEOUT = 20.0
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), "
    r"(?P<counts>requested: (?P<asked>.+), used: .+, limited: (?P<limits>.+))"
)
_WAITS = "They wait until other jobs of the namespace have ended."
_QUERY = {"dryRun": "All", "fieldValidation": "Strict"}


class Rehearsal:
    """Rehearses submissions of one profile."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._answers: dict[str, tuple[float, asyncio.Task[tuple[Problem, ...]]]] = {}

    async def problems(self, job: Job, cluster: Cluster, objects: Sequence[Object]) -> tuple[Problem, ...]:
        """Return what the server has against the objects; what it may not be asked is left out."""
        now = time.monotonic()
        self._answers = {key: each for key, each in self._answers.items() if now - each[0] < _FRESH}
        key = _key(job, objects)
        if key not in self._answers:
            asked = asyncio.create_task(self._ask_all(cluster, objects))
            asked.add_done_callback(lambda done: self._forget_failed(key, done))
            self._answers[key] = (now, asked)
        # Goes on if one of those who wait is cancelled: all of a batch are planned at once, and wait for it.
        return await asyncio.shield(self._answers[key][1])

    def _forget_failed(self, key: str, done: asyncio.Task[tuple[Problem, ...]]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._answers.pop(key, None)

    async def _ask_all(self, cluster: Cluster, objects: Sequence[Object]) -> tuple[Problem, ...]:
        asked = [*objects, *(_pods(objects) if cluster.may("create", "pods") is not False else ())]
        answers = await asyncio.gather(*(self._ask(each) for each in asked))
        return tuple(dict.fromkeys(problem for answer in answers for problem in answer))

    async def _ask(self, thing: Object) -> list[Problem]:
        await self._transport.open()
        path = path_of(thing, self._transport.namespace)
        try:
            got = await self._transport.request("POST", path, query=_QUERY, body=thing, timeout=_TIMEOUT)
        except KubeError as error:
            if error.reason == "AlreadyExists" and _is_written(thing):
                return []  # of the former job, which may be replaced; else the submission says so
            return _problems(thing, error)
        try:
            if thing["kind"] in render.STARTING:
                render.check_kept(thing, got)
        except PaiJupyterError as error:
            return [Problem("error", error.code, error.message, hint=error.hint)]
        return []


def _problems(thing: Object, error: KubeError) -> list[Problem]:
    role = (thing["metadata"].get("annotations") or {}).get(labels.ROLE_NAME)
    path = f"/taskRoles/{role}" if role else ""
    if thing["kind"] == "Pod" and error.status == 403 and _is_rule(error):
        return []  # only this question needs the right
    full = _full_quota(error.message) if thing["kind"] == "Pod" and error.status == 403 else None
    if full:
        counts = full["counts"].rstrip(".")
        words = f"The namespace's quota `{full['name']}` has no room for its tasks now: {counts}."
        return [Problem("warning", "quota-full", words, path, hint=_WAITS)]
    what = "start its tasks" if thing["kind"] == "Pod" else f"create its {thing['kind']}"
    said = error.for_people(what)
    # A server that is away now may be back at the submission; the cluster's answer to the plan says so.
    severity = "warning" if error.is_passing else "error"
    return [Problem(severity, said.code, said.message, path, hint=said.hint)]  # type: ignore[arg-type]


def _full_quota(said: str) -> re.Match[str] | None:
    """Find a quota that has room for a task once others have ended; None where it never has."""
    found = _QUOTA.search(said)
    if found is None:
        return None
    asked, limits = (_amounts(found[part]) for part in ("asked", "limits"))
    never = any(amount > limits.get(resource, amount) for resource, amount in asked.items())
    return None if never else found


def _amounts(text: str) -> dict[str, float]:
    pairs = (each.partition("=") for each in text.split(","))
    return {resource.strip(): number(quantity) for resource, _, quantity in pairs}


def _is_rule(error: KubeError) -> bool:
    """Say whether it is the user that may not ask, and not an admission rule that refuses the pod."""
    return "cannot create resource" in error.message


def _is_written(thing: Object) -> bool:
    return (thing["metadata"].get("labels") or {}).get(labels.KIND) == labels.WRITTEN


def _pods(objects: Sequence[Object]) -> list[Object]:
    """Return a pod of each role: only pods meet quotas, limits and pod security."""
    found: list[Object] = []
    for thing in objects:
        if thing["kind"] == "JobSet":
            found += _pods([each["template"] | {"kind": "Job"} for each in thing["spec"]["replicatedJobs"]])
        elif thing["kind"] == "Job":
            template = thing["spec"]["template"]
            metadata: Mapping[str, Any] = {**template["metadata"], "generateName": "paijupyter-plan-"}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    return found


def _key(job: Job, objects: Sequence[Object]) -> str:
    """Return what is the same for jobs that the cluster answers alike: all but names and the experiment."""
    text = json.dumps([each for each in objects if each["kind"] != "ConfigMap"], sort_keys=True)
    marks = labels.of_job(job)
    for own in (labels.EXPERIMENT, labels.JOB):
        text = text.replace(json.dumps({own: marks.get(own)})[1:-1], "")
    plain = text.replace(names.base(job.name), "NAME").replace(marks[labels.JOB], "ID")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
