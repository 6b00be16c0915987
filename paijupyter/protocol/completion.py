"""When a job has ended, and how: the completion policy of every role, and one pure decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paijupyter.protocol.roles import SERVICE_ROLE


@dataclass(frozen=True, slots=True)
class Policy:
    """Effective completion policy of a role; a number below 1 never decides anything.

    Attributes:
        instances: number of tasks of the role.
        min_failed: this many failed tasks end the job as failed.
        min_succeeded: this many succeeded tasks end the job as succeeded.
    """

    instances: int
    min_failed: int = 1
    min_succeeded: int = -1


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks of a role have ended, each way."""

    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a job ended.

    Attributes:
        role: the role whose policy decided; "" when all tasks had ended and no policy ever did.
        message: one sentence for people.
    """

    state: Literal["succeeded", "failed"]
    role: str
    message: str


def policies(document: Mapping[str, Any]) -> dict[str, Policy]:
    """Return the effective policy of every role of a job document, in document order.

    An absent, null or 0 count means 1 for failed and all instances for succeeded. A role named ``ps``,
    or marked as a service, does not decide success unless its own count says so (P36).
    """
    extras = ((document.get("extras") or {}).get("paijupyter") or {}).get("roles") or {}
    found = {}
    for name, role in document["taskRoles"].items():
        instances = role.get("instances", 1)
        completion = role.get("completion") or {}
        service = (extras.get(name) or {}).get("service")
        is_service = name == SERVICE_ROLE if service is None else bool(service)
        all_of_them = -1 if is_service else instances
        found[name] = Policy(
            instances,
            completion.get("minFailedInstances") or 1,
            completion.get("minSucceededInstances") or all_of_them,
        )
    return found


def decide(policy: Mapping[str, Policy], counts: Mapping[str, Counts]) -> Verdict | None:
    """Say whether the attempt has ended, from the policy of every role and its ended tasks.

    A failure wins over a success that happens at the same moment. Without any policy reached, the attempt
    ends as succeeded when all tasks have ended, also when some failed (``minFailedInstances: -1``).

    Args:
        policy: role → its effective policy (:func:`policies`).
        counts: role → how many of its tasks have ended each way; a role may be absent.

    Returns:
        The verdict, or None while the attempt goes on.
    """
    ended = [(name, role, counts.get(name, Counts())) for name, role in policy.items()]
    for name, role, count in ended:
        if 1 <= role.min_failed <= count.failed:
            return Verdict("failed", name, _sentence(count.failed, role.instances, name, "failed"))
    for name, role, count in ended:
        if 1 <= role.min_succeeded <= count.succeeded:
            return Verdict("succeeded", name, _sentence(count.succeeded, role.instances, name, "succeeded"))
    if all(count.failed + count.succeeded >= role.instances for _, role, count in ended):
        return Verdict("succeeded", "", "All tasks have ended.")
    return None


def _sentence(count: int, instances: int, role: str, word: str) -> str:
    return f"{count} of {instances} {'task' if instances == 1 else 'tasks'} of `{role}` {word}."
