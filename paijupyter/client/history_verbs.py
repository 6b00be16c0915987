"""The verbs on what jobs were made of."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import differences
from paijupyter.client.sources import Origin
from paijupyter.client.submission import Ask, again
from paijupyter.client.verbs import Reply, find, writing
from paijupyter.errors import PaiJupyterError, Problem, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_MARK = "paijupyter-report"
_HASH = 12


def history(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    """Carry out one of them.

    Raises:
        PaiJupyterError: a job does not exist, or the engine refuses.
    """
    if options.verb == "rerun":
        return _rerun(client, options, origin, ask)
    return {"diff": _diff, "report": _report, "provenance": _provenance}[options.verb](
        client, options, origin
    )


def _rerun(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    before = find(client, options, origin)
    secrets = again(before.get("secretReferences") or {}, options.secret, ask)
    view = client.history.rerun(before["id"], secrets or None)
    notes = tuple(Problem("hint", f"rerun-{each['what']}", each["message"]) for each in view["differs"])
    text = "\n".join([f"`{view['name']}` repeats `{before['name']}`.", *(f"· {each}" for each in notes)])
    return Reply(text, view, view=view, submitted=True, problems=notes)


def _diff(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    sides = [_found(client, ref, origin) for ref in (options.before, options.after or "last")]
    found = client.history.diff(*(str(view["id"]) for view in sides))
    return Reply(differences.text(found), found)


def _found(client: JobsClient, ref: str, origin: Origin) -> Mapping[str, Any]:
    return find(client, Namespace(job=ref), origin)


def _report(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    target = origin.folder / Path(options.output or "report.ipynb").expanduser()
    if target.suffix != ".ipynb":
        raise UsageProblem(
            f"Report `{target.name}` must be a notebook.", "Give it a name that ends in .ipynb."
        )
    if target.exists() and not _is_report(target):
        raise UsageProblem(f"File `{target}` is there and is no report.", "Choose another name with -o FILE.")
    refs = list(_jobs(client, options.jobs or ["last"], origin))
    found = client.history.report(refs, options.title or target.stem, options.cells)
    found["metadata"] = {**found.get("metadata", {}), _MARK: {"jobs": refs}}
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return Reply(f"Report of {len(refs)} jobs is in `{target}`.", {"path": str(target), "jobs": refs})


def _jobs(client: JobsClient, refs: Sequence[str], origin: Origin) -> Iterator[str]:
    """Yield the ids of jobs, and of all jobs of a group."""
    for ref in refs:
        try:
            experiments = client.groups.experiments(ref) if ref != "last" else ()
        except PaiJupyterError as error:
            if error.status != 404:
                raise
            experiments = ()
        if experiments:
            yield from (str(each["job"]) for each in experiments if each.get("job"))
        else:
            yield str(_found(client, ref, origin)["id"])


def _is_report(path: Path) -> bool:
    try:
        metadata = json.loads(path.read_bytes()).get("metadata") or {}
    except (OSError, ValueError, AttributeError):
        return False
    return _MARK in metadata


def _provenance(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    view = find(client, options, origin)
    found = client.history.provenance(view["id"])
    return Reply("\n".join(_lines(found)), found)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        ("submitted", found["submittedAt"]),
        ("profile", f"{found['profile']} ({found['kind']})"),
        ("package", found["packageSha256"] or "none"),
        ("document", found["documentSha256"]),
    ]
    if found["notebook"]:
        rows.append(("notebook", f"{found['notebook']['path']}, {len(found['notebook']['cells'])} cells"))
    if found["cell"]:
        rows.append(("cell", f"{found['cell'].get('number') or found['cell']['id']} {found['cell']['hash']}"))
    rows += [("parameter", f"{name} = {json.dumps(value)}") for name, value in found["parameters"].items()]
    rows += [("secret", f"{name} from {said}") for name, said in found["secretReferences"].items()]
    rows += [("image", f"{role}: {image}") for role, image in found["images"].items()]
    rows += [
        ("container", f"{role}: {ran['digest'] or ran['image']} on {ran['node']}")
        for role, ran in (found.get("containers") or {}).items()
    ]
    rows += [("data", f"{each['name']}: {each['uri']}") for each in found["data"]]
    rows += [("version", f"{name} {value}") for name, value in found["versions"].items()]
    yield found["name"]
    for label, value in rows:
        yield f"  {label:<10} {value}"
    yield from _environment(found["environment"])


def _environment(lock: Mapping[str, Any] | None) -> Iterator[str]:
    if lock is None:
        yield "  environment is not recorded yet"
        return
    yield f"  python     {lock['python']} {lock.get('executable') or ''}".rstrip()
    yield f"  platform   {lock.get('platform') or ''}"
    for name, version in lock["packages"].items():
        pinned, _, origin = version.partition(" @ ")
        yield f"    {name}=={pinned}" + (f"  # {origin}" if origin else "")
