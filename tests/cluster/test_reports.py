"""What comes home from a pod beside its log and outputs (O22, O23): as from a process here."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_BACKENDS = Path(__file__).resolve().parents[1] / "backends"
if str(_BACKENDS) not in sys.path:
    sys.path.insert(0, str(_BACKENDS))

from staging import document, make_job, role, watching  # noqa: E402 - only importable now
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Place, Profile  # noqa: E402
from paijupyter.backends.kubernetes.backend import KubernetesBackend  # noqa: E402
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


@pytest.mark.asyncio
async def test_metrics_use_and_environment(
    cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place
) -> None:
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}
    backend = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    small = {"cpu": 0.1, "memoryMB": 256, "gpu": 0}
    source = document({"worker": role(WORK, resourcePerInstance=small)})
    source["prerequisites"][0]["uri"] = image("python")
    job = make_job(place, source)
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
