"""A request to run experiments, its shape checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.errors import InvalidDocument, UsageProblem
from paijupyter.experiments.listing import LIMIT, Listing, read_listing
from paijupyter.jobs.request import Context, Request
from paijupyter.jobs.secrets import Given


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """One round of experiments, or the question what it would do.

    Attributes:
        template: a job document or a ``batch/v1`` Job manifest.
        listing: its experiments.
        base: what every job of it is asked for with: profile, package, data, secrets, context.
        has_placeholders: whether braces of the template may be placeholders.
        name: name of the group, or "".
        only: which experiments, or "".
        failed: only those whose last job failed.
        replace: stop and delete the former jobs of the chosen experiments first (T5).
        again: also those that were not changed since they succeeded.
        resume: begin with the checkpoints that the former job left.
        request_id: repeated by whoever did not get the answer.
    """

    template: str
    listing: Listing
    base: Request = field(default_factory=lambda: Request(""))
    has_placeholders: bool = True
    name: str = ""
    only: str = ""
    failed: bool = False
    replace: bool = False
    again: bool = False
    resume: bool = False
    request_id: str | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> GroupRequest:
        """Check a request object; the route has checked the types of its members.

        Raises:
            UsageProblem: if it is none.
            InvalidDocument: the list of experiments cannot be used; with all its problems.
        """
        template, experiments = data.get("template"), data.get("experiments")
        if not isinstance(template, str) or not isinstance(experiments, str):
            raise UsageProblem("Request needs `template` and `experiments`, both as texts.")
        try:
            listing = read_listing(experiments, data.get("set") or {}, int(data.get("limit") or LIMIT))
        except InvalidDocument as error:
            of_file = [replace(each, file="experiments") for each in error.problems]
            raise InvalidDocument(of_file) from None
        for wire, member in (("atOnce", "at_once"), ("stopAfter", "stop_after"), ("names", "names")):
            if data.get(wire):
                listing = replace(listing, **{member: data[wire]})
        return cls(
            template=template,
            listing=listing,
            base=Request.of({**data, "document": "", "mode": "again", "resumeFrom": None}),
            has_placeholders=data.get("placeholders") is not False,
            name=str(data.get("name") or ""),
            only=str(data.get("only") or ""),
            request_id=data.get("requestId") or None,
            **{flag: bool(data.get(flag)) for flag in ("failed", "replace", "again", "resume")},
        )

    def to_settings(self, profile: str) -> dict[str, Any]:
        """Return what a round keeps of it."""
        return {
            "profile": profile,
            "package": self.base.package,
            "data": dict(self.base.data),
            "context": self.base.context.to_json(),
            "secretRefs": dict(self.base.secrets.references),
            "atOnce": self.listing.at_once,
            "stopAfter": self.listing.stop_after,
            "replace": self.replace,
        }


def request_from(settings: Mapping[str, Any], values: Mapping[str, str]) -> Request:
    """Return what every job of a round is asked for with.

    Args:
        settings: what the round keeps.
        values: the values of its secrets, as far as they are still there.
    """
    references = settings.get("secretRefs") or {}
    secrets = {
        name: {"reference": reference, **({"value": values[name]} if name in values else {})}
        for name, reference in references.items()
    }
    return Request(
        "",
        profile=settings.get("profile"),
        package=settings.get("package"),
        secrets=Given(secrets),
        context=Context.of(settings.get("context") or {}),
        mode="again",
        data=settings.get("data") or {},
    )
