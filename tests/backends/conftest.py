"""Makes the contract suite importable, and puts the other package's backend where entry points are found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent

pytest.register_assert_rewrite("contract", "staging")
for _folder in (_HERE, _HERE / "other_package"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from staging import place as place  # noqa: E402 - only importable now
