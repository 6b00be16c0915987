"""Documents that many tests start from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A loaded machine is no failure: no example has a deadline.
settings.register_profile("protocol", deadline=None)
settings.load_profile("protocol")

MINIMAL: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "job",
    "type": "job",
    "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "python:3.11"}],
    "taskRoles": {
        "worker": {
            "instances": 1,
            "dockerImage": "image",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1024, "gpu": 0},
            "commands": ["echo hello"],
        }
    },
}


@pytest.fixture
def minimal() -> Callable[..., dict[str, Any]]:
    """Make a valid document, with members replaced by path: ``minimal({"/name": "x"})``; ``...`` removes."""

    def make(changes: dict[str, Any] | None = None) -> dict[str, Any]:
        data = copy.deepcopy(MINIMAL)
        for path, value in (changes or {}).items():
            *parents, last = path.strip("/").split("/")
            here: Any = data
            for key in parents:
                here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
            if isinstance(here, list):
                here.insert(int(last), value) if int(last) == len(here) else here.__setitem__(
                    int(last), value
                )
            elif value is ...:
                del here[last]
            else:
                here[last] = value
        return data

    return make


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of public job documents beside the repository."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "openpai"
    if not folder.is_dir():
        pytest.skip("the corpus of public job documents is not beside this repository")
    return folder
