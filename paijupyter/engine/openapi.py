"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from paijupyter._version import __version__
from paijupyter.engine.route import BYTES, JSON, PLAIN_TEXT, PROBLEM, Answer, Parameter, Route
from paijupyter.engine.schemas import COMPONENTS, SHA256, named

_ALWAYS = {400: "The request is not valid.", 500: "A bug; engine.log has the details."}
_PHRASES = {
    401: "The server of the profile does not take this login.",
    403: "It may only be read.",
    404: "There is no such thing.",
    409: "The state does not allow it.",
    410: "The events are forgotten: list again.",
    413: "Too large.",
    416: "Outside of the file.",
    422: "The document, package or setting has problems.",
    507: "The disk is full.",
    501: "An optional part is not installed.",
    502: "The server of the profile answers something else.",
    503: "The server of the profile cannot be reached.",
}
_NAME = {**PLAIN_TEXT, "minLength": 1}
_HOLES = {
    "ref": Parameter("ref", "id, name or short name of a job, or `last`", _NAME),
    "sha": Parameter("sha", "a sha256, 64 hexadecimal digits", SHA256),
    "profile": Parameter("profile", "name of a profile", _NAME),
    "name": Parameter("name", "name of a secret", _NAME),
    "storage": Parameter("storage", "name of a storage", _NAME),
    "framework": Parameter("framework", "a job as OpenPAI names it, `user~name`", _NAME),
    "user": Parameter("user", "name of a user", _NAME),
    "attempt": Parameter("attempt", "number of a job's attempt", _NAME),
    "role": Parameter("role", "name of a task role", _NAME),
    "index": Parameter("index", "number of a task", _NAME),
    "once": Parameter("once", "number of a task's attempt, here always 0", _NAME),
    "file": Parameter("file", "name of a log", _NAME),
    "path": Parameter("path", "path of an output or in a storage; it may have slashes", _NAME),
}


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document of a route table."""
    found: dict[str, dict[str, Any]] = {}
    for route in routes:
        found.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "paijupyter", "version": __version__, "license": {"name": "BSD-3-Clause"}},
        "paths": found,
        "components": {"schemas": COMPONENTS},
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{route.handler.__module__.rpartition('.')[2]}_{route.name}",
        "summary": route.summary,
        "parameters": [
            *(_parameter(_HOLES[name], "path") for name in re.findall(r"\{(\w+)\}", route.path)),
            *(_parameter(parameter, "query") for parameter in route.query),
        ],
        "responses": {str(status): _answer(answer) for status, answer in route.answers.items()},
    }
    if route.body is not None:
        content = {JSON: {"schema": route.body}}
        operation["requestBody"] = {
            "required": "required" in route.body or "anyOf" in route.body,
            "content": content,
        }
    elif route.upload:
        operation["requestBody"] = {"required": True, "content": {BYTES: {}}}
    for status in sorted({*_ALWAYS, *route.problems}):
        text = _ALWAYS.get(status) or _PHRASES[status]
        problem = _answer(Answer(text, named("ProblemDocument"), PROBLEM))
        known = operation["responses"].setdefault(str(status), problem)
        known["content"] = {**known.get("content", {}), **problem["content"]}
    return operation


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    made = {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "schema": dict(parameter.schema),
    }
    return {**made, "description": parameter.description} if parameter.description else made


def _answer(answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {"description": answer.description}
    if answer.schema is not None or answer.media != JSON:
        content = {"schema": dict(answer.schema)} if answer.schema is not None else {}
        made["content"] = {media: content for media in answer.media.split()}
    return made
