"""The plan: everything that submitting would do, and everything against it, without doing any of it."""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Backend, BackendPlan, Data, Job, Package, Profile
from paijupyter.errors import NotFound, PaiJupyterError, Problem, has_errors, in_order
from paijupyter.jobs import image_building, notebooks, secrets, sources
from paijupyter.jobs.checkpoints import Earlier, check_within_reach, look
from paijupyter.jobs.documents import read_document, short_name_of
from paijupyter.jobs.estimate import estimate, setting_problems
from paijupyter.jobs.identity import new_id
from paijupyter.jobs.keyring import from_keyring
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.request import Context, Request
from paijupyter.jobs.view import json_safe
from paijupyter.jobs.watchers import Backends
from paijupyter.package import LocalStore, Manifest
from paijupyter.protocol import with_suffix
from paijupyter.protocol.roles import limits_memory

_log = logging.getLogger(__name__)
_INTERPRETER = re.compile(r"(?:.*/)?(?:python[\d.]*|bash|sh|torchrun)$")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as far as it could be made ready.

    Attributes:
        short: short name of the job.
        profile: its profile, or None if there is no such.
        data: values of the document as the backend gets it, or {} if it could not be read.
        job: what the backend would be told, or None if it would not be asked.
        backend: who would run it.
        plan: what the backend would do.
        manifest: the package's, or None.
        sources: its data.
        earlier: the job with whose checkpoints it begins, or None.
        problems: all that was found, errors first.
    """

    short: str = "job"
    profile: Profile | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    job: Job | None = None
    backend: Backend | None = None
    plan: BackendPlan | None = None
    manifest: Manifest | None = None
    package_missing: bool = False
    sources: tuple[Data, ...] = ()
    earlier: Earlier | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is against it."""
        return self.job is not None and not has_errors(self.problems)

    def to_json(self, request: Request) -> dict[str, Any]:
        """Return the Plan object that every screen shows."""
        package = None
        if self.manifest is not None:
            entries = self.manifest.entries
            package = {
                "sha256": self.manifest.sha256,
                "files": len(entries),
                "bytes": sum(entry.size for entry in entries),
            }
        return {
            "ok": self.ok,
            "name": self.job.name if self.job else self.short,
            "profile": self.profile.name if self.profile else request.profile,
            "document": request.document,
            "submittedDocument": self.plan.submitted if self.plan else "",
            "problems": [problem.to_json() for problem in self.problems],
            "package": package,
            "roles": [
                {key: role[key] for key in ("name", "instances", "cpu", "memoryMB", "gpu")}
                for role in role_facts(self.data)
            ],
            "objects": [dict(each) for each in self.plan.objects] if self.plan else [],
            "starts": self.plan.starts if self.plan else "",
            "parameters": json_safe(self.data.get("parameters") or {}),
            "secretNames": secret_names(self.data),
            "secretReferences": request.secrets.references,
            "data": [sources.summary(each) for each in self.sources],
            "outputs": output_globs(self.data),
            "resumes": self.earlier.to_json() if self.earlier else None,
        }

    def estimate(self, former: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return what it would cost and when it would start, given the view of its last run."""
        if self.profile is None or self.plan is None:
            return None
        gpus = sum(int(role["instances"]) * int(role["gpu"] or 0) for role in role_facts(self.data))
        return estimate(self.profile, gpus, extras_of(self.data).get("timeLimit"), self.plan.starts, former)


class Planner:
    """Makes requests ready.

    Args:
        jobs: folder of the job folders.
        packages: the package store of this host.
        profiles: the profile files.
        backends: the backends in use.
        find: returns the job that a reference in a context means.
    """

    def __init__(
        self,
        jobs: Path,
        packages: LocalStore,
        profiles: ProfileFiles,
        backends: Backends,
        find: Callable[[str, Context], LiveJob],
    ) -> None:
        self._find = find
        self._jobs = jobs
        self._packages = packages
        self._profiles = profiles
        self._backends = backends

    async def prepare(self, request: Request) -> Prepared:
        """Collect everything about a request; what is wrong with it is in ``problems``, and not raised."""
        document = await asyncio.to_thread(read_document, request)
        data, commands, problems = document.data, document.commands, list(document.problems)
        prepared = Prepared(short=short_name_of(data, request), data=data)
        problems += secrets.problems_of(data, request.secrets)
        problems += await self._keyring_problems(data, request)
        prepared, found = await self._with_package(prepared, request)
        problems += found
        if prepared.manifest is not None:
            problems += _entry_problems(commands, prepared.manifest)
            sha256 = prepared.manifest.sha256
            problems += await asyncio.to_thread(notebooks.problems_of, prepared.data, sha256, self._packages)
        given = asyncio.to_thread(sources.find, prepared.data, request.data, self._packages)
        found_data, found = await given
        prepared = replace(prepared, sources=found_data)
        problems += found
        prepared, found = await self._with_earlier(prepared, request)
        problems += found
        prepared, found = await self._with_backend(prepared, request)
        problems += found
        problems += _out_of_reach(prepared)
        # A backend is asked only about a document that makes sense; it need not defend itself against others.
        if prepared.backend is not None and not has_errors(_of_document(problems)):
            prepared = replace(prepared, job=self.job_of(prepared, request, commands))
            prepared, found = await _with_plan(prepared)
            problems += found
        return replace(prepared, problems=tuple(in_order(dict.fromkeys(problems))))

    def package(self, sha256: str | None) -> Package | None:
        """Return where a package of this host lies."""
        if sha256 is None:
            return None
        return Package(sha256, self._packages.folder(sha256), self._packages.blobs)

    def job_of(self, prepared: Prepared, request: Request, commands: Mapping[str, str]) -> Job:
        """Return what a backend is told of a request that was made ready."""
        job, name = new_id(), with_suffix(prepared.short)
        return Job(
            id=job,
            name=name,
            user=request.context.user,
            folder=self._jobs / job,
            document={**prepared.data, "name": name},
            commands=commands,
            package=self.package(prepared.manifest.sha256 if prepared.manifest else None),
            python=request.context.python,
            data=prepared.sources,
            group=(request.group or {}).get("id", ""),
            experiment=(request.group or {}).get("key", ""),
            resumes=prepared.earlier.name if prepared.earlier and prepared.earlier.profile else "",
        )

    async def _with_package(self, prepared: Prepared, request: Request) -> tuple[Prepared, list[Problem]]:
        sha256 = request.package or extras_of(prepared.data).get("package")
        if not isinstance(sha256, str):
            return prepared, []
        try:
            manifest = await asyncio.to_thread(self._packages.manifest, sha256)
            missing = bool(await asyncio.to_thread(self._packages.missing, manifest))
        except NotFound:
            missing = True
        except PaiJupyterError as error:
            return prepared, [_problem(error)]
        if missing:
            problem = Problem(
                "error",
                "package-missing",
                f"Package `{sha256[:12]}` is not stored on this host.",
                hint="Send the package first, then submit.",
            )
            return replace(prepared, package_missing=True), [problem]
        data = with_package(prepared.data, sha256)
        return replace(prepared, manifest=manifest, data=data), []

    async def _with_earlier(self, prepared: Prepared, request: Request) -> tuple[Prepared, list[Problem]]:
        if request.resume_from is None:
            return prepared, []
        try:
            job = self._find(request.resume_from, request.context)
            return replace(prepared, earlier=await asyncio.to_thread(look, job)), []
        except PaiJupyterError as error:
            return prepared, [_problem(error)]

    async def _with_backend(self, prepared: Prepared, request: Request) -> tuple[Prepared, list[Problem]]:
        try:
            profile = self._profiles.read().get(request.profile)
            prepared = replace(prepared, profile=profile)
            backend = await self._backends.of(profile.name)
            return replace(prepared, backend=backend), setting_problems(profile)
        except PaiJupyterError as error:
            return prepared, [_problem(error)]
        except Exception as error:  # a backend of another package may fail in any way
            _log.exception("backend of profile %s cannot be made", request.profile)
            return prepared, [_failed(f"Backend of profile `{request.profile}` cannot be used", error)]

    async def _keyring_problems(self, data: Mapping[str, Any], request: Request) -> list[Problem]:
        """Look whether the keyring has what the document wants; the values are dropped at once."""
        found = []
        for name in secret_names(data):
            reference = request.secrets.references.get(name, "")
            if not reference.startswith("keyring:") or request.secrets.has_value(name):
                continue
            try:
                await from_keyring(name, reference.partition(":")[2])
            except PaiJupyterError as error:
                found.append(replace(_problem(error), path=f"/secrets/{name}"))
        return found


def secret_names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of a document's secrets."""
    declared = data.get("secrets")
    return [str(name) for name in declared] if isinstance(declared, Mapping) else []


def output_globs(data: Mapping[str, Any]) -> list[str]:
    """Return the patterns of a document's declared outputs."""
    declared = extras_of(data).get("outputs")
    return [str(each) for each in declared] if isinstance(declared, list) else []


def extras_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document's ``extras.paijupyter``, or {}."""
    extras = data.get("extras")
    ours = extras.get("paijupyter") if isinstance(extras, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}


def with_package(data: Mapping[str, Any], sha256: str) -> dict[str, Any]:
    """Return a document that names its package."""
    extras = data.get("extras")
    ours = {"version": 1, **extras_of(data), "package": sha256}
    return {**data, "extras": {**(extras if isinstance(extras, Mapping) else {}), "paijupyter": ours}}


def role_facts(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return of each role what lists and views need: name, instances, resources, if a service (P36).

    Memory is null where nobody asked for any.
    """
    roles = data.get("taskRoles")
    if not isinstance(roles, Mapping):
        return []
    settings = extras_of(data).get("roles")
    facts = []
    for name, role in roles.items():
        fields = role if isinstance(role, Mapping) else {}
        each = fields.get("resourcePerInstance")
        resources = each if isinstance(each, Mapping) else {}
        ours = settings.get(name) if isinstance(settings, Mapping) else None
        instances = fields.get("instances", 1)
        facts.append(
            {
                "name": str(name),
                "instances": instances if isinstance(instances, int) else 1,
                "cpu": resources.get("cpu"),
                "memoryMB": resources.get("memoryMB") if limits_memory(data, str(name)) else None,
                "gpu": resources.get("gpu"),
                "service": name == "ps" or (isinstance(ours, Mapping) and bool(ours.get("service"))),
            }
        )
    return facts


async def _with_plan(prepared: Prepared) -> tuple[Prepared, list[Problem]]:
    if prepared.backend is None or prepared.job is None:
        return prepared, []
    try:
        plan = await prepared.backend.plan(prepared.job)
        name = prepared.profile.name if prepared.profile else ""
        found = await image_building.problems(prepared.backend, name, extras_of(prepared.data))
    except PaiJupyterError as error:
        return replace(prepared, job=None), [_problem(error)]
    except Exception as error:
        _log.exception("plan of job %s failed", prepared.job.name)
        return replace(prepared, job=None), [_failed("Backend could not plan the job", error)]
    return replace(prepared, plan=plan), [*plan.problems, *found]


def _of_document(problems: list[Problem]) -> Iterator[Problem]:
    """Leave out what is wrong beside the document: with that a backend can still say what it would do."""
    beside = ("secret-missing", "keyring-unusable", "missing-extra", "package-missing")
    return (problem for problem in problems if problem.code not in beside)


def _entry_problems(commands: Mapping[str, str], manifest: Manifest) -> list[Problem]:
    """Name programs that a command starts by a relative path and that the package does not have."""
    there = {entry.path for entry in manifest.entries}
    found = []
    for role, command in commands.items():
        for path in _started(command):
            if path not in there:
                message = f"File `{path}`, which role `{role}` starts, is not in the package."
                hint = "See the files left out by ignore files, or whether the command makes it."
                found.append(
                    Problem("hint", "entry-not-in-package", message, f"/taskRoles/{role}/commands", hint=hint)
                )
    return found


def _started(command: str) -> Iterator[str]:
    for line in command.splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return  # a here-document or a string over several lines: too clever for a hint
        if words and words[0] == "cd":
            return  # from here on paths are relative to somewhere else
        if words and words[0].startswith("./"):
            yield words[0][2:]
        elif words and _INTERPRETER.match(words[0]):
            script = next((word for word in words[1:] if not word.startswith("-")), "")
            # An option may take a value (`python -W error x.py`), so only what looks like a script counts.
            if re.fullmatch(r"[\w.-][\w./-]*\.(?:py|sh)", script):
                yield script.removeprefix("./")


def _out_of_reach(prepared: Prepared) -> list[Problem]:
    """Return what is wrong with where the checkpoints lie with which a job is to begin."""
    if prepared.earlier is None or prepared.profile is None:
        return []
    try:
        check_within_reach(prepared.earlier, prepared.profile)
    except PaiJupyterError as error:
        return [_problem(error)]
    return []


def _problem(error: PaiJupyterError) -> Problem:
    return Problem("error", error.code, error.message, hint=error.hint)


def _failed(what: str, error: Exception) -> Problem:
    return Problem(
        "error", "backend-failed", f"{what}: {type(error).__name__}: {error}", hint="See the engine's log."
    )
