"""One engine per user, host and data folder: lock, socket, idle end, hand-over, log."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paijupyter import paths
from paijupyter._version import __version__
from paijupyter.client import client as module
from paijupyter.client import start
from paijupyter.client.client import JobsClient, is_older
from paijupyter.client.transport import UnixTransport, Unreachable
from paijupyter.engine import logfile
from paijupyter.engine.handlers.about import is_newer
from paijupyter.engine.lock import acquire
from paijupyter.errors import PaiJupyterError

CLIENTS = 5
CONNECT = """
import sys
from paijupyter.client import start
start.COMMAND = tuple(sys.argv[1:])
from paijupyter.client import JobsClient
sys.stdin.read()
print(JobsClient.connect().version()["engine"]["pid"])
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def facts() -> dict:
    return json.loads((paths.runtime_dir() / "engine.json").read_text())


def test_five_clients_at_once_get_one_engine(fake_engine):
    """Whoever needs it first starts it; the lock keeps it alone."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CONNECT, *start.COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(CLIENTS)
    ]
    for process in processes:
        process.stdin.close()
    found = set()
    for process in processes:
        found.add(process.stdout.read().strip())
        process.stdout.close()
        assert process.wait() == 0
    assert found == {str(facts()["pid"])}


def test_threads_too(fake_engine):
    found, threads = [], []
    for _ in range(CLIENTS):
        threads.append(
            threading.Thread(target=lambda: found.append(JobsClient.connect().version()["engine"]["pid"]))
        )
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(found) == CLIENTS
    assert len(set(found)) == 1


def test_socket_and_folder_are_the_users_alone(client):
    sock = paths.engine_socket()
    assert stat.S_IMODE(sock.stat().st_mode) == 0o600
    for folder in (sock.parent, sock.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("engine.json", "engine.log", "engine.lock"):
        assert stat.S_IMODE((sock.parent / name).stat().st_mode) == 0o600


ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/version HTTP/1.0\\r\\n\\r\\n")
    print("got", len(s.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


def ask_as_a_stranger(sock: Path) -> str:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if os.getuid() != 0 or python is None:
        pytest.skip("needs root, who can be somebody else, and a Python that others can run")
    command = [python, "-I", "-c", ASK, str(sock)]
    return subprocess.run(
        command, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_strangers_request_is_impossible(client, isolated_home):
    sock = paths.engine_socket()
    assert ask_as_a_stranger(sock) == "PermissionError"
    # Even with all doors open (somebody's mistake) the engine looks who is there.
    for folder in (isolated_home, sock.parent.parent, sock.parent):
        folder.chmod(0o755)
    sock.chmod(0o666)
    assert ask_as_a_stranger(sock) in {"got 0", "ConnectionResetError", "BrokenPipeError"}
    with pytest.raises(PaiJupyterError, match="not a private folder"):
        client.connect()
    for folder in (sock.parent.parent, sock.parent):
        folder.chmod(0o700)


def test_it_leaves_its_parent(client):
    """No kernel keeps a zombie, and a signal to the kernel's group does not reach it."""
    pid = client.version()["engine"]["pid"]
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    assert int(fields[1]) != os.getpid()
    assert os.getsid(pid) != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert os.readlink(f"/proc/{pid}/fd/1") == str(paths.runtime_dir() / "engine.log")


def test_idle_it_ends_and_cleans_up(fake_engine, monkeypatch, until, put_job):
    monkeypatch.setenv("PAIJUPYTER_IDLE_SECONDS", "0.3")
    put_job("job0")
    client = JobsClient.connect()
    pid = client.version()["engine"]["pid"]
    time.sleep(0.8)  # not to synchronise: an engine with an unfinished job has this time to end, and must not
    assert alive(pid)
    client.stop("job0")

    def look() -> bool:
        """Ask for the version, as a Jupyter server does every minute: that keeps no engine awake."""
        with contextlib.suppress(Unreachable):
            UnixTransport(paths.engine_socket()).request("GET", "/v1/version").close()
        return not alive(pid)

    until(look, why="the idle end")
    assert not paths.engine_socket().exists()
    assert not (paths.runtime_dir() / "engine.json").exists()
    assert JobsClient.connect().version()["engine"]["pid"] != pid


def test_somebody_who_follows_keeps_it(fake_engine, monkeypatch, until, put_job):
    monkeypatch.setenv("PAIJUPYTER_IDLE_SECONDS", "0.3")
    client = JobsClient.connect()
    pid = client.version()["engine"]["pid"]
    stream = client.events(follow=True)
    put_job("job0", "succeeded")
    next(stream)
    time.sleep(0.8)  # as above
    assert alive(pid)
    stream.close()
    until(lambda: not alive(pid), why="the idle end")


def test_a_stale_socket_is_no_obstacle(client):
    pid = client.version()["engine"]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert paths.engine_socket().exists()
    assert client.version()["engine"]["pid"] != pid


def test_a_newer_client_takes_over(fake_engine, monkeypatch, put_job, until):
    """Running tasks notice nothing: the job is still there, unfinished."""
    put_job("job0")
    monkeypatch.setenv("FAKE_VERSION", "0.0.1")
    monkeypatch.setattr(module, "is_older", lambda theirs: False)
    old = JobsClient.connect()
    assert old.version()["version"] == "0.0.1"
    pid = old.version()["engine"]["pid"]
    monkeypatch.delenv("FAKE_VERSION")
    monkeypatch.setattr(module, "is_older", lambda theirs, ours=__version__: theirs != ours)
    new = JobsClient.connect()
    assert new.version()["version"] == __version__
    until(lambda: not alive(pid), why="the old engine to end")
    assert new.get("job0")["state"] == "running"
    assert old.get("job0")["state"] == "running"


def test_an_older_or_equal_client_does_not(client):
    for version in ("0.0.1", __version__):
        with pytest.raises(PaiJupyterError) as caught:
            client.ask("POST", "/v1/engine/handover", body={"version": version})
        assert (caught.value.status, caught.value.code) == (409, "not-newer")


@pytest.mark.parametrize(
    ("theirs", "ours", "older"),
    [
        ("0.1.0", "0.2.0", True),
        ("0.9", "0.10", True),
        ("0.1.0", "0.1.0", False),
        ("1.0", "0.9.9", False),
        ("0.1.0.dev1", "0.1.0", False),
        ("nonsense", "0.1.0", True),
    ],
)
def test_versions_by_their_numbers(theirs, ours, older):
    assert is_older(theirs, ours) is older
    assert is_newer(ours, theirs) is older


def test_it_ends_when_its_folder_is_gone(client, until):
    """Otherwise two engines would serve one data folder: nobody can see the lock of a removed file."""
    pid = client.version()["engine"]["pid"]
    (paths.runtime_dir() / "engine.lock").unlink()
    until(lambda: not alive(pid), why="the engine to see it")
    assert client.version()["engine"]["pid"] != pid


def test_term_ends_it_properly_with_streams_open(client, put_job, until):
    put_job("job0")
    (paths.data_dir() / "fake" / "job0" / "worker-0.log").write_bytes(b"x\n")
    pid = client.version()["engine"]["pid"]
    stream = client.logs("job0", "worker-0", follow=True)
    next(stream)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid), why="the engine to end")
    assert "engine ended" in (paths.runtime_dir() / "engine.log").read_text()
    stream.close()


def test_why_it_does_not_start_is_told(fake_engine, monkeypatch):
    monkeypatch.setenv("FAKE_REFUSES", "1")
    with pytest.raises(PaiJupyterError) as caught:
        JobsClient.connect()
    assert (caught.value.code, caught.value.status) == ("engine-failed", 503)
    assert caught.value.message == "The engine could not be started: The index is broken. Rebuild it."
    assert str(paths.runtime_dir() / "engine.log") in caught.value.hint


def test_a_crash_at_the_start_is_told(monkeypatch):
    monkeypatch.setattr(start, "COMMAND", ("-c", "raise SystemExit(3)"))
    with pytest.raises(PaiJupyterError) as caught:
        JobsClient.connect()
    assert "ended at once" in caught.value.message


def test_a_start_that_takes_too_long_is_told(monkeypatch):
    monkeypatch.setattr(start, "COMMAND", ("-c", "import time; time.sleep(60)"))
    with pytest.raises(PaiJupyterError) as caught:
        start.ensure_engine(seconds=0.3)
    assert caught.value.code == "engine-failed"


def test_no_token_of_a_server_gets_into_its_environment(fake_engine, monkeypatch):
    for name in ("JPY_SESSION_NAME", "JUPYTERHUB_API_TOKEN", "HF_TOKEN"):
        monkeypatch.setenv(name, "canary-5678")
    pid = JobsClient.connect().version()["engine"]["pid"]
    assert b"canary-5678" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_a_peer_that_never_answers_does_not_hold_up_the_lock_for_ever(tmp_path):
    held = acquire(tmp_path / "lock", tmp_path / "sock", 0)
    assert held is not None and held.intact
    with pytest.raises(PaiJupyterError, match="does not answer"):
        acquire(tmp_path / "lock", tmp_path / "sock", 0.1)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        listener.listen()
        assert acquire(tmp_path / "lock", tmp_path / "sock", 0.1) is None
    held.release()
    again = acquire(tmp_path / "lock", tmp_path / "sock", 0)
    assert again is not None
    again.release()


LOG = """
import logging, os, sys
from pathlib import Path
from paijupyter.engine import logfile
logfile.open_log(Path(sys.argv[1]))
for number in range(20000):
    logging.getLogger("x").info("%d %s", number, "y" * 60)
os.write(2, b"from C\\n")
"""


def test_tasks_have_the_umask_of_the_user(client):
    """The engine's own files are private by their modes; what a task writes is as the user wants it."""
    pid = client.version()["engine"]["pid"]
    line = next(
        each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("Umask")
    )
    ours = os.umask(0)
    os.umask(ours)
    assert int(line.split()[1], 8) == ours


def test_the_log_stays_small_and_has_the_last_words(tmp_path):
    path = tmp_path / "engine.log"
    subprocess.run([sys.executable, "-c", LOG, str(path)], check=True)
    assert {each.name for each in tmp_path.iterdir()} == {"engine.log", "engine.log.1"}
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 2.2 * logfile.LIMIT_BYTES
    assert "19999" in path.read_text()
    assert path.read_text().endswith("from C\n")
