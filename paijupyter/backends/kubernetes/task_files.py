"""What this host keeps of each role's first task beside its log: its ports, and the container it ran in.

They lie where processes of this host have theirs, so screens and comparisons find them alike.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.kubernetes import building, known_images
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.pod import image_of
from paijupyter.backends.kubernetes.reported import FILES
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.spec import ports_of
from paijupyter.protocol.names import task_key

_log = logging.getLogger(__name__)
SPEC = "spec.json"
CONTAINER = "container.json"
ENVIRONMENT = FILES["environment"]
_SCHEMA = 1


class TaskFiles:
    """Writes the files of one attempt.

    Args:
        job: the job.
        attempt: number of the attempt.
    """

    def __init__(self, job: Job, attempt: int) -> None:
        self._job = job
        self._attempt = attempt
        self._known: dict[str, dict[str, Any]] = {}
        self._began = False

    async def update(self, pods: Mapping[str, Pod]) -> None:
        """Write what is new.

        Args:
            pods: of the attempt, by task key.
        """
        new: dict[str, dict[str, Any]] = {}
        for key in (task_key(role, 0) for role in self._job.roles):
            told = _container(pods.get(key))
            if told and told != self._known.get(key):
                new[key] = told
        if self._began and not new:
            return
        try:
            await asyncio.to_thread(self._write, new)
        except OSError as error:
            _log.warning("what job %s ran in is not recorded: %s", self._job.id, error)
        self._began = True
        self._known.update(new)

    async def remember(self, data: Path, settings: KubeSettings) -> None:
        """Keep, for plans to come, what the images of the attempt have.

        Args:
            data: the data folder of this host.
            settings: of the profile.
        """
        if building.is_wanted(self._job):
            return  # what is known by the name that the document gives is the image that it was built on
        try:
            for role in self._job.roles:
                lock = read_json(self._folder(task_key(role, 0)) / ENVIRONMENT)
                if lock:
                    image = image_of(self._job, role, settings)
                    await asyncio.to_thread(known_images.remember, data, image, lock)
        except OSError as error:
            _log.warning("what the images of job %s have is not recorded: %s", self._job.id, error)

    def _write(self, containers: Mapping[str, Mapping[str, Any]]) -> None:
        if not self._began:
            ports = ports_of(self._job)[1]
            for role in self._job.roles:
                folder = self._folder(task_key(role, 0))
                folder.mkdir(parents=True, exist_ok=True)
                write_json(folder / SPEC, {"schema": _SCHEMA, "role": role, "index": 0, "ports": ports})
        for key, told in containers.items():
            write_json(self._folder(key) / CONTAINER, {"schema": _SCHEMA, **told})

    def _folder(self, key: str) -> Path:
        return self._job.folder / "tasks" / key / str(self._attempt)


def _container(pod: Pod | None) -> dict[str, Any]:
    """Return what is kept of a task's container; {} before it has one."""
    if pod is None or not pod.container.image_id:
        return {}
    found = pod.container
    return {"image": found.image, "digest": found.digest, "node": pod.node, "pod": pod.name}
