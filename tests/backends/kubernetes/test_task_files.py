"""What is kept here of a task's pod, where screens and comparisons look for it (O22, O23)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of, role

from paijupyter.backends.kubernetes.facts import Container, Pod, pod_of
from paijupyter.backends.kubernetes.spec import ports_of
from paijupyter.backends.kubernetes.task_files import TaskFiles

pytestmark = pytest.mark.asyncio
DIGEST = "sha256:" + "ab" * 32
IMAGE = "registry.example/team/torch:2"


def pod(key: str, **container: Any) -> Pod:
    name, _, index = key.rpartition("-")
    found = Container("c", image=IMAGE, **container)
    return Pod("u", f"pod-{key}", "1", "id", 0, name, int(index), "Running", "node-1", container=found)


def read(folder: Path, key: str, name: str) -> Any:
    return json.loads((folder / "tasks" / key / "0" / name).read_text())


async def test_ports_and_the_container_of_each_role_s_first_task(tmp_path: Path) -> None:
    asked = role(2)
    asked["resourcePerInstance"] = {**asked["resourcePerInstance"], "ports": {"tb": 1}}
    job = replace(job_of({"ps": role(), "worker": asked}), folder=tmp_path)
    files = TaskFiles(job, 0)
    await files.update({})
    assert read(tmp_path, "worker-0", "spec.json")["ports"] == ports_of(job)[1]
    assert not list(tmp_path.glob("tasks/*/*/container.json"))
    running = {"worker-0": pod("worker-0", image_id=f"{IMAGE}@{DIGEST}"), "ps-0": pod("ps-0")}
    await files.update({**running, "worker-1": pod("worker-1", image_id=DIGEST)})
    told = read(tmp_path, "worker-0", "container.json")
    assert told == {
        "schema": 1,
        "image": IMAGE,
        "digest": DIGEST,
        "node": "node-1",
        "pod": "pod-worker-0",
    }
    assert [path.parts[-3] for path in tmp_path.glob("tasks/*/*/container.json")] == ["worker-0"]


async def test_the_digest_is_what_the_node_has_pulled() -> None:
    status = {"name": "main", "imageID": f"docker-pullable://{IMAGE}@{DIGEST}"}
    found = pod_of({"metadata": {"uid": "u", "name": "p"}, "status": {"containerStatuses": [status]}})
    assert found.container.digest == DIGEST
    assert Container(image_id="unknown").digest == ""
