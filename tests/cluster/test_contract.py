"""The Kubernetes backend does what every backend must do, on a real cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_BACKENDS = Path(__file__).resolve().parents[1] / "backends"
if str(_BACKENDS) not in sys.path:
    sys.path.insert(0, str(_BACKENDS))
pytest.register_assert_rewrite("contract", "staging")

import contract  # noqa: E402 - only importable now
import staging  # noqa: E402
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = pytest.mark.cluster


@pytest.mark.timeout(240)
class TestKubernetes(contract.BackendContract):
    """The suite, with pods."""

    kind = "kubernetes"

    @pytest.fixture(autouse=True)
    def _of_the_lab(
        self,
        cluster: Cluster,
        namespace: str,
        image: Callable[[str], str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Jobs go into a namespace of the test's own; pods take seconds where processes take none."""
        self.cluster, self.namespace = cluster, namespace
        self.settings: dict[str, Any] = {
            "kubeconfig": str(cluster.kubeconfig),
            "namespace": namespace,
            "image": image("python"),
        }
        monkeypatch.setattr(staging, "DEADLINE", 120.0)

        document = staging.document

        def with_image(roles: Any, **more: Any) -> dict[str, Any]:
            found = document(roles, **more)
            found["prerequisites"][0]["uri"] = image("python")
            for each in found["taskRoles"].values():
                if each["resourcePerInstance"]["cpu"] == 1:  # what the suite gives to all that do not say
                    each["resourcePerInstance"].update(cpu=0.1, memoryMB=128)
            return found

        monkeypatch.setattr(contract, "document", with_image)

    def lose(self, backend: Backend, job: Job) -> None:
        """Somebody deletes the job's owner, and with it everything."""
        name = job.name
        self.cluster.kubectl("delete", "configmap", "-n", self.namespace, name, "--wait=true")

    def too_big(self) -> dict[str, int]:
        """No node of the lab has so many."""
        return {"cpu": 10_000, "memoryMB": 64, "gpu": 0}

    def new_backend(self, place: Place) -> Backend:
        """Make one more backend of the same profile, as a new engine would."""
        return load_backend(Profile("contract", self.kind, self.settings), place)
