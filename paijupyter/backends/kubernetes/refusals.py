"""Why a Job has no pod: what the cluster refused, in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paijupyter.backends.kubernetes.errors import POD_SECURITY
from paijupyter.backends.kubernetes.facts import KubeJob
from paijupyter.backends.kubernetes.findings import Event, Finding, newest, short


def of_job(job: KubeJob, events: Sequence[Event], queue: str = "") -> Finding:
    """Say why a Job has no pod yet.

    Args:
        job: the Job.
        events: of it.
        queue: why its queue does not admit it, "" if that is not known.
    """
    if job.suspended:
        return Finding("queued", short(queue) or "it is suspended until a queue admits it")
    refused = newest(events, "FailedCreate")
    if refused is None:
        return Finding("starting")
    for pattern, reason, words, advice in _REFUSALS:
        found = re.search(pattern, refused.message)
        if found:
            said = words.format(said=_refusal(refused.message), **found.groupdict())
            return Finding(reason, short(said), advice, for_ever=reason != "queued")
    said = f"the cluster refuses its pods: {_refusal(refused.message)}"
    return Finding("refused", short(said), "Change what it names, then submit again.", for_ever=True)


_LIMITS = "Give the task the resources that the namespace asks for."
_REFUSALS: tuple[tuple[str, str, str, str], ...] = (
    (
        r"exceeded quota: (?P<quota>[^,]+)",
        "queued",
        "the namespace's quota `{quota}` has no room: {said}",
        "It starts once others have ended; or ask for less, or have the quota raised.",
    ),
    (
        r"failed quota: ",
        "refused",
        "the namespace's quota wants every task to say its needs: {said}",
        _LIMITS,
    ),
    *(
        (pattern, "refused", "the namespace's pod security refuses it: {said}", advice)
        for pattern, advice in POD_SECURITY
    ),
    (
        r"violates PodSecurity",
        "refused",
        "the namespace's pod security refuses it: {said}",
        "Set what it names in the profile's `podTemplate`, or use another namespace.",
    ),
    (
        r"(?:maximum|minimum) \S+ usage per|max limit to request ratio",
        "refused",
        "the namespace's LimitRange refuses it: {said}",
        "Ask for less or more, within what it names.",
    ),
    (
        r"serviceaccount \"?(?P<name>[^\" ]+)\"? not found",
        "refused",
        "its service account `{name}` does not exist",
        "Create it, or correct `serviceAccount` in the profile.",
    ),
    (
        r"failed calling webhook \"(?P<hook>[^\"]+)\"",
        "refused",
        "the webhook `{hook}` does not answer: {said}",
        "Its controller must be started again; whoever runs the cluster can do that.",
    ),
    (
        r"admission webhook \"(?P<hook>[^\"]+)\" denied the request",
        "refused",
        "the webhook `{hook}` refuses it: {said}",
        "Change what it names, then submit again.",
    ),
    (
        r"no PriorityClass with name (?P<name>\S+)",
        "refused",
        "there is no priority class `{name}`",
        "Correct `priorityClass`.",
    ),
)


def _refusal(said: str) -> str:
    """Leave out the pod's name and the words around what was refused."""
    text = re.sub(
        r'^Error creating: (?:pods? "[^"]*" is forbidden: )?(?:Internal error occurred: )?', "", said
    )
    return text.strip().rstrip(".")
