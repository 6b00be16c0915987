"""The keyring of the user, as far as this host has one that keeps secrets: for secrets and for logins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from paijupyter.errors import MissingExtra, PaiJupyterError

SERVICE = "paijupyter"
_OTHERWISE = "Give {name} with each submission instead: {name}=env:VARIABLE or {name}=ask."
_lock = threading.Lock()
T = TypeVar("T")


def used(name: str, use: Callable[[Any], T]) -> T:
    """Call something with the keyring module, if there is a keyring; one caller at a time. It may block.

    Args:
        name: of the secret that is meant, for messages; "" for none.
        use: what to do.

    Raises:
        MissingExtra: if ``keyring`` is not installed.
        PaiJupyterError: ``keyring-unusable``, saying what works instead.
    """
    try:
        import keyring
        from keyring.errors import KeyringLocked
    except ImportError as error:
        raise MissingExtra("keyring", f"Secret `{name}` in the keyring" if name else "The keyring") from error
    with _lock:
        try:
            if not any(map(_keeps_secrets, _links(keyring.get_keyring()))):
                raise _unusable(name, "this host has none")
            return use(keyring)
        except PaiJupyterError:
            raise
        except KeyringLocked:
            raise _unusable(name, "it is locked", "Unlock it on this machine and try again. ") from None
        except Exception as error:
            # A keyring is a program of others behind a bus: what it raises may hold a value.
            raise _unusable(name, type(error).__name__) from None


def _links(chosen: Any) -> list[Any]:
    """Return the keyrings behind a chain, or the one."""
    from keyring.backends.chainer import ChainerBackend

    return list(chosen.backends) if isinstance(chosen, ChainerBackend) else [chosen]


def _keeps_secrets(ring: Any) -> bool:
    """Whether a keyring keeps anything, and not in a file of plain text."""
    from keyring.backends.fail import Keyring as NoKeyring
    from keyring.backends.null import Keyring as NullKeyring

    return not isinstance(ring, (NoKeyring, NullKeyring)) and "plaintext" not in type(ring).__name__.lower()


def _unusable(name: str, why: str, mend: str = "") -> PaiJupyterError:
    return PaiJupyterError(
        "keyring-unusable",
        f"Secret `{name}` needs the keyring: no keyring can be used ({why})."
        if name
        else f"Keyring cannot be used: {why}.",
        mend + _OTHERWISE.format(name=name or "NAME"),
        422,
    )
