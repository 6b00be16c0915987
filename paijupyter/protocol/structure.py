"""The schema that the original server enforces, with messages of ours."""

from __future__ import annotations

from typing import Any

from paijupyter.protocol.findings import Findings, dotted
from paijupyter.protocol.shapes import (
    any_mapping,
    anything,
    is_text,
    many,
    mapping,
    name,
    one_of,
    record,
    table,
    text,
    text_or_number,
    true_or_false,
    whole,
)
from paijupyter.protocol.values import pointer

MASKED = "******"
_KEY = "[a-zA-Z_][a-zA-Z0-9_]*"
_KEY_WORDS = "letters, digits and `_`, no digit first"
_PREREQUISITE_TYPES = ("dockerimage", "script", "output", "data")


def check_structure(found: Findings) -> None:
    """Check types, required and unknown keys, patterns and bounds of the whole document."""
    data = found.document.data
    if "jobName" in data and "protocolVersion" not in data:
        message = "Job document is in the JSON format of OpenPAI 0.13 and before, which is no job protocol."
        hint = "Submit the file with -f or open it in the form: both convert it and say what changed."
        found.error("old-protocol", "/jobName", message, hint)
        return
    _PROTOCOL(found, "", found.document.data)


def _secrets(found: Findings, path: str, value: Any) -> None:
    if value == MASKED:
        message = "`secrets` is the server's mask, not the secrets of the job."
        found.error("masked-secrets", path, message, "Give each secret its reference again.")
        return
    mapping(found, path, value)


def _count(found: Findings, path: str, value: Any) -> None:
    if value is not None:
        whole()(found, path, value)


def _prerequisite(found: Findings, path: str, value: Any) -> None:
    if not mapping(found, path, value):
        return
    kind = value.get("type")
    if not is_text(kind) or kind not in _PREREQUISITES:
        if "type" not in value:
            found.error("missing", pointer(path, "type"), f"`{dotted(path)}.type` is missing.")
        else:
            one_of(*_PREREQUISITE_TYPES)(found, pointer(path, "type"), kind)
        kind = "script"
        value = {key: item for key, item in value.items() if key in ("name", "version")} | {"type": kind}
    _PREREQUISITES[kind](found, path, value)


def _command(found: Findings, path: str, value: Any) -> None:
    if not is_text(value):
        message = f"`{dotted(path)}` must be a text; every command is one."
        found.error("type", path, message, "Put quotes around it.")


_COMMANDS = many(_command, filled=True)
_VERSION = one_of(2, "2")
_NAME = name("[a-zA-Z0-9_-]+", 255, "letters, digits, `_` and `-`")
_BASE = {
    "protocolVersion": _VERSION,
    "name": _NAME,
    "type": anything,
    "version": text_or_number,
    "contributor": text,
    "description": text,
}
_BAG = {**_BASE, "plugin": text, "require": many(text)}
_AUTH = record({"username": text, "password": text, "registryuri": text}, others=True)
_PREREQUISITES = {
    "dockerimage": record({**_BASE, "auth": _AUTH, "uri": text}, ("name", "type", "uri")),
    "script": record({**_BAG, "uri": text}, ("name", "type"), others=True),
    "output": record({**_BAG, "uri": text}, ("name", "type"), others=True),
    "data": record({**_BAG, "uri": many(text)}, ("name", "type"), others=True),
}
_RESOURCES = record(
    {
        "cpu": whole(),
        "memoryMB": whole(),
        "gpu": whole(),
        "ports": table(_KEY, _KEY_WORDS, whole(), filled=True),
    },
    ("cpu", "memoryMB", "gpu"),
)
_TASK_ROLE = record(
    {
        "protocolVersion": _VERSION,
        "instances": whole(1),
        "completion": record({"minFailedInstances": _count, "minSucceededInstances": _count}),
        "taskRetryCount": whole(),
        "prerequisites": many(text),
        "dockerImage": text,
        "data": text,
        "output": text,
        "script": text,
        "extraContainerOptions": record({"shmMB": whole(), "infiniband": true_or_false}, others=True),
        "resourcePerInstance": _RESOURCES,
        "commands": _COMMANDS,
    },
    ("dockerImage", "resourcePerInstance", "commands"),
)
_DEPLOYED_ROLE = record({"preCommands": _COMMANDS, "postCommands": _COMMANDS})
_DEPLOYMENT = record(
    {
        "protocolVersion": _VERSION,
        "name": _NAME,
        "taskRoles": table(_KEY, _KEY_WORDS, _DEPLOYED_ROLE, filled=True),
    },
    ("name", "taskRoles"),
    others=True,
)
_PROTOCOL = record(
    {
        "protocolVersion": _VERSION,
        "name": _NAME,
        "type": one_of("job"),
        "version": text_or_number,
        "contributor": text,
        "description": text,
        "prerequisites": many(_prerequisite, filled=True),
        "parameters": any_mapping,
        "secrets": _secrets,
        "jobRetryCount": whole(0),
        "taskRoles": table(_KEY, _KEY_WORDS, _TASK_ROLE, filled=True),
        "deployments": many(_DEPLOYMENT, filled=True),
        "defaults": record({"deployment": text}, others=True),
        "extras": any_mapping,
    },
    ("protocolVersion", "name", "type", "taskRoles"),
)
