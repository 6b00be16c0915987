"""The exit hook of a profile (O30): told once of every end, whatever is killed, and never changes a state."""

from __future__ import annotations

import http.server
import json
import sys
import threading

import pytest

from paijupyter.backends.base import Profile
from paijupyter.jobs import JobService, on_end
from paijupyter.jobs.common_settings import COMMON_SETTINGS, hook_of, price_of, problems_of, start_estimate_of
from paijupyter.jobs.profiles import user_file


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(on_end, "PAUSES", (0.01, 0.01))


@pytest.fixture
def profile():
    """Write settings of the profile ``local``."""

    def write(**settings):
        path = user_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"profiles": {"local": settings}}))

    return write


@pytest.fixture
def hook_file(tmp_path, profile):
    """A hook that writes what it is told into a file, one job a line."""
    path = tmp_path / "told"
    profile(
        onEnd={
            "command": [
                sys.executable,
                "-c",
                f"import sys; open({str(path)!r}, 'a').write(sys.stdin.read() + chr(10))",
            ]
        }
    )
    return path


def events_of(bench, view):
    lines = (bench.folder(view) / "events.jsonl").read_text().splitlines()
    return [
        (event["state"], event["message"]) for event in map(json.loads, lines) if event["type"] == "on-end"
    ]


async def restart(bench):
    await bench.service.close()
    bench.service = JobService(bench.data, bench.runtime)
    await bench.service.start()


def over(bench, view):
    found = bench.service.get(view["id"])["onEnd"]
    return found if found and found["state"] != "running" and not bench.service._hooks.busy else None


@pytest.mark.asyncio
async def test_a_command_is_told_of_the_end_without_secrets(bench, kit, hook_file):
    view = await bench.submit(secrets={"TOKEN": {"value": "c4n4ry", "reference": "keyring:hf"}})
    await bench.finish(view["id"], "failed", reason="user")
    await kit.eventually(lambda: over(bench, view))
    told = json.loads(hook_file.read_text())
    assert (told["id"], told["state"], told["reason"]) == (view["id"], "failed", "user")
    assert "c4n4ry" not in hook_file.read_text() and "keyring" not in hook_file.read_text()
    assert events_of(bench, view) == [("running", ""), ("done", "")]
    found = bench.service.get(view["id"])
    assert (found["state"], found["onEnd"]["state"]) == ("failed", "done")
    assert not list((bench.data / "hooks").iterdir())


@pytest.mark.asyncio
async def test_its_failure_is_shown_and_changes_nothing(bench, kit, profile, tmp_path):
    tries = tmp_path / "tries"
    profile(onEnd={"command": f"echo x >> {tries}; echo no such address >&2; exit 3", "retries": 2})
    view = await bench.submit()
    ended = await bench.finish(view["id"])
    found = await kit.eventually(lambda: over(bench, view))
    assert found["state"] == "failed"
    assert found["message"] == "The command ended with 3: no such address"
    assert tries.read_text() == "x\n" * 3
    after = bench.service.get(view["id"])
    assert {**after, "onEnd": None} == {**ended, "onEnd": None}
    await restart(bench)
    assert bench.service.get(view["id"])["onEnd"]["message"] == found["message"]
    assert tries.read_text() == "x\n" * 3


@pytest.mark.asyncio
async def test_its_time_is_limited_and_nothing_of_it_is_left(bench, kit, profile, tmp_path):
    profile(onEnd={"command": f"sleep 600 & echo $! > {tmp_path}/pid; wait", "timeout": 1, "retries": 0})
    view = await bench.submit()
    await bench.finish(view["id"])
    found = await kit.eventually(lambda: over(bench, view))
    assert found["message"] == "The command took longer than 1 s."
    pid = (tmp_path / "pid").read_text().strip()

    def gone():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    await kit.eventually(gone)


@pytest.mark.asyncio
@pytest.mark.parametrize("settings", [{}, {"onEnd": {"command": "true", "url": "http://x"}}])
async def test_without_a_usable_hook_nothing_is_run(bench, kit, profile, settings):
    profile(**settings)
    view = await bench.submit()
    await bench.finish(view["id"])
    await kit.eventually(lambda: not bench.service._hooks.busy)
    found = bench.service.get(view["id"])["onEnd"]
    assert found is None if not settings else "either a `command` or a `url`" in found["message"]


@pytest.mark.asyncio
async def test_an_engine_that_died_before_it_is_made_up_for_once(bench, kit, hook_file, monkeypatch):
    view = await bench.submit()
    monkeypatch.setattr(bench.service._hooks, "begin", lambda live: None)  # killed just before
    bench.service._catalog.after_final = lambda live: None
    await bench.finish(view["id"])
    assert not hook_file.exists() and [each.name for each in (bench.data / "hooks").iterdir()] == [view["id"]]
    await restart(bench)
    await kit.eventually(lambda: over(bench, view))
    assert json.loads(hook_file.read_text())["id"] == view["id"]
    await restart(bench)
    assert len(hook_file.read_text().splitlines()) == 1 and not bench.service._hooks.busy


@pytest.mark.asyncio
async def test_one_that_was_under_way_is_not_run_twice(bench, kit, profile, tmp_path, monkeypatch):
    monkeypatch.setattr(on_end, "_LAST_WORDS", 0.01)
    started = tmp_path / "started"
    profile(onEnd={"command": f"echo x >> {started}; sleep 60"})
    view = await bench.submit()
    await bench.finish(view["id"])
    await kit.eventually(started.exists)
    await restart(bench)
    found = await kit.eventually(lambda: over(bench, view))
    assert found["state"] == "failed" and "not run again" in found["message"]
    assert started.read_text() == "x\n"


@pytest.fixture
def receiver():
    """A webhook: its address, what it was told, and the status that it answers with."""
    told, statuses = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.path, self.headers, json.loads(body)))
            status = statuses.pop(0) if statuses else 204
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", told, statuses
    server.shutdown()
    server.server_close()


@pytest.mark.asyncio
async def test_a_webhook_is_told_and_tried_again(bench, kit, profile, receiver):
    url, told, statuses = receiver
    statuses += [500, 503]
    profile(onEnd={"url": url, "headers": {"X-Team": "a"}})
    view = await bench.submit()
    await bench.finish(view["id"])
    found = await kit.eventually(lambda: over(bench, view))
    assert found["state"] == "done"
    assert [body["id"] for _, _, body in told] == [view["id"]] * 3
    assert told[-1][1]["X-Team"] == "a" and told[-1][1]["Content-Type"] == "application/json"


@pytest.mark.asyncio
async def test_a_webhook_follows_no_redirect_and_says_no_address(bench, kit, profile, receiver):
    url, told, statuses = receiver
    statuses += [302]
    profile(onEnd={"url": f"{url}/c4n4ry", "retries": 0})
    view = await bench.submit()
    await bench.finish(view["id"])
    found = await kit.eventually(lambda: over(bench, view))
    assert found["message"] == "The address answered 302."
    assert [path for path, _, _ in told] == ["/hook/c4n4ry"]


@pytest.mark.asyncio
async def test_a_secret_address_comes_from_the_keyring(bench, kit, profile, receiver, monkeypatch):
    url, told, _ = receiver

    async def from_keyring(name, entry):
        assert entry == "chat"
        return url

    monkeypatch.setattr(on_end, "from_keyring", from_keyring)
    profile(onEnd={"url": "keyring:chat"})
    view = await bench.submit()
    await bench.finish(view["id"])
    assert (await kit.eventually(lambda: over(bench, view)))["state"] == "done" and len(told) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"onEnd": "x"}, "either"),
        ({"onEnd": {}}, "either"),
        ({"onEnd": {"command": " "}}, "a text or a list"),
        ({"onEnd": {"url": "file:///etc/passwd"}}, "http"),
        ({"onEnd": {"url": "http://x", "headers": {"a": 1}}}, "headers"),
        ({"onEnd": {"command": "x", "retires": 1}}, "`retires`"),
        ({"onEnd": {"command": "x", "retries": True}}, "retries"),
        ({"onEnd": {"command": "x", "timeout": "soon"}}, "duration"),
        ({"onEnd": {"command": "x", "timeout": 7200}}, "10 min"),
        ({"pricePerGpuHour": "free"}, "pricePerGpuHour"),
        ({"pricePerGpuHour": -1}, "pricePerGpuHour"),
        ({"pricePerGpuHour": 1, "currency": "a currency that is long"}, "currency"),
        ({"startEstimate": "never"}, "duration"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings, said):
    (problem,) = problems_of(Profile("p", "local", settings))
    assert said in problem


def test_settings_that_can_be_used():
    profile = Profile(
        "p",
        "local",
        {
            "onEnd": {"command": "x", "timeout": "2m"},
            "pricePerGpuHour": 2,
            "currency": "EUR",
            "startEstimate": "20m",
            "stores": {"s3": {"endpoint_url": "https://store.example"}},
        },
    )
    assert not problems_of(profile) and set(profile.settings) == set(COMMON_SETTINGS)
    hook, price = hook_of(profile), price_of(profile)
    assert hook is not None and hook.timeout == 120
    assert price is not None and (price.per_gpu_hour, price.currency) == (2.0, "EUR")
    assert start_estimate_of(profile) == 1200
