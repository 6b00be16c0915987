"""Stop is not delete (P24), retry is a new job, and every verb says why not."""

from __future__ import annotations

import asyncio
import json

import pytest

from paijupyter.errors import Conflict, NotFound, PaiJupyterError, UsageProblem

pytestmark = pytest.mark.asyncio


async def test_a_stopped_job_keeps_its_logs_and_record(bench):
    """P24: cancel is not delete."""
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    bench.write(view, "tasks/worker-0/0/log", "epoch 1\n")
    stopped = await bench.service.stop("mnist")
    assert (stopped["state"], stopped["reason"], stopped["message"]) == (
        "stopped",
        "user",
        "Stopped by user.",
    )
    assert bench.service.log_size("mnist", "worker-0") == 8
    kinds = [
        json.loads(line)["type"] for line in (bench.folder(view) / "events.jsonl").read_text().splitlines()
    ]
    assert kinds[-2:] == ["stop-requested", "change"]


async def test_stopping_a_final_job_is_no_news(bench):
    view = await bench.submit()
    await bench.finish(view["id"])
    assert (await bench.service.stop("mnist"))["state"] == "succeeded"
    assert ("stop", view["id"]) not in bench.backend.told


async def test_two_who_stop_at_once_stop_once(bench):
    view = await bench.submit()
    answers = await asyncio.gather(*(bench.service.stop("mnist") for _ in range(3)))
    assert [each["state"] for each in answers] == ["stopped"] * 3
    assert bench.backend.told.count(("stop", view["id"])) == 1


async def test_a_stop_that_fails_is_said_and_can_be_tried_again(bench):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    bench.backend.stop_error = RuntimeError("cluster is gone")
    with pytest.raises(PaiJupyterError, match="could not stop it: RuntimeError: cluster is gone"):
        await bench.service.stop("mnist")
    assert bench.service.get("mnist")["reason"] == "stopping"
    bench.backend.stop_error = None
    assert (await bench.service.stop("mnist"))["state"] == "stopped"


async def test_a_stop_waits_for_a_submission_under_way(bench, kit):
    await bench.submit()
    bench.backend.gate = asyncio.Event()
    submitting = asyncio.create_task(bench.service.submit(bench.request("two")))
    await kit.eventually(lambda: len(bench.backend.told) == 2)
    stopping = asyncio.create_task(bench.service.stop("two"))
    await kit.eventually(
        lambda: (
            "stop-requested"
            in (
                next((bench.data / "jobs").glob(f"{bench.service.get('two')['id']}/events.jsonl")).read_text()
            )
        )
    )
    bench.backend.gate.set()
    await submitting
    assert (await stopping)["state"] == "stopped"


async def test_only_final_jobs_are_deleted_with_all_they_have(bench):
    view = await bench.submit()
    with pytest.raises(Conflict) as caught:
        await bench.service.delete("mnist")
    assert caught.value.code == "not-final" and caught.value.status == 409
    await bench.finish("mnist")
    seq = bench.service.events.seq
    await bench.service.delete("mnist")
    assert bench.service.events.since(seq) == [{"seq": seq + 1, "type": "deleted", "id": view["id"]}]
    assert ("delete", view["id"]) in bench.backend.told
    assert list((bench.data / "jobs").iterdir()) == []
    with pytest.raises(NotFound) as missing:
        bench.service.get("mnist")
    assert missing.value.status == 404 and "list" in missing.value.hint


async def test_retry_makes_a_new_job_of_the_same_document_and_context(bench, kit):
    text = kit.document() + "# mine\n"
    context = {
        "user": "ann",
        "folder": "/w",
        "notebook": "n.ipynb",
        "cell": {"id": "c", "hash": "h", "number": 2},
    }
    first = await bench.submit(document=text, context=context)
    second = await bench.service.retry("mnist", "r-1")
    assert second["id"] != first["id"] and second["clonedFrom"] == first["id"]
    assert bench.service.export(second["id"], "source") == text
    assert (second["cell"], second["folder"]) == (first["cell"], "/w")
    assert (await bench.service.retry(first["id"], "r-1"))["id"] == second["id"]


async def test_clone_changes_the_document(bench, kit):
    await bench.submit()
    changed = await bench.service.clone("mnist", {"document": kit.document().replace("lr: 0.1", "lr: 0.2")})
    assert changed["parameters"]["lr"] == 0.2
    with pytest.raises(UsageProblem, match="`state`"):
        await bench.service.clone("mnist", {"state": "succeeded"})


async def test_retry_says_which_secrets_it_needs(bench):
    secrets = {"A": {"value": "s3cr3t-a"}, "B": {"value": "s3cr3t-b", "reference": "env:B"}}
    first = await bench.submit(secrets=secrets)
    with pytest.raises(Conflict) as caught:
        await bench.service.retry("mnist")
    assert caught.value.code == "secrets-needed" and "`A`, `B`" in caught.value.message
    second = await bench.service.clone("mnist", {"secrets": {"A": {"value": "1"}, "B": {"value": "2"}}})
    assert bench.backend.secrets[second["id"]] == {"A": "1", "B": "2"}
    facts = json.loads((bench.folder(first) / "job.json").read_text())
    assert facts["secretRefs"] == {"A": "ask", "B": "env:B"}


async def test_export_knows_two_documents(bench):
    await bench.submit()
    with pytest.raises(UsageProblem):
        bench.service.export("mnist", "everything")


async def test_tasks_of_an_earlier_attempt(bench, kit):
    view = await bench.submit()
    failed = (kit.task("worker", 0, "failed", code=1),)
    bench.backend.emit(view["id"], "running", tasks=failed)
    bench.backend.emit(view["id"], "running", attempt=1, tasks=(kit.task("worker", 0, "running", attempt=1),))
    await kit.eventually(lambda: bench.service.get("mnist")["attempt"] == 1)
    assert bench.service.tasks("mnist")["tasks"][0]["state"] == "running"
    first = bench.service.tasks("mnist", attempt=0)["tasks"]
    assert [each["state"] for each in first] == ["failed", "stopped", "stopped"]
    assert first[0]["code"] == 1
    for attempt in (2, -1):
        with pytest.raises(NotFound, match="Attempt"):
            bench.service.tasks("mnist", attempt=attempt)
    with pytest.raises(UsageProblem):
        bench.service.tasks("mnist", offset=-1)


async def test_last_is_the_kernels_then_the_folders(bench):
    def context(kernel, folder):
        return {"context": {"user": "ann", "kernel": kernel, "folder": folder}}

    one = await bench.submit("one", **context("k1", "/a"))
    two = await bench.submit("two", **context("k2", "/b"))
    last = bench.service.get
    assert last("last")["id"] == two["id"]
    assert last("last", kernel="k1")["id"] == one["id"]
    assert last("last", folder="/a")["id"] == one["id"]
    assert last("last", kernel="k1", folder="/b")["id"] == one["id"]
    assert last("last", kernel="new", folder="/b")["id"] == two["id"]
    for scope in ({"kernel": "new"}, {"folder": "/c"}):
        with pytest.raises(NotFound):
            last("last", **scope)


async def test_files_and_file(bench):
    view = await bench.submit()
    target = bench.write(view, "output/worker-0/m.bin", b"123")
    assert bench.service.outputs.list("mnist") == [{"path": "worker-0/m.bin", "size": 3}]
    assert bench.service.outputs.file("mnist", "worker-0/m.bin") == target
    with pytest.raises(NotFound):
        bench.service.outputs.file("mnist", "worker-0/none")
