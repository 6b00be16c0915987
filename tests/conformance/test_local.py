"""The conformance documents on the local backend."""

from __future__ import annotations

from conformance import Conformance
from conformance import test_every_document_is_expected as test_every_document_is_expected


class TestLocal(Conformance):
    kind = "local"
