"""Groups of experiments: recorded at once, submitted by themselves, found after a crash (T3 to T8, 2.2)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from paijupyter.backends.base import Job
from paijupyter.errors import Conflict, InvalidDocument, NotFound, PaiJupyterError, UsageProblem
from paijupyter.jobs import JobService
from tests.resting import holders

pytestmark = pytest.mark.asyncio

TEMPLATE = """\
protocolVersion: 2
name: sweep
type: job
prerequisites: [{protocolVersion: 2, name: image, type: dockerimage, uri: python}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["train --lr {lr}"]
"""


def wish(count: int = 3, template: str = TEMPLATE, **more: Any) -> dict[str, Any]:
    experiments = more.pop("experiments", None) or {
        "experiments": {str(each): {"lr": each / 10} for each in range(1, count + 1)}
    }
    request = {"template": template, "experiments": json.dumps(experiments)}
    return {**request, "context": {"user": "ann", "folder": "/work"}, **more}


async def rows(bench: Any, ref: str = "sweep") -> dict[str, dict[str, Any]]:
    page = await bench.service.groups.experiments(ref)
    return {each["key"]: each for each in page["experiments"]}


async def submitted(bench: Any, kit: Any, count: int, ref: str = "sweep") -> dict[str, dict[str, Any]]:
    """Wait until so many experiments have jobs that their backend has taken."""

    def there() -> bool:
        told = [job for verb, job in bench.backend.told if verb == "submit"]
        return len(told) >= count

    await kit.eventually(there)
    return await rows_when(
        bench, lambda found: sum(each["job"] is not None for each in found.values()) >= count
    )


async def rows_when(
    bench: Any, condition: Callable[[dict[str, dict[str, Any]]], object], ref: str = "sweep"
) -> dict[str, dict[str, Any]]:
    """Return the rows once they are as they shall be."""
    end = time.monotonic() + 20
    while not condition(found := await rows(bench, ref)):
        assert time.monotonic() < end, f"waited in vain: {found}"
    return found


async def other_job(bench: Any, key: str, former: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows once an experiment has another job than before."""
    return await rows_when(bench, lambda found: found[key]["job"] not in (None, former[key]["job"]))


async def run(bench: Any, kit: Any, ends: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Run a round and end its jobs."""
    view, _ = await bench.service.groups.submit(wish(len(ends), **more))
    found = await submitted(bench, kit, len(ends))
    for key, state in ends.items():
        await bench.finish(found[key]["job"], state)
    await settled(bench, kit)
    return view


async def settled(bench: Any, kit: Any, ref: str = "sweep") -> dict[str, Any]:
    def over() -> Any:
        view = bench.service.groups.get(ref)
        return (
            view
            if not view["counts"].keys() & {"waiting", "running"} and not bench.service.groups.busy
            else None
        )

    return await kit.eventually(over)


async def test_a_plan_says_count_names_and_every_problem_and_does_nothing(bench: Any) -> None:
    """2.2: a preview of the count before anything is submitted."""
    plan = await bench.service.groups.plan(wish(3, atOnce=2))
    assert plan["ok"] and plan["count"] == 3 and plan["name"] == "sweep" and plan["atOnce"] == 2
    assert [each["name"] for each in plan["experiments"]] == ["sweep-1", "sweep-2", "sweep-3"]
    assert plan["experiments"][0]["values"] == {"lr": 0.1}
    assert bench.service.groups.list()["groups"] == [] and not bench.service.list()["jobs"]


async def test_the_filled_texts_come_with_the_plan_when_asked_for(bench: Any) -> None:
    """T8: the filled document, what stands below `secrets` masked."""
    template = TEMPLATE + "secrets: {TOKEN: hidden-value}\n"
    plan = await bench.service.groups.plan(wish(2, template=template, texts=True))
    assert "train --lr 0.2" in plan["texts"]["2"]
    assert "hidden-value" not in json.dumps(plan)


async def test_every_experiment_becomes_one_job(bench: Any, kit: Any) -> None:
    """T3: all of them; T5: the identity is (group, key), in record and label."""
    view, is_new = await bench.service.groups.submit(wish(3))
    assert is_new and view["total"] == 3
    found = await submitted(bench, kit, 3)
    for key, row in found.items():
        job = bench.service.get(row["job"])
        assert job["group"] == {"id": view["id"], "name": "sweep", "key": key}
        assert job["name"].startswith(f"sweep-{key}-")
        assert f"train --lr 0.{key}" in bench.service.export(row["job"], "source")
        await bench.finish(row["job"])
    view = await settled(bench, kit)
    assert view["state"] == "succeeded" and view["counts"] == {"succeeded": 3}


async def test_all_problems_of_all_experiments_are_told_together(bench: Any) -> None:
    """2.2 and T7: the article's script loses them."""
    experiments = {"experiments": {"1": {"cpu": 1}, "2": {"cpu": "many"}, "3": {"cpu": -5}}}
    template = TEMPLATE.replace("cpu: 1", "cpu: {cpu}").replace("{lr}", "1")
    with pytest.raises(InvalidDocument) as caught:
        await bench.service.groups.submit(wish(template=template, experiments=experiments))
    said = [str(each) for each in caught.value.problems if each.severity == "error"]
    assert any("Experiment 2" in each for each in said) and any("Experiment 3" in each for each in said)
    assert not any("Experiment 1" in each for each in said)
    assert bench.service.groups.list()["groups"] == []


async def test_no_more_run_at_once_than_the_cap(bench: Any, kit: Any) -> None:
    """2.2: a cap on how many run at once, also after a restart."""
    await bench.service.groups.submit(wish(5, atOnce=2))
    found = await submitted(bench, kit, 2)
    assert [key for key, row in found.items() if row["job"]] == ["1", "2"]
    assert found["3"]["state"] == "waiting" and "at most 2" in found["3"]["message"]
    await bench.restart()
    assert len(bench.service.list()["jobs"]) == 2
    await bench.finish(found["1"]["job"])
    found = await rows_when(bench, lambda found: found["3"]["job"])
    assert [key for key, row in found.items() if row["job"]] == ["1", "2", "3"]


async def test_it_ends_early_after_so_many_failures(bench: Any, kit: Any) -> None:
    """2.2: what waits is stopped, what runs goes on, what has no job gets none."""
    await bench.service.groups.submit(wish(6, atOnce=4, stopAfter=2))
    found = await submitted(bench, kit, 4)
    bench.backend.emit(found["1"]["job"], "running")
    await bench.state(found["1"]["job"], "running")
    for key in "23":
        await bench.finish(found[key]["job"], "failed")
    await kit.eventually(lambda: bench.service.groups.get("sweep")["stoppedBy"] == "failures")
    await bench.state(found["4"]["job"], "stopped")
    assert bench.service.get(found["1"]["job"])["state"] == "running"
    await bench.finish(found["1"]["job"])
    view = await settled(bench, kit)
    # One of the two that had no job may have got one between the two failures.
    assert (
        view["counts"]["failed"] == 2 and view["counts"]["succeeded"] == 1 and view["counts"]["stopped"] == 3
    )


async def test_unchanged_ones_are_kept_and_changed_ones_run(bench: Any, kit: Any) -> None:
    """2.2: skipped by hash of package, parameters and image."""
    await run(bench, kit, {"1": "succeeded", "2": "succeeded", "3": "failed"})
    before = await rows(bench)
    experiments = {"experiments": {"1": {"lr": 0.1}, "2": {"lr": 9}, "3": {"lr": 0.3}}}
    plan = await bench.service.groups.plan(wish(experiments=experiments))
    assert plan["count"] == 2 and plan["kept"] == 1
    view, is_new = await bench.service.groups.submit(wish(experiments=experiments))
    assert not is_new and view["round"] == 2
    await other_job(bench, "2", before)
    after = await other_job(bench, "3", before)
    assert after["1"]["job"] == before["1"]["job"] and after["1"]["kept"]
    assert after["2"]["job"] != before["2"]["job"] and after["3"]["job"] != before["3"]["job"]
    again = await bench.service.groups.plan(wish(experiments=experiments, again=True, only="1"))
    assert again["count"] == 1


async def test_only_and_failed_choose(bench: Any, kit: Any) -> None:
    """T4: --only, --failed; an unknown key is an error that lists the keys."""
    await run(bench, kit, {"1": "succeeded", "2": "failed", "3": "failed"})
    plan = await bench.service.groups.plan(wish(3, failed=True))
    assert [each["key"] for each in plan["experiments"]] == ["2", "3"]
    plan = await bench.service.groups.plan(wish(3, failed=True, only="1-2"))
    assert [each["key"] for each in plan["experiments"]] == ["2"]
    with pytest.raises(UsageProblem, match="1-3"):
        await bench.service.groups.plan(wish(3, only="7"))
    with pytest.raises(UsageProblem, match="Failed: 2-3"):
        await bench.service.groups.plan(wish(3, failed=True, only="1"))


async def test_a_changed_experiment_does_not_get_a_second_job_beside_the_first(bench: Any, kit: Any) -> None:
    """T5: two of one identity cannot be side by side; --replace stops and deletes the old one first."""
    await bench.service.groups.submit(wish(2))
    before = await submitted(bench, kit, 2)
    changed = {"experiments": {"1": {"lr": 0.1}, "2": {"lr": 5}}}
    with pytest.raises(InvalidDocument, match="Experiment 2: Its former job has not ended"):
        await bench.service.groups.submit(wish(experiments=changed))
    await bench.service.groups.submit(wish(experiments=changed, replace=True, only="2"))
    await kit.eventually(lambda: ("stop", before["2"]["job"]) in bench.backend.told)
    after = await other_job(bench, "2", before)
    with pytest.raises(NotFound):
        bench.service.get(before["2"]["job"])
    assert after["1"]["job"] == before["1"]["job"]
    told = bench.backend.told
    assert told.index(("stop", before["2"]["job"])) < told.index(("submit", after["2"]["job"]))


async def test_delete_only_removes_what_is_there_and_is_silent_about_the_rest(bench: Any, kit: Any) -> None:
    """T6 and T7."""
    await bench.service.groups.submit(wish(3))
    found = await submitted(bench, kit, 3)
    await bench.service.groups.remove("sweep", "1-2")
    assert [each["id"] for each in bench.service.list()["jobs"]] == [found["3"]["job"]]
    assert list(await rows(bench)) == ["3"]
    await bench.service.groups.remove("sweep")
    assert bench.service.list()["jobs"] == [] and bench.service.groups.list()["groups"] == []
    with pytest.raises(NotFound):
        await bench.service.groups.remove("sweep")


async def test_stop_ends_the_whole_group(bench: Any, kit: Any) -> None:
    """2.2: stop the whole group; what has no job gets none, also after a restart."""
    await bench.service.groups.submit(wish(5, atOnce=2))
    await submitted(bench, kit, 2)
    view = await bench.service.groups.stop("sweep")
    assert view["counts"] == {"stopped": 5} and view["state"] == "stopped"
    await settled(bench, kit)
    await bench.restart()
    assert bench.service.groups.get("sweep")["counts"] == {"stopped": 5}
    assert len(bench.service.list()["jobs"]) == 2


async def test_delete_needs_a_settled_group_and_leaves_nothing(bench: Any, kit: Any) -> None:
    await bench.service.groups.submit(wish(2))
    found = await submitted(bench, kit, 2)
    with pytest.raises(Conflict, match="Stop it first"):
        await bench.service.groups.delete("sweep")
    for row in found.values():
        await bench.finish(row["job"])
    await settled(bench, kit)
    await bench.service.groups.delete("sweep")
    assert bench.service.list()["jobs"] == [] and not list((bench.data / "groups").iterdir())


async def test_failed_ones_run_again_with_the_same_or_other_code(bench: Any, kit: Any) -> None:
    """2.2: re-run failed only."""
    await run(bench, kit, {"1": "succeeded", "2": "failed"})
    before = await rows(bench)
    await bench.service.groups.retry("sweep", {})
    after = await other_job(bench, "2", before)
    assert after["1"]["job"] == before["1"]["job"]
    with pytest.raises(UsageProblem, match="has failed"):
        await bench.service.groups.retry("sweep", {})
    with pytest.raises(Conflict, match="has not ended"):
        await bench.service.groups.retry("sweep", {"only": "2"})


async def test_a_retried_one_begins_with_its_checkpoints(bench: Any, kit: Any) -> None:
    """2.2: resume from the checkpoint folder."""
    await bench.service.groups.submit(wish(2))
    found = await submitted(bench, kit, 2)
    bench.write({"id": found["2"]["job"]}, "checkpoints/epoch-3", "weights")
    for row in found.values():
        await bench.finish(row["job"], "failed")
    await settled(bench, kit)
    view, _ = await bench.service.groups.submit(wish(2, resume=True, failed=True))
    assert [each["code"] for each in view["problems"]] == ["nothing-to-resume"]
    after = await other_job(bench, "2", found)
    job = await kit.eventually(
        lambda: (
            bench.service.get(after["2"]["job"])
            if bench.service.get(after["2"]["job"])["resumedFrom"]
            else None
        )
    )
    assert job["resumedFrom"]["id"] == found["2"]["job"]
    await kit.eventually((bench.folder(job) / "checkpoints" / "epoch-3").exists)


async def test_what_cannot_be_submitted_is_a_failure_with_its_reason(bench: Any, kit: Any) -> None:
    """T7: each failed create is reported, and the others go on."""
    await bench.service.groups.submit(wish(2, atOnce=1))
    found = await submitted(bench, kit, 1)
    bench.backend.submit_error = PaiJupyterError("quota", "Quota is used up.", "Ask for more.", 403)
    await bench.finish(found["1"]["job"])
    await settled(bench, kit)
    after = await rows(bench)
    assert after["2"]["state"] == "failed" and "Quota is used up." in after["2"]["message"]
    await bench.restart()
    assert (await rows(bench))["2"]["message"] == after["2"]["message"]


async def test_a_place_that_does_not_answer_is_asked_again(bench: Any, kit: Any) -> None:
    await bench.service.plan(bench.request())
    bench.backend.submit_error = PaiJupyterError("unreachable", "Cluster does not answer.", "", 503)
    await bench.service.groups.submit(wish(1))
    await kit.eventually(lambda: "does not answer" in bench.service.groups.get("sweep")["message"])
    bench.backend.submit_error = None
    await submitted(bench, kit, 1)


async def test_a_repeated_request_is_one_round(bench: Any, kit: Any) -> None:
    first, is_new = await bench.service.groups.submit(wish(2, requestId="r1"))
    second, again = await bench.service.groups.submit(wish(2, requestId="r1"))
    assert is_new and not again and first["id"] == second["id"] and second["round"] == 1
    await submitted(bench, kit, 2)
    assert len(bench.service.list()["jobs"]) == 2


async def test_a_group_of_the_same_name_in_another_folder_is_another_one(bench: Any) -> None:
    first, _ = await bench.service.groups.submit(wish(1))
    other, is_new = await bench.service.groups.submit(wish(1, context={"user": "ann", "folder": "/other"}))
    assert is_new and first["id"] != other["id"]
    assert bench.service.groups.list(folder="/other")["groups"][0]["id"] == other["id"]


async def test_a_job_that_is_deleted_by_itself_stays_deleted(bench: Any, kit: Any) -> None:
    await bench.service.groups.submit(wish(3, atOnce=2))
    found = await submitted(bench, kit, 2)
    await bench.finish(found["1"]["job"])
    await bench.service.delete(found["1"]["job"])
    await bench.restart()
    found = await rows_when(bench, lambda found: found["3"]["job"])
    assert list(found) == ["2", "3"]
    assert all(job["group"]["key"] != "1" for job in bench.service.list()["jobs"])


async def test_secret_values_are_kept_for_those_to_come_and_then_forgotten(
    bench: Any, kit: Any, isolated_home: Any
) -> None:
    template = TEMPLATE + 'secrets: {TOKEN: ""}\n'
    secrets = {"TOKEN": {"value": "s3cr3t-canary", "reference": "ask"}}
    await bench.service.groups.submit(wish(2, template=template, secrets=secrets, atOnce=1))
    found = await submitted(bench, kit, 1)
    await bench.restart()
    await bench.finish(found["1"]["job"])
    await kit.eventually(lambda: len(bench.service.list()["jobs"]) == 2)
    second = (await rows_when(bench, lambda found: found["2"]["job"]))["2"]["job"]
    await kit.eventually(lambda: bench.backend.secrets.get(second) == {"TOKEN": "s3cr3t-canary"})
    await bench.finish(second)
    await settled(bench, kit)
    assert not holders("s3cr3t-canary", isolated_home)


async def test_the_table_has_what_a_person_asks_for(bench: Any, kit: Any) -> None:
    """2.2: experiment, parameters, state, reason, duration, node, restarts, last metric, last log line."""
    await bench.service.groups.submit(wish(1))
    job = (await submitted(bench, kit, 1))["1"]["job"]
    bench.write({"id": job}, "tasks/main-0/0/log", "one\n[paijupyter] ours\nloss=0.5\nloss=0.25 the last\n\n")
    await bench.finish(job)
    row = (await rows(bench))["1"]
    assert row["values"] == {"lr": 0.1} and row["state"] == "succeeded" and row["restarts"] == 0
    assert row["lastLine"] == "loss=0.25 the last" and row["metrics"] == {"loss": 0.25}
    assert row["node"] == bench.service.get(job)["host"]
    page = await bench.service.groups.experiments("sweep", series=True)
    assert page["experiments"][0]["series"] == {"loss": [0.5, 0.25]}


async def test_groups_outlive_their_process_and_lists_read_only_what_was_kept(bench: Any, kit: Any) -> None:
    await run(bench, kit, {"1": "succeeded", "2": "failed"})
    await bench.restart()
    listed = bench.service.groups.list()["groups"]
    assert [(each["name"], each["state"], each["counts"]) for each in listed] == [
        ("sweep", "failed", {"succeeded": 1, "failed": 1})
    ]
    assert (await rows(bench))["2"]["state"] == "failed"


async def test_pages_of_groups(bench: Any) -> None:
    for name in ("a", "b", "c"):
        await bench.service.groups.submit(wish(1, name=name))
    first = bench.service.groups.list(limit=2)
    assert [each["name"] for each in first["groups"]] == ["c", "b"]
    assert [each["name"] for each in bench.service.groups.list(limit=2, cursor=first["next"])["groups"]] == [
        "a"
    ]


async def test_readers_are_told_of_changes_of_the_group(bench: Any, kit: Any) -> None:
    seq = bench.service.groups.list()["seq"]
    await bench.service.groups.submit(wish(2))
    found = await submitted(bench, kit, 2)
    await bench.finish(found["1"]["job"])
    told = [each for each in bench.service.events.since(seq) if each["type"] == "group"]
    assert told and told[-1]["group"]["counts"] == {"waiting": 1, "succeeded": 1}


class Many:
    """Takes many jobs in one call; one that is not wanted is refused by itself."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[int] = []
        self.refuses = ""

    async def submit_many(
        self, jobs: Sequence[tuple[Job, Mapping[str, str]]]
    ) -> list[PaiJupyterError | None]:
        self.calls.append(len(jobs))
        told: list[PaiJupyterError | None] = []
        for job, secrets in jobs:
            if self.refuses and self.refuses in job.commands["main"]:
                told.append(PaiJupyterError("refused", "Not this one.", "", 422))
                continue
            await self.inner.submit(job, secrets)
            told.append(None)
        return told

    def submitted(self, job: Job) -> str:
        return f"name: {job.name} {job.commands}"


async def test_a_backend_that_can_take_many_gets_them_in_one_call(
    bench: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.service.plan(bench.request())
    many = Many(bench.backend)
    many.refuses = "0.3"
    monkeypatch.setattr(bench.backend, "submit_many", many.submit_many, raising=False)
    monkeypatch.setattr(bench.backend, "submitted", many.submitted, raising=False)
    await bench.service.groups.submit(wish(5))
    found = await submitted(bench, kit, 4)
    found = await rows_when(bench, lambda found: found["3"]["state"] == "failed")
    assert many.calls == [5] and found["3"]["message"] == "Not this one."
    assert len(bench.service.list()["jobs"]) == 4
    for key in "1245":
        record = bench.service._job(found[key]["job"]).record
        assert record.commands == {"main": f"train --lr 0.{key}"}
        assert key == "1" or record.submitted == f"name: {record.facts['name']} {record.commands}"
        assert f"--lr 0.{key}" in record.source
        await bench.finish(found[key]["job"])
    assert (await settled(bench, kit))["counts"] == {"succeeded": 4, "failed": 1}


async def test_a_restart_in_the_middle_makes_each_job_once(
    fake: Any, folders: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after some of the jobs were recorded and none was taken."""
    bench = kit.Bench(*folders)
    await bench.service.start()
    await bench.service.plan(bench.request())
    original: Callable[..., Any] = kit.FakeBackend.submit

    async def hang(self: Any, job: Job, secrets: Mapping[str, str]) -> None:
        await kit.eventually(lambda: False, seconds=30)

    monkeypatch.setattr(kit.FakeBackend, "submit", hang)
    await bench.service.groups.submit(wish(8))
    await kit.eventually(lambda: len(bench.service.list()["jobs"]) >= 3)
    await bench.service.close()
    monkeypatch.setattr(kit.FakeBackend, "submit", original)
    bench.service = JobService(bench.data, bench.runtime)
    await bench.service.start()
    await kit.eventually(lambda: len(bench.service.list()["jobs"]) == 8)
    found = await submitted(bench, kit, 8)
    assert len({row["job"] for row in found.values()}) == 8
    for row in found.values():
        await bench.finish(row["job"])
    assert (await settled(bench, kit))["counts"] == {"succeeded": 8}
    assert len(bench.service.list()["jobs"]) == 8
    await bench.service.close()


async def in_flight(bench: Any, kit: Any) -> None:
    """Submit two experiments whose backend does not answer yet."""
    await bench.service.plan(bench.request())
    bench.backend.gate = asyncio.Event()
    await bench.service.groups.submit(wish(2))
    await kit.eventually(lambda: sum(verb == "submit" for verb, _ in bench.backend.told) == 2)


async def test_what_is_stopped_while_its_job_is_made_is_stopped(bench: Any, kit: Any) -> None:
    await in_flight(bench, kit)
    stopping = asyncio.create_task(bench.service.groups.stop("sweep"))
    await kit.eventually(lambda: bench.service.groups.get("sweep")["stoppedBy"] == "user")
    bench.backend.gate.set()
    await stopping
    await kit.eventually(lambda: not bench.service.groups.busy)
    assert bench.service.groups.get("sweep")["counts"] == {"stopped": 2}
    assert {job["state"] for job in bench.service.list()["jobs"]} == {"stopped"}


async def test_what_is_deleted_while_its_job_is_made_leaves_nothing(bench: Any, kit: Any) -> None:
    await in_flight(bench, kit)
    removing = asyncio.create_task(bench.service.groups.remove("sweep"))
    await kit.eventually(lambda: removing.done() or bench.service.groups.get("sweep")["stoppedBy"])
    bench.backend.gate.set()
    await removing
    await kit.eventually(lambda: not bench.service.groups.busy)
    assert bench.service.list()["jobs"] == [] and bench.service.groups.list()["groups"] == []
