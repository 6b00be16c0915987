"""Requirements are compared with what an image was seen to have (P16)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of, role, settings
from staging import store_package

from paijupyter.backends.base import Place
from paijupyter.backends.kubernetes import image_requirements, known_images
from paijupyter.backends.kubernetes.facts import Container, Pod
from paijupyter.backends.kubernetes.task_files import TaskFiles

IMAGE = "registry.example/team/torch:2"
PACKAGES = {"torch": "2.4.0", "my-tool": "1.0 @ https://example.org/t.whl"}
REQUIREMENTS = """\
# what it needs
torch==2.4.0
My_Tool
numpy>=1.20,<3
pandas[excel]==2.2.0  # tables
torch==2.5.0
-r more.txt
pywin32; sys_platform == "win32"
other @ https://example.org/other.whl
"""


def lock(**more: Any) -> Mapping[str, Any]:
    return {"python": "3.11.2", "executable": "/usr/bin/python3", "packages": PACKAGES, **more}


def test_what_is_certainly_not_there() -> None:
    found = known_images.lacking(REQUIREMENTS, PACKAGES)
    assert found == ["numpy>=1.20,<3", "pandas[excel]==2.2.0", "torch==2.5.0"]
    assert known_images.lacking("torch>=2\ntorch == 2.4.0\n", PACKAGES) == []


def test_an_environment_that_a_task_made_says_nothing_of_its_image(tmp_path: Path) -> None:
    own = lock(executable="/paijupyter/run/environments/ab/bin/python")
    known_images.remember(tmp_path, IMAGE, own)
    known_images.remember(tmp_path, IMAGE, {"packages": None})
    assert known_images.known(tmp_path, IMAGE) is None
    known_images.remember(tmp_path, IMAGE, lock())
    found = known_images.known(tmp_path, IMAGE)
    assert found is not None and found.packages == PACKAGES


@pytest.mark.asyncio
async def test_a_job_that_ran_makes_the_next_plan_say_what_its_image_lacks(place: Place) -> None:
    package = store_package(place, {"requirements.txt": "torch==2.4.0\npandas\n"})
    job = job_of({"worker": role()}, package=package)
    (unknown,) = image_requirements.notes(job, settings(), "requirements.txt", place.data)
    assert unknown.severity == "hint" and "known once a job has run in it" in unknown.message

    ran = replace(job, folder=place.data / "jobs" / job.id)
    files = TaskFiles(ran, 0)
    told = Container("c", image=IMAGE, image_id="sha256:" + "1" * 64)
    await files.update({"worker-0": Pod("u", "p", "1", "id", 0, "worker", 0, "Running", container=told)})
    await files.remember(place.data, settings())
    assert known_images.known(place.data, IMAGE) is None, "its task has told nothing"
    (ran.folder / "tasks/worker-0/0/environment.json").write_text(json.dumps(lock()))
    await files.remember(place.data, settings())
    (lacks,) = image_requirements.notes(job, settings(), "requirements.txt", place.data)
    assert lacks.severity == "warning" and "it had no `pandas`." in lacks.message

    known_images.remember(place.data, IMAGE, lock(packages={**PACKAGES, "pandas": "2.2.0"}))
    (complete,) = image_requirements.notes(job, settings(), "requirements.txt", place.data)
    assert complete.severity == "hint" and "it had all" in complete.message
