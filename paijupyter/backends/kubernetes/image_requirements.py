"""What a plan says of requirements that are not installed but checked: whether the image has them (P16)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import known_images
from paijupyter.backends.kubernetes.known_images import KnownImage
from paijupyter.backends.kubernetes.pod import image_of
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.package import LocalStore

_ADVICE = "Use an image that has them, or --install if-missing."
_NAMED = 5  # requirements


def notes(job: Job, settings: KubeSettings, name: str, data: Path | None) -> Iterator[Problem]:
    """Yield one note for each image of a job. Blocking.

    Args:
        job: the job; its package has the file.
        settings: of the profile.
        name: of the file with the requirements.
        data: the data folder of this host; None: nothing is known of images.
    """
    text = text_of(job, name, data)
    for image in dict.fromkeys(image_of(job, role, settings) for role in job.roles):
        known = known_images.known(data, image) if data is not None else None
        missing = known_images.lacking(text, known.packages) if known is not None and text is not None else []
        words = _words(known, missing)
        said = f"Requirements of `{name}` are checked in image `{image}`, and not installed; {words}."
        severity: Literal["warning", "hint"] = "warning" if missing else "hint"
        yield Problem(severity, "requirements-checked", said, file=name, hint=_ADVICE)


def _words(known: KnownImage | None, missing: Sequence[str]) -> str:
    if known is None:
        return "what it has is known once a job has run in it"
    day = time.strftime("%Y-%m-%d", time.gmtime(known.at))
    if not missing:
        return f"on {day} it had all that can be told by name"
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return f"on {day} it had no {', '.join(f'`{each}`' for each in missing[:_NAMED])}{more}"


def file_of(job: Job) -> str:
    """Return the name of the requirements file of a job, whether it is there or not."""
    return str(job.extras.get("requirements") or "requirements.txt")


def text_of(job: Job, name: str, data: Path | None) -> str | None:
    """Return the text of a file of a job's package, None if there is none. Blocking."""
    if job.package is None or data is None:
        return None
    try:
        return LocalStore(data).content(job.package.sha256, name).decode("utf-8", "replace")
    except PaiJupyterError:
        return None
