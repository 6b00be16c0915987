"""The service: plan, submit, record, logs, secrets, diagnosis. It knows the seam, not a backend."""

from __future__ import annotations

from paijupyter.jobs.events import EventBus
from paijupyter.jobs.service import JobService

__all__ = ["EventBus", "JobService"]
