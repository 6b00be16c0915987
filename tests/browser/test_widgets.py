"""The form of widgets in JupyterLab and in Notebook 7, with the value of a secret looked for everywhere."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from tests.resting import contents

CANARY = "swordfish/&= canary-widgets-4c"
FORMS = (CANARY, quote(CANARY), json.dumps(CANARY)[1:-1], base64.b64encode(CANARY.encode()).decode()[:-2])
CELL = """%%paijob --form --name typed --secret TOKEN=ask
import os
print(len(os.environ["TOKEN"]))
"""
ONLY_WIDGETS = "%paijob form --widgets --name typed --secret TOKEN=ask --command 'echo ${#TOKEN}'"


def holds_canary(text: str) -> bool:
    return any(form in text for form in FORMS)


@pytest.fixture
def frames(lab) -> dict[str, list[str]]:
    """Collect what goes through the websockets of the page, and what is sent and got by HTTP."""
    found: dict[str, list[str]] = {"sent": [], "received": [], "http": []}

    def text(payload: str | bytes) -> str:
        return payload if isinstance(payload, str) else payload.decode("utf-8", errors="replace")

    def opened(socket) -> None:
        socket.on("framesent", lambda payload: found["sent"].append(text(payload)))
        socket.on("framereceived", lambda payload: found["received"].append(text(payload)))

    lab.page.on("websocket", opened)
    lab.page.on(
        "request", lambda request: found["http"].append(f"{request.url} {request.post_data_buffer!r}")
    )
    return found


def keep_widget_state(lab) -> None:
    """Let JupyterLab save the state of widgets, which it does not by default: the worst case."""
    folder = lab.root.parent / "settings" / "@jupyter-widgets" / "jupyterlab-manager"
    folder.mkdir(parents=True)
    (folder / "plugin.jupyterlab-settings").write_text(json.dumps({"saveState": True}))


def save(page) -> None:
    page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")


def fill_and_submit(page) -> None:
    form = page.locator(".jupyter-widgets.widget-tab").first
    form.wait_for(timeout=60_000)
    name = form.get_by_label("Name", exact=True)
    name.fill("written")
    name.press("Enter")
    page.get_by_text("written on local").or_(page.locator("strong", has_text="written")).first.wait_for()
    secret = page.locator("input.paijupyter-secret")
    secret.fill(CANARY)
    secret.press("Enter")
    page.get_by_text("value is given").wait_for()
    assert secret.input_value() == ""
    page.get_by_role("button", name="Submit 1 task").click()
    page.get_by_role("button", name="Submit now").click()


def test_the_widgets_in_jupyterlab_submit_and_keep_no_secret(lab, frames):
    """O20: not in the file with saved widget state, not in the page's storage, sent once."""
    page = lab.page
    keep_widget_state(lab)
    lab.notebook("widgets.ipynb", "%load_ext paijupyter", ONLY_WIDGETS)
    lab.open("widgets.ipynb")
    lab.select_first_cell()
    lab.run_cells(2)
    fill_and_submit(page)
    lab.wait_state(lab.card(), "succeeded", seconds=60)
    page.locator(".widget-html", has_text="✓ succeeded").wait_for()
    lab.shoot("widgets-light")
    save(page)
    path = lab.root / "widgets.ipynb"
    saved = path.read_text()
    assert "application/vnd.jupyter.widget-state+json" in json.loads(saved)["metadata"]["widgets"]
    assert '"written"' in saved and not holds_canary(saved)
    storage = page.evaluate(
        "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.body.innerHTML])"
    )
    assert not holds_canary(storage)
    assert sum(map(holds_canary, frames["sent"])) == 1
    assert not any(map(holds_canary, frames["received"]))
    assert not any(map(holds_canary, frames["http"]))
    kept = contents(lab.root.parent)
    assert not [path for path, data in kept if holds_canary(data.decode(errors="replace"))]


def test_the_widgets_after_a_reload_are_still_those_of_the_job(lab):
    """jupyter.md 6.2: the line in the form goes on, since the widget manager connects again."""
    page = lab.page
    go = lab.root / "go"
    command = f"while [ ! -e {go} ]; do sleep 0.05; done"
    lab.notebook("again.ipynb", "%load_ext paijupyter", f'%paijob form --widgets --command "{command}"')
    lab.open("again.ipynb")
    lab.select_first_cell()
    lab.run_cells(2)
    page.get_by_role("button", name="Submit 1 task").click(timeout=60_000)
    page.get_by_role("button", name="Submit now").click()
    page.locator(".widget-html", has_text="● running").wait_for()
    save(page)
    lab.reload()
    page.locator(".widget-html", has_text="● running").wait_for(timeout=60_000)
    go.touch()
    page.locator(".widget-html", has_text="✓ succeeded").wait_for()
    lab.wait_state(lab.card(), "succeeded")


def test_notebook_7_shows_form_and_card(lab):
    """Everywhere else: the same extension and the same widgets in Notebook 7."""
    pytest.importorskip("notebook", reason="Notebook 7 is not installed: make test-browser")
    page = lab.page
    lab.notebook(
        "seven.ipynb", "%load_ext paijupyter", ONLY_WIDGETS, "%%paijob --name card\nprint('in the log')\n"
    )
    page.goto(f"{lab.url}/notebooks/seven.ipynb?token=a-token-for-tests")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
    lab.run_until_heard(2)
    fill_and_submit(page)
    lab.wait_state(lab.card(), "succeeded", seconds=60)
    lab.shoot("notebook7-widgets")
    page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").nth(2).click()
    lab.run_cells(1)
    card = page.locator(".jp-PaiCard", has_text="card-")
    lab.wait_state(card, "succeeded", seconds=60)
    lab.shoot("notebook7-card")
