"""For everybody: what axe-core finds in our own elements, the keyboard's way, motion, and forced colours."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
import pytest

from tests.browser.forming import open_form

FRONT_END = Path(__file__).parent.parent.parent / "labextension"
AXE = FRONT_END / "node_modules" / "axe-core" / "axe.min.js"
THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")
DOCUMENT = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{protocolVersion: 2, name: image, type: dockerimage, uri: python}}
parameters: {{lr: 0.1}}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0, ports: {{web: 1}}}}
    commands:
      - {command}
"""
RUN_AXE = """async where => {
  const found = await axe.run({include: where.map(each => [each])}, {resultTypes: ['violations']});
  return found.violations
    .filter(each => ['serious', 'critical'].includes(each.impact))
    .flatMap(each => each.nodes.map(node =>
      `${each.id}: ${node.target.join(' ')}: ${node.html.slice(0, 160)}: ` +
      node.any.concat(node.all, node.none).map(check => check.message).join('; ').slice(0, 300)));
}"""
COLOURS = r"plain %s \033[31mred\033[0m \033[1;32mgreen\033[0m \033[33myellow\033[0m\n"
LINES = f"for i in 1 2 3; do printf '{COLOURS}' $i; done"
PLANT = """where => {
  const fault = document.createElement('p');
  fault.id = 'planted';
  fault.innerHTML = '<button></button><span style="color: #999; background: #aaa">pale</span>';
  document.querySelector(where).prepend(fault);
}"""
GO = "while [ ! -e {go} ]; do sleep 0.2; done"


@pytest.fixture
def axe(lab):
    """Return a function that asks axe-core for serious faults within selectors, in every theme."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in labextension")
    source = AXE.read_text()

    def faults(*where: str, themes: tuple[str, ...] = THEMES) -> list[str]:
        lab.page.evaluate(source)
        # JupyterLab's body has no height and hides what flows over: axe would take all text for hidden.
        lab.page.evaluate("document.body.style.height = '100vh'")
        lab.page.evaluate(PLANT, where[0])
        planted = lab.page.evaluate(RUN_AXE, list(where))
        lab.page.evaluate("document.querySelector('#planted').remove()")
        assert {"button-name", "color-contrast"} <= {each.split(":")[0] for each in planted}, planted
        found = []
        for theme in themes:
            lab.theme(theme)
            lab.page.mouse.move(1, 1)
            found += [f"{theme}: {each}" for each in lab.page.evaluate(RUN_AXE, list(where))]
        lab.theme(THEMES[0])
        return found

    return faults


def submit(lab, name: str, command: str) -> dict:
    """Submit a job of two workers; return it."""
    document = DOCUMENT.format(name=name, command=json.dumps(command))
    request = {"document": document, "context": {"folder": "", "python": sys.executable}}
    return lab.post("jobs", request)


def notebook_of(lab, *jobs: dict) -> None:
    """Write a notebook whose cells have the cards of jobs."""
    lab.notebook("cards.ipynb", *("1" for _ in jobs))
    path = lab.root / "cards.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell, job in zip(notebook.cells, jobs, strict=True):
        reference = {key: job[key] for key in ("id", "name", "profile")}
        data = {"application/vnd.paijupyter.job+json": {"schema": 1, **reference}, "text/plain": job["name"]}
        cell["outputs"] = [nbformat.v4.new_output("display_data", data)]
    nbformat.write(notebook, path)


def test_cards_and_log_have_no_serious_fault(lab, axe):
    """Cards in their states with what opens in them, and the log view, in three themes."""
    page = lab.page
    page.set_default_timeout(90_000)
    done = submit(lab, "done", f"{LINES}; echo 1 > $PAI_OUTPUT_DIR/model.txt")
    failed = submit(lab, "failed", "echo going to fail; exit 3")
    going = submit(lab, "going", f"echo here; {GO.format(go=lab.root / 'go')}")
    notebook_of(lab, going, failed, done)
    lab.open("cards.ipynb")
    lab.wait_state(lab.card(2), "succeeded", seconds=60)
    lab.wait_state(lab.card(1), "failed", seconds=60)
    lab.wait_state(lab.card(0), "running", seconds=60)
    lab.card(0).locator(".jp-PaiCard-lines", has_text="here").wait_for()
    found = axe(".jp-PaiCard")
    lab.card(0).get_by_role("button", name="Ports").click()
    lab.card(1).get_by_role("button", name="Tasks").click()
    lab.card(1).locator("table").wait_for()
    found += axe(".jp-PaiCard")
    lab.shoot("access-cards")
    lab.theme(THEMES[2])
    lab.shoot("access-cards-contrast")

    lab.card(2).get_by_role("button", name="Logs", exact=True).click()
    log = page.locator(".jp-PaiLog:visible")
    log.locator(".jp-PaiLog-row", has_text="plain 3").first.wait_for()
    log.get_by_role("searchbox").fill("plain")
    found += axe(".jp-PaiLog")
    assert not found, "\n".join(found)


def test_side_bar_and_dialogs_have_no_serious_fault(lab, axe):
    """The list with days, groups and several chosen; the question before jobs go."""
    page = lab.page
    page.set_default_timeout(90_000)
    submit(lab, "failed", "exit 3")
    submit(lab, "going", GO.format(go=lab.root / "go"))
    lab.open()
    page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    side = page.locator(".jp-PaiJobs")
    side.locator(".jp-PaiJobs-row", has_text="failed").get_by_text("exit").wait_for()
    found = axe("#paijupyter-jobs", ".jp-PaiCount")
    side.get_by_role("searchbox").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    side.locator(".jp-PaiJobs-many", has_text="2 chosen").wait_for()
    found += axe("#paijupyter-jobs")
    lab.shoot("access-side")
    assert not found, "\n".join(found)


def test_form_has_no_serious_fault(lab, axe):
    """All sections open, a secret, two roles, problems; then the text of it; then the question."""
    page = lab.page
    page.set_default_timeout(90_000)
    lab.open()
    form = open_form(lab, document=DOCUMENT.format(name="formed", command="'echo hi'"), folder="")
    form.locator(".jp-PaiPlan:not([aria-busy]) .jp-PaiPlan-verdict").wait_for()
    form.get_by_role("button", name="Copy the role worker").click()
    form.locator('[data-role="worker2"]').wait_for()
    page.evaluate("document.querySelectorAll('.jp-PaiForm details').forEach(each => { each.open = true; })")
    found = axe(".jp-PaiForm")
    lab.shoot("access-form")
    form.get_by_role("tab", name="YAML").click()
    form.locator(".jp-PaiYaml .cm-content").wait_for()
    found += axe(".jp-PaiForm")
    assert not found, "\n".join(found)
