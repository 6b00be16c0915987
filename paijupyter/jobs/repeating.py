"""A job once more: the request that made it, with changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs.record import Record
from paijupyter.jobs.request import Context, Request
from paijupyter.jobs.secrets import secrets_needed

_CHANGEABLE = ("document", "secrets", "profile", "package", "data", "resumeFrom")


def request_again(record: Record, changes: Mapping[str, Any], request_id: str | None) -> Request:
    """Return the request of a job, changed; secrets are resolved anew.

    Raises:
        UsageProblem: if something is changed that cannot be.
        Conflict: ``secrets-needed`` naming those that the keyring does not have and the changes do not bring.
    """
    unknown = [name for name in changes if name not in _CHANGEABLE]
    if unknown:
        raise UsageProblem(f"Change of `{unknown[0]}` is not possible.", f"Change: {', '.join(_CHANGEABLE)}.")
    facts = record.facts
    given = changes.get("secrets") or {}
    if not isinstance(given, Mapping):
        raise UsageProblem("Request's `secrets` must be an object.")
    references = {name: {"reference": ref} for name, ref in (facts.get("secretRefs") or {}).items()}
    request = Request.of(
        {
            "document": changes.get("document", record.source),
            "profile": changes.get("profile") or record.profile,
            "package": changes.get("package") or facts.get("packageSha256"),
            "data": {**(facts.get("dataPackages") or {}), **(changes.get("data") or {})},
            "secrets": {**references, **given},
            "context": Context.of(facts).to_json(),
            "requestId": request_id,
            "mode": "again",
            "resumeFrom": changes.get("resumeFrom"),
        },
        cloned_from=record.id,
    )
    needed = request.secrets.unresolvable
    if needed and "document" not in changes:
        raise secrets_needed(needed)
    return request
