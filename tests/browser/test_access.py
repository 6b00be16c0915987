"""For everybody: what axe-core finds in our own elements, the keyboard's way, motion, and forced colours."""

from __future__ import annotations

import json
import sys

import nbformat
import pytest

from tests.browser.access import MOVING, THEMES, WATCH_MOTION, focused, looks, serious_faults, walk
from tests.browser.forming import open_form, planned
from tests.browser.lab import Lab
from tests.browser.seeding import sweep
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
COLOURS = r"\033[31mred\033[0m \033[1;32mgreen\033[0m \033[33myellow\033[0m"
GROUNDS = (
    r"\033[41mon red\033[0m \033[30;43mon yellow\033[0m \033[97;44mon blue\033[0m \033[31;7mturned\033[0m"
)
LINES = f"seq 10500; for i in 1 2 3; do printf 'plain %s {COLOURS} {GROUNDS}\\n' $i; done"
GO = "while [ ! -e {go} ]; do sleep 0.2; done"
STATES = ("running", "failed", "succeeded")


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


def test_cards_and_log_have_no_serious_fault(lab, jobs):
    """Cards in their states with what opens in them, the log view with its hits, in three themes."""
    page = lab.page
    open_cards(lab)
    found = serious_faults(lab, ".jp-PaiCard")
    lab.card(0).get_by_role("button", name="Ports").click()
    lab.card(1).get_by_role("button", name="Tasks").click()
    lab.card(1).locator("table").wait_for()
    found += serious_faults(lab, ".jp-PaiCard")
    lab.shoot("access-cards")
    lab.theme(THEMES[2])
    lab.shoot("access-cards-contrast")
    lab.theme(THEMES[0])

    # By keyboard through a card under its cell and what has opened in it, and out of it.
    reached = walk(page, ".jp-PaiCard[data-state='failed']")
    assert len([each for each in reached if "jp-Pai-button" in each]) >= 6

    log = open_log(lab, jobs["done"])
    found += serious_faults(lab, ".jp-PaiLog")
    assert not found, "\n".join(found)
    regions = [f".jp-PaiLog-{name}" for name in ("bar", "hits", "head", "scroll", "end")]
    walk(page, ".jp-PaiLog", *regions)
    log.get_by_role("button", name="Close the hits").press("Enter")
    assert focused(page, ".jp-PaiLog-search [aria-expanded='false']")


def test_side_bar_and_its_dialogs_have_no_serious_fault(lab, jobs):
    """Days, a group folded and open, several chosen; the question before a job goes, the focus after it."""
    page = lab.page
    sweep(lab, "sweep-lr", 3)
    submit(lab, "gone", "exit 4")
    lab.open()
    side = open_side(lab)
    group = side.locator(".jp-PaiJobs-row[aria-expanded]").first
    group.get_by_text("3 running").wait_for()
    found = serious_faults(lab, "#paijupyter-jobs", ".jp-PaiCount")
    group.focus()
    page.keyboard.press("ArrowRight")
    side.locator(".jp-PaiJobs-row[aria-level='2']").nth(2).wait_for()
    for _ in range(4):  # the three of the group, and the job after it
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    side.locator(".jp-PaiJobs-many", has_text="2 chosen").wait_for()
    found += serious_faults(lab, "#paijupyter-jobs")
    lab.shoot("access-side")
    page.mouse.move(1, 1)
    walk(page, "#paijupyter-jobs")

    # The focus comes back to the row, or goes to the next one where the row is gone.
    gone = side.locator(".jp-PaiJobs-row[data-state='failed']", has_text="gone-").first
    gone.click()
    gone.press("Delete")
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_text("Delete gone-").wait_for()
    found += serious_faults(lab, ".jp-Dialog-content")
    dialog.get_by_role("button", name="Cancel").press("Escape")
    dialog.wait_for(state="detached")
    assert gone.evaluate("row => row === document.activeElement")
    gone.press("Delete")
    dialog.get_by_role("button", name="Delete").press("Enter")
    gone.wait_for(state="detached")
    assert group.evaluate("row => row === document.activeElement")
    assert not found, "\n".join(found)


def test_form_and_its_dialogs_have_no_serious_fault(lab):
    """All sections open, a secret, two roles, problems; then the text of it; then what it asks."""
    page = lab.page
    lab.open()
    form = open_form(lab, document=DOCUMENT.format(name="formed", command="'echo hi'"), folder="")
    planned(form)
    form.get_by_role("button", name="Copy the role worker").click()
    form.locator('[data-role="worker2"]').wait_for()
    form.get_by_label("Add a secret").click()
    form.get_by_label("Name of the secret").fill("ASKED")
    form.get_by_label("Name of the secret").press("Enter")
    form.get_by_label("Where ASKED comes from").wait_for()
    page.evaluate("document.querySelectorAll('.jp-PaiForm details').forEach(each => { each.open = true; })")
    planned(form)
    found = serious_faults(lab, ".jp-PaiForm")
    lab.shoot("access-form")

    # Asked before it is submitted and before it is closed; the focus is where it was then.
    planned(form)
    form.locator(".jp-PaiForm-submit").press("Enter")
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_label("Value of ASKED").wait_for()
    found += serious_faults(lab, ".jp-Dialog-content")
    dialog.get_by_role("button", name="Cancel").press("Escape")
    dialog.wait_for(state="detached")
    assert focused(page, ".jp-PaiForm-submit")
    form.get_by_label("Name", exact=True).focus()
    page.evaluate("void window.jupyterapp.commands.execute('application:close')")
    dialog.get_by_text("Close the form?").wait_for()
    found += serious_faults(lab, ".jp-Dialog-content")
    dialog.get_by_role("button", name="Cancel").press("Escape")
    dialog.wait_for(state="detached")
    assert focused(page, "[data-path='/name'] input")

    form.get_by_role("tab", name="YAML").click()
    form.locator(".jp-PaiYaml .cm-content").wait_for()
    found += serious_faults(lab, ".jp-PaiForm")
    assert not found, "\n".join(found)


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
