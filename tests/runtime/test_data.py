"""O18, P8, P9: data over http and from git in real tasks: resumed, checked, shared, read-only, never half."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.resting import holders

BODY = b"".join(b"%08d" % number for number in range(200_000))  # 1.6 MB, no two blocks alike
SHA = hashlib.sha256(BODY).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves one file; a test says how badly."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.etag = '"one"'
        self.ranges = True
        self.drop_after: list[int] = []  # bytes after which each next answer is cut
        self.status: list[int] = []  # statuses to answer with first
        self.hold: threading.Event | None = None  # the second half waits for it
        self.sent_half = threading.Event()
        self.asked: list[dict[str, str]] = []
        self.redirect = ""

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/d/train.csv"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that is killed hangs up


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        server.asked.append(dict(self.headers))
        if server.redirect:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        if server.status:
            self.send_error(server.status.pop(0))
            return
        body, start = server.body, 0
        found = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range", server.etag) == server.etag
        if found and same and server.ranges:
            start = int(found[1])
            if start >= len(body):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        if server.etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        body = body[start:]
        if server.hold is not None:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            server.sent_half.set()
            server.hold.wait(60)
            body = body[len(body) // 2 :]
        if server.drop_after:
            self.wfile.write(body[: server.drop_after.pop(0)])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    if found.hold:
        found.hold.set()
    found.shutdown()
    thread.join()
    found.server_close()


def give(task: Any, uri: str, name: str = "train", **more: Any) -> None:
    """Let a task have one more source, as the local backend tells it."""
    base = more.pop("base", uri.rpartition("/")[2])
    source = {
        "name": name,
        "kind": "http",
        "uri": uri,
        "shown": uri.partition("?")[0],
        "base": base,
        "place": str(task.folder / "data" / name),
        **more,
    }
    told = task.spec.setdefault(
        "data",
        {
            "cache": str(task.home.parent / "datasets"),
            "resolved": str(task.home / "job" / "tasks" / "data"),
            "sources": [],
        },
    )
    told["sources"].append(source)


CHECK = 'sha256sum < "$PAI_DATA_TRAIN/train.csv"'


@pytest.mark.parametrize("checksum", [SHA, ""])
def test_a_file_is_read_below_its_folder(task, server, checksum, python) -> None:
    """O18's rule of names, with and without a checksum, on Python 3.6 too."""
    task.python = python
    give(task, server.uri, sha256=checksum)
    assert task.run(CHECK)["code"] == 0, task.log
    assert SHA in task.log
    assert "Data `train`: from http://127.0.0.1" in task.log
    assert "1.6 MB" in task.log
    assert not (task.folder / "data").exists()


def test_a_lost_connection_goes_on_where_it_was(task, server) -> None:
    server.drop_after = [500_000, 1_000]
    give(task, server.uri, sha256=SHA)
    assert task.run(CHECK)["code"] == 0, task.log
    assert SHA in task.log
    starts = [
        int(asked["Range"].removeprefix("bytes=").rstrip("-")) for asked in server.asked if "Range" in asked
    ]
    assert starts == [500_000, 501_000]
    assert "trying again" in task.log


def test_a_server_without_ranges_is_read_from_the_beginning(task, server) -> None:
    server.drop_after, server.ranges = [500_000], False
    give(task, server.uri)
    assert task.run(CHECK)["code"] == 0
    assert SHA in task.log


def test_a_file_that_changes_in_between_is_not_mixed(task, server) -> None:
    give(task, server.uri)
    server.drop_after = [500_000]
    old = server.body

    class Changing(list):  # the file is replaced when its first half is out
        def pop(self, index: int = -1) -> int:
            server.body, server.etag = old[::-1], '"two"'
            return super().pop(index)

    server.drop_after = Changing([500_000])
    assert task.run(CHECK)["code"] == 0, task.log
    assert hashlib.sha256(old[::-1]).hexdigest() in task.log


def test_a_wrong_checksum_is_refused_with_both(task, server) -> None:
    give(task, server.uri, sha256="0" * 64)
    record = task.run(CHECK)
    assert (record["code"], record["reason"]) == (None, "data")
    assert SHA in record["message"] and "0" * 64 in record["message"]
    assert not list((task.home.parent / "datasets").glob("*/content"))


def test_busy_servers_are_asked_again_and_refusals_are_not(make_task, server) -> None:
    task = make_task("a")
    server.status = [503]
    give(task, server.uri)
    assert task.run(CHECK)["code"] == 0
    task = make_task("b")
    server.status, server.asked, server.etag = [404], [], '"other"'
    give(task, server.uri)
    record = task.run(CHECK)
    assert record["reason"] == "data"
    assert "404" in record["message"]
    assert len(server.asked) == 1


def test_fetched_once_per_content_and_read_only(make_task, server) -> None:
    """P8: jobs share what is the same; a task cannot change it for the others."""
    first = make_task("a")
    give(first, server.uri)
    assert first.run(CHECK)["code"] == 0
    (path,) = (first.home.parent / "datasets").glob("*/content/train.csv")
    assert path.stat().st_mode & 0o777 == 0o444
    assert path.parent.stat().st_mode & 0o222 == 0
    second = make_task("b")
    give(second, server.uri)
    assert second.run(CHECK)["code"] == 0
    assert len(list((first.home.parent / "datasets").glob("*/content"))) == 1
    assert not any("Range" in asked for asked in server.asked)
    third = make_task("c")  # with a checksum nobody is asked at all
    give(third, server.uri, sha256=SHA)
    assert third.run(CHECK)["code"] == 0
    server.asked.clear()
    fourth = make_task("d")
    give(fourth, "http://127.0.0.1:9/train.csv", sha256=SHA)
    assert fourth.run(CHECK)["code"] == 0
    assert not server.asked


def test_what_somebody_changed_in_the_cache_is_fetched_again(make_task, server) -> None:
    first = make_task("a")
    give(first, server.uri, sha256=SHA)
    assert first.run(CHECK)["code"] == 0
    (path,) = (first.home.parent / "datasets").glob("*/content/train.csv")
    path.chmod(0o600)
    path.write_bytes(b"spoiled")
    second = make_task("b")
    give(second, server.uri, sha256=SHA)
    assert second.run(CHECK)["code"] == 0
    assert SHA in second.log


def test_killed_in_the_middle_nothing_half_done_is_used(make_task, server, until) -> None:
    """Kill -9 of everything in the middle of a fetch: the next task goes on, and has the whole."""
    first = make_task("a")
    give(first, server.uri)
    server.hold = threading.Event()
    process = first.start()
    assert server.sent_half.wait(20)
    part = until(lambda: next(iter((first.home.parent / "datasets").glob("*.part/content/train.csv")), None))
    until(lambda: part.stat().st_size >= len(BODY) // 2 - 2**18)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (process.pid, *map(int, children)):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert not list((first.home.parent / "datasets").glob("*/content/train.csv")) or part.exists()
    server.hold.set()
    server.hold = None
    second = make_task("b")
    give(second, server.uri)
    assert second.run(CHECK)["code"] == 0, second.log
    assert SHA in second.log
    assert any("Range" in asked for asked in server.asked)


def test_a_stop_ends_a_fetch_at_once(task, server) -> None:
    give(task, server.uri)
    server.hold = threading.Event()
    process = task.start()
    assert server.sent_half.wait(20)
    os.kill(process.pid, signal.SIGTERM)
    assert task.end()["reason"] == "stopped"


def test_all_tasks_of_a_job_get_the_same(make_task, server) -> None:
    """Even if the file changes between the first task and the second."""
    first = make_task("a")
    give(first, server.uri)
    assert first.run(CHECK)["code"] == 0
    server.body, server.etag = b"later", '"two"'
    second = make_task("b", "worker-1")
    give(second, server.uri)
    second.spec["data"]["resolved"] = first.spec["data"]["resolved"]
    assert second.run(CHECK)["code"] == 0
    assert SHA in second.log


def test_a_token_opens_it_and_is_nowhere_else(task, server, until) -> None:
    """O20: the job's secret opens the source; a redirect to another host does not get it."""
    task.secrets(TOKEN="hunter2-value")
    give(task, server.uri, secret="TOKEN")
    assert task.run(CHECK)["code"] == 0
    assert server.asked[0]["Authorization"] == "Bearer hunter2-value"
    assert {path.name for path in holders("hunter2-value", task.home.parent)} <= {"secrets.json"}


def test_a_redirect_cannot_read_files_of_this_machine(task, server, tmp_path) -> None:
    (tmp_path / "train.csv").write_text("private")
    server.redirect = f"file://{tmp_path}/train.csv"
    give(task, server.uri)
    record = task.run(CHECK)
    assert record["reason"] == "data"
    assert "private" not in task.log


def test_a_path_below_the_package_and_one_that_is_taken(make_task, server) -> None:
    first = make_task("a")
    give(first, server.uri, place=str(first.work / "data/in"), inside=True)
    assert first.run('test "$PAI_DATA_TRAIN" = "$PWD/data/in" && sha256sum < data/in/train.csv')["code"] == 0
    second = make_task("b")
    second.package({"train.csv": "mine"})
    give(second, server.uri, place=str(second.work), inside=True)
    record = second.run("true")
    assert record["reason"] == "data"
    assert "taken" in record["message"]


def test_storages_and_links(task, tmp_path) -> None:
    """O16, O17: a storage is a variable, never text in the command."""
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "a").write_text("kept")
    task.spec["storages"] = [{"name": "team-x", "path": str(tmp_path)}]
    give(task, "storage://team-x/sets", "sets", kind="storage", link=str(tmp_path / "sets"))
    record = task.run('cat "$PAI_STORAGE_TEAM_X/sets/a" "$PAI_DATA_SETS/sets/a"')
    assert record["code"] == 0, task.log
    assert "keptkept" in task.log
    assert (tmp_path / "sets" / "a").exists()


# -- git ---------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of two commits, a tag on the first."""
    folder = tmp_path / "team" / "tools.git"
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("first")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "one")
    _git(folder, "tag", "-a", "v1", "-m", "v1")
    (folder / "a.txt").write_text("second")
    _git(folder, "commit", "-q", "-am", "two")
    return folder


def _git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("ref", "text"), [("", "second"), ("main", "second"), ("v1", "first"), ("commit", "first")]
)
def test_one_commit_of_a_repository(task, repository, ref, text) -> None:
    ref = _git(repository, "rev-parse", "v1^{}") if ref == "commit" else ref
    give(task, f"file://{repository}", "tools", kind="git", base="tools", ref=ref)
    record = task.run(
        'cat "$PAI_DATA_TOOLS/tools/a.txt"; git -C "$PAI_DATA_TOOLS/tools" rev-list --all --count'
    )
    assert record["code"] == 0, task.log
    assert text in task.log


@pytest.mark.parametrize(
    ("uri", "ref", "said"),
    [
        ("file:///nowhere/x.git", "", "git says"),
        ("ext::sh -c 'touch /tmp/pwned'", "", "not allowed"),
        (None, "nope", "no branch or tag `nope`"),
    ],
)
def test_what_git_refuses_is_said(task, repository, uri, ref, said) -> None:
    give(task, uri or f"file://{repository}", "tools", kind="git", base="tools", ref=ref)
    record = task.run("true")
    assert record["reason"] == "data"
    assert said in record["message"]


def test_a_branch_that_moves_is_another_content(make_task, repository) -> None:
    for name, text in (("a", "second"), ("b", "third")):
        task = make_task(name)
        give(task, f"file://{repository}", "tools", kind="git", base="tools", ref="main")
        assert task.run('cat "$PAI_DATA_TOOLS/tools/a.txt"')["code"] == 0
        assert text in task.log
        (repository / "a.txt").write_text("third")
        _git(repository, "commit", "-q", "--allow-empty", "-am", "three")


# -- files that travelled ----------------------------------------------------------------------


def test_files_that_travelled_like_a_package_are_unpacked_once(make_task) -> None:
    texts: list[str] = []
    for name in ("a", "b"):
        task = make_task(name)
        task.package({"sets/x/1.txt": "one", "sets/big.bin": b"x" * 300_000})
        package = dict(task.spec["package"], sha256="5" * 64)
        task.spec["package"] = None
        give(task, "/foo/sets", "sets", kind="file", package=package)
        task.spec["data"]["sources"][0]["base"] = "sets"
        assert (
            task.run('cat "$PAI_DATA_SETS/sets/x/1.txt"; stat -L -c %i "$PAI_DATA_SETS/sets/big.bin"')["code"]
            == 0
        )
        texts.append(task.log)
    assert "one" in texts[0]
    assert texts[0].split()[-1] == texts[1].split()[-1], "both read the same file"
