"""A cell as a job by its toolbar's button; from a traceback back to the cell and its line."""

from __future__ import annotations

HALVE = "def halve(x):\n    result = x / 2\n    return result"
FILLER = [f"# filler {number}\n" + "\n".join("#" for _ in range(12)) for number in range(6)]


def active_cell(page) -> tuple[str, str]:
    """Return what the active cell begins with, and its line that has the cursor."""
    return page.evaluate(
        """() => {
          const cell = window.jupyterapp.shell.currentWidget.content.activeCell;
          const source = cell.model.sharedModel.getSource();
          return [source.split('\\n')[0], source.split('\\n')[cell.editor.getCursorPosition().line]];
        }"""
    )


def run_dialog(lab, place: int):
    """Press the button in the toolbar of a cell; return what asks."""
    cell = lab.page.locator(".jp-Notebook .jp-CodeCell").nth(place)
    cell.scroll_into_view_if_needed()
    cell.locator(".jp-InputArea-editor").click()
    cell.locator("[data-command='paijupyter:run-cell']").click()
    dialog = lab.page.locator(".jp-Dialog")
    dialog.locator(".jp-PaiRun").wait_for()
    return dialog


def test_a_cell_is_run_as_a_job_and_its_failure_leads_back_to_it(lab):
    """P12, P13: the button asks, then submits; card and log link to cell and line of the notebook."""
    page = lab.page
    last = "values = [4, 'a']\nfor value in values:\n    print('half', halve(value), flush=True)"
    lab.notebook("train.ipynb", HALVE, *FILLER, "unused = 1", last)
    lab.open("train.ipynb")

    # What runs is what the page says, saved or not.
    dialog = run_dialog(lab, 8)
    dialog.get_by_text("can be submitted").wait_for()
    assert "+ cell 1" in dialog.inner_text() and "− cell 8" in dialog.inner_text()
    lab.shoot("cell-as-job-light")
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    assert lab.get("jobs")["jobs"] == []

    # The menu of a cell that is not the active one is about that cell.
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 8; }")
    other = page.locator(".jp-Notebook .jp-CodeCell", has_text="unused = 1")
    other.locator(".jp-InputPrompt").click(button="right")
    page.locator(".lm-Menu-item", has_text="Run this cell as a job").click()
    dialog.get_by_text("Run cell 8 as a job").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")

    run_dialog(lab, 8).get_by_role("button", name="Submit 1 task").click()
    card = page.locator(".jp-PaiPage .jp-PaiCard")
    lab.wait_state(card, "failed")
    place = card.locator(".jp-PaiCard-place")
    place.get_by_text("result = x / 2").wait_for()
    lab.theme("JupyterLab Dark")
    lab.shoot("failed-place-dark")
    place.get_by_role("button", name="cell 1, line 2").click()
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").wait_for()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content?.activeCellIndex === 0")
    assert active_cell(page) == ["def halve(x):", "    result = x / 2"]

    # From a line of the log too.
    page.locator(".lm-TabBar-tab", has_text="train-").first.click()
    card.get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog:visible")
    link = log.get_by_role("link", name='File "train.ipynb[cell 9]", line 3')
    link.wait_for()
    lab.shoot("log-links-dark")
    link.click()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content?.activeCellIndex === 8")
    assert active_cell(page)[1].strip().startswith("print('half'")

    # And from the card to the cell that submitted.
    page.locator(".lm-TabBar-tab", has_text="train-").first.click()
    card.get_by_role("button", name="Notebook").click()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content?.activeCellIndex === 8")


def test_a_cell_that_cannot_run_says_why(lab):
    """A name that no cell binds is told with its cell, and nothing can be submitted."""
    lab.notebook("bad.ipynb", "print(nowhere)")
    lab.open("bad.ipynb")
    dialog = run_dialog(lab, 0)
    dialog.get_by_text("nowhere").first.wait_for()
    dialog.get_by_text("cannot be submitted").wait_for()
    assert dialog.get_by_role("button", name="Submit").count() == 0
    lab.shoot("cell-refused-light")
    dialog.get_by_role("button", name="Close").last.click()
    assert lab.get("jobs")["jobs"] == []
