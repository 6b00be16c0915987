"""The job document as it is posted: what all validators take and what nothing on its way rewrites. Pure.

A document that has nothing of ours goes as it is, but for what Kubernetes would rewrite (openpai.md 3.7). One
that has a package, data, or options of ours carries the boot program, which runs its commands.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.openpai import head, payload
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.data.storages import used_by
from paijupyter.protocol.build import DEFAULT_IMAGE
from paijupyter.protocol.rendering import tags
from paijupyter.protocol.writing import write

LARGEST = 102_400
"""Bytes of a body that the server takes."""
_REWRITTEN = re.compile(r"\$+(?=\(FC_)|\${2,}")
_ESCAPED = re.compile(r"[&<>\"']")
_FORCED = ("cpu", "memoryMB", "gpu")


@dataclass(frozen=True, slots=True)
class Carried:
    """What of ours a document carries.

    Attributes:
        data: the payload.
        urls: by number of the package the address that tasks fetch it from; it opens the package.
        storages: each ``name`` and ``path`` in the tasks, beyond those the document names.
        outputs: what tasks are told of where they send their outputs, "" before it is known, None if they
            send none.
    """

    data: bytes
    urls: Mapping[int, str]
    storages: Sequence[Mapping[str, str]] = ()
    outputs: str | None = None


def carries(job: Job) -> bool:
    """Say whether a job is run by the boot program; a document that was written for OpenPAI is not.

    Such a one has nothing of ours, or only what we mark a job with on the server.
    """
    return bool(job.package or job.data or (job.extras and set(job.extras) != {"version", "openpai"}))


def text_of(
    job: Job,
    name: str,
    settings: OpenPaiSettings,
    secrets: Mapping[str, str],
    carried: Carried | None,
) -> str:
    """Return the text that is posted.

    Args:
        job: the job.
        name: what it is called on the server.
        settings: of the profile.
        secrets: their values, "" for each in a plan.
        carried: what travels in it, None for a document of others.
    """
    return write(document_of(job, name, settings, secrets, carried))


def document_of(
    job: Job, name: str, settings: OpenPaiSettings, secrets: Mapping[str, str], carried: Carried | None
) -> dict[str, Any]:
    """Return the document of :func:`text_of` as plain values."""
    found = copy.deepcopy(dict(job.document))
    found["name"] = name
    for key in [key for key in ("parameters", "secrets", "extras", "deployments") if found.get(key) is None]:
        found.pop(key, None)
    _complete(found, settings)
    _mount(found, job, settings, carried)
    _mark(found, job)
    if found.get("secrets"):
        found["secrets"] = {str(key): _given(key, value, secrets) for key, value in found["secrets"].items()}
    if carried is None:
        _escape(found)
        _two_stages(found)
    else:
        _carry(found, job, settings, carried)
    return found


def escaped(text: str) -> str:
    """Return a text that Kubernetes turns back into this one (openpai.md 3.7)."""
    return _REWRITTEN.sub(lambda match: match[0] * 2, text)


def _complete(found: dict[str, Any], settings: OpenPaiSettings) -> None:
    """Say what the server wants said: instances, all resources, a virtual cluster, an image."""
    for role in found["taskRoles"].values():
        role.setdefault("instances", 1)
        if role["instances"] is None:
            role["instances"] = 1
        resources = role["resourcePerInstance"]
        for key in _FORCED:
            resources[key] = int(resources.get(key) or 0)
        if not resources.get("ports"):
            resources.pop("ports", None)
        completion = {
            key: value for key, value in (role.get("completion") or {}).items() if value is not None
        }
        role.pop("completion", None)
        if completion:
            role["completion"] = completion
    if settings.virtual_cluster and not (found.get("defaults") or {}).get("virtualCluster"):
        found["defaults"] = {**(found.get("defaults") or {}), "virtualCluster": settings.virtual_cluster}
    if settings.image:
        for item in found.get("prerequisites") or ():
            if item.get("type") == "dockerimage" and item.get("uri") == DEFAULT_IMAGE:
                item["uri"] = settings.image


def _mount(found: dict[str, Any], job: Job, settings: OpenPaiSettings, carried: Carried | None) -> None:
    named = {name: path for name, path in used_by(job.document, settings.storages) if name}
    for each in carried.storages if carried else ():
        named.setdefault(each["name"], each["path"])
    if named:
        storages = [{"name": name, "mountPath": path} for name, path in named.items()]
        found["extras"] = {**(found.get("extras") or {}), "storages": storages}


def _mark(found: dict[str, Any], job: Job) -> None:
    """Say whose it is: what was never answered is found again by this. A copy of it has another name."""
    extras = found.setdefault("extras", {})
    ours = dict(extras.get("paijupyter") or {})
    ours.setdefault("version", 1)
    ours["openpai"] = {**(ours.get("openpai") or {}), "job": job.id, "name": found["name"]}
    extras["paijupyter"] = ours


def _given(name: Any, value: Any, secrets: Mapping[str, str]) -> str:
    given = secrets.get(str(name), "")
    return given if given or not isinstance(value, str) else value


def _escape(found: dict[str, Any]) -> None:
    """Escape commands, and the values of parameters that they name."""
    used: set[str] = set()

    def each(items: Iterable[Any]) -> list[Any]:
        texts = []
        for item in items:
            if isinstance(item, str):
                used.update(_parameters_in(item))
                item = escaped(item)
            texts.append(item)
        return texts

    for role in found["taskRoles"].values():
        role["commands"] = each(role["commands"])
    for deployment in found.get("deployments") or ():
        for hooks in (deployment.get("taskRoles") or {}).values():
            for key in ("preCommands", "postCommands"):
                if hooks and hooks.get(key):
                    hooks[key] = each(hooks[key])
    for name in used & set(found.get("parameters") or {}):
        value = found["parameters"][name]
        if isinstance(value, str) and (text := escaped(value)) != value:  # else a date stays one
            found["parameters"][name] = text


def _two_stages(found: dict[str, Any]) -> None:
    """Refer to secrets that the cluster's runtime would turn into HTML by a parameter of their own."""
    wanted = [
        name
        for name, value in (found.get("secrets") or {}).items()
        if isinstance(value, str) and _ESCAPED.search(value)
    ]
    numbers = {f"$secrets.{name}": number for number, name in enumerate(wanted)}
    used: set[int] = set()

    def fill(text: str) -> str:
        parts, end = [], 0
        for tag in tags(text):
            number = numbers.get(tag.name) if not tag.kind else None
            if number is not None:
                used.add(number)
                parts += [text[end : tag.start], f"<% $parameters.{head.secret_parameter(number)} %>"]
                end = tag.end
        return "".join([*parts, text[end:]])

    for role in found["taskRoles"].values():
        role["commands"] = [fill(item) if isinstance(item, str) else item for item in role["commands"]]
    if used:
        more = {head.secret_parameter(number): f"<%& $secrets.{wanted[number]} %>" for number in sorted(used)}
        found["parameters"] = {**(found.get("parameters") or {}), **more}


def _carry(found: dict[str, Any], job: Job, settings: OpenPaiSettings, carried: Carried) -> None:
    digest = hashlib.sha256(carried.data).hexdigest()
    names = [str(name) for name in job.document.get("secrets") or {}]
    parameters = {**(found.get("parameters") or {}), head.PAYLOAD: _wrapped(carried.data)}
    for number, name in enumerate(names):
        parameters[head.secret_parameter(number)] = f"<%& $secrets.{name} %>"
    told = {head.url_file(number): (head.url_secret(number), url) for number, url in carried.urls.items()}
    if carried.outputs is not None:
        told[head.OUTPUTS_FILE] = (head.OUTPUTS, carried.outputs)
    for name, value in told.values():
        found["secrets"] = {**(found.get("secrets") or {}), name: value}
        parameters[name] = f"<%& $secrets.{name} %>"
    found["parameters"] = parameters
    # Hooks of a deployment are part of the rendered commands already.
    if found.get("deployments"):
        (found.get("defaults") or {}).pop("deployment", None)
        found.pop("deployments")
    mark = f"PAI_{hashlib.sha256(job.id.encode()).hexdigest()[:16]}"
    for role, body in found["taskRoles"].items():
        body["commands"] = [
            head.command_of(
                role,
                digest,
                mark,
                names,
                {file: name for file, (name, _) in told.items()},
                settings.python,
                by_shell=payload.works_without_python(job),
            )
        ]


def _wrapped(data: bytes) -> str:
    """Return bytes as base64 in one line: a break is one character more each, and no reader needs it."""
    return base64.b64encode(data).decode("ascii")


def _parameters_in(text: str) -> Iterable[str]:
    for tag in tags(text):
        root, _, rest = tag.name.partition(".")
        if root == "$parameters" and rest:
            yield rest.split(".")[0].split("[")[0]
