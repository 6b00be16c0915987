"""What looks like a credential: such a thing may be referred to, and never written down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.protocol.secrets import parse_reference

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LAST = frozenset(
    {"token", "password", "passwd", "passphrase", "secret", "credential", "credentials", "apikey"}
)
_LAST_TWO = frozenset({"api key", "access key", "secret key", "private key", "auth key", "account key"})
_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s]*:[^/@\s]+@", re.IGNORECASE)


def is_credential_name(name: str) -> bool:
    """Say whether a thing of this name holds a credential.

    >>> is_credential_name("HF_TOKEN"), is_credential_name("apiKey"), is_credential_name("tokenFile")
    (True, True, False)
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and (words[-1] in _LAST or " ".join(words[-2:]) in _LAST_TWO)


def plain_credentials(value: Any, path: str = "") -> Iterator[str]:
    """Yield where in a value a credential stands itself, and not a reference to it: ``a.b.token``.

    Args:
        value: mappings, lists and scalars.
        path: names on the way to it, joined by dots.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from plain_credentials(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from plain_credentials(item, path)
    elif _holds_password(value) or (is_credential_name(path) and _says_something(value)):
        yield path


def _holds_password(value: Any) -> bool:
    return isinstance(value, str) and bool(_URL_WITH_PASSWORD.match(value))


def _says_something(value: Any) -> bool:
    return value not in (None, "", True, False) and not is_reference(value)


def is_reference(value: Any) -> bool:
    """Say whether a value refers to a secret, for example ``keyring:hf``."""
    if not isinstance(value, str):
        return False
    try:
        parse_reference("it", value)
    except UsageProblem:
        return False
    return True
