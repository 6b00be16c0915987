"""Planted secrets are searched for everywhere (O20, architecture decision 8).

Whole jobs run, from a notebook, from the command line and by REST through a Jupyter server, with values that
say themselves in every encoding. Then every place that people, files and other programs can look at is
searched. The table of places and encodings is written to ``canary.md`` in the folder of the test.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter import paths
from paijupyter.client.client import JobsClient
from paijupyter.engine.routes import ROUTES
from paijupyter.errors import PaiJupyterError
from tests.resting import contents

HERE = Path(__file__).parent
SECRETS = {
    "ENV": 'cnry-env/É" 7+q?(&=\\x',  # every character that some encoding changes
    "RING": "cnry.ring+A1/b2c3==",  # can stand in a shell line as it is
    "LINES": "-----BEGIN CNRY-----\nMIIcnryAQEA7b9x/k2\nQ0lcnryZ8vT+u1\n-----END CNRY-----",
}
NAMES = " ".join(SECRETS)
GIVEN = "--secret ENV=env:PLANTED_ENV --secret RING=keyring:RING --secret LINES=env:PLANTED_LINES"
ENCODINGS = ("value", "base64", "URL", "JSON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# --- what is searched for


def forms(value: str) -> Iterator[tuple[str, bytes]]:
    """Yield every text that gives a value away, with the name of its encoding."""
    data = value.encode()
    yield "value", data
    for line in data.splitlines():
        if len(line) >= 12:
            yield "value", line
    for shift in range(3):
        digits = base64.b64encode(b"\0" * shift + data).rstrip(b"=")
        own = digits[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
        yield "base64", own
        yield "base64", own.replace(b"+", b"-").replace(b"/", b"_")
    yield "URL", quote(value, safe="").encode()
    yield "URL", quote(value).encode()
    yield "URL", quote_plus(value).encode()
    yield "URL", re.sub("%..", lambda digits: digits[0].lower(), quote_plus(value)).encode()
    yield "URL", quote(value, safe="!'()*").encode()
    yield "JSON", json.dumps(value)[1:-1].encode()
    yield "JSON", json.dumps(value, ensure_ascii=False)[1:-1].encode()
    yield "JSON", json.dumps(value)[1:-1].replace("/", "\\/").encode()
    yield "JSON", json.dumps(json.dumps(value))[3:-3].encode()  # JSON in JSON, as in a saved notebook


FORMS = [(encoding, form) for value in SECRETS.values() for encoding, form in forms(value)]


class Table:
    """Places × encodings: how often something was found."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.sizes: dict[str, int] = {}

    def search(self, place: str, *contents: bytes | str | Path) -> None:
        """Search a place; a folder is searched with all its files."""
        row = self.rows.setdefault(place, dict.fromkeys(ENCODINGS, 0))
        for content in contents:
            for piece in _pieces(content):
                self.sizes[place] = self.sizes.get(place, 0) + len(piece)
                for encoding, form in FORMS:
                    row[encoding] += piece.count(form)

    @property
    def found(self) -> dict[str, dict[str, int]]:
        return {place: row for place, row in self.rows.items() if any(row.values())}

    def __str__(self) -> str:
        lines = ["| place | bytes | " + " | ".join(ENCODINGS) + " |", "|---|---|" + "---|" * len(ENCODINGS)]
        lines += [
            f"| {place} | {self.sizes.get(place, 0)} | "
            + " | ".join(str(row[each]) for each in ENCODINGS)
            + " |"
            for place, row in self.rows.items()
        ]
        return "\n".join(lines) + "\n"


def _pieces(content: bytes | str | Path) -> Iterator[bytes]:
    if isinstance(content, Path):
        for file, data in sorted(contents(content)):
            yield str(file).encode() + b"\n" + data
    else:
        yield content.encode() if isinstance(content, str) else content


def test_the_search_finds_every_encoding():
    """Else the table below would prove nothing."""
    said = subprocess.run(
        [sys.executable, str(HERE / "task.py"), *SECRETS],
        env={**os.environ, **SECRETS, "PAI_SECRETS_DIR": os.devnull.replace("null", "nowhere")},
        capture_output=True,
        check=False,
    )
    assert said.returncode == 1, "the file of the first secret is not there"
    table = Table()
    table.search("a program without a mask", said.stdout, said.stderr)
    row = table.rows["a program without a mask"]
    assert all(row[encoding] for encoding in ENCODINGS), table


# --- what is run


@pytest.fixture
def planted(isolated_home: Path, ring: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the task's program; the values are in the environment and in a keyring."""
    folder = isolated_home / "project"
    folder.mkdir()
    shutil.copy(HERE / "task.py", folder)
    ring.write_text(json.dumps({"paijupyter/RING": SECRETS["RING"]}))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name, value in {
        "PATH": path,
        "PLANTED_ENV": SECRETS["ENV"],
        "PLANTED_LINES": SECRETS["LINES"],
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def notebook(folder: Path) -> Path:
    """Execute a notebook that runs jobs with secrets and shows all of them; return where it is saved."""
    sources = [
        "%load_ext paijupyter",
        f"%%paijob --wait --name says --role worker:2 {GIVEN} --as job\n"
        f"import runpy, sys\nsys.argv = ['task.py', *'{NAMES}'.split()]\n"
        "runpy.run_path('task.py', run_name='__main__')",
        f"%paijob plan {GIVEN} --command 'echo <% $secrets.RING %>'",
        "%paijob get last",
        "%paijob logs last",
        "%paijob list",
        "%paijob secret list",
        "import ipywidgets\nipywidgets.HTML(job._repr_mimebundle_()['text/html'] + job.logs())",
        f"%%paijob --wait --name fails {GIVEN}\n"
        "import os\nraise RuntimeError('bad ' + os.environ['ENV'] + os.environ['RING'])",
        "%paijob get last",
        f"%paijob submit --secret ENV={SECRETS['RING'].translate(str.maketrans('', '', 'cnry'))} task.py",
    ]
    found = new_notebook(cells=[new_code_cell(source) for source in sources])
    runner = NotebookClient(
        found, timeout=120, resources={"metadata": {"path": str(folder)}}, allow_errors=True
    )
    runner.execute()
    path = folder.parent / "saved.ipynb"
    nbformat.write(found, path)
    return path


def shell(folder: Path, line: str, given: str = "") -> bytes:
    """Return all that a command line says, on both streams."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        input=given.encode(),
        stdout=-1,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return f"$ {line}\n".encode() + done.stdout


@pytest.fixture
def server(
    planted: Path, isolated_home: Path, until: Callable[..., Any]
) -> Iterator[tuple[JobsClient, Path]]:
    """Start a real Jupyter server with its log on a file, as talkative as it can be."""
    log = isolated_home / "server.log"
    command = [sys.executable, "-m", "jupyter_server", "--debug", "--allow-root", "--port=0", "--no-browser"]
    command.append("--ServerApp.jpserver_extensions=paijupyter=True")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=planted,
            env={**os.environ, "JUPYTER_TOKEN": "t0ken"},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    facts = until(lambda: list((isolated_home / "jrun").glob("jpserver-*.json")), 60, "the server")[0]
    url = until(lambda: _url(facts), 60, "the server's address")
    client = JobsClient.over_http(url, "t0ken")
    until(lambda: _answers(client), 60, "the server to answer")
    yield client, log
    process.terminate()
    process.wait(20)


def _url(facts: Path) -> str:
    try:
        return str(json.loads(facts.read_text())["url"])
    except ValueError:
        return ""


def _answers(client: JobsClient) -> bool:
    try:
        return bool(client.version())
    except PaiJupyterError:
        return False


def everything(client: JobsClient, job: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the answer of every GET route that there is, for one job."""
    holes = {"ref": job["id"], "sha": job["packageSha256"], "profile": "local", "path": "worker-0/ready"}
    queries: dict[str, list[dict[str, Any]]] = {
        "/v1/jobs/{ref}/logs": [{}, *({"task": f"worker-{index}"} for index in range(2))],
        "/v1/jobs/{ref}/export": [{"what": "source"}, {"what": "submitted"}],
    }
    for route in ROUTES:
        if route.method != "GET" or route.path == "/v1/events":
            continue
        for query in queries.get(route.path, [{}]):
            try:
                with client.open("GET", route.path.format_map(_Holes(holes)), query) as answer:
                    yield answer.read()
            except PaiJupyterError as error:
                yield json.dumps(error.to_problem_json()).encode()


class _Holes(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "0"


def mistakes(client: JobsClient, document: str) -> Iterator[bytes]:
    """Yield the answers to requests that have the value in a wrong place."""
    value = SECRETS["ENV"]
    with_value = document.replace('RING: ""', f"RING: {json.dumps(value)}")
    for method, path, body in (
        ("POST", "/v1/jobs", {"document": 5, "secrets": {"ENV": {"value": value, "odd": value}}}),
        ("POST", "/v1/jobs", {"document": document, "secrets": {"ENV": value}}),
        ("POST", "/v1/jobs", {"document": document, "secrets": {"ENV": {"reference": value}}}),
        ("POST", "/v1/jobs", {"document": with_value, "secrets": {}}),
        ("POST", "/v1/plan", {"document": document, "secrets": {"ENV": {"value": [value]}}}),
        ("PUT", "/v1/secrets/X", {"value": [value]}),
        ("PUT", "/v1/secrets/not%20a%20name", {"value": value}),
        ("POST", "/v1/profiles", {"name": "x", "settings": {"kind": "local", "token": value}}),
        ("POST", "/v1/jobs/last/secrets", {"secrets": {"ENV": {"value": value}}}),
        ("POST", "/v1/jobs/nowhere/retry", {"secrets": {"ENV": {"value": value}}}),
    ):
        try:
            client.ask(method, path, body=body)
        except PaiJupyterError as error:
            yield json.dumps(error.to_problem_json()).encode()
        else:
            # A plan is an answer with problems; all else here must be refused.
            assert path == "/v1/plan", (method, path)


def command_lines() -> Iterator[bytes]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes()
        except OSError:
            continue


def environments_of_boot() -> Iterator[bytes]:
    """Yield the environment of every boot process: it gets secrets from a file, and passes them on itself."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"boot.pyz" in file.read_bytes():
                yield (file.parent / "environ").read_bytes()
        except OSError:
            continue


HOLD = (
    f'TOKEN=<% $secrets.RING %>; echo "it is $TOKEN"; python task.py {NAMES}; touch $PAI_OUTPUT_DIR/ready; '
    "while [ ! -e $PAI_OUTPUT_DIR/go ]; do sleep 0.05; done; echo $ENV >&2; exit 3"
)


def test_planted_secrets_are_nowhere(planted, ring, server, isolated_home, until, tmp_path, capsys):
    table = Table()
    through_server, server_log = server
    client = JobsClient.connect()
    began = client.list()["seq"]

    # A job that is held while we look, from the command line.
    line = f"paijob submit --name hold --role worker:2 {GIVEN} --command '{HOLD}'"
    table.search("output of the command line", shell(planted, line))
    hold = client.get("hold")
    outputs = paths.data_dir() / "jobs" / hold["id"] / "output"
    until(lambda: (outputs / "worker-0" / "ready").exists() and (outputs / "worker-1" / "ready").exists())
    table.search("command lines of all processes", *command_lines())
    boots = list(environments_of_boot())
    assert len(boots) >= 2
    table.search("environment of the boot processes", *boots)
    allowed = [paths.runtime_dir() / "secrets", paths.runtime_dir() / "tasks"]
    resting = Table()
    resting.search("while it runs", *allowed)
    assert resting.found["while it runs"]["value"], "the values must be where the task reads them"
    files = [path for path in isolated_home.rglob("*") if path.is_file()]
    others = [path for path in files if not any(path.is_relative_to(place) for place in allowed)]
    table.search("all other files while the job runs", *others)
    table.search("HTTP answers of the engine", *everything(client, hold))
    for index in range(2):
        (outputs / f"worker-{index}" / "go").touch()
    hold = client.wait(hold["id"], timeout=60)
    assert hold["state"] == "failed" and hold["failedTask"]["code"] == 3

    # All that the command line can say of it.
    for verb in ("get {0}", "get {0} --json", "logs {0}", "export {0}", "export {0} --what submitted",
                 "list", "list --json", "doctor", "doctor --json", "secret list", "profile list --json",
                 "pull {0} --to got", "wait {0} --json"):  # fmt: skip
        table.search("output of the command line", shell(planted, "paijob " + verb.format(hold["name"])))
    table.search("output of the command line", shell(planted, f"paijob retry {hold['name']} --secret X"))
    table.search(
        "output of the command line", shell(planted, "paijob secret set STORED", given=SECRETS["ENV"])
    )
    assert json.loads(ring.read_text())["paijupyter/STORED"] == SECRETS["ENV"]

    # A notebook with jobs of its own, widgets and tracebacks.
    saved = notebook(planted)
    content = nbformat.read(saved, 4)
    table.search("executed notebook, as saved", saved)
    table.search("outputs of its cells", *(json.dumps(cell.outputs) for cell in content.cells))
    widgets = content.metadata.get("widgets") or {}
    assert "***" in json.dumps(widgets), "the widget shows the log"
    table.search("widget state", json.dumps(widgets))

    # By REST through the Jupyter server, with values in the request.
    document = through_server.export(hold["id"])
    secrets = {name: {"value": value, "reference": "ask"} for name, value in SECRETS.items()}
    request = {"document": document.replace("exit 3", "true").replace('"hold"', '"rest"')}
    context = {"python": sys.executable, "folder": ""}
    sent = {**request, "package": hold["packageSha256"], "secrets": secrets, "context": context}
    plan = through_server.plan(sent)
    rest = through_server.submit(sent)
    place = paths.data_dir() / "jobs" / rest["id"] / "output"
    until(lambda: place.is_dir() and len(list(place.iterdir())) == 2, why="the folders of outputs")
    for folder in place.iterdir():
        (folder / "go").touch()
    rest = through_server.wait(rest["id"], timeout=60)
    table.search("HTTP answers of the server", json.dumps([plan, rest]), *everything(through_server, rest))
    for ref in ("hold", "says", "fails"):
        table.search("HTTP answers of the engine", *everything(client, client.get(ref)))
    table.search("HTTP answers to mistakes", *mistakes(client, document), *mistakes(through_server, document))
    table.search("stream of events", *(json.dumps(event) for event in client.events(began)))

    # Files, now that all jobs have ended.
    logs = [path for path in (paths.data_dir() / "jobs").glob("*/tasks/*/*/log")]
    assert len(logs) >= 6 and all(b"***" in path.read_bytes() for path in logs)
    table.search("logs of the tasks", *logs)
    table.search("job folders", paths.data_dir() / "jobs")
    table.search("package store", paths.data_dir() / "packages", paths.data_dir() / "blobs")
    table.search("index", *paths.data_dir().glob("index.sqlite*"))
    table.search("log of the engine", paths.runtime_dir() / "engine.log")
    table.search("log of the server", server_log)
    table.search("runtime folder", paths.runtime_dir())
    files = [path for path in isolated_home.rglob("*") if path.is_file()]
    table.search("all files of the home", *files)

    (tmp_path / "canary.md").write_text(str(table))
    with capsys.disabled():
        print(f"\n{table}")
    assert not table.found, str(table)
    assert all(size > 0 for size in table.sizes.values()) and len(table.rows) >= 18


def test_a_secret_on_a_command_line_is_warned_of(planted):
    """Whoever runs `ps` on that machine sees it: the plan says so, on every surface."""
    said = shell(
        planted, f"paijob plan {GIVEN} --command 'curl -H \"Auth: <% $secrets.RING %>\" host'"
    ).decode()
    assert (
        "⚠" in said and "Secret `RING` stands on a command line" in said and "$PAI_SECRETS_DIR/RING" in said
    )
    quiet = shell(
        planted, f"paijob plan {GIVEN} --command 'T=<% $secrets.RING %>; python task.py RING'"
    ).decode()
    assert "stands on a command line" not in quiet


@pytest.mark.parametrize("option", ["--env HF_TOKEN=abcdefgh", "--param password=abcdefgh"])
def test_a_credential_that_is_written_out_is_warned_of(planted, option):
    """What is public is stored and shown; a secret is given by reference."""
    said = shell(planted, f"paijob plan {option} --command true").decode()
    assert "looks like a credential" in said and "--secret" in said
