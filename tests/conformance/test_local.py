"""The conformance documents on the local backend; some with the oldest Python that may boot a task."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest
from conformance import Conformance
from conformance import test_every_difference_has_its_reason as test_every_difference_has_its_reason
from conformance import test_every_document_is_expected as test_every_document_is_expected


def _oldest() -> str | None:
    """Return a Python 3.6: one that PAIJUPYTER_TEST_PYTHONS (a search path) names, or PATH has."""
    named = os.environ.get("PAIJUPYTER_TEST_PYTHONS", "").split(os.pathsep)
    for candidate in filter(None, [*named, shutil.which("python3.6")]):
        probe = [candidate, "-c", "import sys; print(sys.version_info[:2] == (3, 6) and sys.executable)"]
        found = subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip()
        if found not in ("", "False"):
            return found
    return None


OLDEST = _oldest()


class TestLocal(Conformance):
    kind = "local"
    places = ("local",)
    settings: dict[str, Any] = {"cpu": 16, "memoryMB": 65536}  # noqa: RUF012 - not changed


@pytest.mark.skipif(not OLDEST, reason="no Python 3.6: put it on PATH or name it in PAIJUPYTER_TEST_PYTHONS")
class TestLocalOldestPython(TestLocal):
    """What asks most of the boot program: text, secrets, packages, data, outputs, ends, limits, retries."""

    python = OLDEST
    only = frozenset(
        {
            "bytes",
            "closed-output",
            "data",
            "dollars",
            "errors",
            "exit-signal",
            "launcher",
            "left-over",
            "outputs",
            "own-places",
            "package",
            "parameters-secrets",
            "ports",
            "python-inside",
            "retry",
            "secrets",
            "stop",
            "time-limit",
            "two-roles",
            "unicode",
        }
    )
