"""The conformance documents on a real cluster: the same as on every other backend, but for the image."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS / "backends", _TESTS / "conformance"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))
pytest.register_assert_rewrite("conformance", "staging")

import staging  # noqa: E402 - only importable now
from conformance import Conformance  # noqa: E402
from staging import place as place  # noqa: E402

from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = pytest.mark.cluster

# The documents ask for more than the one node of a small machine has; what they are told of it stays.
_SMALL = {"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}}


@pytest.mark.timeout(300)
class TestKubernetes(Conformance):
    kind = "kubernetes"
    seconds = 200.0

    @pytest.fixture(autouse=True)
    def _of_the_lab(
        self,
        cluster: Cluster,
        namespace: str,
        image: Callable[[str], str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._image = image("python")
        self.settings: dict[str, Any] = {
            "kubeconfig": str(cluster.kubeconfig),
            "namespace": namespace,
            "podTemplate": [{"spec": {"containers": [{"name": "main", "resources": _SMALL}]}}],
        }
        monkeypatch.setattr(staging, "DEADLINE", 200.0)

    def text_of(self, name: str) -> str:
        text = super().text_of(name)
        assert "uri: python:3.11-slim\n" in text
        return text.replace("uri: python:3.11-slim\n", f"uri: {self._image}\n")
