"""What comes home from a pod beside its log and outputs (O22, O23): as from a process here."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

_BACKENDS = Path(__file__).resolve().parents[1] / "backends"
if str(_BACKENDS) not in sys.path:
    sys.path.insert(0, str(_BACKENDS))
pytest.register_assert_rewrite("staging")

from staging import document, make_job, role, watching  # noqa: E402 - only importable now
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Job, Place, Profile  # noqa: E402
from paijupyter.backends.kubernetes.backend import KubernetesBackend  # noqa: E402
from tests.cluster.profile import shared as shared  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
LONG = 180.0
WORK = """\
printf 'half '
echo '{"loss": 2}' >> "$PAI_METRICS_FILE"
python3 -c "
import os, time
block, end = bytearray(40 << 20), time.time() + 8
while time.time() < end: pass
"
echo '{"loss": 1}' >> "$PAI_METRICS_FILE"
echo 'a line'
until [ -e /tmp/go ]; do sleep 0.2; done
"""


def job_of(place: Place, image: Callable[[str], str], command: str, **more: Any) -> Job:
    small = {"cpu": 0.1, "memoryMB": 256, "gpu": 0}
    source = document({"worker": role(command, resourcePerInstance=small)}, **more)
    source["prerequisites"][0]["uri"] = image("python")
    return make_job(place, source)


@pytest.mark.asyncio
async def test_metrics_use_and_environment(
    cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place
) -> None:
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}
    backend = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    job = job_of(place, image, WORK)
    folder = job.folder / "tasks" / "worker-0" / "0"
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.state == "running", LONG)
        end = asyncio.get_running_loop().time() + LONG
        used: Any = None
        while used is None or used.memory_mb < 40 or not (folder / "metrics.jsonl").exists():
            assert asyncio.get_running_loop().time() < end, used
            await asyncio.sleep(0.2)
            used = (await backend.usage(job)).get("worker-0") or used
        assert used.cpu > 0.01
        async for _ in backend.exec(job, "worker", 0, ["touch", "/tmp/go"], b""):
            pass
        assert (await watch.final(job, LONG)).state == "succeeded"
    await backend.close()
    assert (folder / "metrics.jsonl").read_text() == '{"loss": 2}\n{"loss": 1}\n'
    assert (folder / "log").read_text() == "half a line\n"
    lock = json.loads((folder / "environment.json").read_text())
    assert lock["python"].startswith("3.11.") and "pip" in lock["packages"]
    ran = json.loads((folder / "container.json").read_text())
    assert ran["digest"].startswith("sha256:") and ran["image"] and ran["node"]
    assert json.loads((folder / "spec.json").read_text())["ports"]["worker-0"]["ssh"]


@pytest.mark.asyncio
async def test_checkpoints_on_a_claim(
    cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place, shared: Path
) -> None:
    """O29: the next attempt finds them, and another job begins with a copy of them."""
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace, "keepClaim": "shared"}
    backend = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    step = "cd $PAI_CHECKPOINT_DIR; n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n | tee n"
    first = job_of(place, image, f"{step}; test $n = 2", jobRetryCount=1)
    second = replace(job_of(place, image, step), resumes=first.name)
    async with watching(backend) as watch:
        for job in (first, second):
            assert not [each for each in (await backend.plan(job)).problems if "checkpoints" in each.code]
            await backend.submit(job, {})
            assert (await watch.final(job, LONG)).state == "succeeded"
    await backend.close()
    tasks = first.folder / "tasks" / "worker-0"
    assert [(tasks / number / "log").read_text() for number in "01"] == ["1\n", "2\n"]
    assert json.loads((tasks / "1" / "checkpoints.json").read_text()) == {"files": 1, "bytes": 2}
    assert (second.folder / "tasks" / "worker-0" / "0" / "log").read_text() == "3\n"
    kept = {path.read_text() for path in shared.rglob("checkpoints/n")}
    assert kept == {"2\n", "3\n"}
