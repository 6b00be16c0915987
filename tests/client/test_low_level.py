"""The low-level client: requests, streams that survive a killed engine, outputs, the remote package store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paijupyter import paths
from paijupyter.client import start, streams
from paijupyter.client.client import JobsClient
from paijupyter.client.entering import run_command
from paijupyter.client.pull import _target
from paijupyter.client.transport import HttpTransport, Unreachable
from paijupyter.errors import InvalidDocument, PaiJupyterError

FAKE = Path(__file__).parents[1] / "engine" / "fake_engine.py"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> JobsClient:
    """Return a client of a fresh engine with a fake service."""
    monkeypatch.setattr(start, "COMMAND", (str(FAKE), "--detach"))
    return JobsClient.connect()


@pytest.fixture
def job(client: JobsClient) -> Path:
    """Submit a job; return the folder of its logs and outputs."""
    folder = paths.data_dir() / "fake" / client.submit({"document": "hello"})["id"]
    (folder / "out" / "a").mkdir(parents=True)
    return folder


def kill(client: JobsClient) -> None:
    os.kill(client.version()["engine"]["pid"], signal.SIGKILL)


def test_everything_once(client, job):
    """P3: submit, list, describe, stop, delete, export from one client."""
    view = client.get("hello")
    assert (view["state"], client.list(limit=5)["jobs"][0]["id"]) == ("running", view["id"])
    assert client.tasks("hello")["total"] == 1
    assert client.export("hello") == "# source\nname: hello\n"
    assert client.plan({"document": "d"})["ok"] is True
    assert client.profiles()[0]["name"] == "local"
    assert client.retry("hello")["id"] != view["id"]
    assert client.clone("hello", {"document": "other"})["name"] == "other"
    assert client.stop(view["id"])["state"] == "stopped"
    client.delete(view["id"])
    with pytest.raises(PaiJupyterError) as caught:
        client.get(view["id"])
    assert (caught.value.code, caught.value.status) == ("not-found", 404)


def test_problems_arrive_with_their_places(client):
    with pytest.raises(PaiJupyterError) as caught:
        client.submit({"document": "bad"})
    assert caught.value.code == "invalid-document"
    assert [problem.path for problem in caught.value.problems] == ["/x"]
    assert InvalidDocument(caught.value.problems).problems == caught.value.problems


def test_references_with_odd_characters_stay_one_part_of_the_path(client):
    for ref in ("a b", "a?b", "a#b", "ä", "%2e"):
        with pytest.raises(PaiJupyterError, match=f"`{ref}`".replace("?", r"\?")):
            client.get(ref)


def test_a_submission_is_sent_again_when_its_answer_is_lost(client, monkeypatch):
    """Idempotent by requestId: the second try finds the first one's job."""
    real, lost = client._transport.request, []

    def lossy(method, path, *rest):
        answer = real(method, path, *rest)
        if method == "POST" and not lost:
            with answer:
                lost.append(json.loads(answer.read())["id"])
            raise Unreachable("here", ConnectionResetError("lost"))
        return answer

    monkeypatch.setattr(client._transport, "request", lossy)
    assert client.submit({"document": "d"})["id"] == lost[0]
    assert len(client.list()["jobs"]) == 1


def test_a_deletion_whose_answer_is_lost_is_done(client, job, monkeypatch):
    client.stop("hello")
    real, lost = client._transport.request, []

    def lossy(method, path, *rest):
        answer = real(method, path, *rest)
        if method == "DELETE" and not lost:
            lost.append(answer.close())
            raise Unreachable("here", ConnectionResetError("lost"))
        return answer

    monkeypatch.setattr(client._transport, "request", lossy)
    client.delete("hello")
    with pytest.raises(PaiJupyterError):
        client.delete("hello")


def test_a_killed_engine_is_started_again(client, job):
    kill(client)
    assert client.get("hello")["state"] == "running"


@pytest.mark.parametrize("task", [None, "worker-0"])
def test_kill_9_of_the_engine_while_a_log_is_followed_loses_and_doubles_no_line(client, job, task):
    """O30: the client goes on where it was, through two engines more."""
    log = job / "worker-0.log"
    log.touch()
    expected, got = [], []

    def write(first: int) -> None:
        with log.open("ab") as stream:
            for number in range(first, first + 1000):
                line = f"line {number} – ü\n"
                expected.append(line)
                stream.write(line.encode())

    write(0)
    lines = 0
    for chunk in client.logs("hello", task, follow=True):
        got.append(chunk.text)
        before, lines = lines, lines + chunk.text.count("\n")
        if before < 1000 <= lines or before < 2000 <= lines:
            kill(client)
            write(lines)
        elif lines == 3000:
            log.with_suffix(".end").touch()
    assert "".join(got) == "".join(expected)
    assert chunk.task == "worker-0"


def test_a_log_goes_on_in_its_own_attempt(client, job, monkeypatch):
    """The job may be at another attempt when the connection is made again."""
    (job / "worker-0.log").write_bytes(b"x\n")
    view = json.loads((job.parent / f"{job.name}.json").read_text())
    asked, request = [], client._transport.request

    def watching(method, path, query=None, *rest):
        asked.append(query)
        return request(method, path, query, *rest)

    stream = client.logs("hello", "worker-0", follow=True)
    assert next(stream).attempt == 0
    (job.parent / f"{job.name}.json").write_text(json.dumps({**view, "attempt": 1}))
    monkeypatch.setattr(client._transport, "request", watching)
    kill(client)
    (job / "worker-0.end").touch()
    assert list(stream) == []
    assert {(query["offset"], query["attempt"]) for query in asked if query and "offset" in query} == {(2, 0)}


def test_a_character_that_arrives_in_halves_is_one(client, job):
    log = job / "worker-0.log"
    log.write_bytes("ü".encode()[:1])
    stream = client.logs("hello", "worker-0", follow=True)
    thread = threading.Timer(0.2, lambda: (log.write_bytes("ü".encode()), log.with_suffix(".end").touch()))
    thread.start()
    assert "".join(chunk.text for chunk in stream) == "ü"
    thread.join()


def test_waiting_survives_a_killed_engine(client, job):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.wait, "hello", 60)
        kill(client)
        client.stop("hello")
        assert waiting.result(60)["state"] == "stopped"


def test_waiting_has_an_end(client, job):
    with pytest.raises(PaiJupyterError) as caught:
        client.wait("hello", timeout=0.2)
    assert caught.value.code == "timeout"
    assert client.get("hello")["state"] == "running"
    client.stop("hello")
    assert client.wait("hello", timeout=0)["state"] == "stopped"


def test_waiting_for_what_is_deleted_ends(client, job):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.wait, "hello", 60)
        (job.parent / f"{job.name}.json").unlink()
        with pytest.raises(PaiJupyterError, match="does not exist"):
            waiting.result(60)


INTERRUPTED = """
import signal, sys, os, threading
from paijupyter.client import start
start.COMMAND = (sys.argv[1], "--detach")
from paijupyter.client import JobsClient
client = JobsClient.connect()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        client.wait("hello")
    else:
        for chunk in client.logs("hello", follow=True):
            print(chunk.text, end="", flush=True)
except KeyboardInterrupt:
    print("interrupted", client.get("hello")["state"])
"""


@pytest.mark.parametrize("what", ["wait", "logs"])
def test_interrupting_detaches_and_stops_nothing(client, job, what, until):
    """Ctrl-C goes to the whole group of the terminal; engine and job run on (P28: restart-safe)."""
    (job / "worker-0.log").write_bytes(b"a line\n")
    engine = client.version()["engine"]["pid"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(FAKE), what],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        if what == "logs":
            assert process.stdout.readline() == "a line\n"
        until(lambda: _sockets(process.pid), why="it to listen")
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted running\n"
    assert client.version()["engine"]["pid"] == engine
    assert client.get("hello")["state"] == "running"


def _sockets(pid: int) -> list[str]:
    found = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    return [name for name in found if name.startswith("socket:")]


def test_after_a_restart_events_tell_to_list_again(client, job):
    stream = client.events(follow=True)
    client.stop("hello")
    event = next(stream)
    assert (event["type"], event["job"]["state"]) == ("job", "stopped")
    kill(client)
    event = next(stream)
    assert event["type"] == "reset"
    client.submit({"document": "second"})
    following = next(stream)
    while following["job"]["name"] != "second":
        following = next(stream)
    assert following["seq"] > event["seq"]


def test_who_cannot_be_reached_is_told_at_last(monkeypatch):
    monkeypatch.setattr("paijupyter.client.client._PAUSE", 0)
    client = JobsClient(HttpTransport("http://127.0.0.1:9/"))
    for call in (client.version, lambda: list(client.logs("x")), lambda: client.pull("x", ".", ["a"])):
        with pytest.raises(Unreachable) as caught:
            call()
        assert caught.value.code == "server-unreachable"


def test_without_permission_to_start_nothing_is_started():
    with pytest.raises(Unreachable):
        JobsClient.connect(start=False)
    assert not paths.engine_socket().exists()


def test_pull_brings_files_whole(client, job, tmp_path):
    (job / "out" / "a" / "model ü.bin").write_bytes(os.urandom(3_000_000))
    (job / "out" / "empty").touch()
    found = client.pull("hello", tmp_path / "here")
    assert {str(path.relative_to(tmp_path / "here")) for path in found} == {"a/model ü.bin", "empty"}
    assert (tmp_path / "here/a/model ü.bin").read_bytes() == (job / "out/a/model ü.bin").read_bytes()
    assert client.pull("hello", tmp_path / "there", ["empty"]) == [tmp_path / "there" / "empty"]
    with pytest.raises(PaiJupyterError, match="does not exist"):
        client.pull("hello", tmp_path / "here", ["nothing"])
    assert not list((tmp_path / "here").rglob("*.part"))


def test_pull_goes_on_where_it_was(client, job, tmp_path, monkeypatch):
    (job / "out" / "big").write_bytes(os.urandom(2_000_000))
    from paijupyter.client.transport import Answer

    piece, broken, asked = Answer.piece, [], []
    request = client._transport.request

    def breaking(self, limit=65536):
        if self.status == 200 and broken == [1]:
            broken.append(2)
            raise Unreachable("here", ConnectionResetError("lost"))
        if self.status == 200 and not broken:
            broken.append(1)
        return piece(self, 65536)

    def watching(method, path, query=None, body=None, headers=None, seconds=None):
        asked.append((headers or {}).get("Range"))
        return request(method, path, query, body, headers, seconds)

    listed = client.files("hello")
    monkeypatch.setattr(Answer, "piece", breaking)
    monkeypatch.setattr(client._transport, "request", watching)
    client.pull("hello", tmp_path, [listed[0]["path"]])
    assert asked[0] is None and asked[1].startswith("bytes=")
    assert (tmp_path / "big").read_bytes() == (job / "out" / "big").read_bytes()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "link/x"])
def test_pull_writes_nowhere_else(tmp_path, path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(PaiJupyterError) as caught:
        _target(tmp_path / "dest", path)
    assert caught.value.code == "unsafe-path"


def test_a_snapshot_goes_into_the_remote_store(client, tmp_path):
    from paijupyter.package import LocalStore, snapshot

    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "data.bin").write_bytes(os.urandom(1_000_000))
    made = snapshot(tmp_path, client.store)
    assert made.sha256 in LocalStore(paths.data_dir())
    assert LocalStore(paths.data_dir()).verify(made.sha256) == []
    assert not client.store.missing(made.manifest)


def test_a_manifest_that_the_engine_forgot_is_posted_again(client, tmp_path):
    """The engine may be started anew between manifest and pack."""
    from paijupyter.package import LocalStore, snapshot

    (tmp_path / "train.py").write_text("print('hello')\n")
    store = client.store
    real, killed = store.missing, []

    def missing(manifest):
        found = real(manifest)
        if not killed:
            killed.append(kill(client))
        return found

    store.missing = missing
    made = snapshot(tmp_path, store)
    assert made.sha256 in LocalStore(paths.data_dir())


IMPORTS = """
import sys, time
import {module}
heavy = {{"pydantic", "tornado", "asyncio", "IPython", "jupyter_server", "yaml", "sqlite3", "http.client"}}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("module", ["paijupyter", "paijupyter.client", "paijupyter.client.start"])
def test_importing_loads_nothing_heavy(module):
    """Decision 12: what %load_ext and a server's start import stays small."""
    code = IMPORTS.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_client_needs_nothing_heavy_either():
    code = IMPORTS.format(module="paijupyter.client.client")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['http.client']"


def test_over_http_places_of_this_host_stay_here():
    client = JobsClient(HttpTransport("http://127.0.0.1:9/"))
    context = {
        "folder": "/home/amy",
        "notebook": "/home/amy/n.ipynb",
        "python": "/usr/bin/python",
        "cell": None,
    }
    assert client.here({"document": "d", "context": context})["context"] == {"cell": None}
    context = {"folder": "projects", "notebook": "projects/n.ipynb"}
    assert client.here({"document": "d", "context": context})["context"] == context


def test_a_stream_that_never_gets_on_gives_up(monkeypatch, client, job):
    """A server that answers and breaks off at once, again and again, is not asked for ever."""
    from paijupyter.client.transport import Answer

    (job / "worker-0.log").write_bytes(b"x\n")

    def broken(self, limit=0):
        raise Unreachable("here", ConnectionResetError("lost"))

    monkeypatch.setattr(Answer, "piece", broken)
    monkeypatch.setattr("paijupyter.client.client._PAUSE", 0)
    with pytest.raises(Unreachable):
        list(client.logs("hello", "worker-0"))
    assert streams._TRIES == 5


def test_a_server_that_hangs_is_not_asked_again(client, monkeypatch):
    """An engine that was suspended accepts connections and says nothing; asking again would not help."""
    monkeypatch.setattr("paijupyter.client.client._SILENCE_SECONDS", 0.3)
    pid = client.version()["engine"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable) as caught:
            client.profiles()
        assert caught.value.silent
    finally:
        os.kill(pid, signal.SIGCONT)
    assert client.profiles()


def test_a_command_in_a_task_tells_its_output_and_its_end(client: JobsClient, job: Path) -> None:
    """P24: `exec JOB -- COMMAND`, as with kubectl, is the command."""
    assert list(run_command(client, job.name, ["--", "echo", "a"], stdin=b"!")) == [
        ("stdout", b"echo a!"),
        ("exit", b"3"),
    ]


def test_a_command_that_cannot_run_is_a_sentence(client: JobsClient, job: Path) -> None:
    """The answer has begun by then: what is wrong is its last object."""
    with pytest.raises(PaiJupyterError, match="Program `nothing` does not exist"):
        list(run_command(client, job.name, ["nothing"]))
