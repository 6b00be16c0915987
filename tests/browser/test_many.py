"""The list of jobs with hundreds of them: found, read on, chosen, stopped and deleted, by keyboard."""

from __future__ import annotations

from datetime import timedelta

from tests.browser.seeding import copy_back
from tests.home import end_engines

MANY = 200


def test_two_hundred_jobs(lab, until):
    """T6, O33: only what can be seen is drawn; filter, keys and choice are for all of them."""
    page = lab.page
    job = lab.submit("many", "echo one of many")
    until(lambda: lab.get(f"jobs/{job}")["state"] == "succeeded", why="the first job to end")
    end_engines(lab.server.home)
    copy_back(lab.server.home / "data", job, MANY - 1, timedelta(milliseconds=20))
    for number in range(3):
        lab.submit(f"nap{number}", "sleep 600")
    until(lambda: len(lab.get("jobs?state=running")["jobs"]) == 3, why="three jobs to run")
    lab.open()
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    side = page.locator(".jp-PaiJobs")
    rows = side.locator(".jp-PaiJobs-row")
    rows.filter(has_text="nap2-").wait_for()
    page.locator(".jp-PaiCount-button").get_by_text("3 jobs run").wait_for()
    assert rows.count() < 60

    # What a filter looks for is found where the list has not read it yet; then all of them are there.
    box = side.get_by_role("searchbox")
    box.fill("many-000190")
    rows.filter(has_text="many-000190").wait_for()
    assert rows.count() == 1
    box.fill("")
    everything = "() => Number(document.querySelector('.jp-PaiJobs-list').getAttribute('aria-rowcount'))"
    until(lambda: page.evaluate(everything) > MANY + 3, why="all jobs to be lines")
    assert rows.count() < 60

    # By keyboard to the last one and back; the row with the focus stays while others scroll by.
    box.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    last = rows.filter(has_text=f"many-{MANY - 2:06}")
    last.wait_for()
    assert last.evaluate("row => row === document.activeElement")
    lab.shoot("many-light")
    page.evaluate("() => { document.querySelector('.jp-PaiJobs-list').scrollTop = 0; }")
    rows.filter(has_text="nap2-").wait_for()
    assert last.evaluate("row => row === document.activeElement")
    page.keyboard.press("Home")
    assert rows.first.evaluate("row => row === document.activeElement")

    # Choose many: three stopped, then twenty-one deleted after one question.
    box.fill("nap")
    until(lambda: rows.count() == 3, why="three rows")
    box.press("ArrowDown")
    page.keyboard.press("Shift+End")
    side.locator(".jp-PaiJobs-many", has_text="3 chosen").wait_for()
    page.keyboard.press("s")
    until(lambda: len(lab.get("jobs?state=stopped")["jobs"]) == 3, why="three jobs to be stopped")
    side.locator(".jp-PaiJobs-row[data-state='stopped']").nth(2).wait_for()
    box.fill("")
    box.press("ArrowDown")
    page.keyboard.press("Shift+PageDown")
    page.keyboard.press("Shift+PageDown")
    side.locator(".jp-PaiJobs-many", has_text="21 chosen").wait_for()
    lab.theme("JupyterLab Dark")
    lab.shoot("many-chosen-dark")
    side.locator(".jp-PaiJobs-many").get_by_role("button", name="Delete 21").click()
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("Delete 21 jobs?").wait_for()
    dialog.get_by_role("button", name="Delete").click()
    until(lambda: len(lab.get("jobs?limit=1000")["jobs"]) == MANY + 3 - 21, why="twenty-one to be gone")
    until(lambda: MANY + 3 - 21 < page.evaluate(everything) <= MANY + 3 - 21 + 2, why="the list to know it")
    side.locator(".jp-PaiJobs-many").wait_for(state="hidden")
