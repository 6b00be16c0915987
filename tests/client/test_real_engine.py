"""The real engine, service and local backend behind the client: jobs that really run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client.client import JobsClient
from paijupyter.package import snapshot
from tests.documents import document
from tests.resting import holders

STEPS = "for i in $(seq 1 {count}); do echo step $i; sleep 0.02; done; echo done > $PAI_OUTPUT_DIR/result.txt"


def submit(client: JobsClient, command: str, **more: Any) -> dict[str, Any]:
    text = document(command, instances=2)
    return client.submit({"document": text, "context": {"python": sys.executable}, **more})


def kill(client: JobsClient) -> None:
    os.kill(client.version()["engine"]["pid"], signal.SIGKILL)


def test_kill_9_while_a_real_log_is_followed(tmp_path):
    """O30, P28: tasks run on without the engine; the log has every line once, in order, for each task."""
    client = JobsClient.connect()
    job = submit(client, STEPS.format(count=60))
    lines: dict[str, str] = {"worker-0": "", "worker-1": ""}
    killed = 0
    for chunk in client.logs(job["id"], follow=True):
        lines[chunk.task] += chunk.text
        if killed < 2 and len(lines["worker-0"]) > 100 * (killed + 1):
            kill(client)
            killed += 1
    expected = "".join(f"step {number}\n" for number in range(1, 61))
    assert lines == {"worker-0": expected, "worker-1": expected}
    assert killed == 2
    assert client.wait(job["id"], timeout=60)["state"] == "succeeded"
    found = client.pull(job["id"], tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == [
        "worker-0/result.txt",
        "worker-1/result.txt",
    ]


def test_a_hand_over_is_not_noticed_by_a_running_task(until):
    client = JobsClient.connect()
    job = submit(client, STEPS.format(count=40))
    stream = client.logs(job["id"], "worker-1", follow=True)
    text = next(stream).text
    old = client.version()["engine"]["pid"]
    client.ask("POST", "/v1/engine/handover", body={})
    assert client.version()["engine"]["pid"] != old
    text += "".join(chunk.text for chunk in stream)
    assert text == "".join(f"step {number}\n" for number in range(1, 41))
    view = client.wait(job["id"], timeout=60)
    assert (view["state"], view["attempt"]) == ("succeeded", 0)


def test_a_package_of_a_folder_runs(tmp_path):
    (tmp_path / "train.py").write_text("print('trained')\n")
    client = JobsClient.connect()
    package = snapshot(tmp_path, client.store).sha256
    job = submit(client, "python train.py", package=package)
    assert client.wait(job["id"], timeout=60)["state"] == "succeeded"
    text = "".join(chunk.text for chunk in client.logs(job["id"], "worker-0"))
    assert text == "trained\n"
    described = client.ask("POST", "/v1/packages", body={"folder": str(tmp_path)})
    assert (described["sha256"], described["files"]) == (package, 1)


def test_stopping_a_real_job_returns_when_it_is_gone():
    client = JobsClient.connect()
    job = submit(client, "echo begun; sleep 300")
    assert next(client.logs(job["id"], follow=True)).text == "begun\n"
    assert client.stop(job["id"])["state"] == "stopped"
    assert next(client.logs(job["id"], "worker-0")).text.startswith("begun\n")
    client.delete(job["id"])
    assert client.list()["jobs"] == []


@pytest.mark.parametrize("secret", ["canary-0815"])
def test_no_secret_rests_in_log_answers_or_environment_of_the_engine(secret, isolated_home: Path):
    """Decision 8: the canary is nowhere but in the one 0600 file while the job runs, and then nowhere."""
    client = JobsClient.connect()
    text = document("echo <% $secrets.TOKEN %> | wc -c", instances=2) + "secrets: {TOKEN: ''}\n"
    request = {
        "document": text,
        "secrets": {"TOKEN": {"value": secret}},
        "context": {"python": sys.executable},
    }
    answers = [client.plan({**request, "secrets": {"TOKEN": {"reference": "ask"}}})]
    job = client.submit(request)
    answers += [job, client.wait(job["id"], timeout=60), client.list(), client.tasks(job["id"])]
    assert secret not in str(answers)
    assert not holders(secret, isolated_home)
