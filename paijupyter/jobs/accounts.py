"""Who the user is on the servers of profiles, and what these offer and lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paijupyter.backends.accounts import Check, Examining, HasAccount, Login, Offering
from paijupyter.backends.base import Backend
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.watchers import Backends


class Accounts:
    """Logs in and out, and asks what there is. No answer and no error repeats a password or a token.

    Args:
        profiles: the files of profiles.
        backends: the backends in use.
    """

    def __init__(self, profiles: ProfileFiles, backends: Backends) -> None:
        self._profiles, self._backends = profiles, backends

    async def login(self, name: str, login: Login) -> dict[str, Any]:
        """Log in and keep what the server gives: ``{profile, user, where, expires}``.

        Raises:
            NotFound: there is no such profile.
            Conflict: ``no-login``: its kind has no users.
            PaiJupyterError: the server refuses it, or it cannot be kept.
        """
        return {"profile": name, **await (await self._with_users(name)).login(login)}

    async def logout(self, name: str) -> dict[str, Any]:
        """Forget what logins have kept: ``{profile, forgotten, portal}``."""
        return {"profile": name, **await (await self._with_users(name)).logout()}

    async def account(self, name: str) -> dict[str, Any]:
        """Return who is logged in: ``{profile, user, where, expires, authn, page, …}``."""
        return {"profile": name, **await (await self._with_users(name)).account()}

    async def offers(self, name: str, refresh: bool) -> dict[str, Any]:
        """Return what a form offers: ``{profile, virtualClusters, skus, storages, images}``.

        A kind that offers nothing of its own has empty lists.
        """
        found: Mapping[str, Any] = {}
        backend = await self._backend(name)
        if isinstance(backend, Offering):
            found = await backend.offers(refresh)
        empty: dict[str, Any] = {"virtualClusters": [], "skus": {}, "storages": [], "images": []}
        return {"profile": name, **empty, **found}

    async def examine(self, name: str) -> list[Check]:
        """Return what a profile's backend has to say of its place, for the doctor."""
        try:
            backend = await self._backend(name)
        except PaiJupyterError:
            return []  # the test of the profile says so already
        if not isinstance(backend, Examining):
            return []
        return [replace(each, name=f"{name}: {each.name}") for each in await backend.examine()]

    async def _backend(self, name: str) -> Backend:
        found = self._profiles.read()
        if name not in found.by_name:
            raise NotFound("Profile", name, f"Profiles: {', '.join(sorted(found.by_name))}.")
        return await self._backends.of(name)

    async def _with_users(self, name: str) -> HasAccount:
        backend = await self._backend(name)
        if not isinstance(backend, HasAccount):
            kind = self._profiles.read().by_name[name].kind
            raise Conflict(
                "no-login",
                f"Profile `{name}` needs no login here: its kind is `{kind}`.",
                "Kubernetes takes its login from the kubeconfig, a local profile needs none.",
            )
        return backend
