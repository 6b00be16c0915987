"""Readers of settings: each returns a value as the code wants it, or says in words what it must be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.quantities import parse_duration, parse_memory

Reader = Callable[[Any], Any]
"""Returns what a value means; raises ValueError with the end of the sentence "must be …"."""

_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_RESOURCE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9.]*/[A-Za-z0-9][-A-Za-z0-9._]*")


def read(
    table: Mapping[str, tuple[str, Reader]], values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Read the values that a table knows; None counts as absent.

    Args:
        table: key → the field's name and its reader.
        values: what was written down.

    Returns:
        What was read by field, and for each that cannot be used its key and what it must be.
    """
    found: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []
    for key, (field, reader) in table.items():
        if values.get(key) is None:
            continue
        try:
            found[field] = reader(values[key])
        except ValueError as error:
            wrong.append((key, str(error)))
    return found, wrong


def text(value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text")
    return value


def name(value: Any) -> str:
    """Return the name of an object of Kubernetes."""
    if not isinstance(value, str) or not _DNS_NAME.fullmatch(value):
        raise ValueError("must be the name of an object: small letters, digits, `-` and `.`")
    return value


def resource(value: Any) -> str:
    """Return the name of an extended resource."""
    if not isinstance(value, str) or not _RESOURCE.fullmatch(value):
        raise ValueError("must be the name of a resource, for example nvidia.com/gpu")
    return value


def switch(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def whole(value: Any) -> int:
    """Return a whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != int(value):
        raise ValueError("must be a whole number")
    return int(value)


def memory(value: Any) -> int:
    """Return an amount of memory in MB; a text may have a suffix (P40)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return math.ceil(value)
    try:
        return parse_memory(str(value))
    except PaiJupyterError:
        raise ValueError("must be an amount of memory, for example 8Gi") from None


def seconds(value: Any) -> int:
    """Return a duration in seconds; a text may have units."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return math.ceil(value)
    try:
        return parse_duration(str(value))
    except PaiJupyterError:
        raise ValueError("must be a duration, for example 3m") from None


def one_of(*words: str) -> Reader:
    """Return the reader of one of some words."""

    def reader(value: Any) -> str:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return str(value)

    return reader


def path(value: Any) -> str:
    """Return an absolute path inside a container."""
    if not isinstance(value, str) or not value.startswith("/") or ".." in value.split("/") or ":" in value:
        raise ValueError("must be an absolute path without `..` and `:`")
    return value.rstrip("/") or "/"


def address(value: Any) -> str:
    """Return the address of a server; credentials have no place in it, for profiles are no secret."""
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    parts = urlsplit(value)
    if not parts.hostname or parts.username or parts.password:
        raise ValueError("must be the address of a server, without a user or password in it")
    return value.split("?")[0].split("#")[0].rstrip("/")


def folder(value: Any) -> str:
    """Return a folder below another one."""
    found = text(value).strip("/")
    if ".." in found.split("/"):
        raise ValueError("must be a folder without `..`")
    return found


def part(value: Any, table: Mapping[str, tuple[str, Reader]], *needed: str) -> dict[str, Any]:
    """Return what a mapping inside a setting says, by field.

    Args:
        value: the mapping.
        table: as :func:`read` takes it; nothing else may be there.
        needed: keys that must be there.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping with {', '.join(f'`{key}`' for key in needed)}")
    unknown = sorted(str(key) for key in value if key not in table)
    if unknown:
        raise ValueError(f"must not have `{unknown[0]}`; known are {', '.join(table)}")
    found, wrong = read(table, value)
    if wrong:
        raise ValueError(f"has a `{wrong[0][0]}` that {wrong[0][1]}")
    missing = [key for key in needed if table[key][0] not in found]
    if missing:
        raise ValueError(f"must have `{missing[0]}`")
    return found


def list_of(reader: Reader) -> Reader:
    """Return the reader of a list; one value alone is a list of one."""

    def read_list(value: Any) -> tuple[Any, ...]:
        items: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
        return tuple(reader(item) for item in items)

    return read_list


def texts(value: Any) -> dict[str, str]:
    """Return texts by name."""
    if not isinstance(value, Mapping) or any(isinstance(each, (Mapping, list)) for each in value.values()):
        raise ValueError("must be texts by name")
    return {str(key): _plain(each) for key, each in value.items()}


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping as it is."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping")
    return {str(key): each for key, each in value.items()}


def counts(value: Any) -> dict[str, str]:
    """Return amounts of extended resources, as texts: the Kubernetes client refuses numbers."""
    if not isinstance(value, Mapping):
        raise ValueError("must be amounts by name of resource")
    return {resource(key): str(whole(each)) for key, each in value.items()}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
