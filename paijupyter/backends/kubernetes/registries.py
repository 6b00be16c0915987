"""Credentials of registries that a document brings: one Secret that the images are pulled with."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes.pod import prerequisite
from paijupyter.errors import PaiJupyterError

_TAG = re.compile(r"<%\s*&?\s*\$secrets\.([^\s%>]+)\s*%>")
_DOCKER_HUB = "https://index.docker.io/v1/"


def has_logins(job: Job) -> bool:
    """Say whether an image of the job comes with credentials."""
    return any(True for _ in _auths(job))


def logins(job: Job, secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return the credentials as ``auths`` of a Docker configuration.

    Raises:
        PaiJupyterError: ``secret-missing`` if they refer to a secret that the job has not.
    """
    found = {}
    for image, auth in _auths(job):
        user, password = (_filled(auth.get(key), secrets) for key in ("username", "password"))
        both = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        server = _filled(auth.get("registryuri"), secrets) or server_of(image)
        found[server] = {"username": user, "password": password, "auth": both}
    return found


def server_of(image: str) -> str:
    """Return the registry of an image's name, as Docker configurations write it.

    >>> server_of("registry.example:5000/team/image:1"), server_of("python:3.11")
    ('registry.example:5000', 'https://index.docker.io/v1/')
    """
    head, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in head or ":" in head or head == "localhost")
    return head if is_host and head not in ("docker.io", "index.docker.io") else _DOCKER_HUB


def _auths(job: Job) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for role in job.roles:
        item = prerequisite(job, role)
        auth = (item or {}).get("auth")
        if item and isinstance(auth, Mapping) and auth.get("username") and auth.get("password"):
            yield str(item.get("uri") or ""), auth


def _filled(value: Any, secrets: Mapping[str, str]) -> str:
    def secret(match: re.Match[str]) -> str:
        if match[1] not in secrets:
            raise PaiJupyterError(
                "secret-missing",
                f"Credentials of the registry refer to the secret `{match[1]}`, which the job does not have.",
                f"Give it with: --secret {match[1]}=ask",
                422,
            )
        return secrets[match[1]]

    return _TAG.sub(secret, "" if value is None else str(value))
