"""Ports of pods through the Jupyter server: the same way as those of processes here (O22)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from jupyter_core.paths import jupyter_config_dir
from tornado.httpclient import HTTPClientError
from tornado.websocket import websocket_connect

from paijupyter.client import start
from tests.cluster.reach import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
LONG = 180.0
SMALL = {"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}}
PROGRAM = """\
import base64, hashlib, http.server, os
class Program(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade") != "websocket":
            body = b"hello from " + self.path.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accepted = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accepted)
        self.end_headers()
        head = self.rfile.read(2)
        size, mask = head[1] & 127, self.rfile.read(4)
        text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.rfile.read(size)))
        self.wfile.write(bytes([129, size]) + text[::-1])
        self.close_connection = True
port = int(os.environ["PAI_PORT_LIST_worker_0_web"].split(",")[0])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Program).serve_forever()
"""


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    return {"ServerApp": {"jpserver_extensions": {"paijupyter": True}}}


@pytest.fixture
def profile(cluster: Cluster, namespace: str, image: Callable[[str], str], jp_environ: None) -> str:
    """Give the name of a profile of the test's namespace."""
    path = Path(jupyter_config_dir()) / "paijupyter" / "profiles.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "kind": "kubernetes",
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        "image": image("python"),
        "podTemplate": [{"spec": {"containers": [{"name": "main", "resources": SMALL}]}}],
    }
    path.write_text(yaml.safe_dump({"profiles": {"lab": settings}}))
    return "lab"


def document(image: str) -> str:
    resources = {"cpu": 1, "memoryMB": 128, "gpu": 0, "ports": {"web": 1}}
    worker = {"instances": 1, "dockerImage": "image", "resourcePerInstance": resources}
    worker["commands"] = [f"cat > p.py <<'END'\n{PROGRAM}END\nexec python3 p.py"]
    found = {
        "protocolVersion": 2,
        "name": "board",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": image}],
        "taskRoles": {"worker": worker},
    }
    return yaml.safe_dump(found)


async def test_a_page_and_a_websocket_of_a_pod(
    jp_fetch: Any,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    http_server_port: Any,
    profile: str,
    image: Callable[[str], str],
) -> None:
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")
    v1 = ("paijupyter", "v1", "jobs")
    request = {"document": document(image("python")), "profile": profile, "context": {"surface": "rest"}}
    made = await jp_fetch(*v1, method="POST", body=json.dumps(request), raise_error=False)
    assert made.code in (200, 201), made.body
    job = json.loads(made.body)
    inside = (*v1, job["id"], "ports", "worker-0", "web", "a")

    async def page() -> Any:
        return await jp_fetch(*inside, raise_error=False)

    end = asyncio.get_running_loop().time() + LONG
    answer = await page()
    while answer.code != 200:
        assert answer.code in (404, 409, 502), answer.body
        assert asyncio.get_running_loop().time() < end, answer.body
        await asyncio.sleep(0.2)
        answer = await page()
    assert answer.body == b"hello from /a"
    many = await asyncio.gather(*(page() for _ in range(8)))
    assert {each.body for each in many} == {b"hello from /a"}

    listed = json.loads((await jp_fetch(*v1, job["id"], "ports")).body)["ports"]
    (web,) = [each for each in listed if each["label"] == "web"]
    assert web["path"] == f"paijupyter/v1/jobs/{job['id']}/ports/worker-0/web/"
    host = f"127.0.0.1:{http_server_port[1]}{jp_base_url}"
    token = urlencode({"token": jp_auth_header["Authorization"].split()[-1]})
    socket = await websocket_connect(f"ws://{host}{web['path']}socket?{token}")
    await socket.write_message("abc")
    assert await socket.read_message() == "cba"
    socket.close()
    with pytest.raises(HTTPClientError) as refused:
        await websocket_connect(f"ws://{host}{web['path']}socket")
    assert refused.value.code == 403

    await jp_fetch(*v1, job["id"], "stop", method="POST", body="{}", request_timeout=120)
    assert (await page()).code == 409
    made_of = json.loads((await jp_fetch(*v1, job["id"], "provenance")).body)
    assert "pip" in made_of["environment"]["packages"]
    assert made_of["containers"]["worker"]["digest"].startswith("sha256:")
