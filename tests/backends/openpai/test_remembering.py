"""Jobs that were submitted in the portal or from another host are taken over (O28)."""

from __future__ import annotations

import urllib.request

import pytest
from doing import backend_on, scripted, simple
from staging import document, make_job, role, watching

from paijupyter.backends.base import Job, Place
from paijupyter.protocol import read, write
from paijupyter.protocol.checking import check
from tests.openpai.server import OpenPai


def post(server: OpenPai, text: str) -> None:
    """Submit as the portal does."""
    headers = {"Content-Type": "text/yaml", "Authorization": f"Bearer {server.token()}"}
    request = urllib.request.Request(
        f"{server.url}/rest-server/api/v2/jobs", text.encode(), headers, method="POST"
    )
    urllib.request.urlopen(request).close()


@pytest.mark.asyncio
async def test_a_job_of_the_portal(openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its secrets are masked there: their names are found where the text refers to them."""
    source = document(
        {"worker": role("echo <% $secrets.token %> <% $parameters.x %>", instances=2)},
        secrets={"token": "abc"},
        parameters={"x": 1},
    )
    openpai.on_submit = lambda job: job.run()
    post(openpai, write({**source, "name": "of-the-portal"}))
    async with backend_on(openpai, place, monkeypatch) as backend:
        (found,) = await backend.remembered()
        assert found["name"] == "of-the-portal"
        assert found["facts"]["secretNames"] == ["token"]
        assert found["facts"]["roles"][0]["instances"] == 2
        assert "abc" not in str(found)
        assert not [each for each in check(read(found["source"])) if each.severity == "error"]
        folder = place.data / "jobs" / found["id"]
        job = Job(found["id"], found["name"], "tester", folder, read(found["source"]).data, found["commands"])
        async with watching(backend, [job]) as watch:
            await watch.running(job)
            assert watch.tasks(job).keys() == {"worker-0", "worker-1"}
            scripted(openpai, job).succeed()
            assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_a_job_of_another_host_reads_as_it_was_written(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = document(
        {"worker": role("echo one\ntwo $$ <% $parameters.x %>")},
        parameters={"x": 1},
        secrets={"k": ""},
        extras={"paijupyter": {"version": 1}},
    )
    job = make_job(place, source)
    async with backend_on(openpai, place, monkeypatch) as backend:
        await backend.submit(job, {"k": "v"})
        copy = scripted(openpai, job)
        post(openpai, copy.posted.replace(f'name: "{job.name}"', 'name: "a-copy"', 1))
        of_portal = {each["name"]: each for each in await backend.remembered()}
        found = of_portal[job.name]
        assert found["id"] == job.id
        assert of_portal["a-copy"]["id"] != job.id
        assert read(found["source"]).data["taskRoles"]["worker"]["commands"] == [job.commands["worker"]]
        assert read(found["source"]).data["parameters"] == {"x": 1}
        assert found["facts"]["secretNames"] == ["k"]


@pytest.mark.asyncio
async def test_what_has_ended_is_not_taken_over(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpai.on_submit = lambda job: job.run().succeed()
    post(openpai, write({**document({"worker": role("true")}), "name": "ended"}))
    openpai.add_user("bob", "password")
    async with backend_on(openpai, place, monkeypatch) as backend:
        assert await backend.remembered() == []
        openpai.on_submit = lambda job: None
        await backend.submit(simple(place), {})
        assert len(await backend.remembered()) == 1
