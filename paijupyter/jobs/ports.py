"""Ports of the tasks that run on this host."""

from __future__ import annotations

from typing import Any

from paijupyter.errors import Conflict
from paijupyter.jobs.live import LiveJob


def open_ports(job: LiveJob) -> list[dict[str, Any]]:
    """Return ``{task, label, port, path}`` of each port of a running task.

    The second and later ports of a label are called ``<label>.1``, ``<label>.2`` and so on. ``path`` is
    below a Jupyter server's ``base_url``.
    """
    found = []
    for task, labels in job.ports.items():
        if job.life.task(task)["state"] != "running":
            continue
        for label, numbers in labels.items():
            for place, number in enumerate(numbers):
                name = f"{label}.{place}" if place else label
                path = f"paijupyter/v1/jobs/{job.record.id}/ports/{task}/{name}/"
                found.append({"task": task, "label": name, "port": int(number), "path": path})
    return found


def not_open(job: LiveJob) -> Conflict:
    """Return why a job has no open ports here."""
    name = job.record.facts["name"]
    return Conflict(
        "not-running",
        f"Job `{name}` does not run on this host, so it has no open ports.",
        "They can be opened while its tasks run.",
    )
