"""The magic in real kernels, with a real engine and real tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter.client.card import MIME

LOAD = "%load_ext paijupyter"
SECONDS = 60

pytestmark = [
    pytest.mark.slow,
    # pyzmq and nbclient leave sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def execute(folder: Path, *sources: str, fails: bool = False) -> list[Any]:
    """Execute cells by nbclient; return their outputs cell by cell."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in (LOAD, *sources)])
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=SECONDS, resources=resources, store_widget_state=False)
    if fails:
        with pytest.raises(CellExecutionError):
            client.execute()
    else:
        client.execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def streamed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def cards(outputs: list[Any]) -> list[Any]:
    return [output.data for output in outputs if output.get("data", {}).get(MIME)]


@pytest.fixture
def folder(isolated_home: Path) -> Path:
    root = isolated_home / "project"
    root.mkdir()
    (root / "helper.py").write_text("WORD = 'helped'\n")
    return root


def test_a_distributed_cell_runs_streams_and_brings_results_back(folder: Path, monkeypatch: Any) -> None:
    """O2, O15, O19, O20, P19: roles, package, typed parameters, a secret, results, all from a notebook."""
    monkeypatch.setenv("TOKEN_OF_TEST", "canary-5d1c")
    line = (
        "%%paijob --name dist --role ps:1 --role worker:2 --param lr={rate} --secret TOKEN=env:TOKEN_OF_TEST"
    )
    body = """
import os, pathlib
from helper import WORD
role = os.environ["PAI_CURRENT_TASK_ROLE_NAME"]
print(WORD, role, lr * 2, len(os.environ["TOKEN"]), flush=True)
if role == "ps":
    import time
    while True:
        time.sleep(0.05)
pathlib.Path(os.environ["PAI_OUTPUT_DIR"], "m.txt").write_text(role)
"""
    outputs = execute(
        folder,
        "rate = 0.25",
        f"{line} --wait --as job{body}",
        "job.pull('results')",
        "%paijob logs last --task worker-1",
        "%paijob list",
    )
    _, ran, pulled, logs, listed = outputs
    lines = streamed(ran).splitlines()
    assert lines[0].startswith("dist-") and lines[0].endswith(" is submitted to local")
    assert {"worker-0  helped worker 0.5 11", "worker-1  helped worker 0.5 11"} <= set(lines)
    (card,) = cards(ran)
    assert ran[-1].data == card  # It ends with the final card, and shows no other.
    assert card["text/plain"].startswith("✓ succeeded  dist-")
    assert set(card[MIME]) == {"schema", "id", "name", "profile", "packageSha256", "submittedAt"}
    assert (folder / "results" / "worker-1" / "m.txt").read_text() == "worker"
    assert "m.txt" in pulled[0].data["text/plain"]
    assert streamed(logs) == "worker-1  helped worker 0.5 11\n"
    assert "✓ succeeded" in listed[0].data["text/plain"]
    assert "canary-5d1c" not in str(outputs)


def test_a_job_that_fails_fails_its_cell_and_so_the_notebook(folder: Path) -> None:
    (outputs,) = execute(
        folder, "%%paijob --name bad --wait\nprint('before', flush=True)\nraise SystemExit(3)\n", fails=True
    )
    assert "worker-0  before" in streamed(outputs)
    (card,) = cards(outputs)
    assert card["text/plain"].startswith("✕ failed  bad-")
    (error,) = (output for output in outputs if output.output_type == "error")
    assert error.ename == "JobFailed"
    assert len(error.traceback) == 1 and "\n" not in error.traceback[0]
    assert "failed: worker-0 ended with exit code 3" in error.traceback[0]


def test_a_line_of_a_traceback_is_the_line_of_the_cell(folder: Path) -> None:
    body = '"""Doc."""\nimport os\n\nraise RuntimeError(lr)\n'
    (outputs,) = execute(folder, f"%%paijob --param lr=1 --wait\n{body}", fails=True)
    assert 'cell.py", line 5' in streamed(outputs)


def test_papermill_runs_it_with_its_parameters(folder: Path) -> None:
    """Headless runs need a foreground --wait (jupyter.md 6.3)."""
    papermill = pytest.importorskip("papermill")
    cells = [
        new_code_cell("rate = 0.1", metadata={"tags": ["parameters"]}),
        new_code_cell(LOAD),
        new_code_cell("%%paijob --param lr={rate} --wait\nprint('lr is', lr)\n"),
    ]
    source, target = folder / "in.ipynb", folder / "out.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=kernel), source)
    papermill.execute_notebook(
        str(source), str(target), parameters={"rate": 0.75}, progress_bar=False, cwd=str(folder)
    )
    done = nbformat.read(target, as_version=4)
    assert "worker-0  lr is 0.75" in streamed(done.cells[-1].outputs)
    assert cards(done.cells[-1].outputs)[-1]["text/plain"].startswith("✓ succeeded")


def test_a_notebook_that_does_not_wait_still_ends_with_the_final_card(folder: Path) -> None:
    """A saved notebook ends with the final snapshot (architecture decision 6)."""
    poll = "import time\nwhile not job.is_final:\n    time.sleep(0.01)\n"
    outputs, _ = execute(folder, "%%paijob --as job\nimport time\ntime.sleep(0.3)\n", poll)
    (card,) = cards(outputs)
    assert card["text/plain"].startswith("✓ succeeded")


class Kernel:
    """A live kernel as a front end sees it: messages by the request they belong to."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client
        self.messages: list[dict[str, Any]] = []

    def start(self, code: str) -> str:
        return str(self.client.execute(code))

    def read_until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read messages until one fits; fail after a minute."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            self.messages.append(message)
            if condition(message):
                return dict(message)
        raise AssertionError("no such message")

    def run(self, code: str) -> str:
        sent = self.start(code)
        self.read_until(lambda message: idle(message, sent))
        return sent

    def of(self, request: str, kind: str) -> list[dict[str, Any]]:
        found = (m for m in self.messages if m["parent_header"].get("msg_id") == request)
        return [message["content"] for message in found if message["msg_type"] == kind]


def idle(message: dict[str, Any], request: str) -> bool:
    return (
        message["msg_type"] == "status"
        and message["content"]["execution_state"] == "idle"
        and message["parent_header"].get("msg_id") == request
    )


@pytest.fixture
def kernel(folder: Path) -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    found = Kernel(manager, client)
    found.run(LOAD)
    yield found
    client.stop_channels()
    manager.shutdown_kernel(now=True)


HOLD = "import pathlib, time\nwhile not pathlib.Path({!r}).exists():\n    time.sleep(0.02)\n"


def is_update(message: dict[str, Any], state: str) -> bool:
    return message["msg_type"] == "update_display_data" and state in message["content"]["data"]["text/plain"]


def test_the_card_is_updated_after_its_cell_ended_while_other_cells_run(kernel: Kernel, folder: Path) -> None:
    """Architecture decision 6; jupyter.md 6.1: updates go by display id and belong to the submitting cell."""
    gate = folder.parent / "gate"
    cell = kernel.run("%%paijob --name held --as job\n" + HOLD.format(str(gate)))
    (shown,) = kernel.of(cell, "display_data")
    assert shown["data"]["text/plain"].split()[1] in ("waiting", "running")
    other = kernel.start(
        f"import time, pathlib\npathlib.Path({str(gate)!r}).touch()\nwhile not job.is_final: time.sleep(0.01)"
    )
    final = kernel.read_until(lambda message: is_update(message, "✓ succeeded"))
    assert final["content"]["transient"]["display_id"] == shown["transient"]["display_id"]
    assert final["parent_header"]["msg_id"] == cell
    assert MIME in final["content"]["data"]
    kernel.read_until(lambda message: idle(message, other))
    assert kernel.of(other, "stream") == [] and kernel.of(other, "display_data") == []
    states = [
        m["content"]["data"]["text/plain"].split()[1]
        for m in kernel.messages
        if m["msg_type"] == "update_display_data"
    ]
    assert states[-1] == "succeeded" and "failed" not in states
    assert len(states) <= 4  # On changes of state, never for progress.


def test_interrupting_a_wait_leaves_the_job_running(kernel: Kernel, folder: Path) -> None:
    """Interrupt detaches, stop is explicit (architecture decision 7)."""
    gate = folder.parent / "gate"
    body = f"print('at work', flush=True)\n{HOLD.format(str(gate))}"
    cell = kernel.start(f"%%paijob --name held --wait --as job\n{body}")
    kernel.read_until(lambda message: "at work" in str(message["content"].get("text")))
    kernel.manager.interrupt_kernel()
    kernel.read_until(lambda message: idle(message, cell))
    (error,) = kernel.of(cell, "error")
    assert error["ename"] == "Detached" and len(error["traceback"]) == 1
    assert "goes on. Stop it with: %paijob stop held-" in error["traceback"][0]
    asked = kernel.run(
        "import time\nwhile job.refresh().state == 'waiting': time.sleep(0.01)\nprint(job.state)"
    )
    assert kernel.of(asked, "stream")[0]["text"] == "running\n"
    stopped = kernel.run("%paijob stop last")
    assert "stopped. Its logs stay." in kernel.of(stopped, "display_data")[0]["data"]["text/plain"]


def test_the_same_cell_run_again_shows_the_unfinished_job(kernel: Kernel, folder: Path) -> None:
    """Architecture, "Running a %%paijob cell": its card is shown instead; --again submits another."""
    gate = folder.parent / "gate"
    body = HOLD.format(str(gate))

    def submit(options: str = "") -> str:
        content = {
            "code": f"%%paijob --name held {options}\n{body}",
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = kernel.client.session.msg("execute_request", content, metadata={"cellId": "cell-1"})
        kernel.client.shell_channel.send(message)
        sent = str(message["header"]["msg_id"])
        kernel.read_until(lambda each: idle(each, sent))
        return str(kernel.of(sent, "display_data")[0]["data"][MIME]["name"])

    first = submit()
    assert submit() == first
    second = submit("--again")
    assert second != first
    third = submit("--replace")
    assert third not in (first, second)
    gate.touch()


def test_the_package_is_that_of_the_notebook_not_of_the_working_directory(
    kernel: Kernel, folder: Path
) -> None:
    kernel.run(
        f"import os\nos.environ['JPY_SESSION_NAME'] = {str(folder / 'n.ipynb')!r}\nos.chdir({os.sep!r})"
    )
    cell = kernel.run("%%paijob --wait\nimport helper\nprint(helper.WORD)\n")
    said = "".join(each["text"] for each in kernel.of(cell, "stream"))
    assert said.startswith("n-") and "worker-0  helped" in said


def test_profiles_and_doctor_from_a_notebook_and_a_secret_that_nobody_can_type(folder: Path) -> None:
    """O3, O20, P22: the same verbs as in a terminal; a notebook run without its user says so."""
    outputs = execute(
        folder,
        "%paijob profile add half --set cpu=2",
        "%paijob profile list",
        "%paijob profile test half",
        "%paijob doctor",
    )
    shown = ["".join(output.data["text/plain"] for output in each) for each in outputs]
    assert "is added" in shown[0] and "half" in shown[1] and "✓ half answers" in shown[2]
    assert "✓ engine" in shown[3] and "⚠ keyring" in shown[3]
    execute(folder, "%paijob secret set TOKEN", fails=True)
