"""The conformance documents on a real cluster: the same as on every other backend, but for the images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS / "backends", _TESTS / "conformance"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))
pytest.register_assert_rewrite("conformance", "staging")

import staging  # noqa: E402 - only importable now
from conformance import Case, Conformance  # noqa: E402
from marketplace import DOCUMENTS, NOT_HERE  # noqa: E402
from staging import make_job  # noqa: E402
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Place, Profile, load_backend  # noqa: E402
from paijupyter.errors import has_errors  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = pytest.mark.cluster

# The documents ask for more than the one node of a small machine has; what they are told of it stays.
_SMALL = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "1"}}
_IMAGES = {"python:3.11-slim": "python", "bash:5.2": "busybox"}


@pytest.mark.timeout(600)
class TestKubernetes(Conformance):
    kind = "kubernetes"
    places = ("kubernetes",)
    seconds = 300.0
    at_once = 4  # a cluster that shares two cores with the tests knows the names of thirty new pods late

    @pytest.fixture(autouse=True)
    def _of_the_lab(
        self,
        cluster: Cluster,
        namespace: str,
        image: Callable[[str], str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._image = image
        self.settings: dict[str, Any] = {
            "kubeconfig": str(cluster.kubeconfig),
            "namespace": namespace,
            "podTemplate": [{"spec": {"containers": [{"name": "main", "resources": _SMALL}]}}],
        }
        monkeypatch.setattr(staging, "DEADLINE", 300.0)

    def case(self, name: str) -> Case:
        case = super().case(name)
        uri = next(uri for uri in _IMAGES if f"uri: {uri}\n" in case.text)
        text = case.text.replace(f"uri: {uri}\n", f"uri: {self._image(_IMAGES[uri])}\n")
        return replace(case, text=text)


@pytest.mark.skipif(not DOCUMENTS, reason=NOT_HERE)
@pytest.mark.asyncio
async def test_the_api_server_takes_marketplace_documents(
    cluster: Cluster, namespace: str, place: Place, subtests: pytest.Subtests
) -> None:
    """O1, O27: the plan asks the API server, which would create each object; its nodes may be too small."""
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace, "autoscaling": True}
    backend = load_backend(Profile("market", "kubernetes", settings), place)
    for path in DOCUMENTS:
        with subtests.test(path.name):
            job = make_job(place, path.read_bytes().decode())
            plan = await backend.plan(job)
            assert not has_errors(plan.problems), plan.problems
            made = [each for each in plan.objects if each["kind"] == "Job"]
            assert len(made) == len(job.roles)
    await backend.close()
