"""A job document from the options of a surface. Every surface makes its documents here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.protocol.data import DataSource
from paijupyter.protocol.names import short_name
from paijupyter.protocol.roles import DEFAULT_CPU, DEFAULT_MEMORY_MB, RoleSpec
from paijupyter.protocol.secrets import SecretReference

DEFAULT_IMAGE = "python:3.11-slim"
_IMAGE = "image"


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a person asked for, in one shape for magics, command line, form and REST.

    Attributes:
        name: the short name; made safe here.
        roles: task roles in order; empty means one ``worker``.
        commands: the commands of every role, or role → its commands.
        parameters: name → typed value, for ``<% $parameters.name %>``.
        secrets: references; only the names reach the document.
        image: container image of all roles that name none of their own.
        env: environment of every task.
        time_limit: seconds one attempt may take, or None.
        outputs: globs below the package folder that are kept at the end.
        data: sources of data, each with a name of its own.
        storages: names of storages, each as ``{"name": …, "mountPath": …}``; none means the default ones.
        package: sha256 of the trainer package, or None.
        notebook: ``{"path": …, "cell": …}``, or ``{"path": …, "run": True}`` where it is what runs, or None.
        retry_count: automatic tries after the first.
        requirements: requirements file in the package, or None for the default.
        install: ``never``, ``if-missing``, ``always``, or None for the profile's default.
        build: whether an image is built that has the requirements.
    """

    name: str
    commands: Sequence[str] | Mapping[str, Sequence[str]]
    roles: Sequence[RoleSpec] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    secrets: Sequence[SecretReference] = ()
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    time_limit: int | None = None
    outputs: Sequence[str] = ()
    data: Sequence[DataSource] = ()
    storages: Sequence[Mapping[str, str]] = ()
    package: str | None = None
    notebook: Mapping[str, Any] | None = None
    retry_count: int = 0
    virtual_cluster: str | None = None
    requirements: str | None = None
    install: str | None = None
    build: bool = False
    barrier_timeout: int | None = None
    description: str | None = None


def build_document(options: JobOptions) -> dict[str, Any]:
    """Return the job document of the options, as plain values in the order in which it is written.

    Raises:
        UsageProblem: if no role is left, a role comes twice, or a role has no command.
    """
    roles = _roles(options.roles)
    images = _images(options, roles)
    document: dict[str, Any] = {"protocolVersion": 2, "name": short_name(options.name), "type": "job"}
    if options.description:
        document["description"] = options.description
    document["prerequisites"] = [
        {"protocolVersion": 2, "name": name, "type": "dockerimage", "uri": uri}
        for uri, name in images.items()
    ]
    if options.parameters:
        document["parameters"] = dict(options.parameters)
    if options.secrets:
        # A placeholder: the value is resolved at submission and never stands in a document of ours.
        document["secrets"] = {reference.name: "" for reference in options.secrets}
    if options.retry_count:
        document["jobRetryCount"] = options.retry_count
    document["taskRoles"] = {role.name: _task_role(role, roles, images, options) for role in roles}
    if options.virtual_cluster:
        document["defaults"] = {"virtualCluster": options.virtual_cluster}
    document["extras"] = {"paijupyter": _extras(options, roles)}
    if options.storages:
        document["extras"]["storages"] = [dict(storage) for storage in options.storages]
    return document


def _roles(given: Sequence[RoleSpec]) -> list[RoleSpec]:
    names = [role.name for role in given]
    for name in names:
        if names.count(name) > 1:
            raise UsageProblem(f"Role `{name}` is given twice.", "Give each role once, with its instances.")
    kept = [role for role in given if role.instances > 0]
    if given and not kept:
        raise UsageProblem("Roles with 0 instances are left out, so this job has none left.")
    return kept or [RoleSpec("worker")]


def _images(options: JobOptions, roles: Sequence[RoleSpec]) -> dict[str, str]:
    """Image → name of its prerequisite, ``image`` first."""
    default = options.image or DEFAULT_IMAGE
    images: dict[str, str] = {}
    for role in roles:
        uri = role.image or default
        if uri not in images:
            images[uri] = _IMAGE if not images else f"{_IMAGE}_{role.name}"
    return images


def _task_role(
    role: RoleSpec, roles: Sequence[RoleSpec], images: Mapping[str, str], options: JobOptions
) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "cpu": DEFAULT_CPU if role.cpu is None else role.cpu,
        "memoryMB": DEFAULT_MEMORY_MB if role.memory_mb is None else role.memory_mb,
        "gpu": role.gpu or 0,
    }
    if role.ports:
        resources["ports"] = dict(role.ports)
    built: dict[str, Any] = {"instances": role.instances}
    completion = _completion(role, roles)
    if completion:
        built["completion"] = completion
    built["dockerImage"] = images[role.image or options.image or DEFAULT_IMAGE]
    built["resourcePerInstance"] = resources
    if role.shm_mb is not None:
        built["extraContainerOptions"] = {"shmMB": role.shm_mb}
    built["commands"] = _commands(role, options)
    return built


def _completion(role: RoleSpec, roles: Sequence[RoleSpec]) -> dict[str, int]:
    """The policy, said in full as soon as there are services: OpenPAI then decides as we do (P36)."""
    if role.min_failed is None and role.min_succeeded is None and not any(r.is_service for r in roles):
        return {}
    succeeded = role.min_succeeded
    if succeeded is None:
        succeeded = -1 if role.is_service else role.instances
    return {"minFailedInstances": role.min_failed or 1, "minSucceededInstances": succeeded}


def _commands(role: RoleSpec, options: JobOptions) -> list[str]:
    if isinstance(options.commands, Mapping):
        commands = options.commands.get(role.name, ())
    else:
        commands = options.commands
    lines = [commands] if isinstance(commands, str) else list(commands)
    if not any(line.strip() for line in lines):
        raise UsageProblem(f"Role `{role.name}` has no command.", "Say what its tasks run.")
    return lines


def _extras(options: JobOptions, roles: Sequence[RoleSpec]) -> dict[str, Any]:
    extras: dict[str, Any] = {"version": 1}
    for key, value in (
        ("package", options.package),
        ("env", dict(options.env)),
        ("roles", _role_extras(roles)),
        ("data", [source.to_json() for source in options.data]),
        ("outputs", list(options.outputs)),
        ("notebook", dict(options.notebook or {})),
        ("requirements", options.requirements),
        ("install", options.install),
        ("build", options.build),
        ("timeLimit", options.time_limit),
        ("barrierTimeout", options.barrier_timeout),
    ):
        if value:
            extras[key] = value
    return extras


def _role_extras(roles: Sequence[RoleSpec]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for role in roles:
        entry: dict[str, Any] = {}
        if role.env:
            entry["env"] = dict(role.env)
        if role.launcher:
            entry["launcher"] = role.launcher
        if role.is_service or role.service is False:
            entry["service"] = role.is_service
        if role.memory_mb is None:
            entry["limitMemory"] = False  # what nobody asked for shall end nobody's task
        if entry:
            found[role.name] = entry
    return found
