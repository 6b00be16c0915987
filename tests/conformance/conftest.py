"""Makes the suite and the staging of backend tests importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent

pytest.register_assert_rewrite("conformance", "staging")
for _folder in (_HERE, _HERE.parent / "backends"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from staging import place as place  # noqa: E402 - only importable now
