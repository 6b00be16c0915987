"""A real JupyterHub: its proxy, its tokens, and a single-user server with our extension for each person."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.services import proxy

CONFIGURATION = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{root}/{{username}}"
c.Spawner.cmd = ["{python}", "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root", "--ServerApp.jpserver_extensions=paijupyter.server=True"]
c.Spawner.environment = {{
    "PAIJUPYTER_DATA_DIR": lambda spawner: f"{root}/{{spawner.user.name}}/data",
    "PAIJUPYTER_RUNTIME_DIR": lambda spawner: f"{root}/{{spawner.user.name}}/run",
}}
c.Spawner.env_keep.append("JUPYTER_PATH")
c.Spawner.start_timeout = c.Spawner.http_timeout = 240
c.JupyterHub.services = [{{"name": "tests", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{"name": "tests", "services": ["tests"], "scopes": ["admin:users", "admin:servers", "tokens"]}}
]
"""


@dataclass
class Hub:
    """A hub that runs.

    Attributes:
        address: of its proxy, without a slash at the end.
        root: below it each person has a home.
        tokens: one per person, as the hub's page gives it.
    """

    address: str
    root: Path
    token: str
    tokens: dict[str, str] = field(default_factory=dict)

    def server(self, person: str) -> str:
        """Return the address of a person's server."""
        return f"{self.address}/user/{person}"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the hub's own interface."""
        data = None if body is None else json.dumps(body).encode()
        code, answer = fetch(f"{self.address}/hub/api/{path}", self.token, method, data)
        return code, json.loads(answer) if answer else None

    def let_in(self, person: str, until: Callable[..., object]) -> None:
        """Make a person, their token, and start their server."""
        self.ask("POST", f"users/{person}")
        self.tokens[person] = self.ask("POST", f"users/{person}/tokens", {"note": "test"})[1]["token"]
        code, _ = self.ask("POST", f"users/{person}/server")
        assert code in (201, 202), code
        until(lambda: self.ask("GET", f"users/{person}")[1]["servers"].get("", {}).get("ready"), seconds=240)


def fetch(url: str, token: str = "", method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    """Return code and body of an answer; redirects are answers."""
    headers = {"Authorization": f"token {token}"} if token else {}
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with _OPENER.open(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    pytest.importorskip("jupyterhub", reason="JupyterHub is not installed: make test-services")
    program = proxy()
    if program is None:
        pytest.skip("configurable-http-proxy is not installed: make test-services")
    # A short path: sockets lie below it.
    root = Path(tempfile.mkdtemp(prefix="pjh"))
    port, hub_port, api_port = _free_ports(3)
    found = Hub(f"http://127.0.0.1:{port}", root, secrets.token_hex(16))
    (root / "jupyterhub_config.py").write_text(
        CONFIGURATION.format(
            port=port, hub_port=hub_port, api_port=api_port, proxy=program, root=root, python=sys.executable,
            token=found.token,
        )
    )  # fmt: skip
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    # Where the machine has no node, the environment of the tests has one.
    environment["PATH"] = os.pathsep.join([environment.get("PATH", ""), str(Path(sys.executable).parent)])
    # A front end that was built elsewhere.
    kept = {"JUPYTER_PATH": os.environ["JUPYTER_PATH"]} if "JUPYTER_PATH" in os.environ else {}
    environment |= kept | {"HOME": str(root), "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16)}
    with (root / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub"],
            cwd=root, env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + 240
        while not _answers(found):
            log_text = (root / "hub.log").read_text()
            assert process.poll() is None and time.monotonic() < end, log_text[-3000:]
            time.sleep(0.1)
        yield found
    finally:
        _stop(process, root)
        shutil.rmtree(root, ignore_errors=True)


def _answers(hub: Hub) -> bool:
    with contextlib.suppress(OSError, ValueError):  # first nobody answers, then the proxy alone, in HTML
        return hub.ask("GET", "users")[0] == 200
    return False


def _stop(process: subprocess.Popen[bytes], root: Path) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for facts in root.glob("*/run/*/engine.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            os.kill(int(json.loads(facts.read_text())["pid"]), signal.SIGTERM)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def web() -> Callable[..., tuple[int, bytes]]:
    """Hand :func:`fetch` to tests."""
    return fetch
