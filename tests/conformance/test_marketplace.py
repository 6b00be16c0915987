"""The documents of OpenPAI's marketplace, as far as they run without a network and their images (O1, O27).

They open, plan on the local backend, become objects of Kubernetes and are posted to an OpenPAI server. Their
commands are rehearsed in bash, where each program only says with which words it was started: what they
download cannot be had here, so nothing is trained.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from marketplace import DOCUMENTS, NOT_HERE
from staging import make_job

from paijupyter.backends.base import Job, Place, Profile, load_backend
from paijupyter.backends.kubernetes import gang, render
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.settings import settings_of
from paijupyter.errors import has_errors
from paijupyter.protocol import check, read
from tests.openpai.server import OpenPai

# Without a PATH no program is found, and this says what it would have been given. The second one of a pipe
# reads to the end, as the real ones do: else the first one would fail now and then.
_REHEARSAL = """\
PATH=/nowhere
command_not_found_handle() {
  printf '%s' "$1"; shift; printf ' [%s]' "$@"; echo
  [[ ! -p /dev/stdin ]] || while read -r; do :; done
}
cd() { echo "cd [$1]"; }
"""
_VARIABLES = {
    "PAI_WORK_DIR": "/work",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
    "PAI_TASK_ROLE_psserver_HOST_LIST": "10.0.0.1:1000",
    "PAI_TASK_ROLE_worker_HOST_LIST": "10.0.0.2:1000",
    "PAI_PORT_LIST_taskrole_0_FLASK_PORT": "5000",
}
pytestmark = pytest.mark.skipif(not DOCUMENTS, reason=NOT_HERE)


def rehearsed(command: str) -> list[str]:
    """Return what the programs of a command would have been given, a line each, and how bash ended."""
    bash = shutil.which("bash")
    assert bash
    options = ("-o", "errexit", "-o", "nounset", "-o", "pipefail")
    found = subprocess.run(
        [bash, *options, "-c", _REHEARSAL + command],
        env=_VARIABLES,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return [*found.stdout.splitlines(), *found.stderr.splitlines()]


def job_of(place: Place, path: Path) -> Job:
    """Return the job of a document, which opens without an error."""
    text = path.read_bytes().decode()
    assert not has_errors(check(read(text)))
    return make_job(place, text)


@pytest.mark.asyncio
async def test_they_are_planned_on_the_local_backend(place: Place, subtests: pytest.Subtests) -> None:
    """O1, O27: with pretend GPUs; the plan names each image that is not used."""
    settings = {"cpu": 256, "memoryMB": 1 << 20, "gpu": 64}
    backend = load_backend(Profile("big", "local", settings), place)
    for path in DOCUMENTS:
        with subtests.test(path.name):
            job = job_of(place, path)
            plan = await backend.plan(job)
            assert not has_errors(plan.problems)
            assert len(plan.objects) == sum(int(role["instances"]) for role in job.roles.values())
            said = {each.code for each in plan.problems}
            assert "image-not-used" in said
            asked = any(role["resourcePerInstance"].get("gpu") for role in job.roles.values())
            assert ("pretend-gpu" in said) == asked
    await backend.close()


def test_they_become_objects_of_kubernetes(place: Place, subtests: pytest.Subtests) -> None:
    """O1, O12: one Indexed Job per role, with the image and the GPUs that the document asks for."""
    settings = settings_of(Profile("cluster", "kubernetes", {}))
    for path in DOCUMENTS:
        with subtests.test(path.name):
            job = job_of(place, path)
            frame = Frame(job, settings, Cluster(), gang.choose(job, settings, Cluster()), "boot", (), "")
            jobs = [each for each in render.attempt(frame, 0, {"schema": 1}) if each["kind"] == "Job"]
            assert len(jobs) == len(job.roles)
            images = {item["name"]: item.get("uri") for item in job.document["prerequisites"]}
            for made, role in zip(jobs, job.roles.values(), strict=True):
                container = made["spec"]["template"]["spec"]["containers"][0]
                assert container["image"] == images[role["dockerImage"]]
                gpus = int(role["resourcePerInstance"].get("gpu") or 0)
                assert int(container["resources"]["limits"].get("nvidia.com/gpu") or 0) == gpus
                assert made["spec"]["completions"] == role["instances"]


@pytest.mark.asyncio
async def test_they_go_home_and_bash_gets_their_words(
    place: Place, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """O1, O6, O19, O27: an OpenPAI server takes them; every program gets the same words there and here."""
    with OpenPai() as server:
        monkeypatch.setenv("PAIJUPYTER_TOKEN_MARKET", server.token())
        settings: dict[str, Any] = {"url": server.url, "callsPerMinute": 1_000_000}
        backend = load_backend(Profile("market", "openpai", settings), place)
        for path in DOCUMENTS:
            with subtests.test(path.name):
                job = job_of(place, path)
                await backend.submit(job, {})
                for role, command in job.commands.items():
                    there = server.command(job.name, role)
                    assert there.strip() == command.strip()
                    said = rehearsed(there)
                    assert said
                    assert said == rehearsed(command)
                    assert not any("<%" in line or "unbound" in line or "syntax" in line for line in said)
        await backend.close()


def test_their_lines_mean_what_they_did(place: Place) -> None:
    """O6, O19: continuations over items, folded lines, references and OpenPAI's variables."""
    jobs = {path.stem: job_of(place, path) for path in DOCUMENTS}
    said = rehearsed(jobs["grammar_check_training"].commands["taskrole"])
    assert said[-2].startswith("fairseq-preprocess [--source-lang] [origin] [--target-lang] [correct] ")
    folder = "/data/grammarCheck/dataset/processed_data"
    assert said[-2].endswith(f" [--testpref] [{folder}/test] [--destdir] [./preprocessed_data]")
    assert said[-1].endswith(" [--max-tokens] [4000] [--max-epoch] [100] [--batch-size] [256]")
    said = rehearsed(jobs["tensorflow-cifar10"].commands["worker"])
    assert said[0] == "rm [/usr/local/cuda/lib64/stubs/libcuda.so.1]", "of the deployment"
    assert "cd [script_tensorflow_cnnbenchmarks/scripts/tf_cnn_benchmarks]" in said
    hosts = "[--ps_hosts=10.0.0.1:1000] [--worker_hosts=10.0.0.2:1000]"
    assert f"{hosts} [--task_index=0] [--data_name=cifar10]" in said[-1]
    assert rehearsed(jobs["mxnet-autoencoder"].commands["train"])[0].startswith(
        "pip [install] [scipy==1.1.0]"
    )
