"""Submitting: whole or not at all, once, with a name of its own (P1, P2, P39)."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from paijupyter.errors import Conflict, InvalidDocument, PaiJupyterError, Problem, UsageProblem
from paijupyter.package.manifest import Manifest

pytestmark = pytest.mark.asyncio
PACKAGE = "a" * 64


async def test_a_job_has_a_short_and_a_full_name_and_every_verb_takes_either(bench, kit):
    """P1: short name and suffix, both shown; id, name, short name and `last` lead to it."""
    view = await bench.submit("mnist")
    assert view["shortName"] == "mnist"
    assert re.fullmatch(r"mnist-[a-z2-7]{6}", view["name"])
    for ref in (view["id"], view["name"], "mnist", "last"):
        assert bench.service.get(ref)["id"] == view["id"]


async def test_the_folder_holds_the_document_byte_for_byte_and_the_facts(bench, kit):
    text = kit.document("mnist").replace("\n", "\r\n") + "# Ende ü\r\n"
    view = await bench.submit(document=text, requestId="r1")
    folder = bench.folder(view)
    assert (folder / "document.yaml").read_bytes() == text.encode()
    assert bench.service.export("mnist", "source") == text
    assert bench.service.export("mnist", "submitted") == f"# submitted\nname: {view['name']}\n"
    facts = json.loads((folder / "job.json").read_text())
    assert facts["id"] == view["id"] and facts["requestId"] == "r1" and facts["user"] == "ann"
    assert json.loads((folder / "commands.json").read_text())["worker"] == "echo 0.1"
    first, *_ = (folder / "events.jsonl").read_text().splitlines()
    assert json.loads(first)["type"] == "created"


async def test_the_view_counts_tasks_and_carries_typed_parameters(bench):
    view = await bench.submit()
    assert view["taskTotal"] == 3
    assert view["roles"]["worker"] == {"instances": 2, "gpu": 0, "states": {"waiting": 2}}
    assert view["parameters"] == {"lr": 0.1, "epochs": 20}
    assert view["mine"] is True and view["staleSince"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", view["submittedAt"])


async def test_resubmitting_a_name_never_clashes(bench):
    """P2, O9."""
    first, second = await bench.submit("same"), await bench.submit("same")
    assert first["name"] != second["name"] and first["id"] < second["id"]
    assert bench.service.get("same")["id"] == second["id"]


async def test_a_suffix_in_the_document_is_not_doubled(bench):
    first = await bench.submit("mnist")
    again = await bench.submit(first["name"])
    assert again["shortName"] == "mnist"


async def test_all_problems_come_at_once_with_those_of_the_backend(bench):
    await bench.submit()  # so that the backend is there
    bench.backend.problems = [
        Problem("error", "never-fits", "Job needs 900 CPUs and there are 8."),
        Problem("hint", "image-ignored", "Image is not used here."),
    ]
    with pytest.raises(InvalidDocument) as caught:
        await bench.submit()
    assert [each.code for each in caught.value.problems] == ["never-fits", "image-ignored"]
    assert caught.value.status == 422
    assert bench.service.unfinished() == 1


async def test_a_broken_document_is_refused_with_its_line(bench):
    with pytest.raises(InvalidDocument) as caught:
        await bench.submit(document="name: x\n  bad: [")
    assert caught.value.problems[0].line
    assert list((bench.data / "jobs").iterdir()) == []


async def test_nothing_is_left_of_a_job_that_the_backend_does_not_take(bench):
    """D7: half-submitted jobs are taken back."""
    await bench.submit("first")
    seq = bench.service.events.seq
    bench.backend.submit_error = PaiJupyterError("no-room", "Queue is closed.", status=409)
    with pytest.raises(PaiJupyterError, match="Queue is closed"):
        await bench.submit("second", secrets={"T": {"value": "s3cr3t-value"}})
    assert len(bench.service.list()["jobs"]) == 1
    assert len(list((bench.data / "jobs").iterdir())) == 1
    assert list((bench.runtime / "secrets").iterdir()) == []
    kinds = [event["type"] for event in bench.service.events.since(seq)]
    assert kinds == ["job", "deleted"]


async def test_an_error_of_the_backend_is_for_people_and_without_secrets(bench):
    await bench.submit()
    bench.backend.submit_error = RuntimeError("cannot use token s3cr3t-value")
    with pytest.raises(PaiJupyterError) as caught:
        await bench.submit(secrets={"T": {"value": "s3cr3t-value"}})
    assert caught.value.code == "backend-failed" and caught.value.status == 502
    assert "s3cr3t" not in str(caught.value) and caught.value.__cause__ is None


async def test_a_repeated_request_finds_the_same_job(bench):
    first = await bench.submit(requestId="one")
    again, created = await bench.service.submit(bench.request(requestId="one"))
    assert (again["id"], created) == (first["id"], False)
    await bench.finish(first["id"])
    await bench.restart()
    again, created = await bench.service.submit(bench.request(requestId="one"))
    assert (again["id"], created) == (first["id"], False)


async def test_a_request_repeated_meanwhile_waits_for_the_first(bench, kit):
    await bench.submit()
    bench.backend.gate = asyncio.Event()
    tasks = [asyncio.create_task(bench.service.submit(bench.request("two", requestId="r"))) for _ in range(3)]
    await kit.eventually(lambda: len(bench.backend.told) == 2)
    bench.backend.gate.set()
    answers = await asyncio.gather(*tasks)
    assert len({view["id"] for view, _ in answers}) == 1
    assert sorted(created for _, created in answers) == [False, False, True]


async def test_an_interrupted_caller_does_not_end_the_submission(bench, kit):
    """Interrupt detaches."""
    await bench.submit()
    bench.backend.gate = asyncio.Event()
    task = asyncio.create_task(bench.service.submit(bench.request("two", requestId="r")))
    await kit.eventually(lambda: len(bench.backend.told) == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    bench.backend.gate.set()
    view = await bench.state("two", "waiting", "queued")
    again, created = await bench.service.submit(bench.request("two", requestId="r"))
    assert (again["id"], created) == (view["id"], False)


def cell(number: int = 1, content: str = "h1", **more):
    context = {"notebook": "n.ipynb", "cell": {"id": "c1", "hash": content, "number": number}, "user": "ann"}
    return {"context": context, **more}


async def test_an_unfinished_job_of_the_same_cell_is_shown_instead(bench):
    first = await bench.submit(**cell())
    again, created = await bench.service.submit(bench.request(**cell(7)))
    assert (again["id"], created) == (first["id"], False)
    other = await bench.submit(**cell(content="h2"))
    asked = await bench.submit(**cell(mode="again"))
    assert len({first["id"], other["id"], asked["id"]}) == 3
    await bench.finish(asked["id"])
    await bench.finish(first["id"])
    assert (await bench.submit(**cell()))["id"] not in (first["id"], asked["id"])


async def test_two_submissions_of_one_cell_at_once_make_one_job(bench):
    answers = await asyncio.gather(*(bench.service.submit(bench.request(**cell())) for _ in range(4)))
    assert len({view["id"] for view, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


async def test_replace_stops_the_old_job_first(bench):
    """T5 for cells."""
    first = await bench.submit(**cell())
    second = await bench.submit(**cell(content="h2", mode="replace"))
    assert bench.service.get(first["id"])["state"] == "stopped"
    assert bench.backend.told.index(("stop", first["id"])) < bench.backend.told.index(
        ("submit", second["id"])
    )


async def test_replace_without_a_cell_goes_by_name_and_folder(bench):
    first, other = await bench.submit("mnist"), await bench.submit("other")
    await bench.submit("mnist", mode="replace")
    assert bench.service.get(first["id"])["state"] == "stopped"
    assert bench.service.get(other["id"])["state"] == "waiting"


async def test_a_package_that_is_not_stored_is_a_conflict(bench):
    """D8: no job runs on a package that has not arrived."""
    with pytest.raises(Conflict) as caught:
        await bench.submit(package=PACKAGE)
    assert caught.value.code == "package-missing" and caught.value.status == 409


async def test_a_stored_package_reaches_the_backend_and_the_view(bench):
    manifest = Manifest([])
    bench.service.packages.put_pack(manifest, [])
    bench.service.packages.commit(manifest)
    seen = {}

    async def plan(job):
        seen["job"] = job
        return await type(bench.backend).plan(bench.backend, job)

    await bench.submit()
    bench.backend.plan = plan
    view = await bench.submit(package=manifest.sha256)
    assert view["packageSha256"] == manifest.sha256
    assert seen["job"].package.folder == bench.service.packages.folder(manifest.sha256)
    assert seen["job"].extras["package"] == manifest.sha256


async def test_an_incomplete_package_is_a_conflict(bench):
    manifest = Manifest([])
    bench.service.packages.put_pack(manifest, [])
    bench.service.packages.commit(manifest)
    (bench.service.packages.folder(manifest.sha256) / "pack").unlink()
    with pytest.raises(Conflict, match="not stored"):
        await bench.submit(package=manifest.sha256)


async def test_a_full_disk_is_said_and_leaves_nothing(bench, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paijupyter.jobs.folders.write", full)
    with pytest.raises(PaiJupyterError, match="No space left") as caught:
        await bench.submit(secrets={"T": {"value": "v"}})
    assert caught.value.status == 507
    assert list((bench.data / "jobs").iterdir()) == [] and list((bench.runtime / "secrets").iterdir()) == []
    assert bench.service.list()["jobs"] == []


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"document": 3},
        {"document": "", "mode": "sometimes"},
        {"document": "", "secrets": {"A": "plain"}},
        {"document": "", "secrets": {"A": {"value": 5}}},
        {"document": "", "context": []},
        {"document": "", "context": {"cell": "x"}},
        {"document": "", "requestId": 7},
    ],
)
async def test_a_request_of_a_wrong_shape_is_a_usage_problem(bench, request_):
    with pytest.raises(UsageProblem) as caught:
        await bench.service.submit(request_)
    assert caught.value.status == 400 and "plain" not in str(caught.value)


async def test_the_unfinished_count_keeps_the_engine_alive_only_as_long_as_needed(bench, kit):
    assert bench.service.unfinished() == 0
    view = await bench.submit()
    assert bench.service.unfinished() == 1
    await bench.finish(view["id"])
    await kit.eventually(lambda: bench.service.unfinished() == 0)
