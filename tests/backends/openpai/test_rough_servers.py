"""Bad input and faults beside a failing list: each a clear state or message, and the loop goes on."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from doing import backend_on, running, scripted, settings, simple, until
from running import Cluster
from staging import log_of, watching

from paijupyter.backends.base import Place, Profile
from paijupyter.backends.openpai import listing
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.errors import PaiJupyterError
from tests.openpai import faults
from tests.openpai.answers import Answer
from tests.openpai.server import OpenPai

LIST = r"/jobs$"


@pytest.mark.asyncio
async def test_answers_that_do_not_come(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that hangs is given up after a time; what people ask for meanwhile is answered."""
    monkeypatch.setattr(listing, "_SECONDS", 0.5)
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await running(openpai, backend, watch, simple(place))
        held = threading.Event()
        slow = openpai.fault("GET", LIST, held=held, times=2)
        await until(lambda: slow.met)
        assert not (await backend.capabilities()).unreachable
        await until(lambda: slow.met == 2)
        held.set()
        scripted(openpai, job).succeed()
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_nobody_is_logged_in(openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """O3: a new profile; it is said so, and what to do."""
    async with backend_on(openpai, place, monkeypatch) as backend:
        monkeypatch.delenv("PAIJUPYTER_TOKEN_PAI")
        said = (await backend.capabilities()).unreachable
        assert said.startswith("Nobody is logged in at the OpenPAI server")
        assert "paijob login" in said


@pytest.mark.asyncio
async def test_a_token_that_is_revoked_while_jobs_run(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs change nothing, the message says how to log in, and after that they go on."""
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).run()
        async with watching(backend, [job]) as watch:
            await watch.running(job)
            for token in list(openpai.accounts.tokens):
                openpai.revoke(token)
            await until(lambda: backend._hub.trouble is not None)
            assert watch.of(job)[-1].state == "running"
        with pytest.raises(PaiJupyterError) as caught:
            await anext(backend.watch([job]))
        assert (caught.value.code, caught.value.status) == ("cluster-login", 401)
        assert "paijob login" in caught.value.hint
        scripted(openpai, job).succeed()
        monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
        async with watching(backend, [job]) as watch:
            assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
@pytest.mark.parametrize("skew", [-4000.0, 4000.0])
async def test_a_clock_that_is_wrong(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """By more than an hour: the job runs to its end, its log is read, and the doctor says it."""
    cluster.server.skew = skew
    async with backend_on(cluster.server, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place, "echo hello")
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        assert await log_of(backend, job, "worker-0") == b"hello\n"
        clock = next(each for each in await backend.examine() if each.name == "clock")
        assert not clock.ok
        assert (
            f"is {skew:+.0f}"[:6] in clock.message
            or f"is {skew / abs(skew) * 3999:+.0f}"[:6] in clock.message
        )
        assert clock.fix


@pytest.mark.asyncio
async def test_lists_with_what_nobody_knows(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown fields, missing ones, values of other kinds, names with `~`, states of a later version."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job, other = simple(place), simple(place)
        for each in (job, other):
            await backend.submit(each, {})
            scripted(openpai, each).run()
            await watch.running(each)
        odd: list[Any] = [
            None, 5, "job", [], {}, {"name": None, "username": "alice"},
            {"name": "a~b~c", "username": "alice", "state": "RUNNING", "isNew": {"deep": [1]}},
            {"name": job.name, "username": "alice", "state": "HIBERNATING", "retries": "many",
             "retryDetails": [], "submissionTime": "today", "tags": 7, "completedTime": {}},
            {"name": f"alice~{other.name}", "username": "alice", "state": "RUNNING", "jobPriority": {}},
        ]  # fmt: skip
        body = json.dumps(odd).encode()
        strange = openpai.fault(
            "GET", LIST, instead=Answer(200, body, {"Content-Type": "application/json"}), times=4
        )
        await until(lambda: strange.met == 4)
        assert {each.state for each in (*watch.of(job)[-1:], *watch.of(other)[-1:])} == {"running"}
        for each in (job, other):
            scripted(openpai, each).succeed()
            assert (await watch.final(each)).state == "succeeded"


@pytest.mark.asyncio
async def test_details_with_what_nobody_knows(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A detail that makes no sense costs its job nothing: the next one is read."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        tasks = [None, {"taskIndex": "a"}, 7]
        odd = {
            "jobStatus": {"state": 5, "retryDetails": "x"},
            "taskRoles": {"worker": {"taskStatuses": tasks}},
            "x": 1,
        }
        answer = Answer(200, json.dumps(odd).encode(), {"Content-Type": "application/json"})
        strange = openpai.fault("GET", r"/jobs/[^/]+$", instead=answer, times=2)
        await backend.submit(job, {})
        scripted(openpai, job).run()
        await until(lambda: strange.met >= 1)
        scripted(openpai, job).succeed()
        await until(lambda: strange.met == 2 or watch.of(job)[-1].state == "succeeded")
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_jobs_of_the_portal_with_a_tilde_in_their_name(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form of the portal lets it through (2.2): such a job is taken over and followed like any other."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        with openpai.lock:
            remote = scripted(openpai, job)
            data = {**remote.data, "name": "a~b"}
            tilde = type(remote)(
                "alice", remote.posted, data, {**remote.stored, "name": "a~b"}, remote._clock
            )
            openpai.jobs[tilde.framework] = tilde.run()
            remote.run()
        await watch.running(job)
        assert "a~b" in {str(each["name"]) for each in await backend.remembered()}
        scripted(openpai, job).succeed()
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/somewhere", "/rest-server/rest-server"])
async def test_a_wrong_address_on_the_right_host(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    backend = OpenPaiBackend(
        Profile("pai", "openpai", {**settings(openpai), "url": openpai.url + path}), place
    )
    try:
        assert "is no OpenPAI server" in (await backend.capabilities()).unreachable
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(simple(place), {})
        assert caught.value.code == "not-openpai"
        assert "`url`" in caught.value.hint
        assert not openpai.jobs
    finally:
        await backend.close()


class _Proxy(http.server.BaseHTTPRequestHandler):
    refuses = False
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        if self.refuses:
            self._answer(407, b"<html><body>Proxy Authentication Required</body></html>", "text/html")
            return
        headers = {
            key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection")
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        request = urllib.request.Request(self.path, body, headers, method=self.command)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as found:
                self._answer(found.status, found.read(), found.headers.get("Content-Type", ""))
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, error.read(), error.headers.get("Content-Type", ""))

    do_POST = do_PUT = do_GET

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Proxy]]:
    """A proxy that this process is told to use for everything."""
    handler = type("Proxy", (_Proxy,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_address[1]}")
        yield handler
        server.shutdown()
        thread.join()


@pytest.mark.asyncio
async def test_through_a_proxy(
    openpai: OpenPai, place: Place, proxy: type[_Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    openpai.on_submit = lambda remote: remote.run()
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).succeed()
        assert (await watch.final(job)).state == "succeeded"
        assert any(path.startswith(openpai.url) for path in proxy.seen)


@pytest.mark.asyncio
async def test_a_proxy_that_wants_a_login(
    openpai: OpenPai, place: Place, proxy: type[_Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.refuses = True
    async with backend_on(openpai, place, monkeypatch) as backend:
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(simple(place), {})
        assert caught.value.code == "proxy-refused"
        assert "NO_PROXY" in caught.value.hint
        assert not openpai.jobs


@pytest.mark.asyncio
async def test_a_server_that_counts_too_many_while_a_job_is_submitted(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """429 is no 5xx: the server did not take it, so it is said at once and nothing is asked in a loop."""
    openpai.fault("POST", LIST, instead=faults.too_many(1))
    async with backend_on(openpai, place, monkeypatch) as backend:
        with pytest.raises(PaiJupyterError) as caught:
            await asyncio.wait_for(backend.submit(simple(place), {}), 60)
        assert caught.value.code == "cluster-busy"
        assert openpai.count("POST", "/jobs") == 1
        assert not openpai.jobs
