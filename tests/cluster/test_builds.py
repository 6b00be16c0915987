"""Images that are built on a real cluster by rootless BuildKit, without privileges (``build: true``, P16)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import re
import threading
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.kubernetes import building, labels
from paijupyter.backends.kubernetes.backend import KubernetesBackend
from tests.cluster import killed
from tests.cluster.lab import lifecycle
from tests.cluster.profile import SMALL, role
from tests.cluster.profile import place as place
from tests.cluster.reach import Cluster

from staging import Watch, document, log_of, make_job, watching  # isort: skip # importable after tests.cluster.profile

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]
LONG = 300.0
_ENGINES = 2  # that run at once
_BEGINS_JOB = re.compile("POST .*/jobs$")
_KINDS = "configmaps,secrets,services,jobs,pods"
Until = Callable[..., Any]
USE = "python3 -c 'import demo_wheel; print(demo_wheel.SAYS)'; id -u"


class Index(http.server.SimpleHTTPRequestHandler):
    """Serves wheels; the slow one byte by byte until it may go: pip gives up on silence."""

    go = threading.Event()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        if "slow" in self.path:
            while not self.go.wait(1):
                outputfile.write(source.read(1))
        super().copyfile(source, outputfile)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def wheel(folder: Path, name: str) -> None:
    """Make a small real wheel with one module."""
    module, info = f"{name}_wheel", f"{name}_wheel-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w") as made:
        made.writestr(f"{module}.py", f'SAYS = "{name} is installed"\n')
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}-wheel\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")


@dataclass
class Site:
    """A namespace with a profile that may build, and an index that pods reach."""

    cluster: Cluster
    namespace: str
    image: str
    place: Place
    links: str
    settings: dict[str, Any]

    def job(self, needs: str, command: str = USE) -> Job:
        source = document({"worker": {**role(command), "resourcePerInstance": dict(SMALL)}})
        source["prerequisites"][0]["uri"] = self.image
        source["extras"] = {"paijupyter": {"version": 1, "build": True}}
        made: Job = make_job(self.place, source, {"requirements.txt": f"{self.links}\n{needs}\n"})
        return made

    @contextlib.asynccontextmanager
    async def engine(self, *known: Job) -> AsyncIterator[tuple[KubernetesBackend, Watch]]:
        backend = KubernetesBackend(Profile("lab", "kubernetes", self.settings), self.place)
        try:
            async with watching(backend, known) as watch:
                yield backend, watch
        finally:
            await backend.close()

    def builds(self, kind: str = "jobs") -> list[Any]:
        """Return the Jobs that build, or their pods."""
        return self.there(kind, f"paijupyter.io/kind={building.BUILD}")

    def of(self, kinds: str, job: Job) -> list[Any]:
        """Return the objects of a job."""
        return self.there(kinds, labels.of_job_id(job.id))

    def there(self, kinds: str, selector: str) -> list[Any]:
        """Return the objects of some kinds."""
        found: list[Any] = self.cluster.get(kinds, "-n", self.namespace, "-l", selector)["items"]
        return found


@pytest.fixture
def site(
    cluster: Cluster,
    namespace: str,
    image: Callable[[str], str],
    place: Place,
    lab: lifecycle.Facts,
    limited: Path,
    tmp_path: Path,
) -> Iterator[Site]:
    """Give a namespace whose profile may build with the documented rights, and an index of two wheels."""
    for name in ("demo", "slow"):
        wheel(tmp_path, name)
    Index.go.clear()
    handler = functools.partial(Index, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer((lab.gateway, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = lab.gateway
    store = {
        "repository": f"{lab.registry}/{namespace}",
        "plainHttp": True,
        "builder": image("buildkit"),
    }
    settings = {"kubeconfig": str(limited), "namespace": namespace, "buildImage": store}
    links = f"--no-index\n--find-links http://{host}:{server.server_port}/\n--trusted-host {host}"
    yield Site(cluster, namespace, image("python"), place, links, settings)
    Index.go.set()
    server.shutdown()
    server.server_close()


@pytest.mark.asyncio
async def test_jobs_share_an_image_that_is_built_once(site: Site) -> None:
    """The build's log is the begin of the task's; what the registry has is not built again."""
    first, second = site.job("demo-wheel==1.0"), site.job("demo-wheel==1.0")
    async with site.engine() as (backend, watch):
        plan = await backend.plan(first)
        [hint] = [each for each in plan.problems if each.path == building.FIELD]
        [planned] = [each for each in plan.objects if each["name"].startswith("paijupyter-build-")]
        assert hint.severity == "hint" and planned["kind"] == "Job"
        await asyncio.gather(*(backend.submit(job, {}) for job in (first, second)))
        finals = [await watch.final(job, LONG) for job in (first, second)]
        assert [final.state for final in finals] == ["succeeded", "succeeded"], finals
        for job in (first, second):
            log = (await log_of(backend, job, "worker-0")).decode()
            assert "Successfully installed demo-wheel-1.0" in log
            built, _, own = log.partition("[paijupyter] The task begins, in the image ")
            assert "[paijupyter] The image is built: " in built
            assert own.splitlines()[1:] == ["demo is installed", "0"], "the user that the base runs as"
        assert {"building"} == {
            each.reason for each in watch.of(first) if "Waiting for the image" in each.message
        }
        [build] = site.builds()
        site.cluster.kubectl("delete", "job", "-n", site.namespace, build["metadata"]["name"])
        third = site.job("demo-wheel==1.0")
        await backend.submit(third, {})
        assert (await watch.final(third, LONG)).state == "succeeded"
        log = (await log_of(backend, third, "worker-0")).decode()
        assert "[paijupyter] The registry has the image already: " in log
        assert "Successfully installed" not in log


@pytest.mark.asyncio
async def test_a_build_that_fails_is_explained_and_not_kept(site: Site) -> None:
    job = site.job("no-such-wheel==1.0")
    async with site.engine() as (backend, watch):
        await backend.submit(job, {})
        final = await watch.final(job, LONG)
        assert final.state == "failed"
        assert "could not be built: No matching distribution found for no-such-wheel==1.0" in final.message
        assert b"No matching distribution" in await log_of(backend, job, "worker-0")
        [failed] = site.builds()
        again = site.job("no-such-wheel==1.0")
        await backend.submit(again, {})
        await watch.until(again, lambda change: change.reason == "building", LONG)
        [anew] = site.builds()
        assert anew["metadata"]["uid"] != failed["metadata"]["uid"], "what was missing may be there now"
        await backend.stop(again)


@pytest.mark.asyncio
async def test_an_engine_that_dies_meanwhile_builds_nothing_twice(site: Site) -> None:
    job = site.job("slow-wheel==1.0", "python3 -c 'import slow_wheel; print(slow_wheel.SAYS)'")
    async with site.engine() as (backend, watch):
        await backend.submit(job, {})
        await watch.until(job, lambda change: "is being built since" in change.message, LONG)
        [build] = site.builds()
    async with site.engine(job) as (backend, watch):
        await watch.until(job, lambda change: "is being built since" in change.message, LONG)
        Index.go.set()
        final = await watch.final(job, LONG)
        assert final.state == "succeeded", final
        log = (await log_of(backend, job, "worker-0")).decode()
        assert log.count("Successfully installed slow-wheel-1.0") == 1
        assert log.endswith("\nslow is installed\n")
        [same] = site.builds()
        assert same["metadata"]["uid"] == build["metadata"]["uid"]


@pytest.mark.timeout(1500)
@pytest.mark.asyncio
async def test_an_engine_killed_at_any_step_of_a_build_loses_nothing(site: Site, until: Until) -> None:
    """P13, P16: -9 before and after each request of a build, and meanwhile; built once, and run once."""

    def job(key: str, needs: str = "demo-wheel==1.0") -> Job:
        """Return a job whose image is its own: its requirements have a comment of its own."""
        module = needs.partition("==")[0].replace("-", "_")
        return site.job(f"# {key}\n{needs}", f"python3 -c 'import {module}; print({module}.SAYS)'")

    whole = await _killed(site, job("shared"), 0, "")
    assert not whole.killed and whole.submitted
    posts = [number for number, step in enumerate(whole.steps, 1) if _BEGINS_JOB.match(step)]
    assert len(posts) == 2 and posts[0] > 3 and posts[1] < len(whole.steps), whole.steps
    build = posts[0] - 1  # of a job with a package of its own: the boot file is there by now
    where = [(build, "before"), (build, "after"), (build + 1, "before")]
    own = {point: job("{}-{}".format(*point)) for point in where}
    own[0, "building"] = job("building", "slow-wheel==1.0")  # the last: an index is not waited for for ever
    # Of the same package two requests are not made any more.
    shared = {(step, "in between"): job("shared") for step in range(1, len(whole.steps) - 1)}
    jobs = shared | own
    turn = asyncio.Semaphore(_ENGINES)

    async def kill(point: tuple[int, str]) -> killed.Ended:
        async with turn:
            step, when = point
            return await _killed(site, jobs[point], step, "after" if point in shared else when)

    ended = dict(zip(jobs, await asyncio.gather(*map(kill, jobs)), strict=True))
    assert all(each.killed for each in ended.values()), ended
    assert _BEGINS_JOB.match(ended[build, "after"].steps[-1])
    begun = {each["metadata"]["name"]: each["metadata"]["uid"] for each in site.builds()}
    Index.go.set()
    known = [jobs[point] for point, each in ended.items() if each.submitted]
    async with site.engine(*known) as (backend, watch):
        await asyncio.gather(*(backend.submit(each, {}) for each in jobs.values() if each not in known))
        for point, each in jobs.items():
            final = await watch.final(each, 900)
            assert final.state == "succeeded", (point, final)
            log = (await log_of(backend, each, "worker-0")).decode()
            # What others share may be built by the time that it is asked for.
            assert log.count("Successfully installed") == 1 or (point in shared and "Success" not in log), (
                point,
                log,
            )
            assert log.count("[paijupyter] The task begins, in the image ") == 1, (point, log)
            assert log.endswith(" is installed\n") and log.count(" is installed\n") == 1, (point, log)
            assert len(site.of("pods", each)) == 1, point
        after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in site.builds()}
        assert begun.items() <= after.items(), "none was made anew"
        assert len(after) == len(site.builds("pods")) == 1 + len(own)
        for each in jobs.values():
            await backend.delete(each)
    for each in jobs.values():
        until(lambda each=each: not site.of(_KINDS, each), seconds=60, why="the end of what a job had")


async def _killed(site: Site, job: Job, step: int, when: str) -> killed.Ended:
    return await asyncio.to_thread(killed.run, site.place, site.settings, [job], step, when, follow=True)


@pytest.mark.asyncio
async def test_the_last_job_that_is_stopped_stops_the_build(site: Site) -> None:
    jobs = [site.job("slow-wheel==1.0") for _ in range(2)]
    async with site.engine() as (backend, watch):
        for job in jobs:
            await backend.submit(job, {})
        for job in jobs:
            await watch.until(job, lambda change: "is being built since" in change.message, LONG)
        await backend.stop(jobs[0])
        assert (await watch.final(jobs[0], LONG)).state == "stopped"
        assert len(site.builds()) == 1
        await backend.stop(jobs[1])
        assert (await watch.final(jobs[1], LONG)).state == "stopped"
        assert site.builds() == []


@pytest.mark.asyncio
async def test_where_it_cannot_be_built_the_plan_says_what_to_do(site: Site) -> None:
    site.cluster.kubectl("label", "namespace", site.namespace, "pod-security.kubernetes.io/enforce=baseline")
    async with site.engine() as (backend, _):
        bare = replace(site.job("demo-wheel"), package=None)
        said = [each.message for each in (await backend.plan(bare)).problems if each.path == building.FIELD]
    assert said == [
        "The namespace enforces the pod security `baseline`, which refuses BuildKit its unconfined seccomp "
        "profile.",
        "There is nothing to build: the package has no requirements.",
    ]
