"""Trainer packages: what is missing, and the bytes of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import NotFound, PaiJupyterError, has_errors, in_order

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def begin(call: Call) -> Reply:
    """Take a manifest and say what is missing, or package a folder of this host."""
    if "folder" in call.body:
        return Reply(await asyncio.to_thread(snapshot_of, Path(call.body["folder"]), call.service.packages))
    manifest = _manifest(call.body["manifest"])
    missing = await asyncio.to_thread(call.service.packages.missing, manifest)
    call.manifests.add(manifest.sha256, manifest)
    return Reply({"sha256": manifest.sha256, "missing": {"pack": missing.pack, "blobs": list(missing.blobs)}})


async def take_data(call: Call) -> Reply:
    """Package the data of a document that are files of a folder of this host."""
    folder, text = Path(call.body["folder"]), call.body["document"]
    return Reply(await asyncio.to_thread(_data_of, text, folder, call.service.packages))


async def put_pack(call: Call) -> Reply:
    """Take the pack of a posted manifest."""
    manifest = call.manifests.get(_sha256(call))
    await asyncio.to_thread(call.service.packages.put_pack, manifest, call.chunks)
    return Reply(None, 204)


async def put_blob(call: Call) -> Reply:
    """Take one large file."""
    await asyncio.to_thread(call.service.packages.put_blob, _sha256(call), call.chunks)
    return Reply(None, 204)


async def commit(call: Call) -> Reply:
    """Make a complete package visible."""
    manifest = _manifest(call.body["manifest"])
    if manifest.sha256 != _sha256(call):
        raise PaiJupyterError(
            "package-mismatch",
            f"The manifest is of package `{manifest.sha256}`, not of the one in the path.",
            "Take the snapshot again.",
            422,
        )
    await asyncio.to_thread(call.service.packages.commit, manifest)
    return Reply({"sha256": manifest.sha256})


async def show(call: Call) -> Reply:
    """Return a package's manifest."""
    manifest = await asyncio.to_thread(call.service.packages.manifest, _sha256(call))
    return Reply(manifest.to_json())


def _data_of(text: str, folder: Path, store: Any) -> dict[str, Any]:
    from paijupyter.data.files import take
    from paijupyter.errors import Problem, UsageProblem
    from paijupyter.protocol import read
    from paijupyter.protocol.data import sources_of

    taken: dict[str, str] = {}
    problems: list[Problem] = []
    for index, each in enumerate(sources_of(read(text).data)):
        if each.kind != "file":
            continue
        try:
            taken[each.name] = take(each, folder, store).sha256
        except UsageProblem as error:
            path = f"/extras/paijupyter/data/{index}"
            problems.append(Problem("error", "data-file", error.message, path, hint=error.hint))
    return {"data": taken, "problems": [problem.to_json() for problem in problems]}


def _sha256(call: Call) -> str:
    text = call.path["sha"]
    if not _SHA256.fullmatch(text):
        raise NotFound("Package", text, "A package is named by 64 hexadecimal digits.")
    return text


def _manifest(data: dict[str, Any]) -> Any:
    from paijupyter.package.manifest import Manifest

    return Manifest.from_json(data)


def snapshot_of(folder: Path, store: Any, generated: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """Package a folder of this host, and files that were made for it; blocking.

    Raises:
        PaiJupyterError: ``package-refused``, with everything against it.
    """
    from dataclasses import asdict

    from paijupyter.package import snapshot

    made = snapshot(folder, store, extra_files=generated or {})
    if has_errors(made.problems):
        first = in_order(made.problems)[0]
        raise PaiJupyterError("package-refused", first.message, first.hint, 422, in_order(made.problems))
    return {
        "sha256": made.sha256,
        "files": made.files,
        "bytes": made.bytes,
        "excluded": [asdict(each) for each in made.excluded],
        "problems": [problem.to_json() for problem in made.problems],
    }
