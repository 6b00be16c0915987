"""The data of a job, between its document and its backend: found, checked, remembered in the job's folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Data, Package
from paijupyter.data.files import total_of
from paijupyter.data.kinds import load_kind
from paijupyter.errors import NotFound, PaiJupyterError, Problem
from paijupyter.jobs.files import write_synced
from paijupyter.package import LocalStore
from paijupyter.protocol.data import DataSource, shown, sources_of

_PATH = "/extras/paijupyter/data"
_FETCHED = "data.json"


def find(
    document: Mapping[str, Any], travelled: Mapping[str, str], packages: LocalStore
) -> tuple[tuple[Data, ...], list[Problem]]:
    """Return the data of a document, and what is wrong with it. Blocking.

    Args:
        document: plain values of the document.
        travelled: per source of kind ``file`` the hash of its package.
        packages: the store they are in.
    """
    found: list[Data] = []
    problems: list[Problem] = []
    for index, source in enumerate(sources_of(document)):
        path = f"{_PATH}/{index}"
        try:
            kind = load_kind(source)
            for words, hint in kind.problems():
                message = f"Data `{source.name}` {words}."
                problems.append(Problem("error", "data", message, f"{path}/uri", hint=hint))
            package = _package(source, travelled, packages) if kind.where == "package" else None
            found.append(Data(source, package))
        except PaiJupyterError as error:
            problems.append(Problem("error", error.code, error.message, path, hint=error.hint))
    return tuple(found), problems


def _package(source: DataSource, travelled: Mapping[str, str], packages: LocalStore) -> Package:
    sha256 = travelled.get(source.name)
    try:
        there = sha256 is not None and not packages.missing(packages.manifest(sha256))
    except NotFound:
        there = False
    if sha256 is None or not there:
        raise PaiJupyterError(
            "data-not-sent",
            f"Data `{source.name}` is a file of the submitting side and did not come with the request.",
            "Submit it with paijob or %paijob, or put it into a storage.",
        )
    return Package(sha256, packages.folder(sha256), packages.blobs)


def is_fetched_here(data: Data) -> bool:
    """Say whether the engine has to fetch it, and has not done so.

    Raises:
        PaiJupyterError: the package that brings its kind is gone.
    """
    return not data.key and load_kind(data.source).where == "engine"


def summary(data: Data) -> dict[str, Any]:
    """Return what plans and views show of a source."""
    source = data.source
    found: dict[str, Any] = {
        "name": source.name,
        "kind": source.kind,
        "uri": shown(source.uri),
        "read": f"${source.variable}/{source.base}",
    }
    if source.path:
        found["path"] = source.path
    if data.package is not None:
        found["package"] = data.package.sha256
        found["bytes"] = total_of(data.package.folder)
    return found


def packages_of(data: tuple[Data, ...]) -> dict[str, str]:
    """Return the hashes of what travelled, by name."""
    return {each.source.name: each.package.sha256 for each in data if each.package is not None}


def again(
    document: Mapping[str, Any],
    facts: Mapping[str, Any],
    folder: Path,
    package: Callable[[str], Package | None],
) -> tuple[Data, ...]:
    """Return the data of a recorded job, from its folder alone."""
    travelled, fetched = facts.get("dataPackages") or {}, _fetched(folder)
    return tuple(
        Data(
            source,
            package(travelled[source.name]) if source.name in travelled else None,
            str(fetched.get(source.name) or ""),
        )
        for source in sources_of(document)
    )


def remember(folder: Path, data: tuple[Data, ...]) -> None:
    """Note in the job's folder what was fetched for it."""
    keys = {each.source.name: each.key for each in data if each.key}
    draft = folder / f".{_FETCHED}"
    draft.unlink(missing_ok=True)
    write_synced(draft, json.dumps(keys).encode())
    draft.replace(folder / _FETCHED)


def _fetched(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / _FETCHED).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
