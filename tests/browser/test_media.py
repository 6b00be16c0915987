"""For everybody: what forced colours leave to be seen, and what stands still where motion is not wanted."""

from __future__ import annotations

import json
import sys

import nbformat
import pytest

from tests.browser.forming import open_form, planned
from tests.browser.lab import Lab
from tests.home import until

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
    resourcePerInstance: {{cpu: 0, memoryMB: 128, gpu: 0, ports: {{web: 1}}}}
    commands:
      - {command}
"""
COLOURS = r"plain %s \033[31mred\033[0m \033[1;32mgreen\033[0m \033[33myellow\033[0m\n"
LINES = f"seq 10500; for i in 1 2 3; do printf '{COLOURS}' $i; done"
GO = "while [ ! -e {go} ]; do sleep 0.2; done"
STATES = ("running", "failed", "succeeded")
LOOKS = """element => {
  const style = getComputedStyle(element);
  const sides = ['top', 'left', 'bottom'].map(side =>
    parseFloat(style[`border-${side}-width`]) ? style[`border-${side}-color`] : '');
  const {color, backgroundColor, outlineStyle, outlineColor, textDecorationLine, fontWeight} = style;
  const outline = outlineStyle === 'none' ? '' : outlineColor;
  return JSON.stringify([color, backgroundColor, sides, outline, textDecorationLine, fontWeight]);
}"""
MOVING = """() => document.getAnimations()
  .filter(each => each.effect?.target?.closest("[class*='jp-Pai']"))
  .map(each => `${each.animationName ?? each.transitionProperty}: ${each.effect.target.className}`)"""
WATCH_MOTION = """() => {
  window.moved = [];
  for (const kind of ['animationstart', 'transitionrun']) {
    document.addEventListener(kind, event => {
      if (event.target.closest?.("[class*='jp-Pai']")) {
        window.moved.push(`${kind} ${event.animationName ?? event.propertyName}: ${event.target.className}`);
      }
    }, true);
  }
}"""


def submit(lab, name: str, command: str) -> dict:
    """Submit a job of two workers; return it."""
    document = DOCUMENT.format(name=name, command=json.dumps(command))
    request = {"document": document, "context": {"folder": "", "python": sys.executable}}
    return lab.post("jobs", request)


@pytest.fixture(scope="module")
def jobs(shared_server):
    """A job that runs, one that failed, one that succeeded, and a notebook with their cards."""
    lab = Lab(None, shared_server)
    going = f"echo here; {GO.format(go=lab.root / 'go')}"
    made = [
        submit(lab, "going", going),
        submit(lab, "failed", "echo going to fail; exit 3"),
        submit(lab, "done", f"{LINES}; echo 1 > $PAI_OUTPUT_DIR/model.txt"),
    ]
    for job, state in zip(made, STATES, strict=True):
        until(lambda job=job, state=state: lab.get(f"jobs/{job['id']}")["state"] == state, 120, state)
    lab.notebook("cards.ipynb", *("1" for _ in made))
    path = lab.root / "cards.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell, job in zip(notebook.cells, made, strict=True):
        reference = {key: job[key] for key in ("id", "name", "profile")}
        data = {"application/vnd.paijupyter.job+json": {"schema": 1, **reference}, "text/plain": job["name"]}
        cell["outputs"] = [nbformat.v4.new_output("display_data", data)]
    nbformat.write(notebook, path)
    yield {job["name"].rsplit("-", 1)[0]: job for job in made}
    (lab.root / "go").touch()


@pytest.fixture
def lab(shared_lab):
    """A page with much patience: axe-core and changes of the theme take long."""
    shared_lab.page.set_default_timeout(90_000)
    return shared_lab


def open_cards(lab) -> None:
    """Open the notebook; wait until its cards live."""
    lab.open("cards.ipynb")
    for place, state in enumerate(STATES):
        lab.wait_state(lab.card(place), state)
    lab.card(0).locator(".jp-PaiCard-lines", has_text="here").wait_for()


def open_log(lab, job: dict):
    """Open a log, with a search, a line that is marked, and its hits in the whole of it."""
    lab.page.evaluate("id => window.jupyterapp.commands.execute('paijupyter:open-log', {id})", job["id"])
    log = lab.page.locator(".jp-PaiLog:visible")
    log.locator(".jp-PaiLog-row", has_text="plain 3").first.wait_for()
    log.get_by_role("searchbox").fill("plain")
    log.get_by_role("button", name="in the whole log: show all").click()
    log.locator(".jp-PaiLog-hit").nth(3).click()
    log.locator(".jp-PaiLog-row.jp-mod-current mark").wait_for()
    return log


def open_side(lab):
    """Open the side bar; wait for the jobs; return it."""
    lab.page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")
    side = lab.page.locator(".jp-PaiJobs")
    side.locator(".jp-PaiJobs-row", has_text="failed-").first.get_by_text("exit").wait_for()
    return side


def test_forced_colours_tell_what_grounds_told(lab, jobs):
    """States have their icon and word; what is pressed, disabled, marked or found is told by lines."""
    page = lab.page
    page.emulate_media(forced_colors="active")
    open_cards(lab)
    icons = [lab.card(place).locator(".jp-PaiState-icon").first.inner_text() for place in range(3)]
    assert len(set(icons)) == 3
    assert [lab.card(place).locator(".jp-PaiCard-state").inner_text() for place in range(3)] == list(STATES)
    stop = [lab.card(place).get_by_role("button", name="Stop", exact=True) for place in (0, 1)]
    assert looks(stop[0]) != looks(stop[1])
    tasks = [lab.card(place).get_by_role("button", name="Tasks") for place in (1, 2)]
    tasks[0].click()
    page.mouse.move(1, 1)
    assert looks(tasks[0]) != looks(tasks[1])
    lab.shoot("access-forced-cards")

    log = open_log(lab, jobs["done"])
    page.mouse.move(1, 1)
    pressed = [log.get_by_role("button", name=name) for name in ("Wrap", "Times")]
    pressed[0].press("Enter")
    assert looks(pressed[0]) != looks(pressed[1])
    current = log.locator(".jp-PaiLog-row.jp-mod-current")
    assert looks(current) != looks(log.locator(".jp-PaiLog-row:not(.jp-mod-current)").first)
    assert looks(current.locator("mark")) != looks(current.locator(".jp-PaiLog-text"))
    hits = log.locator(".jp-PaiLog-hit")
    assert looks(hits.and_(page.locator("[aria-current]"))) != looks(hits.first)
    lab.shoot("access-forced-log")


def test_nothing_moves_where_motion_is_not_wanted(lab, jobs):
    """The pulse of what runs, and whatever else could move, stand still; else the pulse is there."""
    page = lab.page
    open_cards(lab)
    page.wait_for_function(f"() => ({MOVING})().length > 0")
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_function(f"() => ({MOVING})().length === 0")
    page.evaluate(WATCH_MOTION)
    lab.card(1).get_by_role("button", name="Tasks").click()
    lab.card(1).locator("table").wait_for()
    open_side(lab).locator(".jp-PaiJobs-row").first.hover()
    open_log(lab, jobs["done"]).get_by_role("button", name="Wrap").click()
    form = open_form(lab, document=DOCUMENT.format(name="formed", command="'echo hi'"), folder="")
    planned(form)
    form.locator("summary").first.click()
    form.get_by_role("tab", name="YAML").click()
    form.locator(".jp-PaiYaml .cm-content").click()
    page.wait_for_selector(".jp-PaiYaml .cm-focused")
    assert page.evaluate("window.moved") == []
    assert page.evaluate(MOVING) == []


def looks(element) -> str:
    """Return all that colours and lines tell of an element."""
    return str(element.evaluate(LOOKS))
