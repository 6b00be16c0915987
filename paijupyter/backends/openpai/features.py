"""What a server of some version cannot do, said before a job needs it (openpai.md 8.8). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.errors import Problem

EVENTS_SINCE, LOGS_SINCE, PREREQUISITES_SINCE, MAIL_SINCE = (1, 3), (1, 4), (1, 6), (1, 8)
Release = tuple[int, int]


def no_logs(version: str) -> str:
    """Return the sentence that stands in place of a log."""
    return (
        f"No log can be read here: OpenPAI {version} has no call for logs, which came with 1.4. "
        "The portal shows them."
    )


def problems(job: Job, version: str, release: Release) -> Iterator[Problem]:
    """Yield what a job asks for, or its user, and the server has not.

    Args:
        job: the job.
        version: of the server, in its own words.
        release: its major and minor number.
    """
    if release < EVENTS_SINCE:
        yield Problem(
            "hint",
            "no-events",
            f"OpenPAI {version} does not say why a job waits, nor how earlier attempts ended.",
            hint="From 1.3 on it does.",
        )
    if release < LOGS_SINCE:
        yield Problem("warning", "no-logs", no_logs(version), hint="Its administrators can upgrade it.")
    if release < PREREQUISITES_SINCE:
        for name, role in job.roles.items():
            if role.get("prerequisites"):
                yield Problem(
                    "error",
                    "too-old",
                    f"OpenPAI {version} takes no `prerequisites` of a role, which came with 1.6.",
                    f"/taskRoles/{name}/prerequisites",
                    hint="Name image, data, script and output by their own fields.",
                )
    if release < MAIL_SINCE and _wants_mail(job.document.get("extras") or {}):
        yield Problem(
            "warning",
            "no-mail",
            f"OpenPAI {version} sends no mail when a job changes; from 1.8 on it does.",
            "/extras/jobStatusChangeNotification",
        )


def _wants_mail(extras: dict[str, Any]) -> bool:
    found = extras.get("jobStatusChangeNotification")
    return isinstance(found, dict) and any(found.values())
