"""The job server below /user/<name>/ of a real JupyterHub, through its proxy, with its tokens (O22, P29)."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

import pytest

from paijupyter.client.client import JobsClient
from tests.documents import document

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]
SERVES = """\
import http.server, os, pathlib
class Say(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "/here")
        else:
            self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{os.environ['PAI_JOB_NAME']} has {self.path}".encode())
    def log_message(self, *_):
        pass
port = int(os.environ["PAI_PORT_LIST_worker_0_web"])
server = http.server.HTTPServer(("127.0.0.1", port), Say)
print("serves", flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def people(hub: Any, request: pytest.FixtureRequest) -> Any:
    """Ann and Bob have their servers."""
    import time

    def until(condition: Any, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (hub.root / "hub.log").read_text()[-3000:]
            time.sleep(0.1)

    for person in ("ann", "bob"):
        hub.let_in(person, until)
    return hub


def submit(client: JobsClient, command: str, **more: Any) -> dict[str, Any]:
    context = {"python": sys.executable, "surface": "rest"}
    return client.submit({"document": document(command, ports="web: 1"), "context": context, **more})


def test_a_job_is_submitted_and_followed_through_the_hub(people: Any) -> None:
    client = JobsClient.over_http(people.server("ann"), people.tokens["ann"])
    since = client.list()["seq"]
    view = submit(client, "for i in 1 2 3; do echo line $i; sleep 0.3; done")
    log = "".join(chunk.text for chunk in client.logs(view["id"], follow=True))
    assert log.count("line ") == 3
    events = client.events(since, follow=True)
    assert next(
        event for event in events if "succeeded" in json.dumps(event) and view["id"] in json.dumps(event)
    )
    assert client.wait(view["id"], timeout=60)["state"] == "succeeded"


def test_everybody_has_jobs_of_their_own(people: Any, web: Any) -> None:
    """Another user's token is refused by the server itself, with and without a job to see."""
    ann, bob = people.tokens["ann"], people.tokens["bob"]
    view = submit(JobsClient.over_http(people.server("ann"), ann), "true")
    jobs = f"{people.server('ann')}/paijupyter/v1/jobs"
    assert web(jobs, ann)[0] == 200
    for path in (
        jobs,
        f"{jobs}/{view['id']}",
        f"{jobs}/{view['id']}/logs",
        f"{jobs}/{view['id']}/ports/worker-0/web/",
    ):
        assert web(path, bob)[0] == 403, path
        assert web(path, "no-token-at-all")[0] in (302, 403), path
        assert web(path)[0] in (302, 403), path
    assert web(jobs, bob, "POST", b"{}")[0] == 403
    own = json.loads(web(f"{people.server('bob')}/paijupyter/v1/jobs", bob)[1])
    assert view["id"] not in json.dumps(own)


def test_a_port_of_a_task_opens_through_the_proxy(people: Any, web: Any, until: Any) -> None:
    """Links, and where a program redirects to, lead below /user/ann/."""
    token, server = people.tokens["ann"], people.server("ann")
    client = JobsClient.over_http(server, token)
    home = people.root / "ann" / "serving"
    home.mkdir()
    (home / "serve.py").write_text(SERVES)
    made = json.loads(web(f"{server}/paijupyter/v1/packages", token, "POST", b'{"folder": "serving"}')[1])
    view = submit(client, "exec python serve.py", package=made["sha256"])
    try:
        until(lambda: "serves" in "".join(chunk.text for chunk in client.logs(view["id"])), seconds=60)
        (port,) = [
            each
            for each in client.ask("GET", f"/v1/jobs/{view['id']}/ports")["ports"]
            if each["label"] == "web"
        ]
        address = f"{server}/{port['path']}"
        assert web(f"{address}here", token) == (200, f"ann~{view['name']} has /here".encode())
        away = urllib.request.Request(f"{address}away", headers={"Authorization": f"token {token}"})
        with urllib.request.urlopen(away, timeout=60) as answer:
            assert answer.url == f"{address}here"
        assert web(f"{address}here", people.tokens["bob"])[0] == 403
        assert web(f"{address}here")[0] in (302, 403)
    finally:
        client.stop(view["id"])


def test_links_know_the_path_of_the_hub(people: Any, web: Any) -> None:
    """The description names the base; a page of JupyterLab below it has our front end's settings."""
    token, server = people.tokens["ann"], people.server("ann")
    code, page = web(f"{server}/lab", token)
    assert code == 200 and b'"baseUrl": "/user/ann/"' in page
    code, said = web(f"{server}/paijupyter/v1/version", token)
    assert code == 200 and "engine" in json.loads(said)
