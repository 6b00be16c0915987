"""Who may come in: authentication, authorisation, XSRF on every route; contents paths stay below the root."""

from __future__ import annotations

import json
import os
from typing import ClassVar

import pytest
from jupyter_server.auth.authorizer import Authorizer
from jupyter_server.services.contents.manager import ContentsManager
from tornado.httpclient import HTTPClientError

from paijupyter import paths
from paijupyter.engine.routes import ROUTES
from paijupyter.server import openpai, outputs, paddle
from paijupyter.server.handlers import RULES

V1 = ("paijupyter", "v1")
HERE = [route for route in ROUTES if not route.path.startswith("/v1/engine")]
EACH = pytest.mark.parametrize("route", HERE, ids=[f"{r.method} {r.path}" for r in HERE])


def _url(route) -> list[str]:
    path = route.path.replace("{ref}", "job0").replace("{sha}", "0" * 64).replace("{path}", "a/b")
    return ["paijupyter", *path.strip("/").split("/")]


def _body(route) -> bytes | None:
    return b"{}" if route.method in {"POST", "PUT"} else None


class Recorder(Authorizer):
    """Says no, and remembers what it was asked."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def is_authorized(self, handler, user, action, resource):
        self.asked.append((action, resource))
        return False


@EACH
async def test_without_authentication_nothing_is_passed_on(jp_fetch, jp_serverapp, route):
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(
            *_url(route),
            method=route.method,
            body=_body(route),
            headers={"Authorization": ""},
            follow_redirects=False,
        )
    assert caught.value.code in {401, 403}
    assert not paths.engine_socket().exists(), "a stranger's request has started the engine"


class TestUnauthorised:
    @pytest.fixture
    def jp_server_config(self, jp_server_config):
        Recorder.asked = []
        jp_server_config["ServerApp"]["authorizer_class"] = Recorder
        return jp_server_config

    @EACH
    async def test_without_permission_nothing_is_passed_on(self, jp_fetch, route):
        with pytest.raises(HTTPClientError) as caught:
            await jp_fetch(*_url(route), method=route.method, body=_body(route))
        assert caught.value.code == 403
        running = {"retry", "rerun", "clone", "exec", "forward", "tensorboard"}
        runs = route.path.rsplit("/", 1)[1] in running or (route.method, route.path) in {
            ("POST", "/v1/jobs"),
            ("POST", "/v1/groups"),
            ("POST", "/v1/jobs/{ref}/secrets"),
            ("POST", "/paddle/v1/trainer/job"),
            ("POST", "/openpai/api/v2/jobs"),
        }
        # A profile says how jobs run, so who changes one runs code.
        runs = runs or (route.path.startswith("/v1/profiles") and route.method != "GET")
        questions = ("/v1/plan", "/v1/groups/plan", "/v1/report", "/v1/document")
        asks = route.path.startswith(questions) or route.method == "GET"
        asks = asks and route.path != "/v1/document/cells"  # it makes a package
        action = "execute" if runs else "read" if asks else "write"
        assert set(Recorder.asked) == {(action, "paijupyter")}
        assert not paths.engine_socket().exists()


@pytest.mark.parametrize(
    "route",
    [route for route in HERE if route.method != "GET"],
    ids=lambda route: f"{route.method} {route.path}",
)
async def test_a_cookie_alone_is_not_enough_to_change_things(
    jp_serverapp, jp_base_url, jp_fetch, jp_http_port, route, monkeypatch
):
    """XSRF: a request that comes with a login cookie, but without the token of a page of ours, is refused."""
    provider = jp_serverapp.identity_provider
    monkeypatch.setattr(type(provider), "is_token_authenticated", lambda self, handler: False)
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(*_url(route), method=route.method, body=_body(route))
    assert caught.value.code == 403
    problem = json.loads(caught.value.response.body)
    assert "_xsrf" in problem.get("title", problem.get("message"))
    assert not paths.engine_socket().exists()


def test_every_rule_has_authentication_on_every_method():
    from tornado.web import RequestHandler

    for _, handler in [*RULES, *outputs.RULES, *paddle.RULES, *openpai.RULES]:
        for method in ("get", "post", "put", "delete", "patch"):
            function = getattr(handler, method)
            if function is not RequestHandler._unimplemented_method:
                assert function.__wrapped__.__wrapped__, f"{handler.__name__}.{method} is open"


ESCAPES = [
    "..",
    "../other",
    "a/../../..",
    "inside",
    "link-out",
    ".hidden",
    "a/.hidden",
    "nothing",
    "a\0b",
    "/etc",
]


@pytest.fixture
def tree(jp_root_dir):
    outside = jp_root_dir.parent / "other"
    outside.mkdir()
    (jp_root_dir / "a" / ".hidden").mkdir(parents=True)
    (jp_root_dir / ".hidden").mkdir()
    (jp_root_dir / "inside").symlink_to(jp_root_dir / ".hidden")
    (jp_root_dir / "link-out").symlink_to(outside)
    (jp_root_dir / "alias").symlink_to(jp_root_dir / "a")
    return jp_root_dir


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("where", ["plan", "jobs", "packages", "list", "notebook", "run", "run-folder"])
async def test_paths_stay_below_the_contents_root(jp_fetch, tree, path, where):
    with pytest.raises(HTTPClientError) as caught:
        if where == "list":
            await jp_fetch(*V1, "jobs", params={"folder": path})
        elif where == "packages":
            await jp_fetch(*V1, "packages", method="POST", body=json.dumps({"folder": path}))
        elif where.startswith("run"):
            if where == "run" and path in {"nothing", "/etc"}:
                pytest.skip("a notebook need not exist; /etc is <root>/etc")
            asked = {"notebook": path} if where == "run" else {"notebook": "a/n.ipynb", "folder": path}
            await jp_fetch(*V1, "document", "notebook", method="POST", body=json.dumps(asked))
        elif where == "notebook":
            context = {"notebook": path}
            if path in {"nothing", "/etc"}:
                pytest.skip("a notebook need not exist; /etc is <root>/etc")
            body = json.dumps({"document": "d", "context": context})
            await jp_fetch(*V1, "plan", method="POST", body=body)
        else:
            body = json.dumps({"document": "d", "context": {"folder": path}})
            await jp_fetch(*V1, where, method="POST", body=body)
    assert (caught.value.code, json.loads(caught.value.response.body)["code"]) == (404, "not-found")


@pytest.mark.parametrize("path", ["", "/", "a", "/a/", "alias"])
async def test_contents_paths_become_paths_of_this_host(jp_fetch, tree, path):
    body = json.dumps({"document": "d", "context": {"folder": path, "notebook": "a/n.ipynb"}})
    answer = json.loads((await jp_fetch(*V1, "plan", method="POST", body=body)).body)
    assert answer["context"] == {
        "folder": os.path.join(tree, path.strip("/")).rstrip("/"),
        "notebook": str(tree / "a" / "n.ipynb"),
    }


class Elsewhere(ContentsManager):
    """Keeps its files nowhere on this host."""

    def dir_exists(self, path):
        return True

    def is_hidden(self, path):
        return False

    def file_exists(self, path):
        return True

    def get(self, *args, **kwargs):
        raise NotImplementedError


async def test_contents_that_are_no_files_are_refused_clearly(jp_fetch, jp_serverapp):
    jp_serverapp.web_app.settings["contents_manager"] = Elsewhere()
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(*V1, "packages", method="POST", body='{"folder": "a"}')
    problem = json.loads(caught.value.response.body)
    assert (caught.value.code, problem["code"]) == (409, "contents-not-files")
    assert "%%paijob" in problem["hint"]


async def test_cookies_and_tokens_do_not_reach_the_engine(jp_fetch, jp_serverapp, monkeypatch):
    from paijupyter.server import door

    token = jp_serverapp.identity_provider.token
    seen = []
    begin = door.Upstream.begin

    async def spy(self, method, target, headers):
        seen.append((target, dict(headers)))
        await begin(self, method, target, headers)

    monkeypatch.setattr(door.Upstream, "begin", spy)
    await jp_fetch(*V1, "version", headers={"Cookie": "a=b"}, params={"token": token})
    assert seen == [("/v1/version", {})]
