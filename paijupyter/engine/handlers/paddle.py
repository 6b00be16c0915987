"""The job server of PaddlePaddle's design for submitting a job: the same jobs, in its words."""

from __future__ import annotations

import asyncio
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from paijupyter import paths
from paijupyter._version import __version__
from paijupyter.engine.call import Call
from paijupyter.engine.handlers.packages import snapshot_of
from paijupyter.engine.route import Reply
from paijupyter.errors import PaiJupyterError

# The filters of PEP 706 came to Python 3.10 and 3.11 in the middle of their lives.
_tarfile: Any = tarfile if hasattr(tarfile, "data_filter") else import_module("backports.tarfile")


async def paddle_version(call: Call) -> Reply:
    """Say who answers."""
    return Reply({"version": __version__, "api": 1})


async def put_paddle_package(call: Call) -> Reply:
    """Take a trainer package as one tar archive; it is there as a whole or not at all (D8)."""
    return Reply(await asyncio.to_thread(_take_archive, call.chunks, call.service.packages), 201)


async def put_paddle_packages(call: Call) -> Reply:
    """Take a trainer package; the design names this path both ways."""
    return await put_paddle_package(call)


async def submit_paddle_job(call: Call) -> Reply:
    """Submit a PaddleJob."""
    from paijupyter.protocol import write
    from paijupyter.protocol.paddle import PaddleJob

    job = PaddleJob.from_json(call.body)
    request = {
        "document": write(job.document()),
        "profile": job.profile,
        "package": job.trainer_package,
        "context": {"surface": "rest"},
        "mode": "again",
    }
    view, _ = await call.service.submit(request)
    return Reply({**_view(view), "size": job.size}, 201)


async def list_paddle_jobs(call: Call) -> Reply:
    """Return all jobs, latest first, a page at a time."""
    page = call.service.list(**call.query)
    return Reply({"jobs": [_view(each) for each in page["jobs"]], "next": page["next"]})


async def get_paddle_job(call: Call) -> Reply:
    """Return one job."""
    return Reply(_view(call.service.get(call.path["ref"])))


async def stop_paddle_job(call: Call) -> Reply:
    """Stop a job. The design's DELETE took its logs along; here record and logs stay (P24)."""
    return Reply(_view(await call.service.stop(call.path["ref"])))


def _view(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job in the design's words; ``job`` is all of it in ours."""
    counts = {"trainers": 0, "pservers": 0}
    for name, role in (view.get("roles") or {}).items():
        is_server = name == "ps" or bool(role.get("service"))
        counts["pservers" if is_server else "trainers"] += int(role.get("instances") or 1)
    said = {key: view.get(key) for key in ("name", "id", "state", "reason", "message")}
    return {"job_name": view.get("shortName"), **said, **counts, "job": dict(view)}


def _take_archive(chunks: Iterable[bytes], store: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=_drafts(), prefix="paddle-") as draft:
        archive, folder = Path(draft, "package.tar"), Path(draft, "package")
        with archive.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        folder.mkdir()
        _unpack(archive, folder)
        return snapshot_of(folder, store)


def _drafts() -> Path:
    folder = paths.data_dir() / "uploads"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack what may lie in a package: no absolute path, no link out, no device; not more than its limit."""
    from paijupyter.package.limits import Limits, readable_size

    limit = Limits().bytes
    try:
        with _tarfile.open(archive, "r:*") as tar:
            members = tar.getmembers()
            if not any(each.isfile() for each in members):
                raise _refused("has no file", "Send a tar archive of the folder that has the script.")
            if sum(each.size for each in members) > limit:
                raise _refused(
                    f"holds more than {readable_size(limit)}", "Data does not belong in the package."
                )
            for member in members:
                # Only with the filter: it refuses what would leave the folder (PEP 706).
                tar.extract(_tarfile.data_filter(member, str(folder)), folder)
    except (_tarfile.TarError, EOFError, ValueError) as error:
        raise _refused(
            f"is no complete tar archive that may be unpacked: {error}", "Send it again."
        ) from None


def _refused(words: str, hint: str) -> PaiJupyterError:
    return PaiJupyterError("package-refused", f"Package {words.rstrip('.')}.", hint, 422)
