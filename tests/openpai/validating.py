"""What the original server makes of a posted job document, check by check and in its order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError

from paijupyter.errors import InvalidDocument
from paijupyter.protocol.document import parse_values  # reads YAML as js-yaml does; held to measured values
from tests.openpai.answers import Refused
from tests.openpai.schema import PROTOCOL

LIMIT_BYTES = 102_400
_VALIDATOR = Draft7Validator(PROTOCOL)
_SECRETS = re.compile(r"^secrets:.*?(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
_MESSAGES = {
    "additionalProperties": "should NOT have additional properties",
    "enum": "should be equal to one of the allowed values",
    "minItems": "should NOT have fewer than {} items",
    "minProperties": "should NOT have fewer than {} properties",
    "minimum": "should be >= {}",
    "pattern": 'should match pattern "{}"',
    "maxLength": "should NOT be longer than {} characters",
}
Json = dict[str, Any]


def masked(text: str) -> str:
    """Return a document's text as the server stores it.

    One regular expression: from a plain `secrets:` at the start of a line to the next line that starts with
    a word character. So a quoted key is not masked, and quoted keys after a plain one are swallowed.
    """
    return _SECRETS.sub('secrets: "******"\n', text)


def values(text: str) -> Json:
    """Return the values of a posted text.

    Raises:
        Refused: 500 without a code, as for every exception of its YAML parser.
    """
    try:
        data, _, problems = parse_values(text)
    except InvalidDocument as error:
        raise Refused(500, None, str(error)) from None
    if any(problem.code == "not-a-mapping" for problem in problems):
        raise nothing_read()
    if problems:
        raise Refused(500, None, str(problems[0]))
    return data


def check_schema(data: Any) -> None:
    """Refuse what the schema refuses, with all of its errors.

    Raises:
        Refused: 400 InvalidProtocolError, its message the JSON text of a list.
    """
    found = [entry for error in _VALIDATOR.iter_errors(data) for entry in _entries(error)]
    if found:
        raise _invalid(found)


def check_references(data: Json) -> None:
    """Refuse references to what is not declared, and what is declared twice.

    Raises:
        Refused: 400 InvalidProtocolError with a sentence.
    """
    declared: dict[str, set[str]] = {}
    for item in data.get("prerequisites") or ():
        names = declared.setdefault(item["type"], set())
        if item["name"] in names:
            raise _sentence(f"Duplicate {item['type']} prerequisites with name {item['name']}.")
        names.add(item["name"])
    everything: set[str] = set().union(*declared.values()) if declared else set()
    for role in data["taskRoles"].values():
        for key, kind in (("dockerImage", "dockerimage"), ("data",) * 2, ("output",) * 2, ("script",) * 2):
            if key in role and role[key] not in declared.get(kind, ()):
                raise _sentence(f"Prerequisite {role[key]} does not exist.")
        for name in role.get("prerequisites") or ():
            if name not in everything:
                raise _sentence(f"Prerequisite {name} does not exist.")
    deployments = [each["name"] for each in data.get("deployments") or ()]
    for name in deployments:
        if deployments.count(name) > 1:
            raise _sentence(f"Duplicate deployments with name {name}.")
    chosen = (data.get("defaults") or {}).get("deployment")
    if chosen is not None and chosen not in deployments:
        raise _sentence(f"Default deployment {chosen} does not exist.")
    if (data.get("extras") or {}).get("com.microsoft.pai.runtimeplugin", ()) is None:
        raise Refused(500, None, "config.extras.com.microsoft.pai.runtimeplugin is not iterable")


def storages(data: Json) -> Iterator[str]:
    """Yield the names of the storages that a document asks for."""
    extras = data.get("extras") or {}
    for each in extras.get("storages") or ():
        if isinstance(each, Mapping) and "name" in each:
            yield str(each["name"])
    for each in extras.get("com.microsoft.pai.runtimeplugin") or ():
        if each.get("plugin") == "teamwise_storage":
            yield from (each.get("parameters") or {}).get("storageConfigNames") or ()


def check_counts(data: Json) -> None:
    """Refuse what only the database refuses.

    Raises:
        Refused: 500 UnknownError.
    """
    if any("instances" not in role for role in data["taskRoles"].values()):
        raise Refused(500, "UnknownError", 'invalid input syntax for type integer: "NaN"')


def nothing_read() -> Refused:
    """Return the answer to a body of a type that no parser takes: its values are a text, or nothing."""
    return _invalid([{"keyword": "type", "dataPath": "", "message": "should be object"}])


def unreadable(data: Json) -> str:
    """Return why the detail of an accepted job can never be read, or ""."""
    ports = [role["resourcePerInstance"].get("ports") or {} for role in data["taskRoles"].values()]
    negative = any(count < 0 for each in ports for count in each.values())
    return "Invalid array length" if negative else ""


def refused_later(data: Json) -> str:
    """Return what Kubernetes has against the job that the server has accepted, or ""."""
    gang = (data.get("extras") or {}).get("gangAllocation", True)
    for index, (name, role) in enumerate(data["taskRoles"].items()):
        shown = re.sub(r"[^A-Za-z0-9]", "", name).lower()
        if not 1 <= len(shown) <= 63:
            place = f"spec.taskRoles[{index}].name"
            return f"{place}: Invalid value: \"{shown}\": {place} in body should match '^[a-z0-9]{{1,63}}$'"
        if ((role.get("completion") or {}).get("minFailedInstances") or 0) < -1:
            return (
                f"spec.taskRoles[{index}].frameworkAttemptCompletionPolicy.minFailedTaskCount: Invalid value"
            )
        if gang is False and role.get("taskRetryCount", 0) < -2:
            return f"spec.taskRoles[{index}].task.retryPolicy.maxRetryCount: Invalid value"
    return ""


def fails_at_start(stored: Json) -> str:
    """Return why every task of the job would fail in its init container, or ""."""
    if "taskRoles" not in stored:
        return "KeyError: 'taskRoles'"  # swallowed by the mask
    names = list(stored["taskRoles"])
    if any(re.sub(r"[^A-Za-z0-9]", "", name).lower() != name for name in names):
        return "KeyError: the role is not known by its converted name"
    return ""


def _entries(error: ValidationError) -> Iterator[Json]:
    if error.validator == "oneOf":
        path = _path(error)
        for _, alternative in groupby(error.context or (), key=lambda each: each.schema_path[0]):
            for each in alternative:
                yield from _entries(each)
            yield {
                "keyword": "$merge",
                "dataPath": path,
                "message": 'should pass "$merge" keyword validation',
            }
        yield {"keyword": "oneOf", "dataPath": path, "message": "should match exactly one schema in oneOf"}
    elif error.validator == "required":
        for name in _missing(error):
            message = f"should have required property '{name}'"
            yield {"keyword": "required", "dataPath": _path(error), "message": message}
    elif error.validator == "additionalProperties":
        for name in _unknown(error):
            yield {
                "keyword": "additionalProperties",
                "dataPath": _path(error),
                "params": {"additionalProperty": name},
                "message": _MESSAGES["additionalProperties"],
            }
    else:
        limit: Any = error.validator_value
        if error.validator == "type":
            message = "should be " + (",".join(limit) if isinstance(limit, list) else limit)
        else:
            message = _MESSAGES[str(error.validator)].format(limit)
        yield {"keyword": error.validator, "dataPath": _path(error), "message": message}


def _missing(error: ValidationError) -> Iterator[str]:
    """Yield the property that this error is about: the library gives one error for each."""
    yield str(error.message).split("'")[1]


def _unknown(error: ValidationError) -> Iterator[str]:
    schema: Mapping[str, Any] = error.schema  # type: ignore[assignment]
    patterns = schema.get("patternProperties") or {}
    for name in error.instance:
        if name not in (schema.get("properties") or {}) and not any(
            re.search(p, str(name)) for p in patterns
        ):
            yield str(name)


def _path(error: ValidationError) -> str:
    """Return the place as the original names it: `.taskRoles['worker'].commands[0]`."""
    shown, bracket = "", False
    for step in error.absolute_path:
        if isinstance(step, int):
            shown += f"[{step}]"
        else:
            shown += f"['{step}']" if bracket else f".{step}"
        bracket = step in ("taskRoles", "ports")
    return shown


def _sentence(message: str) -> Refused:
    return Refused(400, "InvalidProtocolError", message)


def _invalid(entries: list[Json]) -> Refused:
    return Refused(400, "InvalidProtocolError", json.dumps(entries, separators=(",", ":")))
