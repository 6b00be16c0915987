"""Where packages can be put, or are already, as profiles say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from paijupyter.backends import reading
from paijupyter.backends.reading import Reader

_OF_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:\s-][^:\s]*")


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A bucket that speaks S3; credentials are the standard ones of this host (AWS_…, ~/.aws).

    Attributes:
        bucket: name of the bucket.
        prefix: of the keys.
        endpoint: URL of the server as this host reaches it; "" means AWS.
        inside: URL of the server as pods reach it; "" means the same.
        region: for the signature.
        profile: of ~/.aws/credentials, "" for the default one.
    """

    bucket: str
    prefix: str = "paijupyter-packages"
    endpoint: str = ""
    inside: str = ""
    region: str = "us-east-1"
    profile: str = ""


def object_store(value: Any) -> ObjectStore:
    """Read the setting of a bucket."""
    table: Mapping[str, tuple[str, Reader]] = {
        "bucket": ("bucket", reading.text),
        "prefix": ("prefix", reading.text),
        "endpoint": ("endpoint", reading.address),
        "endpointInCluster": ("inside", reading.address),
        "region": ("region", reading.text),
        "awsProfile": ("profile", reading.text),
    }
    return ObjectStore(**reading.part(value, table, "bucket"))


@dataclass(frozen=True, slots=True)
class GitRemote:
    """A git repository that this host and the tasks both reach.

    Attributes:
        url: of the repository, as this host reaches it.
        inside: as the tasks reach it; "" means the same.
        folder: where in it the packages' folder is, "" for its root.
        secret: ``keyring:NAME`` or ``env:NAME`` of a token, or of ``user:password``; "" for none.
    """

    url: str
    inside: str = ""
    folder: str = ""
    secret: str = ""


def git_remote(value: Any) -> GitRemote:
    """Read the setting of a git repository."""
    table: Mapping[str, tuple[str, Reader]] = {
        "url": ("url", _repository),
        "urlInCluster": ("inside", _repository),
        "folder": ("folder", reading.folder),
        "secret": ("secret", _reference),
    }
    return GitRemote(**reading.part(value, table, "url"))


def _repository(value: Any) -> str:
    """Return the address of a repository; a password has no place in it, for profiles are no secret."""
    found = reading.text(value)
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https", "ssh", "git") and not _OF_SCP.fullmatch(found):
        raise ValueError("must be the address of a repository: https://…, ssh://…, git://… or user@host:path")
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise ValueError("must have no user or password in it: name them as `secret`")
    return found.rstrip("/")


def _reference(value: Any) -> str:
    kind, _, name = reading.text(value).partition(":")
    if kind not in ("keyring", "env") or not name:
        raise ValueError("must be keyring:NAME or env:NAME")
    return f"{kind}:{name}"
