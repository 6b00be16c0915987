"""The form in real kernels: callbacks on whatever thread, by nbclient, and where a secret's value is not.

Versions of ipykernel differ in where a callback runs (main thread, a subshell, the loop while a cell runs).
Older ones are fetched once, outside of the tree; where that cannot be, their tests are skipped and say so.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ipykernel
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter.client.card import MIME
from tests.forms.front_end import SECONDS, FrontEnd, front_end

CANARY = 'swordfish/&=?"canary-8d21é'
LOAD = "%load_ext paijupyter"
OLDER = ("6.31.0", "7.1.0", "7.2.0", "7.3.0", "7.4.0")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paijupyter-tests"

pytestmark = [
    pytest.mark.timeout(600),
    # pyzmq and nbclient leave sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def forms_of(canary: str) -> set[str]:
    """Return a value as it may be written: itself, in JSON, in an address, in base64."""
    text = canary.encode()
    return {
        canary,
        json.dumps(canary)[1:-1],
        json.dumps(canary, ensure_ascii=False)[1:-1],
        quote(canary),
        quote(canary, safe=""),
        base64.b64encode(text).decode().rstrip("=")[:-1],
        base64.urlsafe_b64encode(text).decode().rstrip("=")[:-1],
        text.hex(),
    }


def assert_nowhere(what: object, canary: str = CANARY) -> None:
    """Search every text in messages, models or a notebook, also for what is text of a text."""
    wanted = forms_of(canary)
    wanted |= {json.dumps(each, ensure_ascii=ascii)[1:-1] for each in wanted for ascii in (True, False)}
    found = [each for text in texts(what) for each in wanted if each in text]
    assert not found, found


def texts(what: object) -> Iterator[str]:
    """Yield all that is text in something, at any depth."""
    if isinstance(what, dict):
        for key, value in what.items():
            yield from texts(key)
            yield from texts(value)
    elif isinstance(what, (list, tuple)):
        for each in what:
            yield from texts(each)
    else:
        yield bytes(what).decode("latin-1") if isinstance(what, (bytes, memoryview)) else str(what)


@pytest.fixture
def folder(isolated_home: Path) -> Path:
    root = isolated_home / "project"
    root.mkdir()
    return root


def environment(version: str | None) -> dict[str, str]:
    """Return the environment of a kernel with a version of ipykernel, fetched if need be."""
    if version is None or version == ipykernel.__version__:
        return dict(os.environ)
    place = CACHE / f"ipykernel-{version}"
    if not (place / "ipykernel_launcher.py").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
        done = subprocess.run([*command, f"ipykernel=={version}"], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"ipykernel {version} cannot be fetched: {done.stderr.strip()[-200:]}")
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


VERSIONS = [
    pytest.param(None, id="installed"),
    *(pytest.param(version, id=version, marks=pytest.mark.services) for version in OLDER),
]


@pytest.fixture(params=VERSIONS)
def kernel(request: pytest.FixtureRequest, folder: Path) -> Iterator[FrontEnd]:
    with front_end(str(folder), environment(request.param)) as found:
        asked = found.run("import ipykernel; print(ipykernel.__version__)")
        said = found.of(asked, "stream")[0]["text"].strip()
        assert said == (request.param or ipykernel.__version__)
        found.version = tuple(map(int, said.split(".")[:2]))
        found.run(LOAD)
        yield found


def submit(kernel: FrontEnd, subshell: str | None = None) -> None:
    button = kernel.model(_model_name="ButtonModel", description="Submit 1 task", disabled=False)
    kernel.click(button, subshell)
    kernel.until(
        lambda: any("as <code>" in str(each.get("value")) for each in kernel.models.values()), "the question"
    )
    kernel.click(kernel.model(description="Submit now"), subshell)


def final(kernel: FrontEnd) -> dict[str, Any]:
    updates = [each for each in kernel.messages if each["msg_type"] == "update_display_data"]
    done = [each for each in updates if each["content"]["data"]["text/plain"].startswith("✓ succeeded")]
    return done[-1] if done else {}


def test_a_person_fills_the_form_submits_and_sees_the_job(kernel: FrontEnd, folder: Path) -> None:
    """The main path in widgets; the value of a secret is in no message of the kernel (O20)."""
    cell = kernel.run(
        "%%paijob --form --name first --secret TOKEN=ask\nimport os; print(len(os.environ['TOKEN']))\n"
    )
    shown, below = kernel.of(cell, "display_data")
    assert "application/vnd.jupyter.widget-view+json" in shown["data"] and "text/html" in shown["data"]
    kernel.set(kernel.model(_model_name="TextModel", description="Name"), "second")
    kernel.until(
        lambda: any('name: "second"' in str(each.get("value")) for each in kernel.models.values()), "the text"
    )
    entry = kernel.model(verb="Use", told="no value yet")
    kernel.send(entry, {"kind": "value", "value": CANARY})
    kernel.until(lambda: kernel.models[entry]["told"] == "value is given", "the value to be taken")
    submit(kernel)
    card = kernel.until(lambda: final(kernel), "the end of the job")
    assert card["content"]["transient"]["display_id"] == below["transient"]["display_id"]
    assert card["content"]["data"][MIME]["name"].startswith("second-")
    line = kernel.until(
        lambda: [each for each in kernel.models.values() if "✓ succeeded  second-" in str(each.get("value"))],
        "the line in the form",
    )
    assert line
    jobs = kernel.run("from paijupyter import JobsClient\nprint(len(JobsClient.connect().list()['jobs']))")
    assert kernel.of(jobs, "stream")[0]["text"] == "1\n"
    log = kernel.run("%paijob logs last --task worker-0")
    assert kernel.of(log, "stream")[0]["text"].split() == ["worker-0", str(len(CANARY))]
    assert_nowhere(kernel.messages)
    assert_nowhere(kernel.models)
    errors = [each["content"] for each in kernel.messages if each["msg_type"] in ("error",)]
    assert errors == []


@pytest.mark.services
@pytest.mark.parametrize("kernel", [None], indirect=True)
def test_buttons_work_beside_a_cell_that_runs_and_print_nothing_into_it(
    kernel: FrontEnd, folder: Path
) -> None:
    """On a subshell a callback runs at once, else after the cell; the card finds its own cell.

    From ipykernel 7.4 on, a message goes to the loop that last published on the comm: that of cells.
    """
    opened = kernel.run("%paijob form --name beside --command true")
    (_, below) = kernel.of(opened, "display_data")
    gate = folder.parent / "gate"
    subshell = kernel.subshell()
    code = f"import pathlib, time\nprint('runs')\ngate = pathlib.Path({str(gate)!r})\n"
    code += "while not gate.exists(): time.sleep(0.02)"
    busy = kernel.execute(code)
    kernel.until(lambda: kernel.of(busy, "stream"), "the cell to run")
    at_once = subshell is not None and kernel.version < (7, 4)
    if not at_once:
        gate.touch()
    submit(kernel, subshell)
    card = kernel.until(lambda: final(kernel), "the end of the job")
    assert card["content"]["transient"]["display_id"] == below["transient"]["display_id"]
    assert not at_once or not kernel.is_done(busy)
    gate.touch()
    kernel.until(lambda: kernel.is_done(busy), "the end of the cell")
    assert [each["text"] for each in kernel.of(busy, "stream")] == ["runs\n"]
    assert kernel.of(busy, "display_data", "error", "execute_result") == []


HEADLESS = """
f.controls["/name"].input.value = "headless"
f.secrets.lines[0].entry._handle_custom_msg({"kind": "value", "value": open("value.txt").read()}, [])
f.settle()
f.submitting.button.click()
f.submitting.confirm.click()
f.settle()
"""
UNTIL_FINAL = """
import time
while not f.job.is_final: time.sleep(0.02)
print(f.job.state, "✓ succeeded" in f.submitting.state.value)
"""


def test_a_notebook_that_runs_by_itself_keeps_widgets_and_no_secret(folder: Path) -> None:
    """nbclient saves widget state by default; the value is in none of it, however it may be written (O20)."""
    (folder / "value.txt").write_text(CANARY)
    (folder / ".paiignore").write_text("value.txt\n")
    notebook = new_notebook(
        cells=[
            new_code_cell(each)
            for each in (LOAD, "%%paijob --form --as f --secret TOKEN=ask\nprint(1)\n", HEADLESS, UNTIL_FINAL)
        ]
    )
    client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment(None))
    assert client.store_widget_state
    saved = json.loads(nbformat.writes(notebook))
    state = saved["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert any("headless" in str(each) for each in state.values())  # It is the state of this form.
    assert_nowhere(saved)
    assert saved["cells"][3]["outputs"][0]["text"] == ["succeeded True\n"]
    form, card = saved["cells"][1]["outputs"]
    assert "".join(form["data"]["text/plain"]).startswith("cell on local")
    assert "headless-" in "".join(card["data"]["text/plain"])


def test_without_the_widgets_the_form_says_what_to_install(folder: Path) -> None:
    """A clear message; JupyterLab's own form needs none of it."""
    code = 'import sys\nsys.modules["anywidget"] = None'
    cells = [
        new_code_cell(each) for each in (LOAD, code, "%paijob form --command true", "%paijob form --widgets")
    ]
    cells[3]["metadata"]["tags"] = ["raises-exception"]
    notebook = new_notebook(cells=cells)
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    (shown,) = notebook.cells[2].outputs
    assert "pip install 'paijupyter[forms]'" in shown.data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" not in shown.data
    reference = shown.data["application/vnd.paijupyter.form+json"]
    assert reference["document"].startswith("protocolVersion: 2") and str(folder) not in json.dumps(reference)
    (error,) = [each for each in notebook.cells[3].outputs if each.output_type != "display_data"]
    assert "pip install 'paijupyter[forms]'" in str(error)


def test_the_canary_would_be_found() -> None:
    """A search that finds nothing proves nothing unless it finds what is there."""
    for each in forms_of(CANARY):
        with pytest.raises(AssertionError):
            assert_nowhere({"a": [f"x{each}y"]})
