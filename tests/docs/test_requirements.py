"""Every requirement of OpenPAI's tutorial is shown by a test (docs/reference/requirements.md)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_requirement_is_shown() -> None:
    """Counted by what tests cite."""
    spec = importlib.util.spec_from_file_location("requirements_of_docs", ROOT / "docs" / "requirements.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.cited(ROOT / "tests")
    shown = {name for (name, _), files in found.items() if files}
    assert sorted(module.OPENPAI.keys() - shown) == []
    assert module.table(ROOT / "tests").count("\n| O") == 33
