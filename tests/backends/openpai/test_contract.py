"""The contract of a backend, on a scripted server that runs the posted commands in bash (P30).

What this cannot show: containers, storages that are mounted, and the cluster itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract import BackendContract
from running import Cluster
from staging import document, make_job, role

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend


class TestOpenPai(BackendContract):
    """The suite."""

    kind = "openpai"

    @pytest.fixture(autouse=True)
    def _server(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = cluster
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONTRACT", cluster.server.token())

    def new_backend(self, place: Place) -> Backend:
        """Make one more backend of the same profile."""
        settings = {"url": self.cluster.server.url, "pollSeconds": 0.1, "callsPerMinute": 1_000_000}
        return load_backend(Profile("contract", self.kind, settings), place)

    def lose(self, backend: Backend, job: Job) -> None:
        """Let an administrator delete the job."""
        with self.cluster.server.lock:
            del self.cluster.server.jobs[f"alice~{job.name}"]

    @pytest.fixture
    def job_of(self, place: Place) -> Callable[..., Job]:
        """Makes a job as our own surfaces do: with ``extras.paijupyter``, run by our boot program."""

        def make(what: str | dict[str, Any], files: dict[str, bytes | str] | None = None, **more: Any) -> Job:
            if isinstance(what, str):
                what = {"worker": role(what)}
            source = what if "taskRoles" in what else document(what, **more)
            return make_job(place, {**source, "extras": {"paijupyter": {"version": 1}}}, files)

        return make
