"""Groups of experiments in the side bar: one row, which opens; several rows ended by keyboard."""

from __future__ import annotations

from tests.browser.seeding import sweep


def test_a_group_is_one_row_that_opens_and_several_rows_are_ended_together(lab):
    """T7, T8: folded with counts, opened on demand; Space and Shift choose, s stops, Delete deletes all."""
    page = lab.page
    sweep(lab, "sweep-lr", 4)
    sweep(lab, "other", 2)
    lab.open()
    page.locator(".jp-PaiCount-button").get_by_text("6 jobs run").wait_for()
    # What draws the list is loaded with the first look at it; where the server is gone just then, it says so.
    page.route("**/paijupyter/static/**", lambda route: route.abort())
    page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    page.get_by_text("The list cannot be loaded").wait_for()
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    side = page.locator(".jp-PaiJobs")
    row = side.locator(".jp-PaiJobs-row", has_text="sweep-lr (4)")
    row.get_by_text("4 running").wait_for()
    assert side.locator(".jp-PaiJobs-row").count() == 2

    # Opened and folded by keyboard; its jobs are rows like any other.
    row.focus()
    page.keyboard.press("ArrowRight")
    members = side.locator(".jp-PaiJobs-row[aria-level='2']")
    members.nth(3).wait_for()
    assert row.get_attribute("aria-expanded") == "true"
    lab.shoot("groups-light")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("l")
    page.locator(".jp-PaiLog-row", has_text="lr 0.1").first.wait_for()
    row.focus()
    page.keyboard.press("ArrowLeft")
    members.first.wait_for(state="detached")

    # Both groups at once: stopped, then deleted.
    side.get_by_role("searchbox").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    side.locator(".jp-PaiJobs-many", has_text="2 chosen").wait_for()
    lab.theme("JupyterLab Dark")
    lab.shoot("groups-chosen-dark")
    side.locator(".jp-PaiJobs-row").nth(1).focus()
    page.keyboard.press("s")
    row.get_by_text("4 stopped").wait_for()
    side.locator(".jp-PaiJobs-row", has_text="other (2)").get_by_text("2 stopped").wait_for()
    side.locator(".jp-PaiJobs-many").get_by_role("button", name="Delete 2").wait_for()
    page.keyboard.press("Delete")
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("Delete 6 jobs?").wait_for()
    dialog.get_by_role("button", name="Delete").click()
    side.get_by_text("No jobs yet.").wait_for()
    assert lab.get("groups")["groups"] == [] and lab.get("jobs")["jobs"] == []
