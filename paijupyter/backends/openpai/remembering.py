"""Jobs that a server has and this host has no record of: submitted in the portal, or from another host.

Of a job that our boot program runs the text is put back as it was written; what the server masks, its
secrets, has to be given again where it is submitted anew.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import io
import json
import logging
import tarfile
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from paijupyter.backends.openpai import head
from paijupyter.backends.openpai.answers import FINAL, Summary, mapping, summary_of, text
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.server import Server
from paijupyter.errors import InvalidDocument, PaiJupyterError
from paijupyter.protocol.document import read
from paijupyter.protocol.rendering import render_commands, tags
from paijupyter.protocol.writing import write

_log = logging.getLogger(__name__)
_LIMIT = 500
_STATES = "WAITING,RUNNING,STOPPING"


async def unfinished(server: Server) -> list[Mapping[str, Any]]:
    """Return the records of our jobs on the server that have not ended.

    Raises:
        PaiError: they cannot be listed.
    """
    user = await server.user()
    query = {"username": user, "state": _STATES, "limit": _LIMIT, "order": "submissionTime,DESC"}
    found = await server.client.call("GET", "/jobs", query=query)
    records = []
    for each in found if isinstance(found, list) else ():
        summary = summary_of(mapping(each))
        if summary.user != user or summary.state in FINAL:
            continue
        try:
            path = await server.path(summary.name)
            answer = await server.client.ask("GET", f"{path}/config", turn=Turn.NEWS)
            records.append(_record(summary, json.loads(answer.body)))
        except (PaiError, PaiJupyterError, ValueError) as error:
            _log.warning("job %s cannot be taken over: %s", summary.name, error)
    return records


def _record(summary: Summary, data: Any) -> Mapping[str, Any]:
    if not isinstance(data, dict) or not isinstance(data.get("taskRoles"), dict):
        raise ValueError("the server has no document of it that can be read")
    document = as_written(data)
    source = write(document)
    try:
        commands = dict(render_commands(read(source)))
    except InvalidDocument as error:
        _log.info("job %s: %s", summary.name, error)
        commands = {str(role): "" for role in document["taskRoles"]}
    mark = mapping(mapping(mapping(document.get("extras")).get("paijupyter")).get("openpai"))
    # A copy that somebody made in the portal has the mark of the job it was made of.
    own = text(mark.get("job")) if text(mark.get("name")) == summary.name else ""
    job = own or hashlib.sha256(f"{summary.user}~{summary.name}".encode()).hexdigest()[:12]
    user = getpass.getuser()
    return {
        "id": job,
        "name": summary.name,
        "user": user,
        "source": source,
        "commands": commands,
        "facts": _facts(job, user, summary, document),
    }


def as_written(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a job as it was before it was posted, as far as the server has it."""
    document = dict(data)
    parameters = dict(mapping(document.get("parameters")))
    carried = parameters.pop(head.PAYLOAD, None)
    spec = _spec(carried) if isinstance(carried, str) else {}
    commands = mapping(spec.get("commands"))
    if commands:
        parameters = {
            key: value for key, value in parameters.items() if not key.startswith(f"{head.PAYLOAD}_")
        }
        document["taskRoles"] = {
            role: {**mapping(body), "commands": [text(commands.get(role)) or "true"]}
            for role, body in document["taskRoles"].items()
        }
        if parameters:
            document["parameters"] = parameters
        else:
            document.pop("parameters", None)
    if "secrets" in document:
        names = [str(name) for name in spec.get("secretNames") or ()] or _secrets_in(document)
        document["secrets"] = dict.fromkeys(names, "")
        if not names:
            del document["secrets"]
    return document


def _spec(carried: str) -> Mapping[str, Any]:
    """Return what the tasks were told, {} if it cannot be read."""
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(carried)), mode="r:gz") as archive:
            member = archive.extractfile("spec.json")
            return mapping(json.loads(member.read())) if member else {}
    except (tarfile.TarError, OSError, EOFError, KeyError, ValueError):
        return {}


def _secrets_in(value: Any) -> list[str]:
    """Return the names of the secrets that a document refers to."""
    found: dict[str, None] = {}
    if isinstance(value, str):
        for tag in tags(value):
            root, _, rest = tag.name.partition(".")
            if root == "$secrets" and rest:
                found.setdefault(rest.split(".")[0])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            found.update(dict.fromkeys(_secrets_in(item) if key != "secrets" else ()))
    elif isinstance(value, list):
        for item in value:
            found.update(dict.fromkeys(_secrets_in(item)))
    return list(found)


def _facts(job: str, user: str, summary: Summary, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record of ours keeps of a job (``paijupyter.jobs.job_facts``)."""
    at = datetime.fromtimestamp(summary.submitted_at or 0.0, timezone.utc)
    ours = mapping(mapping(document.get("extras")).get("paijupyter"))
    return {
        "schema": 1,
        "id": job,
        "name": summary.name,
        "shortName": summary.name,
        "kind": "openpai",
        "user": user,
        "submittedAt": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "requestId": None,
        "packageSha256": None,
        "python": None,
        "versions": {},
        "folder": None,
        "notebook": None,
        "cell": None,
        "surface": "adopted",
        "kernel": None,
        "roles": [_role(str(name), mapping(body), ours) for name, body in document["taskRoles"].items()],
        "parameters": dict(mapping(document.get("parameters"))),
        "secretNames": list(mapping(document.get("secrets"))),
        "secretRefs": {},
        "clonedFrom": None,
        "group": None,
        "resumedFrom": None,
        "data": [],
        "dataPackages": {},
        "outputs": [str(each) for each in ours.get("outputs") or ()],
    }


def _role(name: str, body: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    resources = mapping(body.get("resourcePerInstance"))
    service = mapping(mapping(ours.get("roles")).get(name)).get("service")
    return {
        "name": name,
        "instances": int(body.get("instances") or 1),
        "cpu": resources.get("cpu"),
        "memoryMB": resources.get("memoryMB"),
        "gpu": resources.get("gpu"),
        "service": bool(service),
    }
