"""Fixtures: a browser for all tests, a JupyterLab for each of them or for those of a module."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.gallery import write_index
from tests.browser.lab import SCREENSHOTS, Lab, Server, page_on, started_browser, started_server

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that lies here needs a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(480))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the pictures and times of this run can be looked through."""
    times: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.nodeid.startswith("tests/browser/"):
                flow = report.nodeid.removeprefix("tests/browser/")
                times[flow] = times.get(flow, 0) + report.duration
    page = write_index(SCREENSHOTS, times) if times else None
    if page is not None:
        terminalreporter.write_line(f"pictures: {page}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the page said to the report of a failure: who reads it may not have the picture."""
    report = yield
    labs = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Lab)]
    if report.failed and call.when == "call" and labs:
        with contextlib.suppress(Exception):  # A page that has crashed says nothing.
            report.sections.append(("what the page said", labs[0].said()))
    return report


@pytest.fixture
def jp_asyncio_loop() -> None:
    """Leave the loop alone: the browser's driver runs one in this thread, and this fixture would close it."""


@pytest.fixture
def jp_server_cleanup() -> None:
    """Nothing to clean up: the server is a process of its own."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start one browser for all tests."""
    with started_browser() as browser:
        yield browser


@pytest.fixture
def lab(browser: Any, isolated_home: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Start a JupyterLab of its own, below a base URL, and a page on it."""
    server = Server(isolated_home, os.environ)
    server.start()
    try:
        with page_on(browser, server, request.node.name) as lab:
            yield lab
    finally:
        server.stop()


@pytest.fixture(scope="module")
def shared_server(browser: Any) -> Iterator[Server]:
    """Start one JupyterLab for the tests of a module that leave it as they found it."""
    with started_server() as server:
        yield server


@pytest.fixture
def shared_lab(browser: Any, shared_server: Server, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Give a page of its own on the module's JupyterLab; other tests' jobs are there too."""
    with page_on(browser, shared_server, request.node.name) as lab:
        yield lab
