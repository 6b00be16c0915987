"""The service on the real local backend: real processes, real packages, real secrets."""

from __future__ import annotations

import sys

import pytest

from paijupyter.package import LocalStore, snapshot
from tests.resting import holders

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
CANARY = "c4n4ry-of-the-real-thing"
DOCUMENT = """\
protocolVersion: 2
name: real
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: "python:3.11-slim"}
secrets: {TOKEN: ""}
parameters: {lr: 0.5}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands:
      - python train.py <% $parameters.lr %>
extras:
  paijupyter: {version: 1, install: never}
"""
TRAIN = """\
import json, os, sys, time
print("token is", os.environ["TOKEN"], flush=True)
with open(os.environ["PAI_METRICS_FILE"], "a") as file:
    file.write(json.dumps({"loss": float(sys.argv[1])}) + "\\n")
with open(os.path.join(os.environ["PAI_OUTPUT_DIR"], "model.txt"), "w") as file:
    file.write("weights")
if os.path.exists("wait") or os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] != "0":
    time.sleep(600)  # else the peer may fail, and end this task, before it has told anything
import does_not_exist
"""


def request(tmp_path, service, **files):
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    for name, content in files.items():
        (folder / name).write_text(content)
    store: LocalStore = service.packages
    return {
        "document": DOCUMENT,
        "package": snapshot(folder, store).sha256,
        "secrets": {"TOKEN": {"value": CANARY}},
        "context": {"user": "ann", "python": sys.executable, "folder": str(folder)},
    }


async def final(service, ref, kit):
    return await kit.eventually(
        lambda: (view := service.get(ref))["state"] in ("succeeded", "failed", "stopped") and view, 90
    )


async def test_a_failure_is_explained_with_metrics_outputs_and_masked_logs(folders, tmp_path, kit):
    from paijupyter.jobs import JobService

    service = JobService(*folders)
    await service.start()
    plan = await service.plan(request(tmp_path, service))
    assert plan["ok"], plan["problems"]
    view, created = await service.submit(request(tmp_path, service))
    frames = [frame async for frame in service.merged_log(view["id"], follow=True)]
    ended = await final(service, view["id"], kit)
    await service.close()
    assert created and ended["state"] == "failed", ended
    assert "could not import `does_not_exist`" in ended["message"], ended
    assert "requirements.txt" in ended["advice"]
    assert ended["metrics"]["last"] == {"loss": 0.5}
    assert "worker-0/model.txt" in [each["path"] for each in ended["outputs"]]
    text = "".join(frame["text"] for frame in frames)
    assert "token is" in text and CANARY not in text
    assert not holders(CANARY, *folders)


async def test_a_running_job_outlives_the_service_and_is_stopped_by_the_next(folders, tmp_path, kit):
    from paijupyter.jobs import JobService

    first = JobService(*folders)
    await first.start()
    view, _ = await first.submit(request(tmp_path, first, wait=""))
    await kit.eventually(lambda: first.get(view["id"])["state"] == "running", 90)
    await kit.eventually(lambda: first.log_size(view["id"], "worker-0"), 30)
    await first.close()
    second = JobService(*folders)
    await second.start()
    assert second.get("real")["state"] == "running" and second.unfinished() == 1
    stopped = await second.stop("real")
    assert (stopped["state"], stopped["message"]) == ("stopped", "Stopped by user.")
    assert {task["state"] for task in second.tasks("real")["tasks"]} == {"stopped"}
    assert second.log_size("real", "worker-0") > 0
    await second.delete("real")
    assert second.list()["jobs"] == []
    await second.close()
