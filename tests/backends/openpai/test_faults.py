"""What goes wrong between us and a server: a clear state or message, nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from doing import backend_on, running, scripted, settings, simple, until
from staging import document, make_job, role, watching

from paijupyter.backends.base import Place, Profile
from paijupyter.backends.openpai import submit
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.errors import PaiJupyterError
from tests.openpai import faults
from tests.openpai.answers import Answer
from tests.openpai.server import OpenPai

SUBMIT = r"/jobs$"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again soon."""
    monkeypatch.setattr(submit, "_LOOKS", (0.01, 0.05, 0.1))


# Submitting


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer", [faults.no_job(), faults.broken(), faults.bad_gateway()], ids=["404", "500", "502"]
)
async def test_taken_although_it_was_denied(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    openpai.fault("POST", SUBMIT, instead=answer, after=True)
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place)
        await backend.submit(job, {})
        await backend.submit(job, {})
        assert openpai.count("POST", "/jobs") == 1
        assert len(openpai.jobs) == 1


@pytest.mark.asyncio
async def test_taken_and_the_answer_was_cut(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpai.fault("POST", SUBMIT, drop=True)
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place)
        await backend.submit(job, {})
        assert len(openpai.jobs) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (faults.no_job(), "not-found"),
        (faults.broken(), "cluster-refused"),
        (faults.unauthorized(), "cluster-login"),
    ],
    ids=["404", "500", "401"],
)
async def test_denied_and_not_taken(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: str
) -> None:
    """Nothing is left of it here, so it can be submitted again."""
    openpai.fault("POST", SUBMIT, instead=answer)
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place)
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(job, {})
        assert caught.value.code == code
        assert caught.value.hint
        await backend.submit(job, {})
        assert len(openpai.jobs) == 1


@pytest.mark.asyncio
async def test_nobody_knows_whether_it_was_taken(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits as `submitting`, is asked for again and again, and is neither lost nor there twice."""
    monkeypatch.setattr("paijupyter.backends.openpai.backend._UNSURE_PAUSES", (0.05, 0.1))
    openpai.fault("POST", SUBMIT, instead=faults.bad_gateway(), after=True)
    down = openpai.fault("GET", r"/config$", instead=faults.bad_gateway(), times=None)
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        waiting = await watch.until(job, lambda change: change.reason == "submitting")
        assert "may have the job" in waiting.message
        openpai.lift(down)
        await watch.until(job, lambda change: change.reason == "queued")
        assert openpai.count("POST", "/jobs") == 1
        scripted(openpai, job).run().succeed()
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_an_engine_that_died_while_it_posted(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    openpai.fault("POST", SUBMIT, held=held)
    job = simple(place)
    async with backend_on(openpai, place, monkeypatch) as backend:
        posting = asyncio.create_task(backend.submit(job, {}))
        await until(lambda: openpai.count("POST", "/jobs") == 1)
        posting.cancel()
    held.set()
    await until(lambda: len(openpai.jobs) == 1)
    async with backend_on(openpai, place, monkeypatch) as backend:
        await backend.submit(job, {})
        assert openpai.count("POST", "/jobs") == 1
        assert len(openpai.jobs) == 1


@pytest.mark.asyncio
async def test_a_name_of_somebody_else_is_left_to_them(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are never free again (1.1): the job gets another one there, and keeps its own here."""
    first, second = simple(place), simple(place)
    second = type(second)(**{**{s: getattr(second, s) for s in second.__slots__}, "name": first.name})
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        await backend.submit(first, {})
        await backend.submit(second, {})
        names = sorted(job.name for job in openpai.jobs.values())
        assert len(names) == 2
        assert names[1].startswith(first.name)
        with openpai.lock:
            openpai.job(names[1]).run().fail(255, origin=4)
        assert (await watch.final(second)).state == "failed"


@pytest.mark.asyncio
async def test_what_the_server_has_against_it(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place, defaults={"virtualCluster": "nosuch"})
        assert "no-virtual-cluster" in {problem.code for problem in (await backend.plan(job)).problems}
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(job, {})
        assert caught.value.code == "no-virtual-cluster"
        job = make_job(place, document({"worker": role("true")}, extras={"storages": [{"name": "nosuch"}]}))
        assert "no-storage" in {problem.code for problem in (await backend.plan(job)).problems}
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(job, {})
        assert caught.value.code == "no-storage"


# The server as a whole


@pytest.mark.asyncio
async def test_a_portal_that_answers_pages(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpai.fault("*", ".", instead=faults.portal(), times=None)
    async with backend_on(openpai, place, monkeypatch) as backend:
        assert "is no OpenPAI server" in (await backend.capabilities()).unreachable
        with pytest.raises(PaiJupyterError) as caught:
            await anext(backend.watch([]))
        assert caught.value.code == "not-openpai"
        plan = await backend.plan(simple(place))
        assert "cluster-unreachable" in {problem.code for problem in plan.problems}


@pytest.mark.asyncio
async def test_nobody_there(place: Place, openpai: OpenPai, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", "token")
    backend = OpenPaiBackend(
        Profile("pai", "openpai", {**settings(openpai), "url": "http://127.0.0.1:9"}), place
    )
    try:
        assert (await backend.capabilities()).unreachable
        job = simple(place)
        with pytest.raises(PaiJupyterError) as caught:
            await backend.submit(job, {})
        assert caught.value.code == "cluster-unreachable"
        assert caught.value.status == 503
    finally:
        await backend.close()


@pytest.mark.asyncio
async def test_a_certificate_that_nobody_knows(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O8: trusted by a file that the profile names; never skipped."""
    import subprocess

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    with OpenPai(tls=(str(certificate), str(key))) as server:
        async with backend_on(server, place, monkeypatch) as backend:
            assert "certificate" in (await backend.capabilities()).unreachable
        async with backend_on(server, place, monkeypatch, ca=str(certificate)) as backend:
            assert not (await backend.capabilities()).unreachable


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [
        {"instead": faults.unauthorized()},
        {"instead": faults.too_many(1)},
        {"instead": faults.broken()},
        {"instead": faults.portal()},
        {"instead": Answer(200, b'{"data": 1}', {"Content-Type": "application/json"})},
        {"cut": True},
        {"drop": True},
    ],
    ids=["401", "429", "500", "html", "other", "cut", "drop"],
)
async def test_the_list_goes_wrong_and_the_loop_goes_on(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, fault: dict[str, object]
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend:
        job = simple(place)
        async with watching(backend) as watch:
            await backend.submit(job, {})
            scripted(openpai, job).run()
            await watch.running(job)
        broken = openpai.fault("GET", SUBMIT, times=3, **fault)
        await until(lambda: broken.met == 3)
        scripted(openpai, job).succeed()
        await until(lambda: not backend._hub.runs)
        async with watching(backend, [job]) as watch:
            assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_a_job_whose_detail_cannot_be_read(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port count of -1 does that, for ever (1.2): the list still tells."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).unreadable = "Invalid array length"
        scripted(openpai, job).run()
        await watch.running(job)
        scripted(openpai, job).fail(255)
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "user")


@pytest.mark.asyncio
async def test_a_job_that_an_administrator_removed(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await running(openpai, backend, watch, simple(place))
        with openpai.lock:
            openpai.jobs.clear()
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "lost")


# Stopping


@pytest.mark.asyncio
async def test_a_stop_that_is_lost_is_asked_for_again(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paijupyter.backends.openpai.stop._AGAIN", 0.3)
    openpai.lost_stops = 2
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).run()
        await asyncio.wait_for(backend.stop(job), 60)
        assert (await watch.final(job)).state == "stopped"
        assert openpai.count("PUT", "/executionType") == 3


@pytest.mark.asyncio
async def test_a_stop_takes_its_time(openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns when the state says so, not with the 202."""
    openpai.stops_at_once = False
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).run()
        stopping = asyncio.create_task(backend.stop(job))
        await watch.until(job, lambda change: change.reason == "stopping")
        assert not stopping.done()
        scripted(openpai, job).stopped()
        await asyncio.wait_for(stopping, 60)
        assert (await watch.final(job)).state == "stopped"


@pytest.mark.asyncio
async def test_a_stop_that_comes_too_late(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers 500 then (6.5); the job keeps the end that it had."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        openpai.fault("PUT", "executionType", instead=faults.broken(), times=None)
        await backend.submit(job, {})
        scripted(openpai, job).run()
        stopping = asyncio.create_task(backend.stop(job))
        await until(lambda: openpai.count("PUT", "/executionType"))
        scripted(openpai, job).succeed()
        await asyncio.wait_for(stopping, 60)
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_a_stop_while_nobody_answers(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and the job is stopped once it can be."""
    monkeypatch.setattr("paijupyter.backends.openpai.stop._PAUSE", 0.1)
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await running(openpai, backend, watch, simple(place))
        down = openpai.fault("*", ".", instead=faults.bad_gateway(), times=None)
        with pytest.raises(PaiJupyterError) as caught:
            await asyncio.wait_for(backend.stop(job), 60)
        assert caught.value.code == "cluster-busy"
        openpai.lift(down)
        assert (await watch.final(job)).state == "stopped"
