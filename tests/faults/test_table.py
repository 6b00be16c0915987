"""docs/faults.md names tests that exist, and every fault test is in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")


def named() -> set[tuple[str, str]]:
    return set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TABLE))


def defined(path: Path) -> set[str]:
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_named_test_exists() -> None:
    missing = [f"{file}::{test}" for file, test in named() if test not in defined(ROOT / file)]
    assert not missing
    assert len(named()) > 40


def test_every_fault_test_is_in_the_table() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name != Path(__file__).name:
            there = {test for file, test in named() if file == f"tests/faults/{path.name}"}
            assert defined(path) == there
