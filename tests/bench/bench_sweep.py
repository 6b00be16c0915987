"""A thousand experiments of one template: planned and recorded, then each a job; the lists stay quick."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from paijupyter.client import JobsClient
from paijupyter.client.groups import is_settled
from tests.bench.places import document, engine, home
from tests.bench.rows import Row

EXPERIMENTS, AT_ONCE = 1000, 50
_TIMES = 20


def run() -> list[Row]:
    """Measure planning and recording (s), both kinds of templates, the lists (ms), and that all ran once."""
    with home() as folder, engine() as client:
        marks = folder / "marks"
        marks.touch()
        rows = json.dumps({"rows": [{"n": n, "lr": n / 1000} for n in range(EXPERIMENTS)]})
        parameters = document(f"echo <% $parameters.n %> >> {marks}", cpu=0)
        text = document(f"echo {{n}} {{lr}} >> {marks}.text", cpu=0)
        client.version()
        plain = _recorded(client, "parameters", parameters, rows)
        typed = _recorded(client, "text", text, rows)
        client.groups.stop("text")
        start = time.perf_counter()
        busy = [_page(client) for _ in range(_TIMES)]
        while not is_settled(client.groups.get("parameters")):
            time.sleep(0.2)
        whole = time.perf_counter() - start
        ran = marks.read_text().split()
        lost = EXPERIMENTS - len(set(ran)) + len(ran) - len(set(ran))
        pages = [_page(client) for _ in range(_TIMES)]
        table = _timed(lambda: client.groups.experiments("parameters"))
    page, page_busy = statistics.median(pages), statistics.median(busy)
    what = f"{EXPERIMENTS} experiments"
    return [
        Row(
            f"{what} that differ by parameters: planned and recorded",
            plain,
            0,
            "none",
            "s",
            "< 5 s",
            plain < 5,
        ),
        Row(f"{what} of a template with placeholders", typed, 0, "none", "s", "< 5 s", typed < 5),
        Row(f"{what}, {AT_ONCE} at once: lost or run twice", lost, 0, "none", "jobs", "0", lost == 0),
        Row("their jobs, ended per second", EXPERIMENTS / whole, 0, "none", "jobs", "tell", True),
        Row(
            "a page of groups and one of jobs", page, page_busy, "while they run", "ms", "< 40 ms", page < 40
        ),
        Row(f"the table of {what}", table * 1e3, 0, "none", "ms", "tell", True),
    ]


def _recorded(client: JobsClient, name: str, template: str, experiments: str) -> float:
    request = {"template": template, "experiments": experiments, "name": name, "atOnce": AT_ONCE}
    return _timed(lambda: client.groups.submit(request))


def _page(client: JobsClient) -> float:
    return _timed(lambda: (client.groups.list(), client.list(limit=100))) * 1e3


def _timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start
