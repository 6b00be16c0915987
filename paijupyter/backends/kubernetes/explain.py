"""Why a task does not run, in words: the state of its pod and its Job, and the events of both. Pure.

Each rule gives a reason, one sentence with the evidence, and what to do. What cannot end by itself is marked:
after a time that the user sets it is called stuck.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.backends.kubernetes.amounts import in_words
from paijupyter.backends.kubernetes.facts import Condition, KubeJob, Object, Pod, seconds

_LONGEST = 400  # characters of evidence in a sentence


@dataclass(frozen=True, slots=True)
class Finding:
    """Why something waits.

    Attributes:
        reason: the finer fact of the state ``waiting``.
        message: one sentence with the evidence, without the task's name; ends without a full stop.
        advice: what to do, or "".
        for_ever: whether it does not end by itself.
    """

    reason: str
    message: str = ""
    advice: str = ""
    for_ever: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an object; ``at`` is when it was last seen."""

    reason: str
    message: str
    at: float
    is_warning: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task asks for, as far as it explains why it has no place.

    Attributes:
        amounts: of each resource, in the API's base units (cores, bytes).
        largest: the most that one node of the cluster has of it; empty where nodes may not be read.
        image: of the task.
        service_account: whose admission it is.
    """

    amounts: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    image: str = ""


def event_of(data: Object) -> Event:
    """Read an event of either API group."""
    series = data.get("series") or {}
    times = (series.get("lastObservedTime"), data.get("lastTimestamp"), data.get("eventTime"))
    at = next((found for found in map(seconds, times) if found is not None), 0.0)
    message = str(data.get("message") or data.get("note") or "")
    return Event(str(data.get("reason") or ""), message, at, data.get("type") != "Normal")


def of_pod(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding:
    """Say why a pod does not run yet."""
    for rule in _POD_RULES:
        found = rule(pod, events, asked)
        if found is not None:
            return replace(found, message=_short(found.message))
    return Finding("starting")


def of_job(job: KubeJob, events: Sequence[Event]) -> Finding:
    """Say why a Job has no pod yet."""
    if job.suspended:
        return Finding("queued", "it is suspended until a queue admits it")
    refused = _newest(events, "FailedCreate")
    if refused is None:
        return Finding("starting")
    for pattern, reason, words, advice in _REFUSALS:
        found = re.search(pattern, refused.message)
        if found:
            said = words.format(said=_refusal(refused.message), **found.groupdict())
            return Finding(reason, _short(said), advice, for_ever=reason != "queued")
    said = f"the cluster refuses its pods: {_refusal(refused.message)}"
    return Finding("refused", _short(said), "Change what it names, then submit again.", for_ever=True)


def partial_gang(placed: int, total: int, gpus: int, waiting: str, finding: Finding) -> Finding:
    """Say that some tasks hold their place while others have none."""
    hold = f", holding {gpus} GPUs" if gpus else ""
    why = f": {finding.message}" if finding.message else ""
    message = f"{placed} of {total} tasks have their place{hold}, while {waiting} has none{why}"
    advice = finding.advice or "Ask for less, or use a queue that starts all tasks together."
    return Finding("partial-gang", _short(message), advice, finding.for_ever)


def stuck_deletion(pod: Pod) -> Finding:
    """Say that a pod does not go away."""
    where = f" on node {pod.node}" if pod.node else ""
    message = f"pod `{pod.name}`{where} was told to end long ago and is still there"
    advice = (
        "Most often its node does not answer. Once it is sure that it runs no more: "
        f"kubectl delete pod {pod.name} --force --grace-period=0"
    )
    return Finding("stopping", message, advice, for_ever=True)


# Rules on a pod, in the order in which a pod goes through them

_Rule = Callable[[Pod, Sequence[Event], Asked], "Finding | None"]


def _gated(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    condition = _unscheduled(pod)
    if condition is None or condition.reason != "SchedulingGated":
        return None
    return Finding("queued", "it waits for its admission by a queue (scheduling gate)")


def _unschedulable(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding | None:
    condition = _unscheduled(pod)
    if condition is None or condition.reason not in ("Unschedulable", "SchedulerError"):
        return None
    scaling = _newest(events, "TriggeredScaleUp")
    if scaling is not None:
        return Finding("unschedulable", f"the cluster is adding a node for it: {scaling.message}")
    return unschedulable(condition.message, asked)


def _image(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding | None:
    waiting = pod.container.waiting
    if waiting not in _IMAGE_REASONS and "ImageVolumeMountFailed" not in pod.container.message:
        return None
    image = pod.container.image or asked.image
    said = _pull_error(pod.container.message, events)
    if _newest(events, "FailedToRetrieveImagePullSecret") is not None and _DENIED.search(said):
        secret = _newest(events, "FailedToRetrieveImagePullSecret")
        named = re.search(r"\(([^)]+)\)", secret.message if secret else "")
        which = f" `{named[1]}`" if named else ""
        return _image_finding(
            f"image `{image}` cannot be pulled, and the pull secret{which} is not in the namespace: {said}",
            "Create that Secret (kubectl create secret docker-registry), or correct `imagePullSecrets`.",
        )
    for pattern, words, advice in _PULL_ERRORS:
        if re.search(pattern, f"{waiting} {said}", re.I):
            return _image_finding(f"image `{image}` {words}: {said}", advice)
    return _image_finding(f"image `{image}` cannot be pulled: {said}", "Check its name and its registry.")


def _config(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    waiting, said = pod.container.waiting, pod.container.message
    if waiting not in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        return None
    if "runAsNonRoot" in said or "non-numeric user" in said:
        return Finding(
            "config",
            f"its image runs as root, which its security settings refuse: {said}",
            "Set `runAsUser` in the profile (any number above 0), or use another image.",
            for_ever=True,
        )
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', said)
    if missing:
        message = f"the {missing[1]} `{missing[2]}` that it needs does not exist"
        return Finding("config", message, "Create it, or remove it from the profile.", for_ever=True)
    return Finding("config", f"its container cannot be made: {said}", "Correct the profile.", for_ever=True)


def _crash_loop(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    if pod.container.waiting != "CrashLoopBackOff":
        return None
    before = pod.container.ended_before
    how = f", last with exit code {before.code}" if before else ""
    said = f": {before.message.strip().splitlines()[-1]}" if before and before.message.strip() else ""
    message = f"its container ends again and again ({pod.container.restarts} times{how}){said}"
    return Finding("crash-loop", message, "Read the end of its log.", for_ever=True)


def _volume(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    failed = _newest(events, "FailedMount", "FailedAttachVolume", "FailedMapVolume")
    if failed is None or not _is_being_made(pod):
        return None
    if "Multi-Attach" in failed.message:
        return Finding(
            "volume",
            f"its volume is in use on another node (ReadWriteOnce): {failed.message}",
            "Use a volume that several nodes may mount, or one task.",
            for_ever=True,
        )
    missing = re.search(r'(secret|configmap|persistentvolumeclaim) "([^"]+)" not found', failed.message)
    if missing:
        message = f"the {missing[1]} `{missing[2]}` that it mounts does not exist"
        return Finding("volume", message, "Create it, or remove it from the profile.", for_ever=True)
    if "no volume plugin matched" in failed.message:
        return Finding(
            "volume",
            f"its node cannot mount one of its volumes: {failed.message}",
            "Image volumes need Kubernetes 1.36 or the feature gate ImageVolume on every node.",
            for_ever=True,
        )
    message = f"a volume cannot be mounted: {failed.message}"
    return Finding("volume", message, "Check the volume and its server.", for_ever=True)


def _sandbox(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    failed = _newest(events, "FailedCreatePodSandBox")
    if failed is None or not _is_being_made(pod):
        return None
    return Finding(
        "starting", f"its node cannot set the pod up: {failed.message}", "The node needs a look.", True
    )


def _pulling(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    if not _is_being_made(pod):
        return None
    pulling, pulled = _newest(events, "Pulling"), _newest(events, "Pulled")
    if pulling is None or (pulled is not None and pulled.at >= pulling.at):
        return None
    named = re.search(r'image "([^"]+)"', pulling.message)
    return Finding("image", f"its node pulls image `{named[1]}`" if named else "its node pulls its image")


def _assigned(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    return Finding("starting", f"node {pod.node} makes its container") if _is_being_made(pod) else None


_POD_RULES: tuple[_Rule, ...] = (
    _gated,
    _unschedulable,
    _image,
    _config,
    _crash_loop,
    _volume,
    _sandbox,
    _pulling,
    _assigned,
)


# Images

_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_DENIED = re.compile(r"no basic auth credentials|401|403|denied|unauthorized|authorization", re.I)
_LOGIN = (
    "Give the registry's user and password (auth of the dockerimage prerequisite), or `imagePullSecrets`."
)
_PULL_ERRORS: tuple[tuple[str, str, str], ...] = (
    (r"InvalidImageName", "has a name that cannot be read", "Correct its name."),
    (
        r"ErrImageNeverPull",
        "is not on the node and may not be pulled there",
        "Set `imagePullPolicy` to IfNotPresent.",
    ),
    (r"ImageVolumeMountFailed", "cannot be mounted", "Check its path in the image."),
    (r"no basic auth credentials", "needs a login that the job does not have", _LOGIN),
    (r"401 Unauthorized|403 Forbidden|incorrect username", "is refused to this login", _LOGIN),
    (r"denied|unauthorized", "does not exist, or needs a login", _LOGIN),
    (r"not found|manifest unknown", "does not exist in its registry", "Correct its name or tag."),
    (
        r"connection refused|no such host|i/o timeout|timed? ?out|TLS",
        "is in a registry that cannot be reached",
        "Check the registry's address, and that the nodes can reach it.",
    ),
    (r"no space left", "does not fit on the node's disk", "The node needs room; or use a smaller image."),
    (
        r"toomanyrequests|rate limit",
        "is held back by its registry's rate limit",
        "Log in to it, or use a mirror.",
    ),
    (
        r"no match for platform|exec format",
        "is not made for the nodes' kind of processor",
        "Use another image.",
    ),
)


def _image_finding(message: str, advice: str) -> Finding:
    return Finding("image", message, advice, for_ever=True)


def _pull_error(said: str, events: Sequence[Event]) -> str:
    """Return the innermost words on why a pull failed."""
    if "ErrImagePull: " in said:
        said = said.partition("ErrImagePull: ")[2]
    elif said.startswith("Back-off") or not said:
        failed = [each for each in events if each.reason == "Failed" and "pull" in each.message.lower()]
        said = max(failed, key=lambda each: each.at).message if failed else said
    found = re.search(r"failed to resolve (?:image|reference[^:]*): (.*)", said, re.S)
    return (found[1] if found else said).strip().rstrip(".") or "the node does not say why"


# Places


def unschedulable(said: str, asked: Asked) -> Finding:
    """Say why no node has a place, from the scheduler's words (``0/3 nodes are available: …``)."""
    claim = re.search(r'persistentvolumeclaim "([^"]+)" (not found|is being deleted)', said)
    if claim:
        how = "does not exist" if claim[2] == "not found" else "is being deleted"
        return Finding("unschedulable", f"its volume claim `{claim[1]}` {how}", _CLAIM, for_ever=True)
    head = said.partition(" preemption:")[0]
    found = re.search(r"(\d+)/(\d+) nodes are available: (.*)", head, re.S)
    if not found:
        return Finding("unschedulable", f"no node has a place for it: {said.rstrip('.')}")
    causes = [_cause(int(count), what, asked) for count, what in _COUNTED.findall(found[3].rstrip(". "))]
    if not causes:
        return Finding("unschedulable", f"no node has a place for it: {found[3].rstrip('. ')}")
    words = "; ".join(words for words, _, _ in causes)
    advice = next((advice for _, advice, _ in causes if advice), "")
    return Finding(
        "unschedulable",
        f"none of {found[2]} nodes has a place for it: {words}",
        advice,
        for_ever=all(for_ever for _, _, for_ever in causes),
    )


_CLAIM = "Create the claim, or correct its name in the profile's `storages`."
# "1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {a: b, c}, …"
_COUNTED = re.compile(r"(\d+) ((?:Insufficient|Too many|node\(s\)|Preemption)[^,{]*(?:\{[^}]*\})?[^,{]*)")


def _cause(count: int, what: str, asked: Asked) -> tuple[str, str, bool]:
    """Return words, advice, and whether it does not end by itself."""
    nodes = "1 node" if count == 1 else f"{count} nodes"
    short = re.match(r"Insufficient (\S+)", what)
    if short:
        return _shortage(nodes, short[1], asked)
    taint = re.search(r"taint(?:\(s\))? ?\{([^}]*)\}", what)
    if taint:
        key, _, value = taint[1].partition(":")
        label = f"{key.strip()}={value.strip()}" if value.strip() else key.strip()
        if key.startswith("node.kubernetes.io/"):
            return f"{nodes} cannot take pods now ({key.strip()})", "", False
        advice = f"Use other nodes, or tolerate it: `tolerations` with key {key.strip()}."
        return f"{nodes} kept for others (taint {label})", advice, True
    for pattern, words, advice, for_ever in _PLACES:
        if re.search(pattern, what):
            return words.format(nodes=nodes), advice, for_ever
    return f"{nodes}: {what.strip()}", "", False


def _shortage(nodes: str, resource: str, asked: Asked) -> tuple[str, str, bool]:
    words = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk"}.get(resource, resource)
    wanted, most = asked.amounts.get(resource), asked.largest.get(resource)
    if resource not in asked.largest and asked.largest and "/" in resource:
        most = 0.0  # nodes were read, and none has any of it
    if wanted is not None and most is not None and wanted > most:
        has = f"the largest node has {in_words(resource, most)}" if most else "no node has any"
        advice = (
            f"Ask for at most {in_words(resource, most)}."
            if most
            else "Ask for none, or use another cluster."
        )
        return f"it asks {in_words(resource, wanted)} {words} for a task, {has}", advice, True
    asks = f" (it asks {in_words(resource, wanted)})" if wanted is not None else ""
    return (
        f"{nodes} with too little {words} free{asks}",
        "It starts once others have ended; or ask for less.",
        False,
    )


_SELECTOR = "Correct `nodeSelector` or `affinity`."
_PLACES: tuple[tuple[str, str, str, bool], ...] = (
    (r"node affinity/selector|node selector", "{nodes} without the labels it asks for", _SELECTOR, True),
    (r"pod anti-affinity|pod affinity", "{nodes} against its pod affinity", "Correct `affinity`.", False),
    (r"volume node affinity conflict", "{nodes} where its volume cannot be", "Use another volume.", True),
    (r"unbound immediate PersistentVolumeClaims", "its volume claim has no volume yet", _CLAIM, True),
    (r"were unschedulable", "{nodes} closed for new pods", "", False),
    (r"free ports", "{nodes} with its port taken", "", False),
    (r"Too many pods", "{nodes} full of pods", "", False),
)


# Refused pods

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


# Small things


def _unscheduled(pod: Pod) -> Condition | None:
    condition = pod.conditions.get("PodScheduled")
    return condition if condition is not None and condition.status == "False" else None


def _is_being_made(pod: Pod) -> bool:
    return bool(pod.node) and pod.container.waiting in ("", "ContainerCreating", "PodInitializing")


def _newest(events: Sequence[Event], *reasons: str) -> Event | None:
    found = [each for each in events if each.reason in reasons]
    return max(found, key=lambda each: each.at, default=None)


def _short(text: Any) -> str:
    flat = re.sub(r"\s+", " ", str(text)).strip()
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"
