"""Notebook 7: the same card, and the pages it opens below the notebook."""

from __future__ import annotations

import pytest

JOB = "%%paijob --name seven\nprint('in the log of seven')\n"


@pytest.fixture(autouse=True)
def notebook7() -> None:
    pytest.importorskip("notebook", reason="Notebook 7 is not installed: make test-browser")


def test_logs_and_forms_open_below_the_notebook(lab):
    """Everywhere else: the main area holds one document; our pages open in the area below it."""
    page = lab.page
    lab.notebook("seven.ipynb", "%load_ext paijupyter", JOB)
    page.goto(f"{lab.url}/notebooks/seven.ipynb?token=a-token-for-tests", timeout=90_000)
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
    lab.run_until_heard(2)
    card = lab.card()
    lab.wait_state(card, "succeeded", seconds=60)

    card.get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog:visible")
    log.locator(".jp-PaiLog-row", has_text="in the log of seven").wait_for()
    below = log.bounding_box()
    notebook = page.locator(".jp-NotebookPanel").bounding_box()
    assert below["y"] >= notebook["y"] + notebook["height"] - 1 and below["height"] > 100
    lab.shoot("notebook7-log")

    # A form joins the log, and the log is still there.
    card.get_by_role("button", name="Clone & edit").click()
    page.locator(".jp-PaiForm:visible").wait_for()
    lab.shoot("notebook7-form")
    page.locator(".lm-TabBar-tab", has_text="log").first.click()
    log.locator(".jp-PaiLog-row", has_text="in the log of seven").wait_for()
