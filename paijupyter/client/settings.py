"""Profiles, stored secrets and the engine's own checks: the part of the API that is not about jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import quoted

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient


class SettingsClient:
    """Asks for and changes settings, over a :class:`JobsClient`."""

    def __init__(self, client: JobsClient) -> None:
        self._client = client

    def profiles(self) -> dict[str, Any]:
        """Return ``{profiles, default, problems, file, adminFiles}``."""
        return dict(self._client.ask("GET", "/v1/profiles"))

    def profile(self, name: str) -> dict[str, Any]:
        """Return one profile; ``sources`` says of each field who has said it, and in which file."""
        return dict(self._client.ask("GET", quoted("profiles", name)))

    def add_profile(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Write a new profile into the user's file; ``kind`` is one of the settings."""
        body = {"name": name, "settings": dict(settings)}
        return dict(self._client.ask("POST", "/v1/profiles", body=body))

    def edit_profile(
        self, name: str, changes: Mapping[str, Any], unset: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Set fields of a profile in the user's file, and take others out of it."""
        body = {"set": dict(changes), "unset": list(unset)}
        return dict(self._client.ask("POST", quoted("profiles", name, "edit"), body=body))

    def remove_profile(self, name: str) -> dict[str, Any] | None:
        """Take a profile out of the user's file; return what an administrator's file leaves of it."""
        left = self._client.ask("DELETE", quoted("profiles", name))
        return None if left is None else dict(left)

    def choose_profile(self, name: str) -> dict[str, Any]:
        """Make a profile the default one."""
        return dict(self._client.ask("POST", quoted("profiles", name, "default"), body={}))

    def test_profile(self, name: str) -> dict[str, Any]:
        """Ask a profile's backend what it can do: ``{name, ok, message, hint, problems, capabilities}``."""
        return dict(self._client.ask("POST", quoted("profiles", name, "test"), body={}))

    def account(self, profile: str) -> dict[str, Any]:
        """Return who is logged in at a profile's server: ``{user, where, expires, authn, page, …}``."""
        return dict(self._client.ask("GET", quoted("profiles", profile, "login")))

    def login(self, profile: str, login: Mapping[str, str]) -> dict[str, Any]:
        """Log in: ``user`` and ``password``, or ``token``; ``store``: keyring or file."""
        return dict(self._client.ask("POST", quoted("profiles", profile, "login"), body=dict(login)))

    def logout(self, profile: str) -> dict[str, Any]:
        """Forget what logins have kept of a profile."""
        return dict(self._client.ask("DELETE", quoted("profiles", profile, "login")))

    def offers(self, profile: str, *, refresh: bool = False) -> dict[str, Any]:
        """Return what a form offers: ``{virtualClusters, skus, storages, images}``."""
        query = {"refresh": "true"} if refresh else None
        return dict(self._client.ask("GET", quoted("profiles", profile, "offers"), query=query))

    def secrets(self) -> list[str]:
        """Return the names of the secrets in the keyring; nothing returns a value."""
        return list(self._client.ask("GET", "/v1/secrets")["names"])

    def put_secret(self, name: str, value: str) -> None:
        """Store a secret in the keyring."""
        self._client.ask("PUT", quoted("secrets", name), body={"value": value})

    def remove_secret(self, name: str) -> None:
        """Remove a secret from the keyring."""
        self._client.ask("DELETE", quoted("secrets", name))

    def give_secrets(self, ref: str, secrets: Mapping[str, Any]) -> dict[str, Any]:
        """Give a job that waits for the values of its secrets those values again."""
        return dict(self._client.ask("POST", quoted("jobs", ref, "secrets"), body={"secrets": dict(secrets)}))

    def doctor(self) -> list[dict[str, Any]]:
        """Return the engine's checks: ``[{name, ok, message, fix, needed}]``."""
        return list(self._client.ask("GET", "/v1/doctor")["checks"])
