"""JupyterLab in a browser below /user/<name>/ of a real JupyterHub: its login form, a cell run as a job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest

from tests.browser.lab import SCREENSHOTS, started_browser

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]
PATIENCE = 300_000  # milliseconds


@pytest.fixture
def jp_asyncio_loop() -> None:
    """Leave the loop alone: the browser's driver runs one in this thread, and this fixture would close it."""


@pytest.fixture
def jp_server_cleanup() -> None:
    """Nothing to clean up: the servers are the hub's."""


@pytest.fixture
def page() -> Iterator[Any]:
    with started_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        yield page


def test_a_cell_becomes_a_job_below_the_hub(hub: Any, page: Any) -> None:
    """Everywhere else: card, log and list ask only below the person's own path, through the hub's proxy."""
    home = hub.root / "eve"
    home.mkdir(exist_ok=True)
    cells = ["%load_ext paijupyter", "%%paijob --name below\nprint('seen below the hub')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, home / "job.ipynb")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    # Who has logged in is led to a server, which is started for that.
    page.goto(f"{hub.address}/hub/login")
    page.locator("input[name=username]").fill("eve")
    page.locator("input[name=password]").fill("any")
    page.locator("#login_submit").click()
    end = time.monotonic() + PATIENCE / 1000
    while not page.url.startswith(f"{hub.server('eve')}/"):
        assert time.monotonic() < end, f"{page.url}: {(hub.root / 'hub.log').read_text()[-2000:]}"
        page.wait_for_timeout(200)
    page.goto(f"{hub.server('eve')}/lab/tree/job.ipynb")
    idle = "() => /\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.textContent ?? '')"
    page.wait_for_function(idle)
    page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").first.click()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")

    card = page.locator('.jp-PaiCard[data-state="succeeded"]', has_text="below-")
    card.wait_for()
    card.get_by_role("button", name="Logs", exact=True).click()
    page.locator(".jp-PaiLog-row", has_text="seen below the hub").first.wait_for()
    page.get_by_role("tab", name="Jobs").click()
    page.locator(".jp-PaiJobs-row", has_text="below-").wait_for()
    page.locator(".jp-PaiJobs-connection", has_text="live").wait_for()
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=str(SCREENSHOTS / "hub-light.png"))
    ours = [url for url in asked if "/paijupyter/" in url]
    assert ours and all(url.startswith(f"{hub.server('eve')}/") for url in ours), ours
