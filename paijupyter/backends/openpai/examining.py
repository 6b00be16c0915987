"""Whether all that a job on an OpenPAI cluster needs is well, each finding with what mends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from paijupyter.backends.accounts import Check
from paijupyter.backends.base import Profile
from paijupyter.backends.delivery import signing
from paijupyter.backends.openpai import features, ladder, tokens
from paijupyter.backends.openpai.account import Account, Server, Who
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.errors import PaiJupyterError

OLDEST, NEWEST = (1, 0), (1, 8)
_SOON = 24 * 3600  # seconds before its end at which a token is worth a word
_MOST_SKEW = 30.0  # seconds; addresses of logs live 120 s


class Examination:
    """Looks at a profile's server and at what its user has there.

    Args:
        profile: the profile.
        settings: what it says.
        account: its user at the server.
    """

    def __init__(self, profile: Profile, settings: OpenPaiSettings, account: Account) -> None:
        self._profile, self._settings, self._account = profile, settings, account

    async def examine(self) -> list[Check]:
        """Look at everything that a job there needs; never raises for what the server answers."""
        name = self._profile.name
        try:
            server = await self._account.server()
        except PaiError as error:
            said = error.for_people("answer")
            return [Check("server", False, said.message.rstrip("."), said.hint)]
        return [
            Check("server", True, f"`{self._settings.url}` answers"),
            _version(server, name),
            _clock(server),
            *await self._login_checks(server),
            *self._ways(),
        ]

    async def _login_checks(self, server: Server) -> list[Check]:
        again = f"paijob login {self._profile.name}"
        try:
            found = await asyncio.to_thread(tokens.found, self._profile)
            if not found.token:
                return [Check("login", False, "nobody is logged in", again)]
            who = await self._account.who(server)
        except PaiJupyterError as error:
            return [Check("login", False, error.message.rstrip("."), error.hint)]
        except PaiError as error:
            said = error.for_people("accept the login")
            if error.status == 401:
                await asyncio.to_thread(tokens.forget_cached, self._profile)
                where = f"the token in {found.where} has expired or was revoked"
                return [Check("login", False, where, again)]
            return [Check("login", False, said.message.rstrip("."), said.hint)]
        checks = [_token(who, found.where, again)]
        try:
            offers = await self._account.offers(refresh=True)
        except PaiJupyterError as error:
            return [*checks, Check("virtual cluster", False, error.message.rstrip("."), error.hint)]
        return [*checks, self._virtual_cluster(offers), self._storage(offers)]

    def _virtual_cluster(self, offers: Mapping[str, Any]) -> Check:
        wanted = self._settings.virtual_cluster or "default"
        names = [each["name"] for each in offers["virtualClusters"]]
        if wanted in names:
            return Check("virtual cluster", True, f"`{wanted}`; yours: {', '.join(names)}")
        said = f"`{wanted}` is not yours to use; yours: {', '.join(names) or 'none'}"
        fix = f"paijob profile edit {self._profile.name} --set virtualCluster={names[0] if names else 'NAME'}"
        return Check("virtual cluster", False, said, fix)

    def _storage(self, offers: Mapping[str, Any]) -> Check:
        granted = [each["name"] for each in offers["storages"]]
        missing = [name for name in self._settings.storages if name not in granted]
        shown = f"yours: {', '.join(granted) or 'none'}"
        if missing:
            fix = f"Ask for it, or take it out: paijob profile edit {self._profile.name} --unset storages"
            return Check("storage", False, f"`{missing[0]}` is not granted to you; {shown}", fix)
        for name, storage in self._settings.storages.items():
            if storage.folder is not None and not storage.folder.is_dir():
                said = f"`{name}` is not mounted here at `{storage.folder}`"
                return Check("storage", False, said, "Mount it, or correct its `path` in the profile.")
        return Check("storage", True, shown, needed=False)

    def _ways(self) -> list[Check]:
        """Say by which ways packages travel and outputs come back."""
        settings = self._settings
        usable = [way for way in ladder.there(settings) if way != "document"]
        back = ladder.outputs_in_words(settings)
        checks = [
            Check("way for packages", True, ", ".join(usable))
            if usable
            else Check(
                "way for packages",
                False,
                "only small packages travel, inside the job document",
                "Name a storage that is mounted here too (`storage` and `storages`), `packageObject`, "
                "`packageWebHdfs` or `packageGit`.",
                needed=False,
            ),
            Check("way for outputs", True, back)
            if back
            else Check(
                "way for outputs",
                False,
                "declared outputs do not come back",
                "Name a storage that is mounted here too (`storage` and `storages`), `packageObject` or "
                "`packageWebHdfs`.",
                needed=False,
            ),
        ]
        if settings.bucket is not None and signing.credentials(settings.bucket.profile) is None:
            said = f"this host has no credentials for bucket `{settings.bucket.bucket}`"
            fix = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where Jupyter is started."
            checks.append(Check("bucket", False, said, fix))
        return checks


def _version(server: Server, profile: str) -> Check:
    if server.release == (0, 0):
        return Check("version", False, "it names no version", "Ask whoever runs it.", needed=False)
    if not OLDEST <= server.release <= NEWEST:
        said = f"{server.version}; known are 1.0 to 1.8"
        return Check("version", False, said, "Newer ones may work; older ones do not.", needed=False)
    if server.release < features.LOGS_SINCE:
        said = f"{server.version}: it gives no logs, which came with 1.4"
        return Check("version", False, said, "Its administrators can upgrade it.", needed=False)
    return Check("version", True, server.version)


def _clock(server: Server) -> Check:
    if abs(server.skew) > _MOST_SKEW:
        said = f"the server's clock is {server.skew:+.0f} s off this one"
        return Check("clock", False, said, "sudo timedatectl set-ntp true (here, or there)", needed=False)
    return Check("clock", True, "agrees with the server's")


def _token(who: Who, where: str, again: str) -> Check:
    if who.expires is None:
        return Check("login", True, f"{who.user}, by the token in {where}")
    left = who.expires - time.time()
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(who.expires))
    return Check("login", left > _SOON, f"{who.user}, by a token in {where} that ends {until}", again)
