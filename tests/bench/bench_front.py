"""The front end in a real browser: what it weighs, what it adds to a start, how soon and how smooth it draws.

Beside the start with our extension: the same JupyterLab with the extension disabled, in turn.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_path

from paijupyter.client import JobsClient
from tests.bench.places import request
from tests.bench.rows import Row, sized
from tests.browser.lab import TOKEN, Lab, Server, browser_path, page_on, started_server
from tests.browser.seeding import copy_back
from tests.bundle import entry_files, gzipped
from tests.home import end_engines

STARTS, EVENTS, JOBS = sized(9, 2), sized(15, 3), sized(5000, 300)
NOTHING = float("nan")
DISABLED = {"disabledExtensions": {"paijupyter": True}}
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
RESTORED = "async () => { await window.jupyterapp.restored; return performance.now(); }"
WATCH_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(each => each.duration)))
    .observe({entryTypes: ['longtask']});
}"""
OPEN_LIST = f"""async () => {{
  const start = performance.now();
  await window.jupyterapp.commands.execute('paijupyter:open-jobs');
  while (!document.querySelector('.jp-PaiJobs-row')) {{ await new Promise(requestAnimationFrame); }}
  await {TWO_FRAMES};
  return performance.now() - start;
}}"""
SEEN = """state => new Promise(done => {
  const look = () => {
    const card = document.querySelector('.jp-PaiPage .jp-PaiCard');
    if (card?.dataset.state === state) {
      watch.disconnect();
      requestAnimationFrame(() => setTimeout(() => done(Date.now())));
    }
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, {attributes: true, subtree: true, childList: true});
  look();
})"""
SCROLL = """async () => {
  const list = document.querySelector('.jp-PaiJobs-list');
  for (let still = 0; still < 30; ) {
    const before = list.scrollTop;
    list.scrollTop += 800;
    await new Promise(requestAnimationFrame);
    still = list.scrollTop === before ? still + 1 : 0;
    if (still) { await new Promise(done => setTimeout(done, 50)); }
  }
  return Number(list.getAttribute('aria-rowcount'));
}"""
JUMP = """async () => {
  const list = document.querySelector('.jp-PaiJobs-list');
  for (let step = 0; step < 200; step += 1) {
    list.scrollTop = (list.scrollHeight * ((step * 37) % 100)) / 100;
    await new Promise(requestAnimationFrame);
  }
}"""


def run() -> list[Row]:
    """Measure kilobytes, milliseconds (medians) and the longest tasks of the page."""
    if browser_path() is None:
        print("  no figures of the front end: there is no Chromium", file=sys.stderr)
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path())
        with started_server() as server, started_server(DISABLED) as without:
            rows = [*_weight(browser, server), _start(browser, server, without)]
            rows.append(_event_to_pixels(browser, server))
        with started_server() as server:
            rows += _many_jobs(browser, server)
        browser.close()
    return rows


def _weight(browser: Any, server: Server) -> list[Row]:
    static = next(
        found
        for each in jupyter_path("labextensions", "paijupyter", "static")
        if (found := Path(each)).is_dir()
    )
    own = [each for each in static.glob("*.js") if "third-party" not in each.name]
    asked: list[str] = []
    with page_on(browser, server) as lab:
        lab.page.on("request", lambda request: asked.append(request.url.split("?")[0]))
        lab.open()
        lab.page.wait_for_timeout(3000)  # what is loaded once the start is over has been asked for by then
    loaded = [each for each in own if any(url.endswith(f"/paijupyter/static/{each.name}") for url in asked)]
    first = entry_files(static.parent)
    every, entry, rest = (
        gzipped(each) / 1e3 for each in (own, first, [each for each in loaded if each not in first])
    )
    return [
        Row("front end: its whole script, gzip", every, NOTHING, "", "kB", "< 120 kB", every < 120),
        Row("front end: what a start waits for of it, gzip", entry, NOTHING, "", "kB", "< 10 kB", entry < 10),
        Row("front end: what is loaded after the start, gzip", rest, NOTHING, "", "kB", "tell", True),
    ]


def _start(browser: Any, server: Server, without: Server) -> Row:
    def started(place: Server) -> float:
        with page_on(browser, place) as lab:
            lab.page.goto(f"{place.url}/lab/workspaces/bench?token={TOKEN}", timeout=90_000)
            lab.page.wait_for_function("() => window.jupyterapp", timeout=60_000)
            return float(lab.page.evaluate(RESTORED))

    for place in (server, without):
        started(place)
    pairs = [(started(server), started(without)) for _ in range(STARTS)]
    ours, other = (statistics.median(each) for each in zip(*pairs, strict=True))
    more = statistics.median(one - two for one, two in pairs)
    what = f"front end: JupyterLab's start, {more:+.0f} ms in the median of pairs"
    return Row(what, ours, other, "extension disabled", "ms", "+ 50 ms", more < 50)


def _event_to_pixels(browser: Any, server: Server) -> Row:
    took = []
    client = JobsClient.over_http(server.url, TOKEN)
    with page_on(browser, server) as lab:
        lab.open()
        for number in range(EVENTS):
            go = server.home / f"go{number}"
            job = client.submit(request(f"until [ -e {go} ]; do sleep 0.02; done"))["id"]
            _open_job(lab, job)
            card = lab.page.locator(".jp-PaiPage .jp-PaiCard")
            lab.wait_state(card, "running")
            go.touch()
            seen = lab.page.evaluate(SEEN, "succeeded")
            took.append(seen - _ended(server, job))
            lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.close()")
    ms = statistics.median(took)
    what = "front end: from an event's time at the server to the card's pixels"
    return Row(what, ms, NOTHING, "", "ms", "< 150 ms", ms < 150)


def _open_job(lab: Lab, job: str) -> None:
    lab.page.evaluate("id => window.jupyterapp.commands.execute('paijupyter:open-job', {id})", job)


def _ended(server: Server, job: str) -> float:
    lines = (server.home / "data" / "jobs" / job / "events.jsonl").read_text().splitlines()
    (at,) = [each["at"] for each in map(json.loads, lines) if each.get("state") == "succeeded"]
    return datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000


def _many_jobs(browser: Any, server: Server) -> list[Row]:
    client = JobsClient.over_http(server.url, TOKEN)
    job = client.submit(request("echo one of many"))["id"]
    client.wait(job)
    end_engines(server.home)
    copy_back(server.home / "data", job, JOBS - 1, timedelta(milliseconds=1))
    client.list(limit=1)
    start = time.perf_counter()
    client.list(limit=100)
    asked = (time.perf_counter() - start) * 1e3
    first, again = [], []
    for _ in range(3):
        with page_on(browser, server) as lab:
            lab.open()
            lab.page.wait_for_timeout(1000)  # a start is over before somebody opens the list
            first.append(lab.page.evaluate(OPEN_LIST))
    with page_on(browser, server) as lab:
        lab.open()
        lab.page.evaluate(OPEN_LIST)
        lab.page.evaluate(WATCH_TASKS)
        rows = lab.page.evaluate(SCROLL)
        assert rows == JOBS + 1, rows  # and the day's
        reading = lab.page.evaluate("() => Math.max(0, ...window.longTasks)")
        for _ in range(3):
            lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
            lab.page.locator(".jp-PaiJobs").wait_for(state="hidden")
            again.append(lab.page.evaluate(OPEN_LIST))
        lab.page.evaluate("() => { window.longTasks = []; }")
        lab.page.evaluate(JUMP)
        jumping = lab.page.evaluate("() => Math.max(0, ...window.longTasks)")
    many = f"front end: side bar with {JOBS:,} jobs"
    painted, shown = statistics.median(first), statistics.median(again)
    return [
        Row(
            f"{many}: first paint",
            painted,
            asked,
            "the server's answer in it",
            "ms",
            "< 300 ms",
            painted < 300,
        ),
        Row(f"{many}: shown again, all read", shown, NOTHING, "", "ms", "< 300 ms", shown < 300),
        Row(f"{many}: longest task while it reads on", reading, NOTHING, "", "ms", "≤ 50 ms", reading <= 50),
        Row(f"{many}: longest task in 200 jumps", jumping, NOTHING, "", "ms", "≤ 50 ms", jumping <= 50),
    ]
