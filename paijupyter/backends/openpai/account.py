"""Who a profile is at its server: logging in, and what that user may use."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from paijupyter.backends.accounts import Login
from paijupyter.backends.base import Profile
from paijupyter.backends.openpai import tokens
from paijupyter.backends.openpai.answers import mapping, number, text
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.errors import PaiJupyterError, UsageProblem

IMAGES = tuple(
    f"openpai/standard:python_3.6-{framework}-{kind}"
    for framework, kinds in (
        ("pytorch_1.2.0", ("gpu", "cpu")),
        ("pytorch_1.4.0", ("gpu", "cpu")),
        ("tensorflow_2.1.0", ("gpu", "cpu")),
        ("tensorflow_1.15.0", ("gpu", "cpu")),
        ("mxnet_1.5.1", ("gpu",)),
        ("cntk_2.7", ("gpu",)),
    )
    for kind in kinds
)
"""The images that the portal offers (openpai.md 10), its default first."""
_CHECK_SINCE = (1, 6)  # tokens/check: the only way to learn whose a token is
_FRESH = 300.0  # seconds for which what a cluster offers is not asked again
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself; ``release`` is (0, 0) where it names no version."""

    version: str
    release: tuple[int, int]
    authn: str
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class Who:
    """Whose a token is; ``expires`` in seconds since the epoch, None for an application's."""

    user: str
    application: bool = False
    expires: float | None = None


class Account:
    """A profile's user at its server.

    Args:
        profile: the profile.
        settings: what it says.
        client: the way to its server.
    """

    def __init__(self, profile: Profile, settings: OpenPaiSettings, client: OpenPaiClient) -> None:
        self._profile, self._settings, self._client = profile, settings, client
        self._offers: tuple[float, dict[str, Any]] | None = None

    # -- logging in --------------------------------------------------------------------------------------

    async def server(self) -> Server:
        """Return the server's version and how one logs in there.

        Raises:
            PaiError: it cannot be reached, or is none.
        """
        answer = await self._client.ask("GET", "/info", login=False)
        body = mapping(_parsed(answer.body))
        if "PAI" not in text(body.get("name")) and not body.get("version"):
            raise PaiError(0, "NotOpenPai", "its /info names no OpenPAI server")
        found = _VERSION.match(text(body.get("version")))
        release = (int(found[1]), int(found[2])) if found else (0, 0)
        date = email.utils.parsedate_to_datetime(answer.headers["date"]) if "date" in answer.headers else None
        skew = date.timestamp() - time.time() if date else 0.0
        return Server(text(body.get("version")), release, text(body.get("authnMethod")), skew)

    async def login(self, login: Login) -> dict[str, Any]:
        """Log in and keep an application token; see :class:`base.HasAccount`.

        Raises:
            PaiJupyterError: the server refuses it, or it cannot be kept.
        """
        await asyncio.to_thread(tokens.check_store, self._profile, login.store)
        try:
            server = await self.server()
            first, revocable = await self._first_token(server, login)
            other = self._with(first)
            try:
                who = await self.who(server, other)
                token = first if who.application else await self._application(other)
            finally:
                await other.close()
        except PaiError as error:
            raise _login_refused(error) from error
        where = await asyncio.to_thread(tokens.keep, self._profile, token, login.store)
        if revocable and token != first:
            await self._revoke(token=first)
        self._offers = None
        return {"user": who.user, "where": where, "expires": who.expires if token == first else None}

    async def logout(self) -> dict[str, Any]:
        """Forget what logins have kept. An application's token cannot revoke itself: the portal can."""
        self._offers = None
        gone = await asyncio.to_thread(tokens.forget, self._profile)
        return {"forgotten": gone, "portal": f"{self._settings.url}/profile.html"}

    async def state(self) -> dict[str, Any]:
        """Return whether somebody is logged in: ``user, where, expires, application, authn, page, variable``.

        Raises:
            PaiJupyterError: the server cannot be asked.
        """
        found = await asyncio.to_thread(tokens.found, self._profile)
        cannot = ""
        try:
            await asyncio.to_thread(tokens.check_store, self._profile, "keyring")
        except PaiJupyterError as error:
            cannot = str(error)
        try:
            server = await self.server()
            who = await self.who(server) if found.token else None
        except PaiError as error:
            if error.status != 401:
                raise error.for_people("say who is logged in") from error
            await asyncio.to_thread(tokens.forget_cached, self._profile)
            who = None
        return {
            "user": who.user if who else "",
            "application": bool(who and who.application),
            "expires": who.expires if who else None,
            "where": found.where,
            "expired": bool(found.token) and who is None,
            "noKeyring": cannot,
            "authn": server.authn,
            "page": f"{self._settings.url}/profile.html",
            "variable": tokens.variable_of(self._profile.name),
            "version": server.version,
        }

    async def _first_token(self, server: Server, login: Login) -> tuple[str, bool]:
        """Return a token to begin with, and whether it is ours to revoke."""
        if login.token:
            return login.token.strip(), False
        if server.authn and server.authn.lower() != "basic":
            raise UsageProblem(
                f"Users of `{self._profile.name}` log in on a page ({server.authn}), so a password cannot be "
                "given here.",
                f"Log in at {self._settings.url}, copy a token from your profile there, then: paijob login "
                f"{self._profile.name} --token",
            )
        if not login.user or not login.password:
            raise UsageProblem("Logging in needs a user and a password, or a token.")
        body = {"username": login.user, "password": login.password}
        answer = await self._client.call("POST", "/authn/basic/login", body=body, login=False)
        token = text(mapping(answer).get("token"))
        if not token:
            raise PaiError(0, "NotOpenPai", "it answers a login without a token")
        return token, True

    async def _application(self, client: OpenPaiClient) -> str:
        """Return an application's token, which does not expire."""
        return text(mapping(await client.call("POST", "/tokens/application")).get("token"))

    async def _revoke(self, token: str) -> None:
        """Let the password's token end now: the other one has taken its place."""
        client = self._with(token)
        with contextlib.suppress(PaiError):
            await client.call("DELETE", f"/tokens/{quote(token, safe='')}")
        await client.close()

    def _with(self, token: str) -> OpenPaiClient:
        return OpenPaiClient(
            self._settings.url,
            token=lambda: token,
            ca_file=self._settings.ca,
            rest_url=self._settings.rest_url,
            budget=self._client.budget,
        )

    async def who(self, server: Server, client: OpenPaiClient | None = None) -> Who:
        """Return whose a token is: the profile's, or another client's.

        Raises:
            PaiError: the server does not take it, or cannot be asked.
            UsageProblem: a server before 1.6, and the profile names no user.
        """
        client = client or self._client
        if server.release != (0, 0) and server.release < _CHECK_SINCE:
            # These cannot say whose a token is; that they take it shows that it is good.
            await client.call("GET", "/jobs", query={"limit": 1})
            if not self._settings.user:
                raise UsageProblem(
                    f"Servers before 1.6 (this is {server.version}) do not say whose a token is.",
                    f"Name the user: paijob profile edit {self._profile.name} --set user=NAME",
                )
            return Who(self._settings.user, application=True)
        body = mapping(await client.call("GET", "/tokens/check"))
        return Who(text(body.get("username")), bool(body.get("application")), number(body.get("exp")))

    # -- what may be used --------------------------------------------------------------------------------

    async def offers(self, refresh: bool) -> dict[str, Any]:
        """Return what a form offers: ``virtualClusters, skus, storages, images, user``.

        Args:
            refresh: ask again although it was asked in the last minutes.

        Raises:
            PaiJupyterError: the server cannot be asked, or nobody is logged in.
        """
        if self._offers and not refresh and time.monotonic() - self._offers[0] < _FRESH:
            return self._offers[1]
        try:
            found = await self._asked()
        except PaiError as error:
            raise error.for_people("say what it offers") from error
        self._offers = (time.monotonic(), found)
        return found

    async def _asked(self) -> dict[str, Any]:
        server = await self.server()
        who = await self.who(server)
        user, clusters, storages = await asyncio.gather(
            self._client.call("GET", f"/users/{quote(who.user, safe='')}"),
            self._client.call("GET", "/virtual-clusters"),
            self._client.call("GET", "/storages"),
        )
        granted = [text(name) for name in _list(mapping(user).get("virtualCluster"))]
        known = mapping(clusters)
        skus = await asyncio.gather(*(self._skus(name) for name in granted if name in known))
        by_cluster = dict(zip([name for name in granted if name in known], skus, strict=True))
        return {
            "user": who.user,
            "virtualClusters": [_cluster(name, mapping(known[name])) for name in granted if name in known],
            "skus": {name: found for name, found in by_cluster.items() if found},
            "storages": [_storage(mapping(each)) for each in _list(mapping(storages).get("storages"))],
            "images": list(self._settings.images or IMAGES),
        }

    async def _skus(self, cluster: str) -> dict[str, Any]:
        """Return the SKUs of a virtual cluster; without HiveD there are none, which some servers call 404."""
        try:
            found = await self._client.call("GET", "/cluster/sku-types", query={"vc": cluster})
        except PaiError as error:
            if error.status == 404:
                return {}
            raise
        keys = {"cpu": "cpu", "memory": "memoryMB", "gpu": "gpu"}
        return {
            str(name): {ours: mapping(sku).get(theirs) for theirs, ours in keys.items()}
            for name, sku in mapping(found).items()
        }


def _login_refused(error: PaiError) -> PaiJupyterError:
    """Say why a login failed; nothing of what was given is repeated."""
    if error.status == 401:
        return PaiJupyterError(
            "login-refused",
            "The OpenPAI server does not accept this token.",
            "Copy it again from your profile in the portal; a token from a login lives 7 days.",
            401,
        )
    if error.code in ("IncorrectPasswordError", "NoUserError", "InvalidParametersError"):
        said = {
            "IncorrectPasswordError": "The password is not correct",
            "NoUserError": "The user does not exist there",
        }.get(error.code, "The user or the password cannot be right: passwords have at least 6 characters")
        return PaiJupyterError("login-refused", f"{said}.", "Try again.", 401)
    return error.for_people("log you in")


def _cluster(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    total, used = mapping(found.get("resourcesTotal")), mapping(found.get("resourcesUsed"))
    free = {key: (number(total.get(key)) or 0) - (number(used.get(key)) or 0) for key in ("cpu", "gpu")}
    memory = (number(total.get("memory")) or 0) - (number(used.get("memory")) or 0)
    return {
        "name": name,
        "dedicated": bool(found.get("dedicated")),
        "free": {"cpu": free["cpu"], "memoryMB": memory, "gpu": free["gpu"]},
        "total": {
            "cpu": number(total.get("cpu")) or 0,
            "memoryMB": number(total.get("memory")) or 0,
            "gpu": number(total.get("gpu")) or 0,
        },
    }


def _storage(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a storage without its details: those hold credentials (openpai.md 8.5)."""
    name = text(found.get("name"))
    return {
        "name": name,
        "default": bool(found.get("default")),
        "own": found.get("share") is False,
        "mount": f"/mnt/{name}",
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parsed(body: bytes) -> Any:
    import json

    try:
        return json.loads(body)
    except ValueError:
        raise PaiError(0, "NotOpenPai", "it answers with something else than JSON") from None
