"""What a backend may do of a profile beside running its jobs: accounts, what a form may offer, what is wrong.

The service asks with ``isinstance``: a backend has what it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Login:
    """What somebody gives to log in: a user and a password, or a token.

    Attributes:
        store: where the login is kept: ``keyring`` or ``file``.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    store: str = "keyring"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: whether it is well, what was seen, what mends it.

    Attributes:
        needed: whether something is broken without it; else it is worth knowing only.
    """

    name: str
    ok: bool
    message: str
    fix: str = ""
    needed: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return asdict(self)


@runtime_checkable
class HasAccount(Protocol):
    """A backend whose server has users; a login is kept by the backend, and never shown again."""

    async def login(self, login: Login) -> Mapping[str, Any]:
        """Log in and keep what the server gives: ``user``, ``where`` it is kept, ``expires`` or None.

        Raises:
            PaiJupyterError: ``login-refused``, or ``login-not-kept``.
        """

    async def logout(self) -> Mapping[str, Any]:
        """Forget what logins have kept: ``forgotten``, a list of where it was, and the ``portal``'s page."""

    async def account(self) -> Mapping[str, Any]:
        """Return who is logged in: ``user``, "" for nobody, ``where``, ``expires``, ``authn``, ``page``."""


@runtime_checkable
class Offering(Protocol):
    """A backend that can say what its user may choose from in a form."""

    async def offers(self, refresh: bool = False) -> Mapping[str, Any]:
        """Return ``virtualClusters``, ``skus`` by virtual cluster, ``storages`` and ``images``; cached.

        Raises:
            PaiJupyterError: the place cannot be asked.
        """


@runtime_checkable
class Examining(Protocol):
    """A backend that can say in more words than ``capabilities`` what is wrong with its place."""

    async def examine(self) -> Sequence[Check]:
        """Look at everything that a job there needs; never raises for what is wrong."""
