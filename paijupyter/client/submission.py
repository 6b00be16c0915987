"""From options to a submitted job: document, trainer package, secrets, request. Nothing here prints."""

from __future__ import annotations

import getpass
import os
import sys
import uuid
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from paijupyter import paths
from paijupyter.client.sources import Origin, Source, read_text, source_of
from paijupyter.errors import InvalidDocument, Problem, UsageProblem, in_order

if TYPE_CHECKING:
    from paijupyter.client.beside import Beside
    from paijupyter.client.environments import Environment
    from paijupyter.client.imports import Uncovered
    from paijupyter.package import Excluded, Manifest
    from paijupyter.protocol.secrets import SecretReference

_PATIENCE = 0.02  # seconds that a submission waits for hints about its package
Progress = Callable[[int, int], None]
Ask = Callable[[str], str]


class Submitter(Protocol):
    """The part of the client that a submission needs."""

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the Plan of a request."""

    def submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Submit a request; return the JobView."""

    def list(self, *, state: str | None = None, folder: str | None = None) -> dict[str, Any]:
        """Return jobs of a state and folder."""

    def stop(self, ref: str) -> dict[str, Any]:
        """Stop a job and return when its processes are gone."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A request that is ready but for its secrets.

    Attributes:
        request: the SubmitRequest without values of secrets.
        secrets: the references to resolve.
        left_out: what the package leaves out, each in words.
        problems: warnings found before the engine was asked.
        beside: what is being found about the package meanwhile.
        told: of each cell of a script whether it is in, and why.
    """

    request: Mapping[str, Any]
    secrets: tuple[SecretReference, ...] = ()
    left_out: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    beside: Beside | None = None
    told: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job that was submitted, or the unfinished one of the same cell.

    Attributes:
        view: its JobView.
        plan: what was planned, with the problems found here.
        created: False where the job was there already.
    """

    view: Mapping[str, Any]
    plan: Mapping[str, Any]
    created: bool = True

    @property
    def problems(self) -> list[Problem]:
        """What the plan found, worst first."""
        return [Problem.from_json(each) for each in self.plan.get("problems") or ()]


class PlanRefused(InvalidDocument):
    """A plan has errors, so nothing was submitted; ``plan`` is the whole of it."""

    def __init__(self, plan: Mapping[str, Any], left_out: Sequence[str] = ()) -> None:
        super().__init__([Problem.from_json(each) for each in plan.get("problems") or ()])
        self.plan = plan
        self.left_out = tuple(left_out)


def prepare(
    options: Namespace, origin: Origin, body: str | None = None, progress: Progress | None = None
) -> Submission:
    """Make the request of ``submit`` or ``plan``; the package goes into the store of this host.

    Args:
        options: parsed options.
        origin: where they come from.
        body: the cell below the line of the magic, or None.
        progress: called with bytes done and bytes in all while the package is made.

    Raises:
        PaiJupyterError: an option, the cell, the document or the package folder cannot be used.
    """
    from paijupyter.client.folder import with_defaults
    from paijupyter.protocol.secrets import parse_secret

    if options.again and options.replace:
        raise UsageProblem("Options `--again` and `--replace` exclude each other.")
    options, hints = with_defaults(options, origin.folder, document=whole_document(options, origin, body))
    secrets = tuple(parse_secret(text) for text in options.secret)
    found = packed(source_of(options, origin, body), options, origin, progress)
    return replace(found, secrets=secrets, problems=(*found.problems, *hints))


def packed(
    source: Source,
    options: Namespace,
    origin: Origin,
    progress: Progress | None = None,
    documents: Sequence[str] | None = None,
) -> Submission:
    """Make the request of a source: its package and its data go into the store of this host.

    Args:
        source: what is submitted.
        options: parsed options of ``submit`` or ``plan``.
        origin: where they come from.
        progress: called with bytes done and bytes in all while package and data are read.
        documents: the documents whose data travel; by default the source's.
    """
    package, left_out, problems, beside = _package(source, origin, progress)
    data = dict[str, str]()
    for document in [source.document] if documents is None else documents:
        taken, found = data_of(document, _data_folder(options, origin), progress)
        data |= taken
        problems += found
    request = {
        "document": source.document,
        "profile": options.profile,
        "package": package,
        "data": data,
        "context": _context(origin, source, kernel_free=options.kernel_free),
        "requestId": str(uuid.uuid4()),
        "mode": "again" if options.again else "replace" if options.replace else "normal",
        "resumeFrom": options.resume_from,
    }
    return Submission(request, (), left_out, (*source.problems, *problems), beside, source.told)


def whole_document(options: Namespace, origin: Origin, body: str | None) -> Callable[[], str] | None:
    """Return what reads the whole document that is submitted; None where one is written from the options."""
    if options.yaml:
        return lambda: body or ""
    if options.file is not None:
        return lambda: read_text(origin.folder / Path(options.file).expanduser())
    return None


def _package(
    source: Source, origin: Origin, progress: Progress | None
) -> tuple[str | None, tuple[str, ...], list[Problem], Beside | None]:
    if source.root is None:
        return None, (), [], None
    from paijupyter.package import LocalStore, snapshot

    store = LocalStore(paths.data_dir())
    found = snapshot(source.root, store, progress=progress, extra_files=source.extra_files)
    beside = _look_beside(source, origin, found.manifest) if found.sha256 else None
    return found.sha256 or None, _left_out(found.excluded), list(found.problems), beside


def _look_beside(source: Source, origin: Origin, manifest: Manifest) -> Beside:
    """Begin to look for what the package imports and does not require."""
    from paijupyter.client.beside import Beside

    root = source.root or origin.folder

    def look(has: Environment) -> list[Uncovered]:
        from paijupyter.client import imports
        from paijupyter.protocol import read

        extras = (read(source.document).data.get("extras") or {}).get("paijupyter") or {}
        return imports.look(root, manifest, source.extra_files, extras.get("requirements"), has)

    return Beside(origin.python or sys.executable, look)


def _data_folder(options: Namespace, origin: Origin) -> Path:
    """Return what paths of data are relative to: the document's folder, else the notebook's or ours."""
    if options.file is None:
        return origin.folder
    return (origin.folder / Path(options.file).expanduser()).parent


def data_of(
    document: str, folder: Path, progress: Progress | None = None
) -> tuple[dict[str, str], list[Problem]]:
    """Put the data of a document that are files here into the store of this host.

    Args:
        document: its text.
        folder: what their paths are relative to.
        progress: called with bytes done and bytes in all.

    Returns:
        The hashes of what travels, by name, and what cannot and why.
    """
    if "data" not in document:
        return {}, []
    from paijupyter.data.files import take
    from paijupyter.package import LocalStore
    from paijupyter.protocol import read
    from paijupyter.protocol.data import sources_of

    taken, problems = dict[str, str](), list[Problem]()
    for index, each in enumerate(sources_of(read(document).data)):
        if each.kind != "file":
            continue
        try:
            taken[each.name] = take(each, folder, LocalStore(paths.data_dir()), progress).sha256
        except UsageProblem as error:
            path = f"/extras/paijupyter/data/{index}"
            problems.append(Problem("error", "data-file", error.message, path, hint=error.hint))
    return taken, problems


def _left_out(excluded: Sequence[Excluded]) -> tuple[str, ...]:
    """Say what is left out, the largest first; empty things and caches are not worth a word."""
    from paijupyter.client.words import size

    said = []
    for each in excluded:
        if not each.size and not each.hint:
            continue
        bound = "over " if each.at_least else ""
        said.append(f"{each.path} ({each.reason}, {bound}{size(each.size)})" + f" {each.hint}".rstrip())
    return tuple(said)


def _context(origin: Origin, source: Source, *, kernel_free: bool) -> dict[str, Any]:
    from paijupyter.notebook.context import source_hash

    cell = None
    if origin.cell_id:
        digest = source_hash(source.document, source.body)
        cell = {"id": origin.cell_id, "hash": digest, "number": origin.cell_number}
    return {
        "python": None if kernel_free else origin.python,
        "folder": str(origin.folder),
        "notebook": str(source.notebook or origin.notebook or "") or None,
        "cell": cell,
        "surface": origin.surface,
        "kernel": origin.kernel,
        "user": getpass.getuser(),
    }


def plan(client: Submitter, submission: Submission, patience: float | None = None) -> dict[str, Any]:
    """Return the Plan of a submission with the problems found here; no value of a secret is sent.

    Args:
        client: client of the engine.
        submission: the prepared request.
        patience: seconds to wait for what is being found about the package, None: all that it takes.
    """
    references = {each.name: {"reference": each.text} for each in submission.secrets}
    found = dict(client.plan({**submission.request, "secrets": references}))
    found["problems"] = _without_unsent(found.get("problems") or (), submission.problems)
    known = {(each.get("code"), each.get("message")) for each in found["problems"]}
    ours = [each for each in submission.problems if (each.code, each.message) not in known]
    if submission.beside:
        uncovered, more = submission.beside.findings(found, patience)
        found["imports"] = [each.to_json() for each in uncovered]
        ours += more
    both = in_order([*ours, *(Problem.from_json(each) for each in found.get("problems") or ())])
    found["problems"] = [each.to_json() for each in both]
    if submission.told:
        found["cells"] = list(submission.told)
    found["ok"] = bool(found.get("ok", True)) and not any(each.severity == "error" for each in both)
    return found


def _without_unsent(found: Sequence[Mapping[str, Any]], ours: Sequence[Problem]) -> list[Mapping[str, Any]]:
    """Leave out that a file was not sent where we know why; that says more."""
    known = {each.path for each in ours if each.code == "data-file"}
    return [each for each in found if each.get("code") != "data-not-sent" or each.get("path") not in known]


def submit(client: Submitter, submission: Submission, ask: Ask = getpass.getpass) -> Submitted:
    """Plan, resolve the secrets, and submit.

    Args:
        client: client of the engine.
        submission: the prepared request.
        ask: asks the person for a secret without showing it; gets the prompt.

    Raises:
        PlanRefused: the plan has errors.
        PaiJupyterError: a secret cannot be resolved, or the engine refuses.
    """
    planned = plan(client, submission, _PATIENCE)
    if not planned["ok"]:
        raise PlanRefused(planned, submission.left_out)
    return send(client, submission, planned, resolve(submission.secrets, ask))


def send(
    client: Submitter,
    submission: Submission,
    planned: Mapping[str, Any],
    secrets: Mapping[str, Mapping[str, str]],
) -> Submitted:
    """Submit what was planned; each secret has its reference, and its value where that is known here only.

    Raises:
        PaiJupyterError: the engine refuses.
    """
    if submission.request["mode"] == "replace" and not submission.request["context"]["cell"]:
        _stop_namesakes(client, str(planned.get("name")), submission.request["context"]["folder"])
    view = client.submit({**submission.request, "secrets": dict(secrets)})
    return Submitted(view, dict(planned), bool(view.get("created", True)))


def _stop_namesakes(client: Submitter, name: str, folder: str) -> None:
    """Stop what is unfinished of this name and folder; of a cell the engine knows it by itself."""
    from paijupyter.protocol.names import split_suffix

    short, _ = split_suffix(name)
    for state in ("waiting", "running"):
        for view in client.list(state=state, folder=folder)["jobs"]:
            if view.get("shortName") == short:
                client.stop(str(view["id"]))


def again(references: Mapping[str, str], given: Sequence[str], ask: Ask) -> dict[str, dict[str, str]]:
    """Resolve the secrets of a job once more: those given now, and of its own those that only this side can.

    What the engine resolves (``keyring:``) is left to it: it has the references.

    Args:
        references: the job's own, by name.
        given: options ``--secret``; they go before.
        ask: asks the person; gets the prompt.

    Raises:
        UsageProblem: as :func:`resolve`.
    """
    from paijupyter.protocol.secrets import parse_reference, parse_secret

    chosen = {each.name: each for each in map(parse_secret, given)}
    for name, text in references.items():
        own = parse_reference(name, text)
        if own.scheme in ("ask", "env"):
            chosen.setdefault(name, own)
    return resolve(list(chosen.values()), ask)


def resolve(secrets: Sequence[SecretReference], ask: Ask) -> dict[str, dict[str, str]]:
    """Resolve what belongs to the person's side (``ask``, ``env:``); pass on what the engine resolves.

    Raises:
        UsageProblem: a variable is not set, or nothing was typed.
    """
    found: dict[str, dict[str, str]] = {}
    for secret in secrets:
        if secret.scheme == "ask":
            found[secret.name] = {"value": _asked(secret.name, ask), "reference": secret.text}
        elif secret.scheme == "env":
            if not os.environ.get(secret.target):
                raise UsageProblem(
                    f"Variable `{secret.target}` of secret `{secret.name}` is not set here.",
                    "Set it, or use NAME=ask or NAME=keyring:KEY.",
                )
            found[secret.name] = {"value": os.environ[secret.target], "reference": secret.text}
        else:
            found[secret.name] = {"reference": secret.text}
    return found


def _asked(name: str, ask: Ask) -> str:
    try:
        value = ask(f"Secret {name}: ")
    except (EOFError, NotImplementedError):  # No terminal; a notebook that is executed without its user.
        hint = f"Use {name}=env:VARIABLE or {name}=keyring:KEY."
        raise UsageProblem(f"Secret `{name}` cannot be asked for here: nobody can answer.", hint) from None
    if not value:
        raise UsageProblem(f"Secret `{name}` was left empty, so nothing was submitted.")
    return value
