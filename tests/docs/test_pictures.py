"""The pictures of the documentation: small, all shown, and their shots known to the browser tests."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_each_picture_is_small_and_shown():
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    pictures = sorted((DOCS / "_static").glob("*.png"))
    assert len(pictures) >= 9
    assert not [each.name for each in pictures if f"_static/{each.name})" not in text]
    assert not [each.name for each in pictures if each.stat().st_size >= 60_000]


def test_each_picture_is_made_of_a_shot_that_a_test_takes():
    made = runpy.run_path(str(DOCS / "pictures.py"))["PICTURES"]
    text = "\n".join(file.read_text() for file in (ROOT / "tests" / "browser").glob("test_*.py"))
    assert set(made.values()) <= set(re.findall(r'shoot\("([\w-]+)"\)', text))
    assert all((DOCS / "_static" / f"{name}.png").exists() for name in made)
