"""A job may begin with the checkpoints that an earlier one left (`--resume-from`)."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from paijupyter.backends import base
from paijupyter.errors import InvalidDocument, PaiJupyterError
from paijupyter.jobs import JobService
from paijupyter.jobs.checkpoints import bring
from paijupyter.jobs.request import Request

pytestmark = pytest.mark.asyncio


async def earlier(bench, *, files=("step-1", "deep/step-2")) -> dict:
    """Return a job that has ended and left checkpoints."""
    view = await bench.submit("first")
    for path in files:
        bench.write(view, f"checkpoints/{path}", f"content of {path}")
    return await bench.finish("first")


async def test_the_plan_shows_with_what_it_begins(bench):
    before = await earlier(bench)
    plan = await bench.service.plan(bench.request("second", resumeFrom="first"))
    assert plan["ok"], plan["problems"]
    assert plan["resumes"] == {
        "id": before["id"],
        "name": before["name"],
        "files": 2,
        "bytes": len("content of step-1content of deep/step-2"),
    }
    assert (await bench.service.plan(bench.request("second")))["resumes"] is None


async def test_the_new_job_has_a_copy_before_its_backend_hears_of_it(bench, monkeypatch):
    """A copy, no link: what the new job writes leaves the old one's as it was."""
    before = await earlier(bench)
    seen = []
    submit = bench.backend.submit

    async def looking(job, secrets):
        seen.append((job.folder / "checkpoints" / "deep" / "step-2").read_text())
        await submit(job, secrets)

    monkeypatch.setattr(bench.backend, "submit", looking)
    view = await bench.submit("second", resumeFrom=before["name"])
    assert seen == ["content of deep/step-2"]
    assert view["resumedFrom"] == {"id": before["id"], "name": before["name"]}
    copy = bench.folder(view) / "checkpoints" / "step-1"
    with copy.open("r+") as stream:
        stream.write("CHANGED")
    assert (bench.folder(before) / "checkpoints" / "step-1").read_text() == "content of step-1"


async def test_what_cannot_be_resumed_is_refused_in_the_plan(bench):
    await bench.submit("empty")
    await bench.finish("empty")
    running = await bench.submit("running")
    bench.write(running, "checkpoints/step-1", "x")
    for ref, code in (("nobody", "not-found"), ("empty", "nothing-to-resume"), ("running", "not-final")):
        plan = await bench.service.plan(bench.request("next", resumeFrom=ref))
        assert [each["code"] for each in plan["problems"] if each["severity"] == "error"] == [code], ref
        with pytest.raises(InvalidDocument):
            await bench.service.submit(bench.request("next", resumeFrom=ref))


async def test_retry_resumes_only_when_asked(bench):
    before = await earlier(bench)
    anew = await bench.service.retry(before["id"])
    assert anew["resumedFrom"] is None
    assert not (bench.folder(anew) / "checkpoints").exists()
    again = await bench.service.clone(before["id"], {"resumeFrom": before["id"]})
    assert again["resumedFrom"]["id"] == before["id"]
    assert (bench.folder(again) / "checkpoints" / "step-1").exists()
    await bench.finish(again["name"])
    assert (await bench.service.retry(again["id"]))["resumedFrom"] is None


async def test_last_means_the_same_as_everywhere(bench):
    before = await earlier(bench)
    found = bench.service._in_context("last", Request.of(bench.request()).context)
    assert found.record.id == before["id"]


async def test_a_crash_between_the_record_and_the_copy_is_mended(bench, kit, monkeypatch):
    before = await earlier(bench)

    async def die(job, secrets):
        raise SystemError("killed")

    monkeypatch.setattr(bench.backend, "submit", die)
    monkeypatch.setattr(bench.service._submissions._creations, "take_back", _nothing)
    with pytest.raises(PaiJupyterError):
        await bench.submit("second", resumeFrom=before["id"])
    lost = bench.service.get("second")
    shutil.rmtree(bench.folder(lost) / "checkpoints")
    await bench.restart()
    await kit.eventually(lambda: (bench.folder(lost) / "checkpoints" / "step-1").exists())


async def _nothing(live):
    return None


async def test_what_is_gone_or_does_not_fit_is_said(tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    with pytest.raises(PaiJupyterError, match="could not be copied: No such file") as caught:
        bring(tmp_path, "old", tmp_path / "new")
    assert caught.value.code == "checkpoints-not-copied"
    (tmp_path / "old" / "checkpoints").mkdir(parents=True)
    (tmp_path / "old" / "checkpoints" / "step").write_bytes(b"x" * 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("fcntl.ioctl", full)
    with pytest.raises(PaiJupyterError, match="No space left"):
        bring(tmp_path, "old", tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


DOCUMENT = """\
protocolVersion: 2
name: steps
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: "python:3.11-slim"}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands:
      - step=$(cat $PAI_CHECKPOINT_DIR/step 2>/dev/null || echo 0)
      - echo $((step + 1)) > $PAI_CHECKPOINT_DIR/step
      - echo $((step + 1)) > $PAI_OUTPUT_DIR/steps
"""


@pytest.mark.slow
async def test_real_jobs_go_on_where_the_earlier_one_was(folders, kit):
    service = JobService(*folders)
    await service.start()
    context = {"user": "ann", "python": sys.executable, "folder": "/"}
    done = []
    for earlier_job in (None, "last", "last", None):
        view, _ = await service.submit({"document": DOCUMENT, "context": context, "resumeFrom": earlier_job})
        ref = view["id"]
        await kit.eventually(lambda ref=ref: service.get(ref)["state"] == "succeeded", 60)
        done.append(service.outputs.file(ref, "worker-0/steps").read_text().strip())
    await service.close()
    assert done == ["1", "2", "3", "1"]


async def test_checkpoints_that_a_profile_keeps_stay_with_it(bench, isolated_home, monkeypatch):
    """Nothing is copied here; its tasks told how many there are, its backend hears whose to begin with."""
    (point,) = base.backend_kinds().values()
    monkeypatch.setattr(base, "backend_kinds", lambda: {"local": point, "far": point})
    config = isolated_home / "config" / "paijupyter" / "profiles.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("profiles: {far: {kind: far}, further: {kind: far}}")
    first = await bench.submit("first", profile="far")
    told = {"files": 2, "bytes": 14}
    bench.write(first, "tasks/worker-0/0/checkpoints.json", json.dumps(told))
    far = bench.backend
    far.emit(first["id"], "succeeded")
    await bench.state("first", "succeeded")
    await earlier_here(bench)

    plan = await bench.service.plan(bench.request("second", resumeFrom="first", profile="far"))
    assert (plan["problems"], plan["resumes"]) == ([], {"id": first["id"], "name": first["name"], **told})
    for ref, profile in (("first", "local"), ("first", "further"), ("here", "far")):
        plan = await bench.service.plan(bench.request("third", resumeFrom=ref, profile=profile))
        assert [each["code"] for each in plan["problems"]] == ["checkpoints-elsewhere"], (ref, profile)

    heard = []
    monkeypatch.setattr(type(far), "submit", lambda self, job, secrets: _hear(heard, job))
    second = await bench.submit("second", resumeFrom="first", profile="far")
    assert heard[0].resumes == first["name"]
    assert not (bench.folder(second) / "checkpoints").exists()
    assert second["resumedFrom"] == {"id": first["id"], "name": first["name"], "profile": "far"}


async def earlier_here(bench):
    """Have a job of this host that left a checkpoint, named ``here``."""
    view = await bench.submit("here", profile="local")
    bench.write(view, "checkpoints/step-1", "x")
    local = next(each for each in type(bench.backend).made if each.profile.name == "local")
    local.emit(view["id"], "succeeded")
    await bench.state("here", "succeeded")


async def _hear(heard, job):
    heard.append(job)
