"""The extension passes requests and answers on unchanged (P29: jupyter-server is the job server)."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from tornado.httpclient import HTTPClientError

from paijupyter import paths

V1 = ("paijupyter", "v1")


async def problem(request) -> tuple[int, dict]:
    with pytest.raises(HTTPClientError) as caught:
        await request
    response = caught.value.response
    assert response.headers["Content-Type"].startswith("application/problem+json")
    return caught.value.code, json.loads(response.body)


@pytest.fixture
def raw_get(jp_fetch, jp_serverapp, jp_auth_header, jp_base_url):
    """Send a GET over a connection of our own, to read of it as slowly as we like."""

    async def get(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", jp_serverapp.port, limit=65536)
        head = f"GET {jp_base_url}paijupyter/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        writer.write(f"{head}Authorization: {jp_auth_header['Authorization']}\r\n\r\n".encode())
        return reader, writer

    return get


async def test_version_starts_the_engine_at_the_first_request_only(jp_fetch, jp_serverapp):
    """P31; nothing is started by the start of the server."""
    assert not paths.engine_socket().exists()
    answer = await jp_fetch(*V1, "version")
    assert json.loads(answer.body)["api"] == 1
    assert paths.engine_socket().exists()


async def test_base_url_has_a_percent_sign(jp_base_url, jp_fetch):
    assert jp_base_url == "/a%40b/"
    assert (await jp_fetch(*V1, "jobs")).code == 200


async def test_cache_busters_and_tokens_stay_here(jp_fetch):
    params = {"1795982885592": "", "no_track_activity": "1", "limit": "1"}
    assert (await jp_fetch(*V1, "jobs", params=params)).code == 200


async def test_errors_pass_unchanged(jp_fetch):
    code, body = await problem(jp_fetch(*V1, "jobs", "nope"))
    assert (code, body["code"], body["title"]) == (404, "not-found", "Job `nope` does not exist.")
    code, body = await problem(jp_fetch(*V1, "jobs", params={"limit": "none"}))
    assert (code, body["code"]) == (400, "usage")
    code, body = await problem(jp_fetch(*V1, "jobs", method="POST", body="{"))
    assert code == 400
    code, body = await problem(jp_fetch(*V1, "jobs", method="POST", body='{"document": "bad"}'))
    assert (code, body["problems"][0]["path"]) == (422, "/x")


async def test_methods_that_are_not_there(jp_fetch):
    code, body = await problem(jp_fetch(*V1, "version", method="DELETE"))
    assert (code, body["code"]) == (405, "http-405")


async def test_the_engine_is_not_ended_from_outside(jp_fetch):
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(*V1, "engine", "handover", method="POST", body="{}")
    assert caught.value.code == 404


async def test_submit_get_stop_delete(jp_fetch):
    """P3 by REST."""
    made = await jp_fetch(*V1, "jobs", method="POST", body=json.dumps({"document": "hello"}))
    assert made.code == 201
    job = json.loads(made.body)["id"]
    assert json.loads((await jp_fetch(*V1, "jobs", job)).body)["state"] == "running"
    assert (
        json.loads((await jp_fetch(*V1, "jobs", job, "stop", method="POST", body="{}")).body)["state"]
        == "stopped"
    )
    assert (await jp_fetch(*V1, "jobs", job, method="DELETE")).code == 204
    assert (await problem(jp_fetch(*V1, "jobs", job)))[0] == 404


async def test_package_travels_through(jp_fetch):
    from paijupyter.package.manifest import Entry, Manifest

    content = os.urandom(300_000)
    import hashlib

    digest = hashlib.sha256(content).hexdigest()
    small = hashlib.sha256(b"print()\n").hexdigest()
    manifest = Manifest([Entry("big.bin", "100644", len(content), digest), Entry("a.py", "100644", 8, small)])
    body = json.dumps({"manifest": manifest.to_json()})
    answer = json.loads((await jp_fetch(*V1, "packages", method="POST", body=body)).body)
    assert answer["missing"] == {"pack": True, "blobs": [digest]}
    assert (await jp_fetch(*V1, "packages", "blobs", digest, method="PUT", body=content)).code == 204
    name = manifest.sha256
    code, refusal = await problem(jp_fetch(*V1, "packages", name, "pack", method="PUT", body=b"other!!!"))
    assert (code, refusal["code"]) == (422, "package-mismatch")
    assert (await jp_fetch(*V1, "packages", name, "pack", method="PUT", body=b"print()\n")).code == 204
    assert (await jp_fetch(*V1, "packages", name, "commit", method="POST", body=body)).code == 200
    assert json.loads((await jp_fetch(*V1, "packages", name)).body) == manifest.to_json()


async def test_files_by_range_and_never_active(jp_fetch, put_job):
    put_job("job0", "succeeded")
    out = paths.data_dir() / "fake" / "job0" / "out"
    out.mkdir()
    (out / "page.html").write_text("<script>alert(1)</script>")
    answer = await jp_fetch(*V1, "jobs", "job0", "files", "page.html", headers={"Range": "bytes=0-7"})
    assert (answer.code, answer.body) == (206, b"<script>")
    assert answer.headers["Content-Range"] == "bytes 0-7/25"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_followed_log_streams_through(jp_fetch, put_job):
    """O30: near real time; what is written while somebody follows arrives before the end."""
    put_job("job0")
    log = paths.data_dir() / "fake" / "job0" / "worker-0.log"
    log.write_bytes(b"first\n")
    got: asyncio.Queue[bytes] = asyncio.Queue()
    params = {"task": "worker-0", "follow": "1"}
    request = asyncio.ensure_future(
        jp_fetch(*V1, "jobs", "job0", "logs", params=params, streaming_callback=got.put_nowait)
    )
    assert await asyncio.wait_for(got.get(), 20) == b"first\n"
    with log.open("ab") as stream:
        stream.write(b"second\n")
    assert await asyncio.wait_for(got.get(), 20) == b"second\n"
    log.with_suffix(".end").touch()
    answer = await request
    assert answer.headers["X-Log-Offset"] == "0"
    assert answer.headers["X-Accel-Buffering"] == "no"


async def test_flow_a_client_that_does_not_read_stops_the_source(raw_get, put_job):
    """Back-pressure through both hops: memory of server and engine stays flat."""
    await asyncio.to_thread(lambda: None)
    put_job("job0", "succeeded")
    log = paths.data_dir() / "fake" / "job0" / "worker-0.log"
    size = 200 * 1024 * 1024
    with log.open("wb") as stream:
        stream.truncate(size)
    reader, writer = await raw_get("jobs/job0/logs?task=worker-0")
    assert b"200" in await reader.readline()
    engine = json.loads(paths.engine_socket().with_name("engine.json").read_text())["pid"]
    before = _resident("self"), _resident(engine)
    for _ in range(20):  # turns of the loop in which a source without flow would fill the memory
        await asyncio.sleep(0.05)
    assert _resident("self") - before[0] < 30e6
    assert _resident(engine) - before[1] < 30e6
    got = 0
    while chunk := await reader.read(1 << 20):
        got += len(chunk)
    assert got > size
    writer.close()


async def test_a_browser_that_leaves_frees_the_engine(raw_get, put_job):
    put_job("job0")
    (paths.data_dir() / "fake" / "job0" / "worker-0.log").write_bytes(b"x\n")
    reader, writer = await raw_get("jobs/job0/logs?task=worker-0&follow=1")
    assert b"200" in await reader.readline()
    engine = json.loads(paths.engine_socket().with_name("engine.json").read_text())["pid"]
    assert _connections(engine) > 1
    writer.close()
    for _ in range(500):
        if _connections(engine) <= 1:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the engine still streams to nobody")


async def test_a_stream_opens_before_there_is_anything_in_it(raw_get, put_job):
    """Whoever follows quiet events learns at once that the connection stands, not at the first keep-alive."""
    put_job("job0")
    reader, writer = await raw_get("events?follow=1")
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    writer.close()
    assert b" 200 " in head and b"ndjson" in head


async def test_a_stream_that_breaks_is_not_ended_properly(raw_get, put_job):
    """kill -9 of the engine: the client sees a broken answer, not a short log."""
    put_job("job0")
    (paths.data_dir() / "fake" / "job0" / "worker-0.log").write_bytes(b"x\n")
    reader, writer = await raw_get("jobs/job0/logs?task=worker-0&follow=1")
    await reader.readuntil(b"x\n")
    os.kill(json.loads(paths.engine_socket().with_name("engine.json").read_text())["pid"], signal.SIGKILL)
    rest = await asyncio.wait_for(reader.read(), 20)
    assert b"0\r\n\r\n" not in rest
    writer.close()


async def test_after_a_kill_the_next_request_starts_another_engine(jp_fetch):
    first = json.loads((await jp_fetch(*V1, "version")).body)["engine"]["pid"]
    os.kill(first, signal.SIGKILL)
    second = json.loads((await jp_fetch(*V1, "version")).body)["engine"]["pid"]
    assert second != first


async def test_an_engine_that_cannot_start_is_a_503_with_a_hint(jp_fetch, monkeypatch):
    monkeypatch.setenv("FAKE_REFUSES", "1")
    code, body = await problem(jp_fetch(*V1, "version"))
    assert (code, body["code"]) == (503, "engine-failed")
    assert "The index is broken" in body["title"]
    assert "engine.log" in body["hint"]


async def test_looking_is_no_activity_of_the_server(jp_fetch, jp_serverapp):
    settings = jp_serverapp.web_app.settings
    await jp_fetch(*V1, "jobs")
    before = settings.get("api_last_activity")
    await jp_fetch(*V1, "events")
    await jp_fetch(*V1, "jobs")
    assert settings.get("api_last_activity") == before
    await jp_fetch(*V1, "jobs", method="POST", body=json.dumps({"document": "hello"}))
    assert settings.get("api_last_activity") != before


async def test_a_running_job_is_activity(jp_fetch, put_job):
    from paijupyter.server.activity import unfinished

    assert await unfinished() == 0
    assert not paths.engine_socket().exists(), "looking for jobs must not start an engine"
    put_job("job0")
    await jp_fetch(*V1, "jobs")
    assert await unfinished() == 1


def _resident(pid) -> int:
    with open(f"/proc/{pid}/statm") as stream:
        return int(stream.read().split()[1]) * 4096


def _connections(pid: int) -> int:
    """Count the sockets that a process holds, beside those of its event loop."""
    names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return sum(name.startswith("socket:") for name in names) - 2
