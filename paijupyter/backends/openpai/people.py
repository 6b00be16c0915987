"""What a backend of OpenPAI does for its user beside jobs: logging in, offering, examining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.accounts import Check, Login
from paijupyter.backends.base import Profile
from paijupyter.backends.openpai.account import Account
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.examining import Examination
from paijupyter.backends.openpai.settings import OpenPaiSettings


class WithAccount:
    """The part of the backend that is :class:`base.HasAccount`, ``Offering`` and ``Examining``."""

    def _begin_account(self, profile: Profile, settings: OpenPaiSettings, client: OpenPaiClient) -> None:
        self._account = Account(profile, settings, client)
        self._examination = Examination(profile, settings, self._account)

    async def login(self, login: Login) -> Mapping[str, Any]:
        """Log in and keep the token.

        Raises:
            PaiJupyterError: the server refuses it, or it cannot be kept.
        """
        return await self._account.login(login)

    async def logout(self) -> Mapping[str, Any]:
        """Forget what logins have kept."""
        return await self._account.logout()

    async def account(self) -> Mapping[str, Any]:
        """Return who is logged in.

        Raises:
            PaiJupyterError: the server cannot be asked.
        """
        return await self._account.state()

    async def offers(self, refresh: bool = False) -> Mapping[str, Any]:
        """Return what a form offers.

        Raises:
            PaiJupyterError: the server cannot be asked, or nobody is logged in.
        """
        return await self._account.offers(refresh)

    async def examine(self) -> Sequence[Check]:
        """Look at everything that a job there needs."""
        return await self._examination.examine()
