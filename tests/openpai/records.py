"""The exchanges that were recorded with the original OpenPAI server, where they are on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILES = sorted((Path(__file__).parents[3] / "shared" / "corpus" / "openpai-recorded").glob("[0-9]*.json"))
_ABSENT = "the recorded exchanges of the original server are not here"
needed = pytest.mark.skipif(not FILES, reason=_ABSENT)
"""Marks a test that has nothing to do without them."""


def recorded(start: str) -> Any:
    """Return the body that one was answered with, by the start of its file's name; skips without them."""
    if not FILES:
        pytest.skip(_ABSENT)
    (file,) = (each for each in FILES if each.name.startswith(start))
    return json.loads(file.read_text())["responseBody"]
