"""Secrets that rest in the user's keyring, below the service ``paijupyter``.

A keyring cannot list what it has, so one more entry of it holds the names (never a value): they are where
the values are, and go with them. Only the engine writes here, one process per user and host.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from paijupyter.backends.ring import SERVICE, used
from paijupyter.errors import NotFound, PaiJupyterError, UsageProblem
from paijupyter.protocol.secrets import check_stored_name

INDEX = " names"  # no secret can have this name
LARGEST = 64 * 1024  # bytes; keyrings take passwords and keys, not data sets


async def from_keyring(name: str, entry: str) -> str:
    """Look a value up.

    Args:
        name: name of the secret in the job, for the message.
        entry: name in the keyring.

    Raises:
        MissingExtra: if ``keyring`` is not installed.
        PaiJupyterError: ``keyring-unusable`` or ``secret-missing``, saying what works instead.
    """
    value = await asyncio.to_thread(used, name, lambda ring: ring.get_password(SERVICE, entry))
    if value is None:
        raise PaiJupyterError(
            "secret-missing",
            f"Secret `{name}` is not in the keyring.",
            f"Store it with: paijob secret set {entry}",
            422,
        )
    return str(value)


async def put(name: str, value: str) -> None:
    """Store a value; it replaces a former one.

    Raises:
        PaiJupyterError: ``invalid-secret`` if the name or value cannot be stored; neither is repeated.
        PaiJupyterError: ``keyring-unusable``.
    """
    _checked(name)
    if not value:
        raise _refused(f"Secret `{name}` is empty, so nothing was stored.")
    if "\0" in value or len(value.encode("utf-8", "surrogatepass")) > LARGEST:
        raise _refused(
            f"Secret `{name}` holds a zero byte or more than {LARGEST // 1024} KiB, so nothing was stored."
        )

    def store(ring: Any) -> None:
        ring.set_password(SERVICE, name, value)
        _write_names(ring, {*_names(ring), name})

    await asyncio.to_thread(used, name, store)


async def remove(name: str) -> None:
    """Forget a value.

    Raises:
        NotFound: if there is none of that name.
        PaiJupyterError: ``keyring-unusable``.
    """
    _checked(name)

    def forget(ring: Any) -> bool:
        known = _names(ring)
        there = ring.get_password(SERVICE, name) is not None
        if there:
            ring.delete_password(SERVICE, name)
        if name in known:
            _write_names(ring, known - {name})
        return there

    if not await asyncio.to_thread(used, name, forget):
        raise NotFound("Secret", name, "`paijob secret list` shows what is stored.")


async def names() -> list[str]:
    """Return the names of what is stored, sorted; a value that somebody else has removed is left out.

    Raises:
        MissingExtra: if ``keyring`` is not installed.
        PaiJupyterError: ``keyring-unusable``.
    """

    def found(ring: Any) -> list[str]:
        return sorted(name for name in _names(ring) if ring.get_password(SERVICE, name) is not None)

    return await asyncio.to_thread(used, "", found)


async def backend() -> str:
    """Return the name of the keyring in use, for people.

    Raises:
        MissingExtra: if ``keyring`` is not installed.
        PaiJupyterError: ``keyring-unusable`` if there is none, or it cannot be read.
    """

    def look(ring: Any) -> str:
        ring.get_password(SERVICE, INDEX)  # a locked or unreachable one shows only when it is used
        chosen = ring.get_keyring()
        return str(getattr(chosen, "name", "") or type(chosen).__name__)

    return await asyncio.to_thread(used, "", look)


def _checked(name: str) -> None:
    try:
        check_stored_name(name)
    except UsageProblem as error:
        raise _refused(error.message, error.hint) from None


def _names(ring: Any) -> set[str]:
    try:
        listed = json.loads(ring.get_password(SERVICE, INDEX) or "[]")
    except ValueError:
        return set()
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()


def _write_names(ring: Any, known: set[str]) -> None:
    ring.set_password(SERVICE, INDEX, json.dumps(sorted(known)))


def _refused(message: str, hint: str = "") -> PaiJupyterError:
    return PaiJupyterError("invalid-secret", message, hint, 422)
