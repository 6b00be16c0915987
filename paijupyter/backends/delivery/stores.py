"""Where packages can be put, as profiles say it."""

from __future__ import annotations

from dataclasses import dataclass


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
