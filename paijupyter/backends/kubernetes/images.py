"""Why an image cannot be had, in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding, newest

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
    (r"no basic auth credentials", "needs a login that the job does not have", _LOGIN),
    (r"401 Unauthorized|403 Forbidden|incorrect username", "is refused to this login", _LOGIN),
    (r"denied|unauthorized", "does not exist, or needs a login", _LOGIN),
    (r"not found|manifest unknown", "does not exist in its registry", "Correct its name or tag."),
    (
        r"RegistryUnavailable|connection refused|no such host|i/o timeout|timed? ?out|TLS",
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
    found = re.search(r'failed to resolve (?:image|reference "[^"]*"): (.*)', said, re.S)
    return (found[1] if found else said).strip().rstrip(".") or "the node does not say why"


def _unmounted(said: str) -> Finding:
    """Say why an image that was pulled cannot be mounted as a volume."""
    folder = re.search(r'image subpath "([^"]+)"', said)
    if folder:
        message = f"an image that it mounts as a volume has no folder `{folder[1]}`"
        return _image_finding(message, "Correct `subPath` of that mount, in the profile's `podTemplate`.")
    why = said.rpartition("ImageVolumeMountFailed: ")[2]
    return _image_finding(
        f"an image that it mounts as a volume cannot be mounted: {why}", "Check that image."
    )


def _named(pod: Pod, asked: Asked) -> str:
    """Return the image that is meant: not that of the container where one of its volumes is an image."""
    own = pod.container.image or asked.image
    found = re.search(r'(?:image|reference) "([^"]+)"', pod.container.message)
    # A node writes the whole name: that of `python:3` ends with it, that of `python` with `:latest`.
    return (
        own
        if found is None or found[1].removesuffix(":latest").endswith(own.removesuffix(":latest"))
        else found[1]
    )


def of_image(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding | None:
    """Say why the image of a pod cannot be pulled, or mounted; None if that is not what it waits for."""
    waiting = pod.container.waiting
    if "ImageVolumeMountFailed" in pod.container.message:
        return _unmounted(pod.container.message)
    if waiting not in _IMAGE_REASONS:
        return None
    image = _named(pod, asked)
    said = _pull_error(pod.container.message, events)
    if newest(events, "FailedToRetrieveImagePullSecret") is not None and _DENIED.search(said):
        secret = newest(events, "FailedToRetrieveImagePullSecret")
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
