"""GPUs by NVML: nvidia-ml-py speaks with a shared library, the driver's or one in C that answers alike.

O28, O30, decision 9: real GPUs are handed out by CUDA_VISIBLE_DEVICES, each to one task.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Place, Profile
from paijupyter.backends.local import LocalBackend

MACHINE = Path(__file__).parent / "gpu_machine"
SLICES = [f"MIG-00000001-aaaa-bbbb-cccc-{part:012}" for part in range(2)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with libnvidia-ml.so.1."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc or gcc)")
    pytest.importorskip("pynvml", reason="the extra `gpu` is not installed")
    folder = tmp_path_factory.mktemp("nvml")
    built = [compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", MACHINE / "nvml.c"]
    subprocess.run(built, check=True)
    return folder


@pytest.fixture
def machine(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ask a machine with these GPUs, in a process that finds the library."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "dev").mkdir()
    for name in ("nvidia3", "nvidia7", "nvidiactl"):
        (tmp_path / "dev" / name).touch()

    def ask(path: Path = library, **environment: str):
        process = subprocess.run(
            [sys.executable, MACHINE / "ask.py", tmp_path],
            env={**os.environ, **environment, "LD_LIBRARY_PATH": str(path)},
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return ask


@pytest.mark.parametrize(
    ("gpus", "names", "tasks"),
    [
        ("whole", ["0"], [["PCI_BUS_ID 0", [["0", 0.35, 3072.0]]]]),
        (
            "whole whole",
            ["0", "1"],
            [["PCI_BUS_ID 0", [["0", 0.35, 3072.0]]], ["PCI_BUS_ID 1", [["1", 0.35, 3072.0]]]],
        ),
        (
            "whole lost",
            ["0", "1"],
            [["PCI_BUS_ID 0", [["0", 0.35, 3072.0]]], ["PCI_BUS_ID 1", [["1", None, None]]]],
        ),
        (
            "whole slices",
            ["0", *SLICES],
            [
                ["PCI_BUS_ID 0", [["0", 0.35, 3072.0]]],
                *([f"PCI_BUS_ID {name}", [[name, None, 5.0]]] for name in SLICES),
            ],
        ),
    ],
)
def test_gpus_are_found_handed_out_and_measured(machine, gpus, names, tasks):
    found = machine(NVML_GPUS=gpus)
    assert found == {
        "names": names, "capacity": len(names), "problems": {}, "unknown": 0, "tasks": tasks,
    }  # fmt: skip


def test_a_container_with_some_of_the_gpus_calls_them_by_uuid(machine):
    """CUDA does not count the hidden ones, the driver does: a number would mean two things."""
    uuid = "GPU-00000001-aaaa-bbbb-cccc-dddddddddddd"
    found = machine(NVML_GPUS="hidden whole")
    assert found["names"] == [uuid]
    assert found["tasks"] == [[f"PCI_BUS_ID {uuid}", [[uuid, 0.35, 3072.0]]]]


@pytest.mark.parametrize("gpus", ["", "cut"])
def test_a_driver_without_a_usable_gpu(machine, gpus):
    """A GPU that is set to be cut, and has no slice yet, can do nothing."""
    found = machine(NVML_GPUS=gpus)
    assert (found["names"], found["capacity"], list(found["problems"])) == ([], 0, ["no-gpu"])


def test_a_driver_that_answers_an_error_has_no_gpus_and_the_plan_says_why(machine):
    found = machine(NVML_GPUS="whole", NVML_ERROR="18")
    assert found["capacity"] == 0 and set(found["problems"]) == {"no-gpu", "gpu-driver"}
    words = "GPUs cannot be used: the driver answers `RM has detected an NVML/RM version mismatch.`."
    assert found["problems"]["gpu-driver"] == words


def test_without_the_drivers_library_its_nodes_are_counted(machine, tmp_path):
    found = machine(tmp_path)
    assert found["names"] == ["0", "1"] and [said for said, _ in found["tasks"]] == [
        "PCI_BUS_ID 0",
        "PCI_BUS_ID 1",
    ]
    assert found["problems"]["gpu-driver"] == (
        "GPUs are counted by the driver's nodes (2): the driver's library libnvidia-ml.so.1 is not there."
    )


# Says how many GPUs CUDA sees, takes 256 MiB of the first and holds them until the file is there.
USE = """
import ctypes, os, pathlib, time
cuda = ctypes.CDLL("libcuda.so.1")
count, device, context, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for status in (
    cuda.cuInit(0),
    cuda.cuDeviceGetCount(ctypes.byref(count)),
    cuda.cuDeviceGet(ctypes.byref(device), 0),
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 28)),
):
    assert status == 0, status
print(count.value, flush=True)
here = pathlib.Path(os.environ["PAI_CHECKPOINT_DIR"])
(here / "holds").touch()
while not (here / "go").exists():
    time.sleep(0.02)
"""


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="there is no NVIDIA GPU on this machine")
@pytest.mark.asyncio
async def test_a_real_gpu_is_used_for_real(place: Place, until) -> None:
    """A task sees the GPU it was given and no other, and its memory is measured."""
    pytest.importorskip("pynvml", reason="the extra `gpu` is not installed")
    backend = LocalBackend(Profile("local", "local", {"memoryLimit": "none"}), place)
    assert (await backend.capabilities()).capacity["gpu"] >= 1
    task = role("python use.py", resourcePerInstance={"cpu": 1, "memoryMB": 4096, "gpu": 1})
    job = make_job(place, document({"worker": task}), {"use.py": USE})
    assert {problem.code for problem in (await backend.plan(job)).problems} == set()
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.running(job)
        holds = job.folder / "checkpoints" / "holds"
        until(lambda: holds.exists() or watch.of(job)[-1].state == "failed", seconds=60, why="CUDA to begin")
        (gpu,) = (await backend.usage(job))["worker-0"].gpus
        (job.folder / "checkpoints" / "go").touch()
        assert (await watch.final(job)).state == "succeeded"
    assert (await log_of(backend, job, "worker-0")).strip() == b"1"
    await backend.close()
    assert gpu.memory_mb is not None and gpu.memory_mb >= 256
