"""The log view under load: a million lines and one line of 10 MB. Times are figures, not asserts."""

from __future__ import annotations

import json
import time
from pathlib import Path

FIGURES = Path(__file__).parent / "screenshots" / "figures.json"
WATCH_TASKS = """() => {
  window.paiLong = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) { window.paiLong = Math.max(window.paiLong, entry.duration); }
  }).observe({entryTypes: ['longtask']});
}"""
MANY = """%%paijob --name many
import sys
for start in range(0, 1_000_000, 1000):
    steps = range(start, start + 1000)
    sys.stdout.write("".join(f"step {n} of a run that says what it does, loss 0.1234\\n" for n in steps))
print("\\x1b[1;32mthe end\\x1b[0m of a million")
"""
LONG = """%%paijob --name long
import sys
for part in range(100):
    sys.stdout.write("x" * 100_000)
print("!")
for step in range(50):
    sys.stdout.write(f"\\r{step * 2}% done")
print("\\r100% done")
print("after the long line")
"""


def note(name: str, **figures: float) -> None:
    """Keep figures for a person to look at."""
    FIGURES.parent.mkdir(exist_ok=True)
    found = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    found[name] = figures
    FIGURES.write_text(json.dumps(found, indent=2) + "\n")


def heap(page) -> float:
    """Return the megabytes that the page's script holds."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return session.send("Runtime.getHeapUsage")["usedSize"] / 1e6


def drawn(page) -> int:
    return page.locator(".jp-PaiLog-row").count()


def test_a_million_lines_and_one_of_ten_megabytes(lab):
    """O31: only what can be seen is drawn; tail first, then all; search, wrap and follow work on it."""
    page = lab.page
    lab.notebook("logs.ipynb", "%load_ext paijupyter", MANY, LONG)
    lab.open("logs.ipynb")
    lab.select_first_cell()
    lab.run_cells(3)
    for place in (0, 1):
        lab.wait_state(lab.card(place), "succeeded", seconds=60)
    before = heap(page)
    page.evaluate(WATCH_TASKS)

    # The tail first.
    lab.card(0).get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog:visible")
    last = log.locator(".jp-PaiLog-row", has_text="the end of a million")
    last.wait_for()
    assert last.locator(".jp-PaiAnsi-green.jp-PaiAnsi-bold").inner_text() == "the end"
    log.locator(".jp-PaiLog-head").wait_for()

    # Then everything, from the start.
    began = time.monotonic()
    log.get_by_role("button", name="Show from the start").click()
    page.wait_for_function(
        "() => document.querySelector('.jp-PaiLog-end').textContent.includes('succeeded')", timeout=60_000
    )
    last.wait_for()
    seconds = time.monotonic() - began
    note(
        "a million lines",
        seconds=round(seconds, 2),
        longest_task_ms=round(page.evaluate("window.paiLong")),
        heap_more_mb=round(heap(page) - before, 1),
    )
    assert drawn(page) < 200

    log.get_by_role("searchbox").fill("step 4999")
    page.wait_for_function("() => document.querySelector('.jp-PaiLog-count').textContent === '111 lines'")
    log.get_by_role("searchbox").press("Enter")
    log.locator(".jp-PaiLog-row.jp-mod-current mark").wait_for()
    assert log.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "false"
    lab.shoot("log-search-light")
    log.locator(".jp-PaiLog-scroll").press("Control+Home")
    log.locator(".jp-PaiLog-row", has_text="step 0 of").wait_for()
    log.locator(".jp-PaiLog-scroll").press("Control+End")
    last.wait_for()

    # The long line, wrapped and not.
    page.locator(".lm-TabBar-tab", has_text="logs.ipynb").click()
    page.evaluate("window.paiLong = 0")
    lab.card(1).get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog:visible")
    log.locator(".jp-PaiLog-row", has_text="after the long line").wait_for()
    log.locator(".jp-PaiLog-row", has_text="100% done").wait_for()
    assert log.get_by_text("9980001 more characters").count() == 1
    lab.shoot("log-long-line-light")
    log.get_by_role("button", name="Wrap").click()
    log.locator(".jp-PaiLog-row.jp-mod-more").first.wait_for()
    assert drawn(page) < 400
    lab.shoot("log-wrapped-light")
    note("a line of 10 MB", longest_task_ms=round(page.evaluate("window.paiLong")))
