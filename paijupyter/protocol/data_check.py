"""The check of ``extras.paijupyter.data`` beyond the forms of its members."""

from __future__ import annotations

import posixpath
from typing import Any

from paijupyter.protocol.data import DataSource, source_of, wrong
from paijupyter.protocol.findings import Findings, dotted
from paijupyter.protocol.references import member

_PATH = "/extras/paijupyter/data"


def check_data(found: Findings, items: Any, secrets: Any) -> None:
    """Check the sources of a job against themselves, each other and the document's secrets."""
    variables: dict[str, str] = {}
    places: dict[str, str] = {}
    for index, item in enumerate(items if isinstance(items, list) else ()):
        source = source_of(item)
        if source is None:
            continue  # the model says why
        path = f"{_PATH}/{index}"
        for key, why, hint in wrong(source):
            where = f"{path}/{key}" if member(item, key) is not None else path
            found.error("data", where, f"Data `{source.name}` {why}.", hint)
        _unique(found, source, path, variables, places)
        if source.secret and not (isinstance(secrets, dict) and source.secret in secrets):
            words = f"`{dotted(f'{path}/secret')}` names `{source.secret}`, which is no secret of this job."
            found.error("data", f"{path}/secret", words, f"Declare it: --secret {source.secret}=ask.")


def _unique(
    found: Findings, source: DataSource, path: str, variables: dict[str, str], places: dict[str, str]
) -> None:
    """Two sources may share a folder, but neither a variable nor a file."""
    if source.variable in variables:
        first = variables[source.variable]
        message = f"Data `{source.name}` and `{first}` would share the variable {source.variable}."
        found.error("data", f"{path}/name", message, "Name one of them otherwise.")
    variables[source.variable] = source.name
    if not source.path:
        return
    place = posixpath.join(source.path, source.base)
    other = places.setdefault(place, source.name)
    if other != source.name:
        message = f"Data `{source.name}` and `{other}` would both be read as `{place}`."
        found.error("data", f"{path}/path", message, "Give one of them another path.")
