"""Packages that a git remote has already, from real remotes into a running task (P15, P18)."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, scripted
from remotes import Repository, behind_a_password, daemon
from running import Cluster
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import BackendPlan, Job, Place
from paijupyter.backends.delivery import commits
from tests.resting import holders

NOISE = hashlib.shake_256(b"noise").digest(90_000)  # too large for a document
BLOB = hashlib.shake_256(b"blob").digest(400_000)  # larger than what travels in a pack
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in (("data.bin", NOISE), ("big.bin", BLOB))}
OURS = {"extras": {"paijupyter": {"version": 1}}}
PUSHED: dict[str, bytes | str | None] = {
    "train/data.bin": NOISE,
    "train/big.bin": BLOB,
    "train/lib/odd näme.py": "print('odd')\r\n",
    "train/notes/private.txt": "not for the package\n",
    "README.md": "the repository's\n",
}
PACKED = {"data.bin": NOISE, "big.bin": BLOB, "lib/odd näme.py": "print('odd')\r\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "remote")
    found.push(PUSHED)
    return found


@pytest.fixture
def remote(repository: Repository, until: Any) -> Iterator[dict[str, str]]:
    """The setting of a profile for it, while it is served."""
    with daemon(repository, until) as url:
        yield {"url": url, "folder": "train"}


def job_of(place: Place, files: dict[str, bytes | str], command: str = "true") -> Job:
    shown = 'find . -type f | sort; sha256sum data.bin big.bin; python3 "lib/odd näme.py"; ' + command
    return make_job(place, document({"worker": role(shown)}, **OURS), files)


def way_of(plan: BackendPlan) -> dict[str, Any]:
    (found,) = (dict(each) for each in plan.objects if each["kind"] == "package")
    return found


@pytest.mark.asyncio
async def test_a_commit_has_the_same_files(
    cluster: Cluster,
    place: Place,
    repository: Repository,
    remote: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the package travels; the task has its files and no others, by their hash."""
    commit = repository.push({"other.txt": "later\n"})
    async with (
        backend_on(cluster.server, place, monkeypatch, packageGit=remote) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, {**PACKED})
        found = way_of(await backend.plan(job))
        assert (found["way"], found["how"]) == ("git", f"as commit {commit[:10]} of {remote['url']}")
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded", await log_of(backend, job, "worker-0")
        log = (await log_of(backend, job, "worker-0")).decode()
        there = [line for line in log.splitlines() if line.startswith("./")]
        assert there == ["./big.bin", "./data.bin", "./lib/odd näme.py"]
        assert all(digest in log for digest in DIGESTS.values())
        assert "odd\n" in log
        assert len(scripted(cluster.server, job).posted) < len(NOISE)


@pytest.mark.asyncio
async def test_what_no_commit_has_travels_inside_the_document(
    cluster: Cluster, place: Place, remote: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan says that the working tree differs from every pushed commit, and by what."""
    async with (
        backend_on(cluster.server, place, monkeypatch, packageGit=remote) as backend,
        watching(backend) as watch,
    ):
        more = {"cell.py": "print('a cell')\n", "lib/odd näme.py": "print('changed')\n"}
        job = job_of(place, {**PACKED, **more}, "python3 cell.py")
        plan = await backend.plan(job)
        how = way_of(plan)["how"]
        assert "what no pushed commit has is inside the document: `cell.py`, `lib/odd näme.py`" in how
        assert any(how in problem.message for problem in plan.problems)
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded", await log_of(backend, job, "worker-0")
        log = (await log_of(backend, job, "worker-0")).decode()
        assert log.endswith("changed\na cell\n")


@pytest.mark.asyncio
async def test_a_password_is_in_no_text_and_an_old_server_will_do(
    cluster: Cluster, place: Place, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T5: it stands among the secrets, which the server masks; a branch serves where no commit is given."""
    monkeypatch.setenv("TEAM_GIT", "alice:canary-pa55word")
    repository.refuse_commits_by_hash()
    repository.push({"train/data.bin": NOISE + b"newer"})
    with behind_a_password(repository, "alice", "canary-pa55word") as url:
        setting = {"url": url, "folder": "train", "secret": "env:TEAM_GIT"}
        async with (
            backend_on(cluster.server, place, monkeypatch, packageGit=setting) as backend,
            watching(backend) as watch,
        ):
            job = job_of(place, {**PACKED})
            assert "canary" not in (await backend.plan(job)).submitted
            await backend.submit(job, {})
            assert (await watch.final(job)).state == "succeeded", await log_of(backend, job, "worker-0")
            stored = str(scripted(cluster.server, job).stored)
            log = await log_of(backend, job, "worker-0")
            for canary in ("canary-pa55word", url.removeprefix("http://")):
                assert canary not in stored
                assert canary.encode() not in log
            assert holders("canary-pa55word", place.data) == []


@pytest.mark.asyncio
async def test_it_differs_too_much(
    cluster: Cluster,
    place: Place,
    repository: Repository,
    remote: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan says from which commit and by what, and what could be done; nothing is submitted."""
    async with backend_on(cluster.server, place, monkeypatch, packageGit=remote) as backend:
        job = job_of(place, {**PACKED, "data.bin": NOISE[::-1]})
        (error,) = (each for each in (await backend.plan(job)).problems if each.severity == "error")
        assert error.code == "package-too-big"
        assert "from every commit of the git remote" in error.message
        assert "by `data.bin`" in error.message
        assert "packageGit" in error.hint
        # Pushed, it is found without any change of ours.
        backend._planner._mirror._asked_at = -1000.0  # type: ignore[union-attr]
        commit = repository.push({"train/data.bin": NOISE[::-1]}, branch="topic")
        assert commit[:10] in way_of(await backend.plan(job))["how"]


@pytest.mark.asyncio
async def test_a_remote_that_cannot_be_asked(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next way is taken, and why is said; without one the plan has the reason."""
    setting = {"url": "git://127.0.0.1:9/none.git"}
    async with backend_on(
        cluster.server, place, monkeypatch, packageGit=setting, packageWays=["git", "document"]
    ) as backend:
        small = make_job(place, document({"worker": role("cat a.txt")}, **OURS), {"a.txt": "a\n"})
        plan = await backend.plan(small)
        assert way_of(plan)["way"] == "document"
        (said,) = (each for each in plan.problems if each.code == "git-remote")
        assert (said.severity, "packageGit" in said.hint) == ("warning", True)
        codes = {each.code for each in (await backend.plan(job_of(place, {**PACKED}))).problems}
        assert "package-too-big" in codes


@pytest.fixture
def silent() -> Iterator[tuple[str, list[socket.socket]]]:
    """An address where connections are taken and nothing is ever said; what was taken."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[socket.socket] = []

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(listener.accept()[0])

        thread = threading.Thread(target=take)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", taken
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in taken:
            each.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("scheme", ["git", "http"])
async def test_a_remote_that_is_silent(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch, silent: Any, scheme: str
) -> None:
    """It is given up, with all that git started; the plan goes on, and the next one does not wait."""
    address, taken = silent
    monkeypatch.setattr(commits, "_HEARD", 2.0)
    ways = {"packageGit": {"url": f"{scheme}://{address}/none.git"}, "packageWays": ["git", "document"]}
    async with backend_on(cluster.server, place, monkeypatch, **ways) as backend:
        small = make_job(place, document({"worker": role("cat a.txt")}, **OURS), {"a.txt": "a\n"})
        for _ in range(2):
            plan = await backend.plan(small)
            assert way_of(plan)["way"] == "document"
            (said,) = (each for each in plan.problems if each.code == "git-remote")
            assert "it has said nothing for" in said.message
        assert len(taken) == 1


@pytest.mark.asyncio
async def test_a_damaged_mirror_on_this_host(
    cluster: Cluster, place: Place, remote: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next way is taken, and what git says of it is said."""
    ways = {"packageGit": remote, "packageWays": ["git", "document"]}
    async with backend_on(cluster.server, place, monkeypatch, **ways) as backend:
        small = make_job(place, document({"worker": role("cat a.txt")}, **OURS), {"a.txt": "a\n"})
        assert "git-remote" not in {each.code for each in (await backend.plan(small)).problems}
        (head,) = (place.data / "git").glob("*/HEAD")
        head.write_text("damaged\n")
        plan = await backend.plan(small)
        assert way_of(plan)["way"] == "document"
        (said,) = (each for each in plan.problems if each.code == "git-remote")
        assert "not a git repository" in said.message


@pytest.mark.asyncio
async def test_an_image_without_git(
    cluster: Cluster, place: Place, remote: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        backend_on(cluster.server, place, monkeypatch, packageGit=remote) as backend,
        watching(backend) as watch,
    ):
        cluster.path = str(_without_git(place))
        job = job_of(place, {**PACKED})
        await backend.submit(job, {})
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "package")
        assert b"git is not installed where the task runs" in await log_of(backend, job, "worker-0")


@pytest.mark.asyncio
async def test_what_the_remote_has_changed_since_is_found_in_the_task(
    cluster: Cluster, place: Place, remote: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hash of the package: another content never runs, and a commit that is gone is said."""
    monkeypatch.setattr("paijupyter.backends.delivery.commits.left_out", lambda there, wanted: [])
    async with (
        backend_on(cluster.server, place, monkeypatch, packageGit=remote) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, {**PACKED})
        await backend.submit(job, {})
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "package")
        assert b"is something else" in await log_of(backend, job, "worker-0")


def _without_git(place: Place) -> Path:
    """A folder with the programs of a small image."""
    folder = place.data / "bin"
    folder.mkdir(parents=True)
    for name in ("bash", "cat", "rm", "mkdir", "base64"):
        (folder / name).symlink_to(Path("/usr/bin") / name)
    (folder / "python3").symlink_to(sys.executable)
    return folder
