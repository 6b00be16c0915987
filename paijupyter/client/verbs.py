"""The verbs that ask the engine one thing and answer with one thing; the surfaces only show the answer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import card, tables, words
from paijupyter.client.jupyter import server_address
from paijupyter.client.pull import notebook_beside
from paijupyter.client.sources import Origin, overridden, parameters_of, read_text, whole
from paijupyter.client.submission import Ask, again, data_of
from paijupyter.errors import Problem, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient


Connect = Callable[[], "JobsClient"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a verb.

    Attributes:
        text: for people.
        data: for machines (``--json``).
        html: for notebooks, or "".
        view: the JobView it is about, where it is about one job.
        submitted: whether that job is new.
        ok: whether all is well, where that was the question.
        problems: what there is to say about a new job.
    """

    text: str
    data: Any = None
    html: str = ""
    view: Mapping[str, Any] | None = None
    submitted: bool = False
    ok: bool = True
    problems: tuple[Problem, ...] = ()


def find(client: JobsClient, options: Namespace, origin: Origin) -> Mapping[str, Any]:
    """Return the JobView of the job that the options name; ``last`` where they name none.

    Raises:
        NotFound: there is no such job.
    """
    ref = options.job or "last"
    if ref != "last":
        return client.get(ref)
    if origin.surface == "magic":
        return client.get(ref, kernel=origin.kernel)
    return client.get(ref, folder=str(origin.folder))


def run(
    connect: Connect, options: Namespace, origin: Origin, ask: Ask, progress: Progress | None = None
) -> Reply:
    """Carry out a verb that answers once.

    Args:
        connect: returns a client of the engine.
        options: parsed options, with ``verb``.
        origin: where they come from.
        ask: asks for a secret without showing it.
        progress: called with bytes done and bytes in all while files are sent.

    Raises:
        PaiJupyterError: the job does not exist, or the engine refuses.
    """
    if options.verb == "doctor":
        return _doctor(connect, origin)
    if options.verb == "export" and options.job and options.job.endswith((".ipynb", "this-notebook")):
        from paijupyter.client.export_verb import export_notebook

        return export_notebook(options, origin)
    if getattr(options, "group", None) or getattr(options, "groups", False):
        from paijupyter.client import group_verbs

        return group_verbs.run(connect(), options, origin, ask)
    if options.verb == "adopt":
        from paijupyter.client import entering

        return entering.adopt(connect(), options)
    if options.verb in ("exec", "forward"):
        from paijupyter.client import entering

        client = connect()
        return entering.carry_out(client, options, find(client, options, origin)["id"])
    if options.verb == "secret":
        from paijupyter.client import settings_verbs

        return settings_verbs.secret(connect(), options, origin, ask)
    if options.verb == "login":
        from paijupyter.client.login_verb import login

        return login(connect(), options, ask)
    if options.verb == "data":
        from paijupyter.client import data_verbs

        return data_verbs.data(connect(), options, origin, progress)
    if options.verb in ("rerun", "diff", "report", "provenance"):
        from paijupyter.client import history_verbs

        return history_verbs.history(connect(), options, origin, ask)
    if options.verb == "clone":
        return _clone(connect(), options, origin, ask)
    if options.verb == "retry":
        return _retry(connect(), options, origin, ask)
    return _VERBS[options.verb](connect(), options, origin)


def _list(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    limit = whole(options.limit, "--limit") or 20
    folder = str(origin.folder) if options.here else None
    # A table folds groups; a program that reads JSON, and who asks for a state, wants the jobs themselves.
    folds = not (options.all or options.state or options.json)
    found = client.list(
        state=options.state,
        profile=options.profile,
        folder=folder,
        limit=limit,
        group="-" if folds else None,
    )
    groups = client.groups.list(folder=folder, limit=limit)["groups"] if folds else []
    groups = [each for each in groups if options.profile in (None, each.get("profile"))]
    views = sorted([*found["jobs"], *groups], key=lambda each: str(each["submittedAt"]), reverse=True)[:limit]
    if not views:
        return Reply("No jobs.", [], "No jobs.")
    rows = tables.job_rows(views)
    text, html = tables.plain(tables.JOB_COLUMNS, rows), tables.html(tables.JOB_COLUMNS, rows)
    return Reply(text, views, html)


def _get(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    view = find(client, options, origin)
    return Reply(card.text(card.facts(view, base=server_address())), view, view=view)


def _stop(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    before = find(client, options, origin)
    if before["state"] in words.FINAL:
        return Reply(f"`{before['name']}` has already ended: {before['state']}.", before, view=before)
    view = client.stop(before["id"])
    if view["state"] in words.FINAL:
        return Reply(f"`{view['name']}` {view['state']}. Its logs stay.", view, view=view)
    return Reply(f"`{view['name']}` is being stopped. Its logs stay.", view, view=view)


def _retry(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    before = find(client, options, origin)
    secrets = again(before.get("secretReferences") or {}, options.secret, ask)
    view = client.retry(before["id"], secrets or None, resume_from=before["id"] if options.resume else None)
    return Reply(f"`{view['name']}` is submitted from `{before['name']}`.", view, view=view, submitted=True)


def _clone(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    before = find(client, options, origin)
    changes: dict[str, Any] = {"resumeFrom": options.resume_from} if options.resume_from else {}
    if options.file is not None:
        path = origin.folder / Path(options.file).expanduser()
        changes["document"] = read_text(path)
        # What is not here may be among the data of the first job; if not, the plan says so.
        if data := data_of(changes["document"], path.parent)[0]:
            changes["data"] = data
    if parameters_of(options) or options.name:
        text = changes.get("document") or client.export(before["id"], "source")
        changes["document"], _, _ = overridden(text, options)
    secrets = again(_still_named(before, changes.get("document")), options.secret, ask)
    if secrets:
        changes["secrets"] = secrets
    view = client.clone(before["id"], changes)
    return Reply(f"`{view['name']}` is submitted from `{before['name']}`.", view, view=view, submitted=True)


def _still_named(before: Mapping[str, Any], text: str | None) -> dict[str, str]:
    """Return the references of a job's secrets that its changed document still names."""
    references = dict(before.get("secretReferences") or {})
    if text is None or not references:
        return references
    from paijupyter.protocol import read

    named = read(text).data.get("secrets") or {}
    return {name: reference for name, reference in references.items() if name in named}


def _delete(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    if not options.job:
        raise UsageProblem("Argument `job` is missing.", "Deleting cannot be undone, so name the job.")
    view = find(client, options, origin)
    client.delete(view["id"])
    return Reply(f"`{view['name']}` is deleted: its record, logs and outputs are gone.", view)


def _export(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    view = find(client, options, origin)
    text = client.export(view["id"], options.what or "source")
    if not options.to:
        return Reply(text, text)
    path = origin.folder / Path(options.to).expanduser()
    with writing(path):
        path.write_bytes(text.encode())
    return Reply(f"Document of `{view['name']}` is in `{path}`.", text)


def _pull(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    view = find(client, options, origin)
    folder = origin.folder / Path(options.to or str(view["name"])).expanduser()
    there = [str(each["path"]) for each in client.files(view["id"])]
    wanted = _matching(there, options.path)
    if not there:
        return Reply(f"`{view['name']}` has no outputs.", [], view=None)
    with writing(folder):
        found = list(client.pull(view["id"], folder, wanted))
        beside = notebook_beside(view, found, origin.folder)
    found += [beside] if beside else []
    shown = [f"  {_seen_from(origin.folder, path)}" for path in found]
    said = f"{words.count(len(found), 'file')} of `{view['name']}`:"
    return Reply("\n".join([said, *shown]), [str(path) for path in found])


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageProblem(f"Path `{path}` cannot be written: {error.strerror or error}.") from error


def _seen_from(folder: Path, path: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _matching(paths: Iterable[str], globs: Iterable[str]) -> list[str] | None:
    """Return the paths that any glob matches; None where no glob is given."""
    from fnmatch import fnmatchcase

    patterns = list(globs)
    if not patterns:
        return None
    found = [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]
    if not found:
        raise UsageProblem(f"Output `{patterns[0]}` does not exist.", "`get` shows what there is.")
    return found


def _version(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    from paijupyter._version import __version__

    engine = client.version()
    lines = [f"paijupyter {__version__}", f"engine {engine.get('version')}"]
    if engine.get("backends"):
        lines.append("backends " + ", ".join(map(str, engine["backends"])))
    return Reply("\n".join(lines), {"version": __version__, "server": engine})


def _profile(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    from paijupyter.client import settings_verbs

    return settings_verbs.profile(client, options, origin)


def _doctor(connect: Connect, origin: Origin) -> Reply:
    from paijupyter.client.doctor import examine

    checks = examine(connect, origin.python)
    lines = []
    for check in checks:
        lines.append(f"{'✓' if check.ok else '✕' if check.needed else '⚠'} {check.name}: {check.message}")
        if check.fix and not check.ok:
            lines.append(f"  → {check.fix}")
    ok = all(check.ok or not check.needed for check in checks)
    return Reply("\n".join(lines), [check.to_json() for check in checks], ok=ok)


_VERBS: Mapping[str, Callable[[Any, Namespace, Origin], Reply]] = {
    "list": _list,
    "get": _get,
    "stop": _stop,
    "delete": _delete,
    "export": _export,
    "pull": _pull,
    "version": _version,
    "profile": _profile,
}
