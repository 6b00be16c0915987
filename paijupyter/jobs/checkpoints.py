"""Checkpoints: where a job's attempts keep them, and how another job begins with those of an earlier one.

All tasks and attempts of a job share one folder: what one task saves, every task must find. Of processes of
this host it is ``checkpoints/`` in the job's folder; of tasks elsewhere it lies on a volume of their profile,
and they tell how much is there. A later job begins with a copy, so that neither can spoil the other's.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Profile
from paijupyter.errors import Conflict, PaiJupyterError
from paijupyter.jobs.live import LiveJob

FOLDER = "checkpoints"
TOLD = "checkpoints.json"
"""Beside a task's log: ``{files, bytes}`` of the checkpoints that its job has elsewhere."""
_CLONE = 0x40049409  # FICLONE: share the blocks until one side writes


@dataclass(frozen=True, slots=True)
class Earlier:
    """The job whose checkpoints another one begins with.

    Attributes:
        files: how many files they are.
        size: their bytes.
        profile: the profile on whose volume they lie; "": on this host.
    """

    id: str
    name: str
    files: int
    size: int
    profile: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return what a plan shows of it."""
        return {"id": self.id, "name": self.name, "files": self.files, "bytes": self.size}


def look(job: LiveJob) -> Earlier:
    """Return what there is to begin with. Blocking.

    Raises:
        Conflict: ``nothing-to-resume``, or ``not-final`` while the job may still write there.
    """
    record = job.record
    name = str(record.facts["name"])
    if not job.life.final:
        raise Conflict(
            "not-final",
            f"Job `{name}` is {job.life.state} and may still write its checkpoints.",
            f"Wait for its end, or stop it: stop {name}.",
        )
    sizes = [_size(path) for path in (record.folder / FOLDER).rglob("*") if not path.is_dir()]
    told = {} if sizes else _told(job)
    if told:
        return Earlier(record.id, name, told["files"], told["bytes"], record.profile)
    if not sizes:
        raise Conflict(
            "nothing-to-resume",
            f"Job `{name}` has left no checkpoint.",
            "A job leaves what it writes below $PAI_CHECKPOINT_DIR; on a cluster if the profile keeps it.",
        )
    return Earlier(record.id, name, len(sizes), sum(sizes))


def check_within_reach(earlier: Earlier, profile: Profile) -> None:
    """See that jobs of a profile can begin with the checkpoints of an earlier job.

    Raises:
        Conflict: ``checkpoints-elsewhere``.
    """
    if earlier.profile == ("" if profile.kind == "local" else profile.name):
        return
    where = f"on a volume of profile `{earlier.profile}`" if earlier.profile else "on this host"
    advice = f"with --profile {earlier.profile}" if earlier.profile else "to a profile of this host"
    raise Conflict(
        "checkpoints-elsewhere",
        f"Checkpoints of job `{earlier.name}` lie {where}; tasks of `{profile.name}` do not see them.",
        f"Submit it {advice}.",
    )


def bring(jobs: Path, earlier: str, job: Path) -> None:
    """Copy the checkpoints of an earlier job into the folder of a new one, whole or not at all. Blocking.

    Args:
        jobs: folder of the job folders.
        earlier: id of the earlier job.
        job: folder of the new one; if it has checkpoints already, nothing is done.

    Raises:
        PaiJupyterError: ``checkpoints-not-copied``.
    """
    target, draft = job / FOLDER, job / f".{FOLDER}.part"
    if target.exists():
        return
    try:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(jobs / earlier / FOLDER, draft, symlinks=True, copy_function=_copy)
        draft.rename(target)
    except OSError as error:  # copytree's own Error is one too
        shutil.rmtree(draft, ignore_errors=True)
        why = error.strerror or (error.args[0][0][2] if isinstance(error, shutil.Error) else error)
        raise PaiJupyterError(
            "checkpoints-not-copied",
            f"Checkpoints of job `{earlier}` could not be copied: {why}.",
            "See that it was not deleted, and that there is room on the disk.",
            507,
        ) from error


def _told(job: LiveJob) -> dict[str, int]:
    """Return what the latest attempt that told of its checkpoints said; {} if none did."""
    for attempt in range(job.life.attempt, -1, -1):
        for role in job.record.facts["roles"]:
            path = job.record.task_folder(f"{role['name']}-0", attempt) / TOLD
            try:
                found = json.loads(path.read_bytes())
                told = {"files": int(found["files"]), "bytes": int(found["bytes"])}
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if told["files"] > 0:
                return told
    return {}


def _copy(source: str, target: str) -> str:
    with open(source, "rb") as old, open(target, "wb") as new:
        try:
            fcntl.ioctl(new.fileno(), _CLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new, 1 << 20)
    shutil.copystat(source, target)
    return target


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
