"""Of what a job was made: package, cells, parameters, environment, image, versions. Read from its folder."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter._version import __version__
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.record import Record
from paijupyter.notebook.comparing import cell_hashes
from paijupyter.notebook.reading import parse_notebook
from paijupyter.package import LocalStore
from paijupyter.protocol import read

ENVIRONMENT = "environment.json"
CONTAINER = "container.json"


def versions() -> dict[str, str]:
    """Return what made a job: versions of this program and its Python, and the system."""
    return {
        "paijupyter": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def provenance(live: LiveJob, store: LocalStore) -> dict[str, Any]:
    """Return all that a job was made of; the lock of its environment once a task has written it."""
    record, facts = live.record, live.record.facts
    document = record.source
    notebook = facts.get("runsNotebook")
    return {
        "id": record.id,
        "name": facts["name"],
        "submittedAt": facts["submittedAt"],
        "surface": facts.get("surface"),
        "profile": record.profile,
        "kind": facts.get("kind"),
        "host": facts.get("host"),
        "documentSha256": hashlib.sha256(document.encode()).hexdigest(),
        "packageSha256": facts.get("packageSha256"),
        "notebook": {"path": notebook, "cells": cells_of(record, store)} if notebook else None,
        "cell": facts.get("cell"),
        "parameters": dict(facts.get("parameters") or {}),
        "secretReferences": dict(facts.get("secretRefs") or {}),
        "images": images_of(document),
        "containers": containers_of(live),
        "data": list(facts.get("data") or ()),
        "python": facts.get("python"),
        "versions": dict(facts.get("versions") or {}),
        "environment": environment_of(live),
        "clonedFrom": facts.get("clonedFrom"),
        "resumedFrom": facts.get("resumedFrom"),
    }


def cells_of(record: Record, store: LocalStore) -> list[dict[str, Any]]:
    """Return number, id and source hash of the cells of the notebook that a job runs."""
    path, sha256 = record.facts.get("runsNotebook"), record.facts.get("packageSha256")
    if not path or not sha256:
        return []
    try:
        return cell_hashes(parse_notebook(store.content(sha256, path), Path(path)))
    except PaiJupyterError:
        return []  # The package is gone; its hash still tells whether another one is the same.


def environment_of(live: LiveJob) -> dict[str, Any] | None:
    """Return the lock of the first task's environment: interpreter, platform, packages with versions."""
    for attempt in range(live.life.attempt, -1, -1):
        for role in live.record.facts["roles"]:
            path = live.record.task_folder(f"{role['name']}-0", attempt) / ENVIRONMENT
            found = _object(path)
            if isinstance(found.get("packages"), dict):
                return {key: value for key, value in found.items() if key not in ("schema", "places")}
    return None


def containers_of(live: LiveJob) -> dict[str, dict[str, str]]:
    """Return ``{image, digest, node}`` of each role's first task; none for processes of this host."""
    found = {}
    for role in live.record.facts["roles"]:
        for attempt in range(live.life.attempt, -1, -1):
            told = _object(live.record.task_folder(f"{role['name']}-0", attempt) / CONTAINER)
            if told:
                named = ("image", "digest", "node")
                found[str(role["name"])] = {name: str(told.get(name) or "") for name in named}
                break
    return found


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def images_of(document: str) -> dict[str, str]:
    """Return the image of each task role of a document."""
    try:
        data = read(document).data
    except PaiJupyterError:
        return {}
    uris = {
        each.get("name"): str(each.get("uri") or "")
        for each in data.get("prerequisites") or ()
        if isinstance(each, Mapping) and each.get("type") == "dockerimage"
    }
    roles = data.get("taskRoles") or {}
    return {str(name): uris.get(role.get("dockerImage"), "") for name, role in roles.items()}
