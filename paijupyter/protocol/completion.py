"""The completion policy of every role of a job document; the decision itself: :mod:`.deciding`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.protocol.deciding import Policy
from paijupyter.protocol.roles import SERVICE_ROLE


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
