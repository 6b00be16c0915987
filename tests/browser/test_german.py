"""In German: the card, the side bar and the form of a JupyterLab whose user has chosen it."""

from __future__ import annotations

import json
import sys

import pytest

from tests.browser.forming import open_form

DOCUMENT = """\
protocolVersion: 2
name: deutsch
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: python}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: [echo hallo]
"""


@pytest.fixture
def german(isolated_home):
    """Choose German before JupyterLab starts."""
    pytest.importorskip("jupyterlab_language_pack_de_DE", reason="pip install jupyterlab-language-pack-de-DE")
    folder = isolated_home / "settings" / "@jupyterlab" / "translation-extension"
    folder.mkdir(parents=True)
    (folder / "plugin.jupyterlab-settings").write_text(json.dumps({"locale": "de_DE"}))


def test_card_side_bar_and_form_speak_german(german, lab):
    """With JupyterLab's language pack installed, our own texts are German by our own catalogue."""
    page = lab.page
    page.set_default_timeout(90_000)
    context = {"folder": "", "python": sys.executable}
    job = lab.post("jobs", {"document": DOCUMENT, "context": context})
    lab.open()
    page.evaluate("id => window.jupyterapp.commands.execute('paijupyter:open-job', {id})", job["id"])
    card = page.locator(".jp-PaiCard")
    lab.wait_state(card, "succeeded", seconds=90)
    card.locator(".jp-PaiCard-state", has_text="gelungen").wait_for()
    card.get_by_role("button", name="Protokolle", exact=True).wait_for()
    card.get_by_role("button", name="Kopieren & ändern").wait_for()
    assert card.get_by_role("button", name="Ausgaben").get_attribute("title") == (
        "Der Job hat keine Ausgabedateien hinterlassen"
    )

    page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    side = page.locator(".jp-PaiJobs")
    side.get_by_role("searchbox", name="Jobs filtern").wait_for()
    side.get_by_text("heute (1)").wait_for()
    lab.shoot("german-light")

    form = open_form(lab, document=DOCUMENT, folder="")
    form.locator(".jp-PaiForm-submit", has_text="2 Tasks einreichen").wait_for(timeout=90_000)
    form.get_by_role("heading", name="Wo er läuft").wait_for()
    form.get_by_label("Befehle").first.wait_for()
    lab.shoot("german-form-light")
