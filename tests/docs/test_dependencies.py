"""The core stands on few packages, each with its reason on the page (T15)."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[2] / "docs" / "dependencies.md"


def test_the_core_has_few_dependencies_and_the_page_says_why() -> None:
    """T15: the list stays short."""
    wanted = [Requirement(each) for each in requires("paijupyter") or ()]
    core = {canonicalize_name(each.name) for each in wanted if "extra" not in str(each.marker or "")}
    section = PAGE.read_text().partition("## Core")[2].partition("## Extras")[0]
    names = re.findall(r"^\| ([\w.-]+) \|", section, re.MULTILINE)[1:]
    said = {canonicalize_name(name) for name in names}
    assert core == said
    assert len(core) <= 6
