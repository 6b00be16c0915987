"""Addresses of objects in S3-compatible stores, signed so that who has one may use it (AWS Signature V4).

Own code, since it is small and every client library for it is large; a test has the published example.
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

SIGNATURE = "&X-Amz-Signature="
"""Begins the last part of an address."""
LONGEST_SECONDS = 7 * 86400
"""For how long an address can be valid."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key; ``token`` belongs to one that is lent for some time."""

    key: str
    secret: str
    token: str = ""


def credentials(profile: str = "") -> Credentials | None:
    """Return the standard credentials of this host: AWS_… variables, else ~/.aws/credentials.

    Args:
        profile: section of that file; then the variables are not looked at.
    """
    if not profile and os.environ.get("AWS_ACCESS_KEY_ID"):
        return Credentials(
            os.environ["AWS_ACCESS_KEY_ID"],
            os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
            os.environ.get("AWS_SESSION_TOKEN", ""),
        )
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(Path(file).expanduser(), "utf-8")
    except (OSError, configparser.Error, UnicodeError):
        return None
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    if not parser.has_section(name):
        return None
    section = parser[name]
    if not section.get("aws_access_key_id"):
        return None
    return Credentials(
        section["aws_access_key_id"],
        section.get("aws_secret_access_key", ""),
        section.get("aws_session_token", ""),
    )


def signed(method: str, url: str, region: str, who: Credentials, *, seconds: int, now: datetime) -> str:
    """Return an address with which a request of this method may be made by anybody.

    Args:
        method: ``GET``, ``PUT`` or ``HEAD``.
        url: of the object, without query.
        region: of the store.
        who: whose rights it carries.
        seconds: how long it is valid, at most a week.
        now: the time, UTC.
    """
    parts = urlsplit(url)
    day, moment = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/s3/aws4_request"
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{who.key}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(min(seconds, LONGEST_SECONDS)),
        "X-Amz-SignedHeaders": "host",
    }
    if who.token:
        query["X-Amz-Security-Token"] = who.token
    text = "&".join(f"{quote(key, safe='')}={quote(query[key], safe='')}" for key in sorted(query))
    request = "\n".join([method, parts.path, text, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD"])
    digest = hashlib.sha256(request.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope, digest])
    key = f"AWS4{who.secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return f"{url}?{text}{SIGNATURE}{hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()}"
