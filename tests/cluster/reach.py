"""The cluster that the tests run against: the lab of this machine, or any other that a kubeconfig names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.lab import lifecycle, needs
from tests.cluster.lab.build import program
from tests.cluster.lab.images import IMAGES

KUBECONFIG_SETTING = "PAIJUPYTER_TEST_KUBECONFIG"
IMAGE_SETTING = "PAIJUPYTER_TEST_IMAGE"
"""The image with Python of another cluster; with ``_BUSYBOX`` or ``_TORCH`` behind it, those."""


@dataclass(frozen=True)
class Cluster:
    """A cluster and what the tests may use of it.

    Attributes:
        kubeconfig: File that lets in as somebody who may make namespaces.
        images: References that pods ask for, by name: ``python``, ``busybox``, ``torch``.
        lab: What else the lab has; ``None`` for another cluster.
    """

    kubeconfig: Path
    images: dict[str, str] = field(default_factory=dict)
    lab: lifecycle.Facts | None = None

    def kubectl(
        self, *arguments: str, given: str | None = None, check: bool = True, seconds: float = 60
    ) -> str:
        """Run kubectl as the administrator; return what it printed, and its complaints if not checked."""
        tool = str(program("kubernetes", "kubectl")) if self.lab else shutil.which("kubectl")
        assert tool, "kubectl is not on PATH"
        done = subprocess.run(
            [tool, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
            return done.stdout
        return done.stdout + done.stderr

    def get(self, *arguments: str) -> Any:
        """Return what ``kubectl get … -o json`` says."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, namespace: str, *objects: dict[str, Any]) -> None:
        """Apply objects to a namespace."""
        text = "\n---\n".join(json.dumps(one) for one in objects)
        self.kubectl("apply", "-n", namespace, "-f", "-", given=text)


def reached() -> Cluster | str:
    """Return the cluster that is there for tests, or why there is none."""
    foreign = os.environ.get(KUBECONFIG_SETTING)
    if foreign:
        settings = {name: f"{IMAGE_SETTING}_{name.upper()}" for name in IMAGES} | {"python": IMAGE_SETTING}
        named = {name: os.environ[setting] for name, setting in settings.items() if os.environ.get(setting)}
        return Cluster(Path(foreign).absolute(), named)
    found = lifecycle.facts()
    if found:
        return Cluster(Path(found.kubeconfig), found.images, found)
    return needs.lacks() or "no lab runs here: make test-cluster starts one, make cluster keeps it"
