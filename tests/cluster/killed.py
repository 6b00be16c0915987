"""Engines that are killed in the middle of a submission, see ``dying_engine.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place

_ENGINE = Path(__file__).with_name("dying_engine.py")
_PLAIN = ("id", "name", "user", "document", "python", "group", "experiment")


@dataclass(frozen=True)
class Ended:
    """How an engine ended.

    Attributes:
        killed: whether it was killed; else it was through before.
        submitted: whether its submission was complete by then: the next engine does not submit again.
        steps: its requests that change something on the cluster, as far as it told of them.
    """

    killed: bool
    submitted: bool
    steps: Sequence[str]


def run(
    place: Place,
    settings: Mapping[str, Any],
    jobs: Sequence[Job],
    step: int,
    when: str,
    *,
    secrets: Mapping[str, str] | None = None,
    follow: bool = False,
) -> Ended:
    """Let an engine submit jobs and be killed at a step. Blocking.

    Args:
        place: the private folders of the backend.
        settings: of the profile.
        jobs: one, or many in one call.
        step: number of the request that changes something on the cluster; 0: at none.
        when: ``before`` or ``after`` that request; ``building``: while an image is built, whatever the step.
        secrets: of the jobs.
        follow: whether the engine follows its job to the end once it is submitted.
    """
    folder = place.data / "dying" / uuid.uuid4().hex
    folder.mkdir(parents=True)
    told = {
        "jobs": [_told(job) for job in jobs],
        "data": str(place.data),
        "runtime": str(place.runtime),
        "settings": dict(settings),
        "secrets": dict(secrets or {}),
        "follow": follow,
    }
    (folder / "told.json").write_text(json.dumps(told))
    done = subprocess.run(
        [sys.executable, str(_ENGINE), str(folder), str(step), when],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode in (0, -9), done.stderr
    steps = (folder / "steps").read_text().splitlines() if (folder / "steps").exists() else []
    return Ended(done.returncode == -9, (folder / "submitted").exists(), steps)


def _told(job: Job) -> dict[str, Any]:
    package = job.package
    assert package is not None
    return {
        **{name: getattr(job, name) for name in _PLAIN},
        "folder": str(job.folder),
        "commands": dict(job.commands),
        "package": {
            "sha256": package.sha256,
            "folder": str(package.folder),
            "blobs": str(package.blobs),
        },
    }
