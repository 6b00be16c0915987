"""What the original server (1.8) takes for a job document, as a JSON schema of our own words."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
_NAME: Schema = {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$", "maxLength": 255}
_BASE: Schema = {
    "protocolVersion": {"enum": ["2", 2]},
    "name": _NAME,
    "version": {"type": ["string", "number"]},
    "contributor": {"type": "string"},
    "description": {"type": "string"},
}
_IDENTIFIER = "^[a-zA-Z_][a-zA-Z0-9_]*$"
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_FILLED: Schema = {**_TEXTS, "minItems": 1}
_COUNT: Schema = {"type": "integer"}


def _strict(required: list[str], **fields: Any) -> Schema:
    found: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**found, "required": required} if required else found


def _prerequisite(kinds: list[str], uri: Schema, required: list[str], **more: Any) -> Schema:
    fields = {**_BASE, "type": {"type": "string", "enum": kinds}, "uri": uri, **more}
    return {"required": required, "type": "object", "properties": fields}


_LINKED = {"plugin": {"type": "string"}, "require": _TEXTS}
_AUTH = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("username", "password", "registryuri")},
}
PREREQUISITES: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "oneOf": [
            _prerequisite(["script", "output"], {"type": "string"}, ["name", "type"], **_LINKED),
            _prerequisite(["data"], _TEXTS, ["name", "type"], **_LINKED),
            {
                **_prerequisite(["dockerimage"], {"type": "string"}, ["name", "type", "uri"], auth=_AUTH),
                "additionalProperties": False,
            },
        ],
    },
}
_PORTS: Schema = {
    "type": ["object", "null"],
    "patternProperties": {_IDENTIFIER: _COUNT},
    "additionalProperties": False,
    "minProperties": 1,
}
_ROLE = _strict(
    ["dockerImage", "resourcePerInstance", "commands"],
    protocolVersion=_BASE["protocolVersion"],
    instances={"type": "integer", "minimum": 1},
    completion=_strict(
        [],
        minFailedInstances={"type": ["integer", "null"]},
        minSucceededInstances={"type": ["integer", "null"]},
    ),
    taskRetryCount=_COUNT,
    prerequisites=_TEXTS,
    dockerImage={"type": "string"},
    data={"type": "string"},
    output={"type": "string"},
    script={"type": "string"},
    extraContainerOptions={"type": "object", "properties": {"shmMB": _COUNT}},
    resourcePerInstance=_strict(
        ["cpu", "memoryMB", "gpu"], cpu=_COUNT, memoryMB=_COUNT, gpu=_COUNT, ports=_PORTS
    ),
    commands=_FILLED,
)
_DEPLOYMENT: Schema = {
    "type": "object",
    "required": ["name", "taskRoles"],
    "properties": {
        "protocolVersion": _BASE["protocolVersion"],
        "name": _NAME,
        "taskRoles": {
            "minProperties": 1,
            "patternProperties": {_IDENTIFIER: _strict([], preCommands=_FILLED, postCommands=_FILLED)},
            "additionalProperties": False,
        },
    },
}
PROTOCOL: Schema = _strict(
    ["protocolVersion", "name", "type", "taskRoles"],
    **_BASE,
    type={"type": "string", "enum": ["job"]},
    prerequisites=PREREQUISITES,
    parameters={"type": "object"},
    secrets={"type": "object"},
    jobRetryCount={"type": "integer", "minimum": 0},
    taskRoles={
        "patternProperties": {_IDENTIFIER: _ROLE},
        "additionalProperties": False,
        "minProperties": 1,
    },
    deployments={"type": "array", "items": _DEPLOYMENT, "minItems": 1},
    defaults={"type": "object", "properties": {"deployment": {"type": "string"}}},
    extras={"type": "object"},
)
