"""The way most people go: run the quickstart's cell, watch the card, read the log, look at the list."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
RECORD = """() => {
  window.paiStates = [];
  const look = () => {
    const card = document.querySelector('.jp-PaiCard');
    const state = card && card.dataset.state;
    if (state && window.paiStates[window.paiStates.length - 1] !== state) { window.paiStates.push(state); }
  };
  new MutationObserver(look).observe(document.body, {attributes: true, subtree: true, childList: true,
    attributeFilter: ['data-state']});
}"""


def quickstart_cells() -> list[str]:
    """Return the quickstart's cells up to the job's, which does not wait."""
    notebook = nbformat.read(NOTEBOOKS / "quickstart.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    last = next(place for place, cell in enumerate(cells) if cell.startswith("%%paijob"))
    assert "--wait" in cells[last]
    return [*cells[:last], cells[last].replace(" --wait", "").replace("epochs=15", "epochs=60")]


def pull_twice(lab, card):
    """O15: outputs come beside the notebook; what was changed there stays until somebody says otherwise."""
    name = card.locator(".jp-PaiCard-name").inner_text()
    card.get_by_role("button", name="Pull").click()
    said = card.locator(".jp-PaiCard-outputs [role='status']")
    said.get_by_text(" now in ").wait_for()
    files = lab.get(f"jobs/{name}/files")["files"]
    assert said.inner_text().startswith(f"{len(files)} file") and f" now in {name}." in said.inner_text()
    brought = {file["path"]: lab.root / name / file["path"] for file in files}
    assert {path: place.stat().st_size for path, place in brought.items()} == {
        file["path"]: file["size"] for file in files
    }
    lab.shoot("card-pulled-light")
    mine = next(iter(brought.values()))
    mine.write_text("mine")
    card.get_by_role("button", name="Pull").click()
    said.get_by_text("has other files of these names").wait_for()
    assert mine.read_text() == "mine"
    lab.theme("JupyterLab Dark")
    lab.shoot("card-pull-refused-dark")
    lab.theme("JupyterLab Light")
    said.get_by_role("button", name="Replace").click()
    said.get_by_text(" now in ").wait_for()
    assert mine.stat().st_size == files[0]["size"]
    said.get_by_role("button", name="Open folder").click()
    crumbs = lab.page.locator(".jp-FileBrowser-crumbs")
    crumbs.get_by_text(name).wait_for()
    lab.page.locator(".jp-DirListing-item", has_text=files[0]["path"].split("/")[0]).first.wait_for()
    lab.shoot("file-browser-pulled-light")


def test_card_lives_and_survives_a_reload_and_the_log_follows(lab, until):
    """O30-O32: the card of the quickstart goes through its states by itself, in every page that shows it."""
    page = lab.page
    shutil.copytree(NOTEBOOKS / "digits_training", lab.root / "digits_training")
    cells = quickstart_cells()
    lab.notebook("quickstart.ipynb", *cells)
    lab.open("quickstart.ipynb")
    page.evaluate(RECORD)
    lab.select_first_cell()
    lab.run_cells(len(cells))
    card = lab.card()
    lab.wait_state(card, "running", "succeeded")
    lab.shoot("card-running-light")
    lab.wait_state(card, "succeeded", seconds=90)
    states = page.evaluate("window.paiStates")
    assert states[-2:] == ["running", "succeeded"]
    assert states in (["waiting", "running", "succeeded"], ["running", "succeeded"])
    assert "worker ×2" in card.inner_text() and "ps ×1" in card.inner_text()
    lab.shoot("card-succeeded-light")

    # Outputs open below the card.
    card.get_by_role("button", name="Outputs").click()
    card.get_by_role("link", name="Download ").first.wait_for()
    with page.expect_download() as download:
        card.get_by_role("link", name="Download ").first.click()
    assert Path(download.value.path()).stat().st_size > 0
    pull_twice(lab, card)
    card.get_by_role("button", name="Tasks").click()
    card.locator("table").wait_for()
    assert card.locator("tbody tr").count() == 3
    lab.shoot("card-tasks-light")

    # The same after a reload, and the notebook's file has only the reference.
    name = card.locator(".jp-PaiCard-name").inner_text()
    page.locator("[data-command='docmanager:save']").first.click()
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    lab.reload()
    again = lab.card()
    lab.wait_state(again, "succeeded")
    assert again.locator(".jp-PaiCard-name").inner_text() == name

    # The log of all tasks, then of one.
    again.get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog")
    log.locator(".jp-PaiLog-row", has_text="epoch 60").first.wait_for()
    assert {"ps-0", "worker-0", "worker-1"} >= set(log.locator(".jp-PaiLog-task").all_inner_texts()) - {""}
    log.get_by_role("searchbox").fill("EPOCH 6")
    page.wait_for_function("() => /line/.test(document.querySelector('.jp-PaiLog-count').textContent)")
    lab.shoot("log-merged-light")
    log.get_by_label("Task", exact=True).select_option("worker-0")
    page.wait_for_function("() => !document.querySelector('.jp-PaiLog-scroll.jp-mod-prefixed')")
    log.locator(".jp-PaiLog-row", has_text="epoch").first.wait_for()
    lab.theme("JupyterLab Dark")
    lab.shoot("log-one-dark")
    page.locator(".lm-TabBar-tab", has_text="quickstart.ipynb").first.click()
    lab.wait_state(lab.card(), "succeeded")
    lab.shoot("card-succeeded-dark")

    # A reload brings the log view back, once JupyterLab has saved that it is there.
    until(lambda: '"worker-0"' in lab.read("lab/api/workspaces/test"), why="the workspace to be saved")
    lab.reload()
    page.locator(".lm-TabBar-tab", has_text="worker-0").first.click()
    page.locator(".jp-PaiLog-row", has_text="epoch").first.wait_for()


def test_stop_from_the_card_and_the_side_bar(lab):
    """A job is stopped from its card; the list shows it, with the keyboard all the way to its deletion."""
    page = lab.page
    lab.notebook(
        "jobs.ipynb",
        "%load_ext paijupyter",
        "%%paijob --name napping --role worker:2 --param seconds=600\n"
        "import time\nprint('sleeping', flush=True)\ntime.sleep(seconds)",
        "%%paijob --name broken\nprint('about to fail')\nimport no_such_module_anywhere",
    )
    lab.open("jobs.ipynb")
    lab.select_first_cell()
    lab.run_cells(3)
    napping, broken = lab.card(0), lab.card(1)
    lab.wait_state(napping, "running")
    napping.locator(".jp-PaiCard-lines", has_text="sleeping").wait_for()
    count = page.locator(".jp-PaiCount-button")
    lab.wait_state(broken, "failed")
    assert "no_such_module_anywhere" in broken.inner_text()
    advice = broken.locator(".jp-PaiCard-advice").inner_text()
    assert advice.startswith("→ ") and len(advice) > 10
    count.get_by_text("1 job runs").wait_for()
    lab.shoot("cards-running-failed-light")
    lab.theme("JupyterLab Dark")
    lab.shoot("cards-running-failed-dark")
    lab.theme("JupyterLab Light")

    # Buttons that cannot be pressed say why.
    retry = napping.get_by_role("button", name="Retry")
    assert retry.get_attribute("aria-disabled") == "true"
    assert retry.get_attribute("title") == "The job has not ended"

    count.click()
    side = page.locator(".jp-PaiJobs")
    side.locator(".jp-PaiJobs-row").nth(1).wait_for()
    names = side.locator(".jp-PaiJobs-name").all_inner_texts()
    assert names[0].startswith("broken-") and names[1].startswith("napping-")
    side.get_by_text("live").wait_for()
    lab.shoot("side-bar-light")

    napping.get_by_role("button", name="Stop").click()
    lab.wait_state(napping, "stopped")
    side.locator(".jp-PaiJobs-row[data-state='stopped']").wait_for()
    assert lab.get(f"jobs/{names[1]}")["state"] == "stopped"

    # Enter opens, l opens the log, Delete asks and deletes.
    side.get_by_role("searchbox").fill("napping")
    page.wait_for_function("() => document.querySelectorAll('.jp-PaiJobs-row').length === 1")
    side.get_by_role("searchbox").press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".jp-PaiPage .jp-PaiCard").wait_for()
    side.locator(".jp-PaiJobs-row").focus()
    page.keyboard.press("l")
    page.locator(".jp-PaiLog-row", has_text="sleeping").first.wait_for()
    lab.theme("JupyterLab Dark")
    lab.shoot("side-bar-dark")
    side.locator(".jp-PaiJobs-row").focus()
    page.keyboard.press("n")
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").wait_for()
    side.locator(".jp-PaiJobs-row").focus()
    page.keyboard.press("Delete")
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("logs and outputs go for good").wait_for()
    lab.shoot("delete-dark")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_function("() => document.querySelectorAll('.jp-PaiJobs-row').length === 0")

    # The cell keeps its snapshot and says so; the file was never touched by the page.
    page.locator(".jp-PaiOutput-why", has_text="The record of this job is gone").first.wait_for()
    page.locator(".jp-OutputArea .paijupyter-card", has_text="napping-").wait_for()
    lab.shoot("snapshot-dark")
