"""Where things are in a pod of a job: what the manifests mount there, and the tasks are told."""

from __future__ import annotations

import math
from collections.abc import Mapping

from paijupyter.backends.base import Job
from paijupyter.protocol.data import sources_of

ROOT = "/paijupyter"
BOOT_FOLDER = f"{ROOT}/boot"
"""ConfigMap with ``boot.pyz``."""
BOOT = f"{BOOT_FOLDER}/boot.pyz"
SPEC_FOLDER = f"{ROOT}/spec"
"""ConfigMap with ``spec.json``, the same for all tasks of an attempt."""
SPEC = f"{SPEC_FOLDER}/spec.json"
PARCELS = f"{ROOT}/packages"
"""What travels: ``<PARCELS>/<i>``, read-only."""
SECRETS_FOLDER = f"{ROOT}/secrets"
SECRETS = f"{SECRETS_FOLDER}/secrets.json"
BOARD_KEY = f"{SECRETS_FOLDER}/board-key"
RUN = f"{ROOT}/run"
"""An emptyDir, writable for whatever user the image has: everything that a task makes."""
CACHE = f"{ROOT}/cache"
"""A volume that the tasks of all jobs share, where the profile has one: environments with requirements."""
KEPT = f"{ROOT}/kept"
"""A folder of this job on a volume, where the profile has one: checkpoints and outputs outlive its pods."""
CACHE = f"{ROOT}/cache"
"""A volume for environments with requirements, where the profile has one."""
EARLIER = f"{ROOT}/earlier"
"""The same folder of the job with whose checkpoints this one begins, read-only."""
DATA = "data"
"""Folder of :data:`RUN`; what is below it is mounted where a job wants its data, see :func:`data_mounts`."""

TERMINATION_LOG = "/dev/termination-log"
ROLE = "PAIJUPYTER_ROLE"
"""Variable with the role's name as the document has it."""
INDEX = "JOB_COMPLETION_INDEX"
"""Variable with the task's index, set by Kubernetes."""
FETCH_SECONDS = 30
"""How long a task that is being deleted waits for its outputs to be fetched."""


OUTPUTS_LINE = b"[paijupyter] Outputs wait to be fetched: "
"""Begin of the line of the log by which a pod says that it waits for :func:`outputs_command`."""


REPORT = b"\x1epaijupyter "
"""Begin of what a task tells in its log beside its output, until the end of the line; see ``sieve.py``."""


def command(python: str) -> list[str]:
    """Return the command of a pod.

    Args:
        python: a Python from 3.6 on that the image has, as a path or a name on its PATH.
    """
    return [python, "-I", "-S", BOOT, "pod", SPEC]


def outputs_command(python: str, verb: str) -> list[str]:
    """Return what is run in a pod to ``send`` its outputs as a tar archive, and once they are ``taken``."""
    return [python, "-I", "-S", BOOT, "outputs", verb, SPEC]


def stop_seconds(grace: float) -> int:
    """Return ``terminationGracePeriodSeconds``: to end the command, collect outputs, let them be fetched.

    Args:
        grace: seconds between TERM and KILL for the user's command.
    """
    return math.ceil(grace) + FETCH_SECONDS + 10


def data_mounts(job: Job) -> Mapping[str, str]:
    """Return the absolute folders in which a job wants data, each with the folder of RUN to mount there.

    They are mounted as a ``subPath`` of the volume at :data:`RUN`, so that every user can write there.
    """
    return {
        source.path.rstrip("/"): f"{DATA}/{source.name}"
        for source in sources_of(job.document)
        if source.path.startswith("/")
    }
