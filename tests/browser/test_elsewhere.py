"""What is shown where something is missing or nobody looks."""

from __future__ import annotations

import json

import nbformat

REFERENCE = {"schema": 1, "id": "no-such-job", "name": "gone-abcdef", "profile": "local"}


BRIEF = """%%paijob --name brief
import time, pathlib
while not pathlib.Path("{go}").exists():
    time.sleep(0.05)
"""


def saved_output(lab) -> None:
    """Write a notebook with the saved card of a job."""
    output = nbformat.v4.new_output(
        "display_data",
        {
            "application/vnd.paijupyter.job+json": REFERENCE,
            "text/html": '<div class="paijupyter-card">succeeded gone-abcdef</div>',
            "text/plain": "succeeded gone-abcdef",
        },
    )
    lab.notebook("saved.ipynb", "1")
    path = lab.root / "saved.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0]["outputs"] = [output]
    nbformat.write(notebook, path)


def test_snapshot_stays_without_the_record_or_the_server_part(lab):
    """O32: with no record, or no server part, the saved snapshot stays and one line says so."""
    page = lab.page
    saved_output(lab)
    lab.open("saved.ipynb")
    page.locator(".jp-PaiOutput-why", has_text="The record of this job is gone").wait_for()
    page.locator(".jp-OutputArea .paijupyter-card", has_text="gone-abcdef").wait_for()

    page.route(
        "**/paijupyter/v1/**",
        lambda route: route.fulfill(
            status=404, content_type="application/json", body=json.dumps({"message": ""})
        ),
    )
    lab.open("saved.ipynb")
    page.locator(".jp-PaiOutput-why", has_text="This Jupyter server has no job server").wait_for()
    page.locator(".jp-OutputArea .paijupyter-card", has_text="gone-abcdef").wait_for()
    page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    page.locator(".jp-PaiJobs-connection", has_text="no job server").wait_for()
    lab.shoot("no-server-light")
    saved = nbformat.read(lab.root / "saved.ipynb", as_version=4)
    assert saved.cells[0].outputs[0].data["application/vnd.paijupyter.job+json"] == REFERENCE


def test_a_job_that_ends_out_of_view_is_told_once_and_a_restart_is_survived(lab):
    """One notification for what ended elsewhere; the card follows on after the server was away."""
    page = lab.page
    lab.notebook(
        "away.ipynb",
        "%load_ext paijupyter",
        BRIEF.format(go=lab.root / "go"),
    )
    lab.open("away.ipynb")
    lab.select_first_cell()
    lab.run_cells(2)
    lab.wait_state(lab.card(), "running")

    # JupyterLab has a dialog of its own for that.
    page.add_locator_handler(
        page.locator(".jp-Dialog", has_text="Server Connection Error"),
        lambda dialog: dialog.locator("button").last.click(),
    )
    # The server goes and comes back; the job, the engine and the page go on.
    lab.stop()
    lab.card().get_by_text("not connected").wait_for(timeout=60_000)
    lab.shoot("not-connected-light")
    lab.start()
    lab.card().get_by_text("not connected").wait_for(state="hidden", timeout=60_000)

    page.evaluate("window.jupyterapp.commands.execute('launcher:create')")
    page.locator(".jp-PaiCard").wait_for(state="hidden")
    (lab.root / "go").touch()
    toast = page.locator(".Toastify__toast", has_text="brief-")
    toast.wait_for()
    assert "succeeded" in toast.inner_text()
    toast.hover()  # it slides in; a pointer waits until it stands
    lab.shoot("notification-light")
    assert toast.count() == 1
    toast.get_by_role("button", name="Open").click()
    lab.wait_state(page.locator(".jp-PaiPage .jp-PaiCard"), "succeeded")
    lab.shoot("job-page-light")
