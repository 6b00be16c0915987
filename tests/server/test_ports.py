"""Ports of running tasks through the server (O22): nobody else gets in, nothing of the server gets out."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import ClassVar
from urllib.parse import urlencode, urlsplit

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.websocket import WebSocketHandler, websocket_connect

from paijupyter import paths
from paijupyter.client import start
from paijupyter.server import port_lookup
from tests.documents import document

PORTS = ("paijupyter", "v1", "jobs", "job0", "ports")


class Echo(web.RequestHandler):
    """Says what it was asked, and answers as the query wants."""

    def compute_etag(self):
        return None

    async def handle(self, path):
        for name, value in (each.split("=", 1) for each in self.get_arguments("set")):
            (self.add_header if name == "Set-Cookie" else self.set_header)(name, value)
        self.set_status(int(self.get_argument("status", "200")))
        facts = {
            "method": self.request.method,
            "uri": self.request.uri,
            "headers": list(self.request.headers.get_all()),
            "body": self.request.body.decode("latin-1")[:100],
            "size": len(self.request.body),
        }
        self.write(json.dumps(facts))

    get = post = put = patch = delete = handle


class Slow(web.RequestHandler):
    async def get(self):
        for number in range(3):
            self.write(f"{number}\n")
            await self.flush()
            await asyncio.sleep(0.05)


class Broken(web.RequestHandler):
    async def get(self):
        self.set_header("Content-Length", "100")
        self.write("part")
        await self.flush()
        self.request.connection.stream.close()


class EchoSocket(WebSocketHandler):
    def check_origin(self, origin):
        # As programs do that guard against other sites: the origin has to be their own address.
        return urlsplit(origin).netloc == self.request.host

    def select_subprotocol(self, subprotocols):
        return subprotocols[-1] if subprotocols else None

    async def get(self, *args):
        if self.get_argument("refuse", ""):
            raise web.HTTPError(418)
        await super().get(*args)

    async def on_message(self, message):
        if message == "headers":
            message = json.dumps(list(self.request.headers.get_all()))
        if message == "close":
            self.close(4001, "enough")
        else:
            await self.write_message(message, isinstance(message, bytes))


@pytest.fixture
def program(put_job, jp_asyncio_loop):
    """A program that listens as a task of a running job would; its port."""
    rules = [("/slow", Slow), ("/broken", Broken), ("/socket", EchoSocket), ("(.*)", Echo)]

    async def begin():
        server = HTTPServer(web.Application(rules), max_body_size=1 << 30)
        socket = free_socket()
        server.add_sockets([socket])
        return server, socket.getsockname()[1]

    server, port = jp_asyncio_loop.run_until_complete(begin())
    put_job(open=[{"task": "worker-0", "label": "tb", "port": port, "path": ""}])
    yield port
    server.stop()
    jp_asyncio_loop.run_until_complete(server.close_all_connections())


def free_socket():
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.bind(("127.0.0.1", 0))
    found.listen(16)
    found.setblocking(False)
    return found


@pytest.fixture
def host(http_server, http_server_port):
    """Where the Jupyter server listens."""
    return f"127.0.0.1:{http_server_port[1]}"


@pytest.fixture
def fetch(host, jp_base_url, jp_auth_header):
    """Ask for a path, written as it goes over the line; by default of the port ``tb`` of ``worker-0``."""

    async def fetch(path="/", *, below="job0/ports/worker-0/tb", headers=None, params=(), **more):
        url = f"http://{host}{jp_base_url}paijupyter/v1/jobs/{below}{path}"
        url += f"?{urlencode(params)}" if params else ""
        given = {**jp_auth_header, **(headers or {})}
        request = HTTPRequest(url, headers={k: v for k, v in given.items() if v}, request_timeout=20, **more)
        return await AsyncHTTPClient(force_instance=True).fetch(request)

    return fetch


def echoed(answer):
    facts = json.loads(answer.body)
    return {**facts, "headers": {name.lower(): value for name, value in facts["headers"]}}


async def test_a_request_arrives_without_anything_of_the_server(
    fetch, host, jp_base_url, jp_serverapp, program
):
    assert jp_base_url == "/a%40b/"
    token = jp_serverapp.identity_provider.token
    sent = {
        "Cookie": "username-localhost-8888=s3cret; _xsrf=2|s3cret; paijupyter-port-sid=mine; other=s3cret",
        "X-Forwarded-For": "1.2.3.4",
        "X-XSRFToken": "s3cret",
        "X-Own": "kept",
        "Referer": f"http://{host}{jp_base_url}lab?token=s3cret",
    }
    answer = await fetch("/a%20b/c", params={"x": "1 2", "token": token}, headers=sent)
    assert b"s3cret" not in answer.body and token.encode() not in answer.body
    facts = echoed(answer)
    assert facts["uri"] in ("/a%20b/c?x=1+2", "/a%20b/c?x=1%202")
    headers = facts["headers"]
    assert headers["host"] == f"127.0.0.1:{program}"
    assert headers["cookie"] == "sid=mine" and headers["x-own"] == "kept"
    assert headers["x-forwarded-prefix"].endswith("/ports/worker-0/tb")
    assert not {"authorization", "x-xsrftoken", "x-forwarded-for", "referer"} & headers.keys()


async def test_every_method_and_large_bodies_pass(fetch, program):
    for method in ("POST", "PUT", "PATCH"):
        answer = await fetch("/form", method=method, body=b"x" * 3_000_000)
        facts = echoed(answer)
        assert (facts["method"], facts["size"]) == (method, 3_000_000)
    assert echoed(await fetch("/x", method="DELETE"))["method"] == "DELETE"


async def test_answers_come_as_they_are_but_for_what_reaches_beyond(fetch, jp_base_url, program):
    sets = [
        "Set-Cookie=sid=1; Path=/; Domain=127.0.0.1; HttpOnly",
        "Set-Cookie=_xsrf=2; Path=/app",
        "Clear-Site-Data=*",
        "Access-Control-Allow-Origin=*",
        "Service-Worker-Allowed=/",
        "X-Frame=yes",
        "Content-Type=text/x-odd",
        "ETag=abc",
    ]
    answer = await fetch("/", params=[*(("set", each) for each in sets), ("status", "203")])
    assert (answer.code, answer.headers["Content-Type"], answer.headers["ETag"]) == (203, "text/x-odd", "abc")
    prefix = f"{jp_base_url}paijupyter/v1/jobs/job0/ports/worker-0/tb"
    cookies = [each for each in answer.headers.get_list("Set-Cookie") if each.startswith("paijupyter-port-")]
    assert cookies == [
        f"paijupyter-port-sid=1; Path={prefix}/; HttpOnly",
        f"paijupyter-port-_xsrf=2; Path={prefix}/app",
    ]
    assert answer.headers["X-Frame"] == "yes"
    for name in ("Clear-Site-Data", "Service-Worker-Allowed"):
        assert name not in answer.headers
    assert answer.headers.get("Access-Control-Allow-Origin") != "*"


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("/login?x=1#y", "{prefix}/login?x=1#y"),
        ("http://127.0.0.1:{port}/login", "{prefix}/login"),
        ("http://localhost:{port}", "{prefix}/"),
        ("//127.0.0.1:{port}/x", "{prefix}/x"),
        ("http://{host}/x", "{prefix}/x"),
        ("{prefix}/x", "{prefix}/x"),
        ("next", "next"),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:1/x"),
        ("https://example.org/x", "https://example.org/x"),
        ("http://[broken", "http://[broken"),
    ],
)
async def test_redirects_stay_below_the_port(fetch, host, jp_base_url, program, given, seen):
    prefix = f"{jp_base_url}paijupyter/v1/jobs/job0/ports/worker-0/tb"
    location = given.format(port=program, prefix=prefix, host=host)
    params = [("set", f"Location={location}"), ("status", "302")]
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/", params=params, follow_redirects=False, headers={"Host": host})
    assert caught.value.response.headers["Location"] == seen.format(prefix=prefix)


async def test_the_bare_address_leads_to_the_first_page_without_the_token(fetch, jp_serverapp, program):
    params = {"token": jp_serverapp.identity_provider.token, "x": "1"}
    with pytest.raises(HTTPClientError) as caught:
        await fetch("", params=params, follow_redirects=False)
    assert caught.value.code == 302
    assert caught.value.response.headers["Location"].endswith("/ports/worker-0/tb/?x=1")


async def test_a_stream_comes_piece_by_piece(fetch, program):
    pieces = []
    await fetch("/slow", streaming_callback=pieces.append)
    assert b"".join(pieces) == b"0\n1\n2\n" and len(pieces) == 3


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(fetch, program):
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/broken")
    assert caught.value.code == 599


# -- websockets -------------------------------------------------------------------------------------------


@pytest.fixture
def connect(host, jp_base_url, jp_auth_header, program):
    def connect(path="socket", headers=jp_auth_header, **more):
        url = f"ws://{host}{jp_base_url}{'/'.join(PORTS)}/worker-0/tb/{path}"
        return websocket_connect(HTTPRequest(url, headers=headers), **more)

    return connect


async def test_messages_pass_both_ways(connect, host, jp_auth_header):
    origin = f"http://{host}"
    socket = await connect(
        headers={**jp_auth_header, "Origin": origin, "Cookie": "a=s3cret"}, subprotocols=["v1", "v2"]
    )
    assert socket.selected_subprotocol == "v2"
    for message in ("text", b"\x00\xff", "ü" * 100_000):
        await socket.write_message(message, isinstance(message, bytes))
        assert await socket.read_message() == message
    await socket.write_message("headers")
    headers = str(await socket.read_message())
    assert "s3cret" not in headers and "uthorization" not in headers
    await socket.write_message("close")
    assert await socket.read_message() is None
    assert (socket.close_code, socket.close_reason) == (4001, "enough")
    socket.close()


async def test_a_websocket_needs_a_user_and_our_own_origin(connect, jp_auth_header):
    for headers in (
        {},
        {**jp_auth_header, "Authorization": "token wrong"},
        {"Origin": "http://evil.example"},
    ):
        with pytest.raises(HTTPClientError) as caught:
            await connect(headers=headers)
        assert caught.value.code in (401, 403)


async def test_a_refused_websocket_says_so(connect):
    with pytest.raises(HTTPClientError) as caught:
        await connect("socket?refuse=1")
    assert caught.value.code == 418


# -- who gets in, and where --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_without_authentication_nothing_is_passed_on(fetch, jp_base_url, put_job, method):
    put_job(open=[{"task": "worker-0", "label": "tb", "port": 1, "path": ""}])
    body = b"x" if method in ("POST", "PUT", "PATCH") else None
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/x", method=method, body=body, headers={"Authorization": ""}, follow_redirects=False)
    # Whoever looks with a browser is sent to log in.
    login = caught.value.response.headers.get("Location", "").startswith(f"{jp_base_url}login?")
    assert caught.value.code in (401, 403) or (login and method in ("GET", "HEAD"))
    assert not paths.engine_socket().exists(), "a stranger's request has started the engine"


class Recorder(Authorizer):
    """Says no, and remembers what it was asked."""

    asked: ClassVar[set[tuple[str, str]]] = set()

    def is_authorized(self, handler, user, action, resource):
        self.asked.add((action, resource))
        return False


class TestUnauthorised:
    @pytest.fixture
    def jp_server_config(self, jp_server_config):
        jp_server_config["ServerApp"]["authorizer_class"] = Recorder
        return jp_server_config

    @pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
    async def test_to_use_a_port_is_to_execute(self, fetch, method):
        Recorder.asked.clear()
        with pytest.raises(HTTPClientError) as caught:
            await fetch("/x", method=method, body=b"x" if method == "POST" else None)
        assert caught.value.code == 403
        assert Recorder.asked == {("execute", "paijupyter")}
        assert not paths.engine_socket().exists()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (("worker-0", "tb.1", ""), 404),
        (("worker-0", "22", ""), 404),
        (("worker-1", "tb", ""), 404),
        (("127.0.0.1", "tb", ""), 404),
        (("..", "tb", ""), 404),
        (("worker-0", "tb@example.org:80", ""), 404),
    ],
)
async def test_only_ports_of_the_job_can_be_named(fetch, program, path, status):
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/", below="/".join(["job0/ports", *path[:2]]))
    assert caught.value.code == status


@pytest.mark.parametrize(
    "inside", ["//example.org/x", "/../../x", "/%2e%2e/x", "/@example.org:80/", "/http://example.org/"]
)
async def test_no_path_leads_elsewhere(fetch, program, inside):
    answer = await fetch(inside)
    assert echoed(answer)["uri"] == inside and echoed(answer)["headers"]["host"] == f"127.0.0.1:{program}"


async def test_a_job_that_does_not_run_has_no_ports(fetch, put_job, program):
    put_job(state="succeeded", open=[{"task": "worker-0", "label": "tb", "port": program, "path": ""}])
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/")
    problem = json.loads(caught.value.response.body)
    assert (caught.value.code, problem["code"]) == (409, "not-running")
    with pytest.raises(HTTPClientError) as caught:
        await fetch(below="other/ports/worker-0/tb")
    assert caught.value.code == 404


async def test_a_port_where_nobody_listens_says_so_to_people(fetch, put_job):
    unused = free_socket()
    port = unused.getsockname()[1]
    unused.close()
    put_job(open=[{"task": "worker-0", "label": "tb", "port": port, "path": ""}])
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/", headers={"Accept": "text/html,*/*"})
    assert caught.value.code == 502
    assert b"PAI_PORT_LIST_worker_0_tb" in caught.value.response.body


async def test_a_port_that_another_user_took_is_not_opened(fetch, program, monkeypatch):
    monkeypatch.setattr(port_lookup, "is_of_another_user", lambda port: True)
    with pytest.raises(HTTPClientError) as caught:
        await fetch("/")
    assert caught.value.code == 409


def test_who_listens_is_read_from_the_kernel(monkeypatch, tmp_path):
    line = (
        "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {uid} 0 1 1"
    )
    table = tmp_path / "tcp"
    monkeypatch.setattr(port_lookup, "TABLES", (table, tmp_path / "none"))

    def listens(*rows):
        table.write_text("head\n" + "\n".join(line.format(port=p, state=s, uid=u) for p, s, u in rows) + "\n")

    me = os.getuid()
    listens((8080, "0A", me + 1))
    assert port_lookup.is_of_another_user(8080) and not port_lookup.is_of_another_user(8081)
    listens((8080, "0A", me + 1), (8080, "0A", me))
    assert not port_lookup.is_of_another_user(8080)
    listens((8080, "01", me + 1))
    assert not port_lookup.is_of_another_user(8080)


class TestWithCookies:
    """As in a browser: no token in the request, so other sites could make it send some."""

    @pytest.fixture
    def fetch(self, host, jp_base_url, program):
        async def fetch(method="GET", **headers):
            url = f"http://{host}{jp_base_url}{'/'.join(PORTS)}/worker-0/tb/x"
            given = {name.replace("_", "-"): value.format(host=host) for name, value in headers.items()}
            request = HTTPRequest(url, method=method, headers=given, body=b"x" if method == "POST" else None)
            return await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)

        return fetch

    @pytest.fixture(autouse=True)
    def logged_in(self, jp_serverapp, monkeypatch):
        from jupyter_server.auth.identity import User

        async def user(handler):
            return User("ann")

        monkeypatch.setattr(jp_serverapp.identity_provider, "get_user", user)

    async def test_forms_of_the_program_s_own_pages_are_sent(self, fetch):
        assert (await fetch("POST", Origin="http://{host}")).code == 200
        assert (await fetch("POST", Referer="http://{host}/x")).code == 200
        seen = echoed(await fetch("POST", Origin="http://{host}"))["headers"]
        assert seen["origin"] == f"http://{seen['host']}"

    async def test_those_of_other_sites_are_not(self, fetch):
        for headers in (
            {},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Referer": "http://evil.example/"},
        ):
            assert (await fetch("POST", **headers)).code == 403
        assert (await fetch(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")).code == 403
        assert (await fetch(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")).code == 200

    async def test_websockets_of_other_sites_are_not_opened(self, connect, host):
        with pytest.raises(HTTPClientError) as caught:
            await connect(headers={"Origin": "http://evil.example"})
        assert caught.value.code == 403
        socket = await connect(headers={"Origin": f"http://{host}"})
        await socket.write_message("x")
        assert await socket.read_message() == "x"
        socket.close()

    async def test_the_program_s_own_password_passes(self, fetch):
        seen = echoed(await fetch(Authorization="Basic YTpi"))["headers"]
        assert seen["authorization"] == "Basic YTpi"
        assert "authorization" not in echoed(await fetch(Authorization="Bearer s3cret"))["headers"]


# -- the whole way -------------------------------------------------------------------------------------------

DOCUMENT = document(
    "echo hello > index.html",
    "exec python -m http.server --bind 127.0.0.1 ${PAI_PORT_LIST_worker_0_web%%,*}",
    name="board",
    ports="web: 2",
)


class TestWithTheRealEngine:
    @pytest.fixture(autouse=True)
    def fake_engine(self):
        assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")

    async def test_a_program_of_a_job_is_opened_and_closed_with_it(self, jp_fetch, fetch):
        v1 = ("paijupyter", "v1", "jobs")
        context = {"folder": "", "python": sys.executable, "surface": "rest"}
        request = json.dumps({"document": DOCUMENT, "context": context})
        job = json.loads((await jp_fetch(*v1, method="POST", body=request)).body)

        async def get(label):
            try:
                return await fetch("/", below=f"{job['id']}/ports/worker-0/{label}")
            except HTTPClientError as error:
                return error.response

        page = await get("web")
        for _ in range(600):
            if page.code == 200:
                break
            assert page.code in (409, 502), page.body
            await asyncio.sleep(0.1)
            page = await get("web")
        assert page.body == b"hello\n"
        ports = json.loads((await jp_fetch(*v1, job["id"], "ports")).body)["ports"]
        assert {port["label"] for port in ports} == {"web", "web.1", "ssh", "http"}
        path = next(port["path"] for port in ports if port["label"] == "web")
        assert path == f"paijupyter/v1/jobs/{job['id']}/ports/worker-0/web/"
        assert (await get("web.1")).code == 502
        await jp_fetch(*v1, job["id"], "stop", method="POST", body=b"{}")
        assert (await get("web")).code == 409
