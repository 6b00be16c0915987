"""Logs by offset and cursor, events by number, files by range (O30: logs near real time)."""

from __future__ import annotations

import itertools
import json
import threading

import pytest

from paijupyter import paths
from paijupyter.client.transport import UnixTransport, quoted
from paijupyter.errors import PaiJupyterError


def get(path, query=None, headers=None):
    return UnixTransport(paths.engine_socket()).request("GET", path, query, None, headers)


@pytest.fixture
def log(put_job):
    put_job("job0")
    path = paths.data_dir() / "fake" / "job0" / "worker-0.log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(100)))
    return path


@pytest.mark.parametrize(
    ("query", "first", "text"),
    [
        ({"offset": 7, "limit": 7}, 7, b"line 1\n"),
        ({"limit": 3}, 0, b"lin"),
        ({"tail": 1}, 783, b"line 99\n"),
        ({"tail": 0}, 791, b""),
        ({"offset": 5000}, 5000, b""),
    ],
)
def test_a_piece_of_one_log(client, log, query, first, text):
    size = log.stat().st_size
    first = {783: size - 8, 791: size - 1}.get(first, first) if "tail" in query else first
    if query.get("tail") == 0:
        first = size
    with get("/v1/jobs/job0/logs", {"task": "worker-0", **query}) as answer:
        assert answer.read() == text
        assert answer.headers["X-Log-Offset"] == str(first)
        assert answer.headers["X-Log-Size"] == str(size)
        assert answer.headers["X-Log-Attempt"] == "0"
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize("lines", [1, 3, 99, 100_000])
def test_tail_counts_lines_also_far_back(client, log, lines, ending):
    whole = [b"%d %s" % (number, b"x" * 60) for number in range(5000)]
    log.write_bytes(b"\n".join(whole) + ending)
    with get("/v1/jobs/job0/logs", {"task": "worker-0", "tail": lines}) as answer:
        assert answer.read() == b"\n".join(whole[-lines:]) + ending


def test_all_logs_by_cursor(client, log):
    log.with_name("worker-1.log").write_bytes(b"other\n")
    with get("/v1/jobs/job0/logs") as answer:
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        frames = [json.loads(line) for line in answer.read().splitlines()]
    assert [frame["task"] for frame in frames] == ["worker-0", "worker-1"]
    with log.open("ab") as stream:
        stream.write(b"more\n")
    with get("/v1/jobs/job0/logs", {"cursor": frames[-1]["cursor"]}) as answer:
        (frame,) = [json.loads(line) for line in answer.read().splitlines()]
    assert (frame["text"], frame["task"], frame["offset"]) == ("more\n", "worker-0", 790)


def test_events_resume_by_number(client, put_job):
    start = client.list()["seq"]
    put_job("job0", "waiting")
    put_job("job0", "running")
    stream = client.events(start, follow=True)
    first = next(stream)
    put_job("job0", "succeeded")
    seen = [first]
    while seen[-1]["job"]["state"] != "succeeded":
        seen.append(next(stream))
    stream.close()
    numbers = [event["seq"] for event in seen]
    assert numbers == list(range(start + 1, start + 1 + len(seen)))
    assert list(client.events(numbers[0])) == seen[1:]
    assert list(client.events()) == []


def test_events_that_are_forgotten_are_gone(client, put_job):
    for since in (1, client.list()["seq"] + 1000):
        with pytest.raises(PaiJupyterError) as caught:
            list(client.events(since))
        assert (caught.value.status, caught.value.code) == (410, "events-gone")
    start = client.list()["seq"]
    for number in range(101):  # the fake bus keeps 100
        put_job(f"job{number}")
    client.list()
    with pytest.raises(PaiJupyterError) as caught:
        list(client.events(start, follow=True))
    assert caught.value.status == 410


def test_a_blank_line_keeps_a_silent_stream_alive(monkeypatch):
    from paijupyter.engine import streams

    assert streams.KEEP_ALIVE_SECONDS == 15
    import asyncio

    class Handler:
        request = type("request", (), {"connection": None})

        def __init__(self):
            self.written = []

        def set_header(self, *_):
            pass

        def write(self, data):
            self.written.append(data)

        async def flush(self):
            pass

    async def silent():
        await asyncio.sleep(0.5)
        yield {"a": 1}

    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(streams, "_FIRST_SECONDS", 0.01)
    handler = Handler()
    asyncio.run(streams.Sender(handler).lines(silent()))
    assert handler.written[0] == b""
    assert b"\n" in handler.written
    assert handler.written[-1] == b'{"a":1}\n'


@pytest.mark.parametrize(
    ("asked", "status", "content", "said"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, None, None),
        ("bytes=-0", 416, None, None),
        ("bytes=3-1", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("", 200, b"0123456789", None),
    ],
)
def test_ranges_of_a_file(client, put_job, asked, status, content, said):
    put_job("job0", "succeeded")
    (paths.data_dir() / "fake" / "job0" / "out" / "a b.bin").write_bytes(b"0123456789")
    with get(quoted("jobs", "job0", "files", "a b.bin"), headers={"Range": asked}) as answer:
        assert answer.status == status
        assert answer.headers.get("Content-Range") == said
        if content is not None:
            assert answer.read() == content
            etag = answer.headers["ETag"]
            with get(
                quoted("jobs", "job0", "files", "a b.bin"), headers={"Range": "bytes=1-1", "If-Range": etag}
            ) as again:
                assert again.read() == b"1"
    with get(
        quoted("jobs", "job0", "files", "a b.bin"), headers={"Range": "bytes=1-1", "If-Range": '"old"'}
    ) as whole:
        assert (whole.status, whole.read()) == (200, b"0123456789")


def test_an_empty_file(client, put_job):
    put_job("job0", "succeeded")
    (paths.data_dir() / "fake" / "job0" / "out" / "empty").touch()
    with get("/v1/jobs/job0/files/empty") as answer:
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "0", b"")


def test_a_slow_reader_keeps_nobody_waiting(client, put_job):
    """The loop is free while a large log is sent; who does not read does not fill the engine."""
    put_job("job0")
    path = paths.data_dir() / "fake" / "job0" / "worker-0.log"
    with path.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    engine = client.version()["engine"]["pid"]
    with get("/v1/jobs/job0/logs", {"task": "worker-0"}) as lazy:
        done, turn = threading.Event(), itertools.count()

        def busy():
            with get("/v1/jobs/job0/logs", {"task": "worker-0"}) as answer:
                while answer.piece(4 * 1024 * 1024):
                    if next(turn) % 50 == 0:
                        client.version()
            done.set()

        thread = threading.Thread(target=busy)
        thread.start()
        thread.join(60)
        assert done.is_set()
        with open(f"/proc/{engine}/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak < 120_000, "kB"
        assert lazy.status == 200
