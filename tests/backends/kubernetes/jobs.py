"""Jobs for the tests of rendering and planning: always the same, so that golden files can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Data, Job, Package, Profile
from paijupyter.backends.kubernetes.settings import KubeSettings, settings_of

NOWHERE = Path("/nonexistent")


def role(instances: int = 1, **more: Any) -> dict[str, Any]:
    """Return a task role; keyword arguments replace or add its fields."""
    return {
        "instances": instances,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 2, "memoryMB": 4096, "gpu": 0},
        "commands": ["python train.py"],
        **more,
    }


def gpus(count: int) -> dict[str, Any]:
    """Return resources with GPUs."""
    return {"cpu": 8, "memoryMB": 65536, "gpu": count}


def job_of(
    roles: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "train-abc234",
    package: Package | None = None,
    data: tuple[Data, ...] = (),
    ours: Mapping[str, Any] | None = None,
    image: Mapping[str, Any] | None = None,
    commands: str = "python train.py",
    **more: Any,
) -> Job:
    """Return a job; ``ours`` is its ``extras.paijupyter``, keyword arguments are fields of its document."""
    extras = {"paijupyter": {"version": 1, **(ours or {})}, **more.pop("extras", {})}
    item = {"name": "image", "type": "dockerimage", "uri": "registry.example/team/torch:2", **(image or {})}
    document = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [item],
        "taskRoles": dict(roles),
        "extras": extras,
        **more,
    }
    return Job(
        id="2233445566aabbccdd",
        name=name,
        user="ada@example",
        folder=NOWHERE,
        document=document,
        commands=dict.fromkeys(roles, commands),
        package=package,
        data=data,
    )


def settings(**values: Any) -> KubeSettings:
    """Return the settings of a profile."""
    return settings_of(Profile("lab", "kubernetes", values))
