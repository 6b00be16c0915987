"""The conformance documents on the local backend."""

from __future__ import annotations

from typing import Any

from conformance import Conformance
from conformance import test_every_difference_has_its_reason as test_every_difference_has_its_reason
from conformance import test_every_document_is_expected as test_every_document_is_expected


class TestLocal(Conformance):
    kind = "local"
    places = ("local",)
    settings: dict[str, Any] = {"cpu": 16, "memoryMB": 65536}  # noqa: RUF012 - not changed
