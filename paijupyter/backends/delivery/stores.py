"""Where packages can be put, as profiles say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends import reading
from paijupyter.backends.reading import Reader


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
