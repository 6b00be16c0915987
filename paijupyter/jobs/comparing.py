"""What changed between two jobs: in what they were made of, and in what came out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.notebooks import executed_output, number_in_source, read_executed
from paijupyter.jobs.outputs import list_outputs, output_file
from paijupyter.jobs.provenance import containers_of, environment_of, images_of
from paijupyter.notebook.comparing import compare_cells, lines_of
from paijupyter.notebook.outputs import outputs_by_cell
from paijupyter.notebook.reading import parse_notebook
from paijupyter.package import LocalStore, Manifest

_TEXT_BYTES = 1 << 20  # a larger file is compared by its hash alone
_HASHED_BYTES = 1 << 30  # of outputs of equal size, all together
_CHUNK = 1 << 20
_SHOWN = 2000  # characters of what a cell has put out
Row = dict[str, Any]


def compare(before: LiveJob, after: LiveJob, store: LocalStore) -> dict[str, Any]:
    """Return everything in which two jobs differ; lists are empty where they do not.

    It reads packages and outputs, so it belongs off the loop.
    """
    old, new = before.record.facts, after.record.facts
    return {
        "jobs": [_named(before), _named(after)],
        "code": list(_code(old.get("packageSha256"), new.get("packageSha256"), store)),
        "commands": list(_pairs(before.record.commands, after.record.commands)),
        "parameters": list(_pairs(old.get("parameters") or {}, new.get("parameters") or {})),
        "environment": _environment(before, after),
        "images": list(_pairs(*_images(before, after))),
        "resources": list(_pairs(_by_name(old.get("roles")), _by_name(new.get("roles")))),
        "data": list(_pairs(_by_name(old.get("data")), _by_name(new.get("data")))),
        "secrets": list(_pairs(old.get("secretRefs") or {}, new.get("secretRefs") or {})),
        "profile": list(_pairs({"profile": before.record.profile}, {"profile": after.record.profile})),
        "versions": list(_pairs(old.get("versions") or {}, new.get("versions") or {})),
        "results": _results(before, after),
    }


def _named(job: LiveJob) -> Row:
    return {
        "id": job.record.id,
        "name": job.record.facts["name"],
        "submittedAt": job.record.facts["submittedAt"],
    }


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    """Yield ``{name, before, after}`` of what differs; a side that does not have it has no value."""
    for name in [*old, *(name for name in new if name not in old)]:
        row: Row = {"name": str(name)}
        if name in old:
            row["before"] = old[name]
        if name in new:
            row["after"] = new[name]
        if ("before" in row) != ("after" in row) or old[name] != new[name]:
            yield row


def _by_name(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {
        str(row["name"]): {key: value for key, value in row.items() if key != "name"} for row in rows or ()
    }


def _code(old: str | None, new: str | None, store: LocalStore) -> Iterator[Row]:
    if old == new:
        return
    first, second = _manifest(old, store), _manifest(new, store)
    if first is None or second is None:
        gone = old if first is None else new
        yield {"path": "", "change": "unknown", "message": f"Package {str(gone)[:12]} is no longer stored."}
        return
    changes = second.changes_since(first)
    for change, paths in (
        ("removed", changes.removed),
        ("changed", changes.changed),
        ("added", changes.added),
    ):
        for path in paths:
            yield {
                "path": path,
                "change": change,
                **_content(path, change, (old, first), (new, second), store),
            }


def _manifest(sha256: str | None, store: LocalStore) -> Manifest | None:
    if sha256 is None:
        return Manifest(())
    try:
        return store.manifest(sha256)
    except PaiJupyterError:
        return None


def _content(
    path: str,
    change: str,
    old: tuple[str | None, Manifest],
    new: tuple[str | None, Manifest],
    store: LocalStore,
) -> Row:
    sides = [
        side for side in ((old,) if change == "removed" else (new,) if change == "added" else (old, new))
    ]
    entries = [next(each for each in manifest.entries if each.path == path) for _, manifest in sides]
    sizes = {"sizes": [entry.size for entry in entries]}
    if change != "changed" or any(entry.size > _TEXT_BYTES for entry in entries):
        return sizes
    try:
        contents = [store.content(str(sha256), path) for sha256, _ in sides]
        if path.endswith(".ipynb"):
            notebooks = [parse_notebook(content, Path(path)) for content in contents]
            return {**sizes, "cells": compare_cells(*notebooks)}
        return {**sizes, "diff": lines_of(*(content.decode() for content in contents))}
    except (PaiJupyterError, UnicodeDecodeError):
        return sizes


def _environment(before: LiveJob, after: LiveJob) -> Row:
    old, new = environment_of(before), environment_of(after)
    if old is None or new is None:
        job = before if old is None else after
        return {
            "known": False,
            "message": f"What was installed for `{job.record.facts['name']}` is not recorded.",
        }
    facts = ("python", "implementation", "executable", "platform")
    return {
        "known": True,
        "interpreter": list(_pairs({k: old.get(k) for k in facts}, {k: new.get(k) for k in facts})),
        "packages": list(_pairs(old["packages"], new["packages"])),
    }


def _images(before: LiveJob, after: LiveJob) -> tuple[dict[str, str], dict[str, str]]:
    """Return the images of both jobs by role; of those that both have run, with what the name stood for."""
    jobs = (before, after)
    old, new = (images_of(job.record.source) for job in jobs)
    ran = [containers_of(job) for job in jobs]
    for role in old.keys() & new.keys():
        digests = [each.get(role, {}).get("digest") for each in ran]
        if all(digests):
            old[role], new[role] = f"{old[role]} ({digests[0]})", f"{new[role]} ({digests[1]})"
    return old, new


def _results(before: LiveJob, after: LiveJob) -> Row:
    old, new = before.view(), after.view()
    facts = ("state", "reason", "message")
    return {
        "outcome": list(_pairs({k: old[k] for k in facts}, {k: new[k] for k in facts})),
        "seconds": [seconds_of(old), seconds_of(new)],
        "metrics": list(_pairs(old["metrics"].get("last") or {}, new["metrics"].get("last") or {})),
        "outputs": list(_outputs(before, after)),
        "cells": list(_cells(before, after)),
    }


def _cells(before: LiveJob, after: LiveJob) -> Iterator[Row]:
    """Yield the cells of two executed notebooks that put out something else, those with an equal source."""
    old, new = read_executed(before.record), read_executed(after.record)
    if old is None or new is None:
        return
    first, second = outputs_by_cell(old), outputs_by_cell(new)
    known = {cell.id: cell for cell in old.cells if cell.id}
    for cell in new.code:
        former = known.get(cell.id or "")
        if former is None or former.source != cell.source:
            continue
        sides = [first.get(former.number, []), second.get(cell.number, [])]
        texts = ["\n".join(each.digest for each in outputs)[:_SHOWN] for outputs in sides]
        if texts[0] != texts[1]:
            yield {
                "cell": number_in_source(new, cell.number),
                "id": cell.id,
                "before": texts[0],
                "after": texts[1],
            }


def seconds_of(view: Mapping[str, Any]) -> float | None:
    """Return how long a job ran, None if it has not ended or never began."""
    if not view.get("startedAt") or not view.get("endedAt"):
        return None
    start, end = (
        datetime.fromisoformat(view[key].replace("Z", "+00:00")) for key in ("startedAt", "endedAt")
    )
    return round((end - start).total_seconds(), 3)


def _outputs(before: LiveJob, after: LiveJob) -> Iterator[Row]:
    """Yield the outputs that differ; those of equal size are read for it."""
    old = {each["path"]: each["size"] for each in list_outputs(before.record.folder)}
    new = {each["path"]: each["size"] for each in list_outputs(after.record.folder)}
    left = _HASHED_BYTES
    executed = {executed_output(before.record), executed_output(after.record)}
    yield from (row for row in _pairs(old, new) if row["name"] not in executed)
    for path in [path for path in old if old[path] == new.get(path) and path not in executed]:
        left -= 2 * old[path]
        if left < 0:
            return
        first, second = (_sha256(job.record.folder, path) for job in (before, after))
        if first != second:
            yield {"name": path, "before": old[path], "after": new[path], "sha256": [first, second]}


def _sha256(folder: Path, path: str) -> str:
    digest = hashlib.sha256()
    with output_file(folder, path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
