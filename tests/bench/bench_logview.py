"""The log view of a real browser while a running job prints a million lines.

Beside it: the same stream, of another job that prints the same, read by `fetch` in the same page and counted.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from paijupyter.client import JobsClient
from tests.bench.places import request
from tests.bench.rows import Row, sized
from tests.browser.lab import TOKEN, Lab, Server, browser_path, page_on, started_server
from tests.home import until

LINES = sized(1_000_000, 20_000)
RUNS = 3
NOTHING = float("nan")
WATCH_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(each => each.duration)))
    .observe({entryTypes: ['longtask']});
}"""
READ = """url => {
  window.paiRaw = {bytes: 0, last: 0};
  fetch(url).then(async response => {
    const reader = response.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      window.paiRaw.bytes += part.value.length;
      window.paiRaw.last = performance.now();
    }
    window.paiRaw.done = true;
  });
}"""
BEGIN = "() => { window.paiBegan = performance.now(); }"
SEEN = """text => new Promise(done => {
  const look = () => {
    const rows = [...document.querySelectorAll('.jp-PaiLog:not(.lm-mod-hidden *) .jp-PaiLog-row')];
    if (rows.some(row => row.textContent.includes(text))) {
      done(performance.now() - window.paiBegan);
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""


def run() -> list[Row]:
    """Measure seconds to the last line (medians, in turn), the longest task (ms) and memory (MB)."""
    if browser_path() is None:
        print("  no figures of the log view: there is no Chromium", file=sys.stderr)
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, started_server() as server:
        browser = playwright.chromium.launch(executable_path=browser_path())
        try:
            with page_on(browser, server) as lab:
                lab.open()
                return _measure(browser, server, lab)
        finally:
            browser.close()


def _measure(browser: Any, server: Server, lab: Lab) -> list[Row]:
    text = server.home / "lines"
    line = "step {:7d} loss 0.123456789 accuracy 0.987654321\n"
    text.write_text("".join(line.format(number) for number in range(LINES)))
    last = line.format(LINES - 1).strip()
    client = JobsClient.over_http(server.url, TOKEN)
    _followed(lab, client, text, last)  # the first one warms up
    ours, raw, longest, held, resident = [], [], [], [], []
    for _ in range(RUNS):
        raw.append(_raw(lab, client, text))
        heap, process = _heap(lab), _resident(browser)
        lab.page.evaluate(WATCH_TASKS)
        ours.append(_followed(lab, client, text, last, close=False))
        longest.append(max(lab.page.evaluate("window.longTasks"), default=0))
        held.append(_heap(lab) - heap)
        resident.append(_resident(browser) - process)
        _close(lab)
    mine, beside = statistics.median(ours), statistics.median(raw)
    what = f"log view: {LINES:,} lines of a running job, to the last one on the screen"
    task, more, most = statistics.median(longest), statistics.median(held), statistics.median(resident)
    held_words = "log view: what the page holds more, after a collection"
    return [
        Row(what, mine, beside, "fetch of the same stream", "ms", "≤ 1.5 ×", mine <= 1.5 * beside),
        Row("log view: longest task of the page meanwhile", task, NOTHING, "", "ms", "< 200 ms", task < 200),
        Row(held_words, more, NOTHING, "", "MB", "< 150 MB", more < 150),
        Row("log view: memory of the page's process more", most, NOTHING, "", "MB", "< 150 MB", most < 150),
    ]  # fmt: skip


def _waiting(client: JobsClient, text: Path) -> tuple[str, Path]:
    """Submit a job that prints when a file is there; return its id and the file."""
    go = text.with_name(f"go-{time.monotonic_ns()}")
    job = str(client.submit(request(f"until [ -e {go} ]; do sleep 0.02; done; exec cat {text}"))["id"])
    until(lambda: client.get(job)["state"] == "running", seconds=60, why="the job to run")
    return job, go


def _followed(lab: Lab, client: JobsClient, text: Path, last: str, *, close: bool = True) -> float:
    """Return the milliseconds until the view shows the last line."""
    job, go = _waiting(client, text)
    lab.page.evaluate("id => window.jupyterapp.commands.execute('paijupyter:open-log', {id})", job)
    lab.page.locator(".jp-PaiLog:visible .jp-PaiLog-end", has_text="running").wait_for()
    lab.page.evaluate(BEGIN)
    go.touch()
    took = float(lab.page.evaluate(SEEN, last))
    client.wait(job)
    if close:
        _close(lab)
    return took


def _raw(lab: Lab, client: JobsClient, text: Path) -> float:
    """Return the milliseconds until the last byte of the same stream is in the page."""
    job, go = _waiting(client, text)
    lab.page.evaluate(READ, f"{lab.url}/paijupyter/v1/jobs/{job}/logs?follow=1")
    lab.page.evaluate(BEGIN)
    go.touch()
    lab.page.wait_for_function("() => window.paiRaw.done", timeout=120_000)
    assert lab.page.evaluate("window.paiRaw.bytes") > text.stat().st_size
    return float(lab.page.evaluate("window.paiRaw.last - window.paiBegan"))


def _close(lab: Lab) -> None:
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.close()")


def _heap(lab: Lab) -> float:
    """Return the megabytes of objects and buffers that the page's script holds."""
    session = lab.page.context.new_cdp_session(lab.page)
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")
    session.detach()
    return float(found["usedSize"] + found.get("backingStorageSize", 0)) / 1e6


def _resident(browser: Any) -> float:
    """Return the megabytes of the largest page's process that are its own."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return max(_anonymous(each["id"]) for each in found if each["type"] == "renderer")


def _anonymous(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024 / 1e6
