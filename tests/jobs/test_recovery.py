"""After a crash: whole folders, jobs found again, handed over once (decision 5)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from paijupyter.backends.base import Change
from paijupyter.errors import Conflict, PaiJupyterError
from paijupyter.jobs import submission
from paijupyter.jobs.host import Host, on_local_file_system, this_host

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(submission, "_RETRY_PAUSES", (0.01, 0.02))


def without_submitted(folder):
    """Make a folder as a process leaves it that died between recording and handing over."""
    path = folder / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0])


async def test_a_restart_shows_the_same(bench):
    one, _ = await bench.submit("one"), await bench.submit("two")
    bench.backend.emit(one["id"], "running")
    await bench.finish("two", "failed", message="No.")
    await bench.state("one", "running")
    before = bench.service.list()["jobs"]
    await bench.restart()
    assert bench.service.list()["jobs"] == before
    assert bench.service.unfinished() == 1
    await bench.finish(one["id"])


async def test_a_job_that_was_not_handed_over_is_handed_over(bench, kit):
    view = await bench.submit(secrets={"T": {"value": "s3cr3t"}})
    await bench.service.close()
    without_submitted(bench.folder(view))
    kit.FakeBackend.current.clear()
    os.unlink(bench.data / "index.sqlite")
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    await bench.state("mnist", "waiting", "queued")
    assert bench.backend.secrets == {view["id"]: {"T": "s3cr3t"}}
    await bench.finish("mnist")


async def test_without_its_secrets_it_waits_and_can_be_stopped(bench, kit):
    """Decision 8: if the local copy is gone the job waits with `secret`."""
    view = await bench.submit(secrets={"T": {"value": "s3cr3t"}})
    await bench.service.close()
    without_submitted(bench.folder(view))
    kit.FakeBackend.current.clear()
    shutil.rmtree(bench.runtime / "secrets")
    os.unlink(bench.data / "index.sqlite")
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    waits = await bench.state("mnist", "waiting", "secret")
    assert "`T`" in waits["message"] and waits["advice"]
    assert (await bench.service.stop("mnist"))["state"] == "stopped"
    assert not [told for each in kit.FakeBackend.made for told in each.told if told[0] == "stop"]


async def test_a_job_the_backend_refuses_later_has_failed(bench, kit):
    view = await bench.submit()
    await bench.service.close()
    without_submitted(bench.folder(view))
    os.unlink(bench.data / "index.sqlite")

    class Refusing(kit.FakeBackend):
        async def submit(self, job, secrets):
            raise PaiJupyterError("never-fits", "Job needs 900 CPUs.", status=422)

    kit.FakeBackend.current.clear()
    bench.service = type(bench.service)(bench.data, bench.runtime)
    bench.service._backends.of = lambda name: _made(Refusing, bench)
    await bench.service.start()
    ended = await bench.state("mnist", "failed", "refused")
    assert ended["message"] == "Job needs 900 CPUs."


async def _made(kind, bench):
    if not [each for each in kind.made if type(each) is kind]:
        from paijupyter.backends.base import Place, Profile

        kind(Profile("local", "local"), Place(bench.data, bench.runtime))
    return next(each for each in kind.made if type(each) is kind)


async def test_a_backend_that_cannot_take_it_yet_is_asked_again(bench, kit):
    view = await bench.submit()
    await bench.service.close()
    without_submitted(bench.folder(view))
    os.unlink(bench.data / "index.sqlite")
    tries = []

    class Late(kit.FakeBackend):
        async def submit(self, job, secrets):
            tries.append(job.id)
            if len(tries) < 3:
                raise ConnectionError("no route")
            await super().submit(job, secrets)

    kit.FakeBackend.current.clear()
    bench.service = type(bench.service)(bench.data, bench.runtime)
    bench.service._backends.of = lambda name: _made(Late, bench)
    await bench.service.start()
    await bench.state("mnist", "waiting", "queued")
    assert tries == [view["id"]] * 3


async def test_a_wish_to_stop_outlives_the_process(bench, kit):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    bench.backend.stop_error = RuntimeError("died")
    with pytest.raises(PaiJupyterError):
        await bench.service.stop("mnist")
    await bench.restart()
    assert (await bench.state("mnist", "stopped"))["reason"] == "user"


@pytest.mark.parametrize(
    "torn", [b'{"type": "cha', b"\xff\xfe", b'{"type": "change", "state": "failed"}'[:-3]]
)
async def test_a_torn_last_line_is_passed_over_and_the_next_one_is_whole(bench, torn):
    view = await bench.submit()
    with (bench.folder(view) / "events.jsonl").open("ab") as file:
        file.write(torn)
    await bench.restart()
    assert bench.service.get("mnist")["state"] == "waiting"
    await bench.finish("mnist")
    await bench.restart()
    assert bench.service.get("mnist")["state"] == "succeeded"
    lines = (bench.folder(view) / "events.jsonl").read_bytes().split(b"\n")
    assert lines.count(torn) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"not a database, but long enough to look at" * 100),
        lambda path: path.write_bytes(b""),
        lambda path: _sql(path, "PRAGMA user_version = 99"),
        lambda path: _sql(path, "PRAGMA application_id = 7"),
        lambda path: _sql(path, "DROP TABLE jobs"),
        lambda path: _sql(path, "DELETE FROM jobs"),
        lambda path: path.write_bytes(path.read_bytes()[:5000] + b"\0" * 9000),
    ],
    ids=["gone", "foreign file", "empty", "newer", "other program", "no table", "no rows", "damaged"],
)
async def test_the_index_is_made_anew_from_the_folders(bench, damage):
    """Decision 5: the folder is the truth, the database an index."""
    one = await bench.submit("one", requestId="r")
    await bench.finish(one["id"])
    bench.write(one, "output/worker-0/x", b"1")
    two = await bench.submit("two")
    await bench.service.close()
    damage(bench.data / "index.sqlite")
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    assert [job["id"] for job in bench.service.list()["jobs"]] == [two["id"], one["id"]]
    assert bench.service.get("one")["state"] == "succeeded"
    again, created = await bench.service.submit(bench.request("one", requestId="r"))
    assert (again["id"], created) == (one["id"], False)


def _sql(path, statement):
    import sqlite3

    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


async def test_a_broken_folder_hides_no_other_job(bench):
    one, two = await bench.submit("one"), await bench.submit("two")
    await bench.service.close()
    (bench.folder(one) / "job.json").write_text("{")
    (bench.data / "jobs" / "not a job").mkdir()
    (bench.data / "index.sqlite").unlink()
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    assert [job["id"] for job in bench.service.list()["jobs"]] == [two["id"]]


async def test_a_folder_removed_by_hand_is_no_longer_listed(bench):
    one = await bench.submit("one")
    await bench.finish("one")
    await bench.service.close()
    shutil.rmtree(bench.folder(one))
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    assert bench.service.list()["jobs"] == []


async def test_rebuild_gives_the_same_list(bench):
    for number in range(3):
        view = await bench.submit(f"j{number}")
        if number:
            await bench.finish(view["id"])
    before = bench.service.list()["jobs"]
    await bench.service._catalog.rebuild()
    assert bench.service.list()["jobs"] == before


async def test_an_index_that_cannot_be_written_loses_nothing(bench, monkeypatch, kit):
    import sqlite3

    from paijupyter.jobs.index import Index

    put, full = Index.put, [True]

    def failing(self, rows):
        if full[0]:
            raise sqlite3.OperationalError("database or disk is full")
        put(self, rows)

    one = await bench.submit("one")
    monkeypatch.setattr(Index, "put", failing)
    bench.backend.emit(one["id"], "running")
    await bench.state("one", "running")
    bench.backend.emit(one["id"], "succeeded")
    await kit.eventually(lambda: bench.service.unfinished() == 0)
    full[0] = False
    two = await bench.submit("two")
    assert [(job["id"], job["state"]) for job in bench.service.list()["jobs"]] == [
        (two["id"], "waiting"),
        (one["id"], "succeeded"),
    ]


@pytest.mark.parametrize("broken", [False, True])
async def test_old_packages_of_no_job_go_at_the_start_unless_a_record_cannot_be_read(bench, broken):
    from paijupyter.package import Entry, Manifest

    hashes = []
    for name in ("kept", "dropped"):
        manifest = Manifest(
            [Entry(name, "100644", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
        )
        bench.service.packages.put_pack(manifest, [b""])
        bench.service.packages.commit(manifest)
        hashes.append(manifest.sha256)
    view = await bench.submit(package=hashes[0])
    other = await bench.submit("other")
    await bench.finish(view["id"])
    await bench.service.close()
    for path in (bench.data / "packages").rglob("*"):
        os.utime(path, (0, 0))
    if broken:
        (bench.folder(other) / "job.json").write_text("{")
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    await bench.service._sweeping
    assert set(bench.service.packages) == (set(hashes) if broken else {hashes[0]})


# -- other hosts (decision 5) -------------------------------------------------------------------------


def of_another_host(bench, view):
    path = bench.folder(view) / "job.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "host": "elsewhere", "bootId": "b", "pidNamespace": "n"}))


async def test_a_job_of_another_host_is_shown_and_not_touched(bench, kit):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    await bench.service.close()
    of_another_host(bench, view)
    (bench.data / "index.sqlite").unlink()
    kit.FakeBackend.made.clear()
    kit.FakeBackend.current.clear()
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    shown = bench.service.get("mnist")
    assert (shown["mine"], shown["host"], shown["state"]) == (False, "elsewhere", "running")
    assert bench.service.unfinished() == 0 and kit.FakeBackend.made == []
    for verb in (bench.service.stop, bench.service.delete):
        with pytest.raises(Conflict, match="`elsewhere`") as caught:
            await verb("mnist")
        assert caught.value.code == "other-host"
    again = await bench.service.retry("mnist")
    assert again["mine"] is True


async def test_news_of_another_host_are_taken_in(bench, kit, monkeypatch):
    monkeypatch.setattr("paijupyter.jobs.catalog._LOOK_AGAIN", 0.0)
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    target = bench.data / "jobs" / ("z" * 10 + view["id"][10:])
    shutil.copytree(bench.folder(view), target)
    facts = json.loads((target / "job.json").read_text())
    facts |= {
        "id": target.name,
        "name": "there-abc234",
        "shortName": "there",
        "host": "elsewhere",
        "bootId": "b",
    }
    (target / "job.json").write_text(json.dumps(facts))
    assert bench.service.get("there")["state"] == "running"
    seq = bench.service.events.seq
    from paijupyter.jobs.life import event_of

    with (target / "events.jsonl").open("a") as file:
        file.write(json.dumps(event_of(Change(target.name, 0, "succeeded", 5.0))) + "\n")
    assert bench.service.get("there")["state"] == "succeeded"
    assert [event["job"]["id"] for event in bench.service.events.since(seq)] == [target.name]
    shutil.rmtree(target)
    assert len(bench.service.list()["jobs"]) == 1


async def test_a_host_is_known_by_name_or_by_its_boot_and_namespace():
    here = Host("here", "boot", "pid:[1]")
    assert here.owns({"host": "here", "bootId": "before the restart"})
    assert here.owns({"host": "old-name", "bootId": "boot", "pidNamespace": "pid:[1]"})
    assert not here.owns({"host": "container", "bootId": "boot", "pidNamespace": "pid:[2]"})
    assert not here.owns({"host": "other", "bootId": "", "pidNamespace": ""})
    assert not Host("here", "", "").owns({"host": "other", "bootId": "", "pidNamespace": ""})
    assert this_host() == this_host()


async def test_wal_is_only_for_file_systems_of_this_machine(tmp_path):
    real = os.path.realpath(tmp_path)
    assert on_local_file_system(tmp_path, "/dev/sda1 / ext4 rw 0 0\n")
    assert not on_local_file_system(tmp_path, f"/dev/sda1 / ext4 rw 0 0\nsrv:/home {real} nfs4 rw 0 0\n")
    assert not on_local_file_system(tmp_path, f"/ / ext4\ns {os.path.dirname(real)} fuse.sshfs rw\n")
    assert on_local_file_system(tmp_path, f"x {real}-other nfs rw\n/dev/x / xfs rw\n")
    hidden = f"x {real} nfs rw 0 0\ny {real} ext4 rw 0 0\n/ / ext4 rw 0 0\n"
    assert on_local_file_system(tmp_path, hidden)
    assert not on_local_file_system(tmp_path, "")
    spaced = tmp_path / "a b"
    spaced.mkdir()
    assert not on_local_file_system(spaced, "/d / ext4 rw\n" + f"s {real}/a\\040b nfs rw\n")


async def test_a_shared_home_has_an_index_per_host(bench, monkeypatch):
    await bench.submit()
    await bench.service.close()
    monkeypatch.setattr("paijupyter.jobs.index.on_local_file_system", lambda folder: False)
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    assert len(bench.service.list()["jobs"]) == 1
    assert [path.name for path in bench.data.glob("index-*")] == [f"index-{this_host().name}.sqlite"]


# -- kill -9 ------------------------------------------------------------------------------------------

PROGRAM = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from types import SimpleNamespace
    from paijupyter import paths
    from paijupyter.backends import base
    from paijupyter.jobs import JobService

    class OnDisk:
        def __init__(self, profile, place):
            self.folder = place.data / "fake"
            self.folder.mkdir(parents=True, exist_ok=True)
            self.news = asyncio.Queue()
        async def plan(self, job):
            return base.BackendPlan(f"name: {job.name}")
        async def submit(self, job, secrets):
            assert secrets == {"T": "s3cr3t"}
            with (self.folder / "submissions").open("a") as file:
                file.write(job.id + chr(10))
            (self.folder / job.id).touch()
            await asyncio.sleep(0)
            for state in ("waiting", "running", "succeeded"):
                await self.news.put(base.Change(job.id, 0, state, 1.0))
        async def watch(self, known):
            for job in known:
                state = "running" if (self.folder / job.id).exists() else "failed"
                yield base.Change(job.id, 0, state, 1.0)
                yield base.Change(job.id, 0, "succeeded", 2.0)
            while True:
                yield await self.news.get()
        async def close(self):
            pass

    async def main():
        base.backend_kinds = lambda: {"local": SimpleNamespace(load=lambda: OnDisk)}
        service = JobService(paths.data_dir(), paths.runtime_dir())
        await service.start()
        print("started", flush=True)
        if sys.argv[1] == "drain":
            while service.unfinished():
                await asyncio.sleep(0.001)
            await service.close()
            return
        number = 0
        text = Path(sys.argv[2]).read_text()
        while True:
            number += 1
            request = {"document": text, "secrets": {"T": {"value": "s3cr3t"}}, "context": {"user": "ann"}}
            view, _ = await service.submit({**request, "requestId": f"{sys.argv[3]}-{number}"})
            print(view["id"], flush=True)

    asyncio.run(main())
    """
)


@pytest.mark.slow
async def test_kill_9_at_any_moment_leaves_whole_jobs_that_are_taken_up(tmp_path, kit, folders):
    data, runtime = folders
    (tmp_path / "document.yaml").write_text(kit.document(secrets=["T"]))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py")]
    chance = random.Random(7)
    answered = []
    for turn in range(6):
        process = await asyncio.create_subprocess_exec(
            *command, "submit", str(tmp_path / "document.yaml"), str(turn), stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"started\n"
        await asyncio.sleep(chance.uniform(0.02, 0.4))  # the moment to die, not a synchronisation
        process.send_signal(signal.SIGKILL)
        answered += (await process.stdout.read()).decode().split()
        await process.wait()
        for folder in (data / "jobs").iterdir():
            if not folder.name.startswith("."):
                assert {"job.json", "document.yaml", "submitted.yaml", "commands.json", "events.jsonl"} <= {
                    path.name for path in folder.iterdir()
                }
                json.loads((folder / "job.json").read_text())
    last = await asyncio.create_subprocess_exec(*command, "drain", stdout=subprocess.PIPE)
    assert await last.communicate() and last.returncode == 0
    jobs = {path.name for path in (data / "jobs").iterdir() if not path.name.startswith(".")}
    submitted = set((data / "fake" / "submissions").read_text().split())
    assert answered and set(answered) <= jobs
    assert jobs == submitted, "every recorded job reached its backend, and no other did"
    assert list((runtime / "secrets").iterdir()) == []
    service = kit.Bench(data, runtime).service
    await service.start()
    page = service.list(limit=1000)
    assert {job["id"] for job in page["jobs"]} == jobs
    assert {job["state"] for job in page["jobs"]} == {"succeeded"}
    await service.close()
