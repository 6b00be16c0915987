"""Whatever goes away - the page, the kernel, the engine, one of two tabs - the screens show what is true."""

from __future__ import annotations

import os
import re
import signal

import nbformat
import pytest

WAITS = """\
%%paijob --name {name} --again
import pathlib, time
print("waits", flush=True)
while not pathlib.Path("{go}").exists():
    time.sleep(0.05)
"""


def until_told(lab, until, job: str, state: str) -> None:
    until(lambda: lab.get(f"jobs/{job}")["state"] == state, why=f"the job to be {state}")


def notebook_of_cards(lab, name: str, jobs: list[str]) -> None:
    """Write a notebook as it is saved: each output has a reference, and a snapshot that says less."""
    lab.notebook(name, *map(str, range(len(jobs))))
    notebook = nbformat.read(lab.root / name, as_version=4)
    for cell, job in zip(notebook.cells, jobs, strict=True):
        reference = {"schema": 1, "id": job, "name": "saved", "profile": "local"}
        bundle = {"application/vnd.paijupyter.job+json": reference, "text/plain": "as it was saved"}
        cell["outputs"] = [nbformat.v4.new_output("display_data", bundle)]
    nbformat.write(notebook, lab.root / name)


def show_list(lab) -> None:
    lab.page.evaluate("window.jupyterapp.commands.execute('paijupyter:open-jobs')")


def test_each_state_is_the_same_after_a_reload(shared_lab, until):
    """O30, O32: queued, running, failed, succeeded, stopped; what happens after the reload is seen too."""
    lab = shared_lab
    go = lab.root / "go-states"
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    capacity = 4 * (os.cpu_count() or 1)
    names = ["queued", "running", "failed", "succeeded", "stopped"]
    # First those that end: behind one that waits for the whole machine all others would wait too.
    commands = {"failed": "exit 3", "succeeded": "true", "stopped": "sleep 600"}
    ended = [lab.submit(name, command) for name, command in commands.items()]
    lab.post(f"jobs/{ended[2]}/stop", {})
    for job, state in zip(ended, commands, strict=True):
        until_told(lab, until, job, state)
    running = lab.submit("running", wait, cpu=capacity)
    until_told(lab, until, running, "running")
    queued = lab.submit("queued", wait, cpu=capacity)
    notebook_of_cards(lab, "states.ipynb", [queued, running, *ended])
    lab.open("states.ipynb")
    states = ["waiting", *names[1:]]

    def all_shown() -> list[str]:
        for place, state in enumerate(states):
            lab.wait_state(lab.card(place), state)
        return [lab.card(place).locator(".jp-PaiCard-name").inner_text() for place in range(len(states))]

    shown = all_shown()
    assert [name.rsplit("-", 1)[0] for name in shown] == names
    assert re.search(r"queue|CPU", lab.card(0).inner_text())
    lab.reload()
    assert all_shown() == shown
    lab.shoot("states-light")

    go.touch()
    for place in (0, 1):
        lab.wait_state(lab.card(place), "succeeded")


def test_a_restarted_kernel_changes_nothing_of_the_job(shared_lab, until):
    """The card follows the job server, not the kernel; the same cell finds its job again."""
    lab = shared_lab
    page = lab.page
    go = lab.root / "go-kernel"
    cell = WAITS.format(name="kernel", go=go).replace(" --again", "")
    lab.notebook("kernel.ipynb", "%load_ext paijupyter", cell)
    lab.open("kernel.ipynb")
    lab.select_first_cell()
    lab.run_cells(2)
    lab.wait_state(lab.card(), "running")
    name = lab.card().locator(".jp-PaiCard-name").inner_text()
    # A promise: the command asks first, and ends when the kernel is there again.
    page.evaluate("void window.jupyterapp.commands.execute('notebook:restart-kernel')")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.locator(".jp-Dialog").wait_for(state="detached")
    lab.wait_idle()
    lab.wait_state(lab.card(), "running")
    lab.select_first_cell()
    lab.run_cells(2)
    page.locator(".jp-InputPrompt", has_text="[2]:").wait_for()
    lab.wait_state(lab.card(), "running")
    assert lab.card().locator(".jp-PaiCard-name").inner_text() == name
    assert [job["name"] for job in lab.get("jobs")["jobs"] if job["shortName"] == "kernel"] == [name]
    go.touch()
    lab.wait_state(lab.card(), "succeeded")


def test_a_killed_engine_is_followed_by_another_and_the_page_sees_the_end(shared_lab, until):
    """S1: kill -9 of the engine; task and page go on, and the end is shown without a reload."""
    lab = shared_lab
    go = lab.root / "go-engine"
    job = lab.submit("engine", f"until [ -e {go} ]; do sleep 0.05; done")
    notebook_of_cards(lab, "engine.ipynb", [job])
    lab.open("engine.ipynb")
    lab.wait_state(lab.card(), "running")
    show_list(lab)
    connection = lab.page.locator(".jp-PaiJobs-connection")
    connection.get_by_text("live", exact=True).wait_for()
    before = lab.get("version")["engine"]["pid"]
    os.kill(before, signal.SIGKILL)
    until(lambda: lab.get("version")["engine"]["pid"] != before, why="another engine")
    connection.get_by_text("live", exact=True).wait_for()
    lab.wait_state(lab.card(), "running")
    go.touch()
    lab.wait_state(lab.card(), "succeeded")


def test_what_one_tab_stops_the_other_shows(shared_lab, until):
    """Two tabs of one browser: card and list of both are the same, whichever of them acts."""
    lab = shared_lab
    job = lab.submit("tabs", "sleep 600")
    until_told(lab, until, job, "running")
    notebook_of_cards(lab, "tabs.ipynb", [job])
    lab.open("tabs.ipynb")
    lab.wait_state(lab.card(), "running")
    other = lab.another()
    other.open(workspace="other")
    show_list(other)
    row = other.page.locator(".jp-PaiJobs-row", has_text="tabs-")
    row.and_(other.page.locator("[data-state='running']")).wait_for()
    row.focus()
    other.page.keyboard.press("s")
    row.and_(other.page.locator("[data-state='stopped']")).wait_for()
    lab.page.bring_to_front()
    lab.wait_state(lab.card(), "stopped")


RTC = """async path => {
  const { serviceManager, commands } = window.jupyterapp;
  const { contents } = serviceManager;
  const Drive = contents.defaultDrive.constructor;
  contents.addDrive(new Drive({ name: 'RTC', serverSettings: contents.serverSettings }));
  await commands.execute('docmanager:open', { path });
}"""


def test_a_notebook_of_a_collaboration_drive(shared_lab):
    """`RTC:x.ipynb` is `x.ipynb` for the server; the way back leads to the panel that is open."""
    lab = shared_lab
    page = lab.page
    lab.notebook("shared.ipynb", "1", "print('of a drive')")
    lab.open()
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate(RTC, "RTC:shared.ipynb")
    lab.wait_idle()
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(1)
    cell.locator(".jp-InputArea-editor").click()
    cell.locator("[data-command='paijupyter:run-cell']").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Submit 1 task").click()
    card = page.locator(".jp-PaiPage .jp-PaiCard")
    lab.wait_state(card, "succeeded")
    (job,) = [each for each in lab.get("jobs")["jobs"] if (each["notebook"] or "").endswith("shared.ipynb")]
    assert job["notebook"] == str(lab.root / "shared.ipynb") and job["cell"]["number"] == 2
    card.get_by_role("button", name="Notebook").click()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.content?.activeCellIndex === 1")
    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    assert path == "RTC:shared.ipynb"
    assert page.locator(".jp-NotebookPanel").count() == 1


@pytest.fixture(autouse=True)
def nothing_runs_on(shared_lab):
    """Stop what a failed test has left: the others want the machine's CPUs."""
    yield
    for job in shared_lab.get("jobs")["jobs"]:
        if job["state"] in ("waiting", "running"):
            shared_lab.post(f"jobs/{job['id']}/stop", {})
