"""Task roles as one option has them: ``worker:4,gpu=1,cpu=2,mem=8Gi,port=tb:1``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.protocol.parameters import check_env_name
from paijupyter.protocol.quantities import parse_memory

LAUNCHERS = ("plain", "torchrun", "tensorflow", "paddle", "jax", "mpi")
DEFAULT_CPU = 1
DEFAULT_MEMORY_MB = 1024
SERVICE_ROLE = "ps"
_ROLE_NAME = re.compile(r"[a-z][a-z0-9]{0,62}")
_PORT_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE = "Write it like worker:4,gpu=1,cpu=2,mem=8Gi,port=tb:1."


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """One task role as a surface's option describes it. None means: not said.

    Attributes:
        instances: number of tasks; 0 drops the role from the document.
        memory_mb: memory per instance in MB; where it is not said, one is counted with and none enforced.
        shm_mb: shared memory per instance in MB.
        ports: label → how many ports.
        launcher: rendezvous convention, one of :data:`LAUNCHERS`.
        service: the role never ends by itself and does not decide success; a role ``ps`` is one unless said.
    """

    name: str
    instances: int = 1
    cpu: int | None = None
    gpu: int | None = None
    memory_mb: int | None = None
    shm_mb: int | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    image: str | None = None
    launcher: str | None = None
    service: bool | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    min_failed: int | None = None
    min_succeeded: int | None = None

    @property
    def is_service(self) -> bool:
        """Whether the role is a service: said so, or named ``ps`` (P36)."""
        return self.name == SERVICE_ROLE if self.service is None else self.service


def limits_memory(document: Mapping[str, Any], role: str) -> bool:
    """Say whether a role's ``memoryMB`` is a limit, and not only what the queue counts with."""
    found: Any = document
    for key in ("extras", "paijupyter", "roles", role):
        found = found.get(key) if isinstance(found, Mapping) else None
    return not isinstance(found, Mapping) or found.get("limitMemory") is not False


def parse_role(text: str) -> RoleSpec:
    """Return the role of ``name[:instances][,key=value]…``.

    Keys: ``gpu cpu mem shm port image launcher service min-failed min-succeeded env.NAME``.
    ``port`` (``label`` or ``label:count``) and ``env.NAME`` may come several times.

    Raises:
        UsageProblem: naming the part that is wrong.
    """
    head, *options = (part.strip() for part in text.split(","))
    name, colon, count = (part.strip() for part in head.partition(":"))
    if not _ROLE_NAME.fullmatch(name):
        raise UsageProblem(
            f"Role name `{name[:70]}` must be lower-case letters and digits, a letter first, at most 63.",
            _EXAMPLE,
        )
    instances = _whole(name, "instances", count, least=0) if colon else 1
    role = RoleSpec(name, instances)
    seen: set[str] = set()
    for option in options:
        if not option:
            continue
        key, equals, value = (part.strip() for part in option.partition("="))
        key = _ALIASES.get(key, key)
        if not equals:
            if key != "service":
                raise UsageProblem(f"Role `{name}` has `{key}` without a value.", _EXAMPLE)
            value = "true"
        if key in seen and key != "port":
            raise UsageProblem(f"Role `{name}` has `{key}` twice.")
        seen.add(key)
        role = _with_option(role, key, value)
    return role


def _with_option(role: RoleSpec, key: str, value: str) -> RoleSpec:
    if key.startswith("env."):
        check_env_name(key[4:])
        return replace(role, env={**role.env, key[4:]: value})
    if key == "port":
        label, count = _port(role.name, value)
        return replace(role, ports={**role.ports, label: count})
    if key not in _OPTIONS:
        known = " ".join([*_OPTIONS, "port", "env.NAME"])
        raise UsageProblem(f"Role `{role.name}` has the unknown option `{key[:40]}`.", f"Known: {known}.")
    attribute, parse = _OPTIONS[key]
    changes: dict[str, Any] = {attribute: parse(role.name, key, value)}
    return replace(role, **changes)


def _whole(role: str, key: str, value: str, least: int) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", value, re.ASCII) or int(value) < least:
        raise UsageProblem(
            f"Role `{role}` needs a whole number of at least {least} for `{key}`, not `{value[:40]}`.",
            _EXAMPLE,
        )
    return int(value)


def _at_least(least: int) -> Callable[[str, str, str], int]:
    return lambda role, key, value: _whole(role, key, value, least)


def _memory(role: str, key: str, value: str) -> int:
    try:
        return parse_memory(value)
    except UsageProblem as problem:
        raise UsageProblem(f"Role `{role}`, `{key}`: {problem.message}", problem.hint) from None


def _port(role: str, value: str) -> tuple[str, int]:
    label, colon, count = (part.strip() for part in value.partition(":"))
    if not _PORT_LABEL.fullmatch(label):
        raise UsageProblem(
            f"Role `{role}` has the port label `{label[:40]}`; a label is letters, digits and `_`.",
            "Write it as port=label or port=label:count.",
        )
    return label, _whole(role, f"port {label}", count, least=1) if colon else 1


def _text(role: str, key: str, value: str) -> str:
    if not value:
        raise UsageProblem(f"Role `{role}` has `{key}` without a value.", _EXAMPLE)
    return value


def _launcher(role: str, key: str, value: str) -> str:
    if value not in LAUNCHERS:
        raise UsageProblem(
            f"Role `{role}` has the unknown launcher `{value[:40]}`.", f"Known: {' '.join(LAUNCHERS)}."
        )
    return value


def _yes_or_no(role: str, key: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no"):
        raise UsageProblem(f"Role `{role}` needs true or false for `{key}`, not `{value[:40]}`.")
    return value.lower() in ("true", "yes")


_ALIASES = {"memory": "mem", "memoryMB": "mem", "gpus": "gpu", "cpus": "cpu", "shmMB": "shm", "ports": "port"}
_OPTIONS: dict[str, tuple[str, Callable[[str, str, str], Any]]] = {
    "gpu": ("gpu", _at_least(0)),
    "cpu": ("cpu", _at_least(1)),
    "mem": ("memory_mb", _memory),
    "shm": ("shm_mb", _memory),
    "image": ("image", _text),
    "launcher": ("launcher", _launcher),
    "service": ("service", _yes_or_no),
    "min-failed": ("min_failed", _at_least(-1)),
    "min-succeeded": ("min_succeeded", _at_least(-1)),
}
