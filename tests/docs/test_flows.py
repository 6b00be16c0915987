"""Every test in the browser says what it shows, for the page that lists them (docs/browser-tests.md)."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_flow_says_what_it_shows():
    made = runpy.run_path(str(ROOT / "docs" / "flows.py"))
    flows = made["flows_of"](ROOT / "tests")
    assert {"browser/test_main_path.py", "browser/test_access.py", "hub/test_page.py"} <= flows.keys()
    files = {f"browser/{file.name}" for file in (ROOT / "tests" / "browser").glob("test_*.py")}
    assert files <= flows.keys()
    silent = [(file, each.name) for file, (_, tests) in flows.items() for each in tests if not each.shows]
    assert silent == [] and all(about and tests for about, tests in flows.values())
    page = made["page"](ROOT / "tests")
    assert "| cards and log have no serious fault |" in page and "`access-cards`" in page
