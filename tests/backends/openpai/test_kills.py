"""P13: an engine killed with -9 between each pair of steps of a submission loses nothing and submits once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, settings
from running import Cluster
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Job, Place

ENGINE = Path(__file__).with_name("dying_engine.py")
SECRETS = {"KEY": "s3cret & value"}
_MOST_STEPS = 30


def _killed_engine(place: Place, job: Job, setting: dict[str, Any], step: int) -> bool:
    """Let an engine submit and be killed after a step; say whether it was."""
    package = job.package
    assert package is not None
    plain = ("id", "name", "user", "document", "python", "group", "experiment")
    told = {
        "job": {
            **{name: getattr(job, name) for name in plain},
            "folder": str(job.folder),
            "commands": dict(job.commands),
            "package": {name: str(getattr(package, name)) for name in ("sha256", "folder", "blobs")},
        },
        "data": str(place.data),
        "runtime": str(place.runtime),
        "settings": setting,
        "secrets": SECRETS,
    }
    file = place.data / "told.json"
    file.write_text(json.dumps(told))
    words = [sys.executable, str(ENGINE), str(file), str(step)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


@pytest.mark.asyncio
async def test_an_engine_killed_at_any_step_of_a_submission_loses_nothing(
    cluster: Cluster, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next engine submits again; the server has the job exactly once, and it runs to its end."""
    server = cluster.server
    server.storages = {"team": {}}
    server.accounts.users["alice"].storages = ["team"]
    team = tmp_path / "team"
    team.mkdir()
    more = {
        "storage": "team",
        "storages": {"team": {"path": str(team), "mount": str(team)}},
        "packageWays": ["storage"],
    }
    steps = 0
    async with backend_on(server, place, monkeypatch, **more) as backend, watching(backend) as watch:
        for step in range(1, _MOST_STEPS):
            found = document(
                {"worker": role('cat data.txt; test "$KEY" = "s3cret & value"')}, secrets={"KEY": ""}
            )
            job = make_job(place, found, {"data.txt": f"came along at {step}\n"})
            setting = settings(server, **more)
            if not await asyncio.to_thread(_killed_engine, place, job, setting, step):
                break
            steps = step
            await backend.submit(job, SECRETS)
            final = await watch.final(job)
            assert final.state == "succeeded", (step, final.message, await log_of(backend, job, "worker-0"))
            assert await log_of(backend, job, "worker-0") == f"came along at {step}\n".encode(), step
            with server.lock:
                mine = [each for each in server.jobs.values() if each.name.startswith(job.name)]
            assert len(mine) == 1, step
    assert steps >= 4, "record, package, submission, record"
    assert len(server.jobs) == steps + 1
