"""What is set up beside jobs: profiles, and secrets in the keyring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from paijupyter.backends import base
from paijupyter.backends.base import Capabilities, Place, Profile
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs import checks, keyring, profile_editing
from paijupyter.jobs.accounts import Accounts
from paijupyter.jobs.common_settings import COMMON_SETTINGS, problems_of
from paijupyter.jobs.profiles import ProfileFiles, Profiles, admin_files, user_file
from paijupyter.jobs.watchers import Backends

_TEST_SECONDS = 20.0


class Settings:
    """Profiles and stored secrets of this user, and whether all is well with them.

    Args:
        place: the folders of this host.
        profiles: the files of profiles.
        backends: the backends in use.
        unfinished: returns the names of the unfinished jobs of a profile.
    """

    def __init__(
        self,
        place: Place,
        profiles: ProfileFiles,
        backends: Backends,
        unfinished: Callable[[str], Sequence[str]],
    ) -> None:
        self._place = place
        self._profiles = profiles
        self._backends = backends
        self._unfinished = unfinished
        self._turn = asyncio.Lock()
        self.accounts = Accounts(profiles, backends)

    # -- profiles ---------------------------------------------------------------------------------------

    def profiles(self) -> dict[str, Any]:
        """Return ``{profiles, default, problems, file, adminFiles}``."""
        found = self._profiles.read()
        return {
            "profiles": found.to_json(),
            "default": found.default,
            "problems": list(found.problems),
            "file": str(user_file()),
            "adminFiles": [str(file) for file in admin_files()],
        }

    def profile(self, name: str) -> dict[str, Any]:
        """Return one profile, each field with who has said it.

        Raises:
            NotFound: there is none of that name.
        """
        return self._known(name).one_to_json(name)

    async def add_profile(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Write a new profile into the user's file; see :func:`profile_editing.add`."""
        return await self._changed(name, lambda: profile_editing.add(name, settings, self._check))

    async def edit_profile(
        self, name: str, changes: Mapping[str, Any], unset: Sequence[str]
    ) -> dict[str, Any]:
        """Change fields of a profile in the user's file; see :func:`profile_editing.edit`."""
        self._known(name)
        if "kind" in changes:
            self._refuse_if_used(name, "its kind cannot change")
        return await self._changed(name, lambda: profile_editing.edit(name, changes, unset, self._check))

    async def remove_profile(self, name: str) -> dict[str, Any] | None:
        """Take a profile out of the user's file; return what an administrator's file leaves of it.

        Raises:
            NotFound: there is none of that name.
            Conflict: ``not-yours``, or ``profile-in-use`` by an unfinished job.
        """
        self._known(name)
        self._refuse_if_used(name, "it cannot be removed")
        async with self._turn:
            await asyncio.to_thread(profile_editing.remove, name)
        found = self._profiles.read()
        return found.one_to_json(name) if name in found.by_name else None

    async def choose_profile(self, name: str) -> dict[str, Any]:
        """Make a profile the default one."""
        self._known(name)
        return await self._changed(name, lambda: profile_editing.choose(name))

    async def test_profile(self, name: str) -> dict[str, Any]:
        """Ask a profile's backend what it can do: ``{name, ok, message, hint, problems, capabilities}``.

        Raises:
            NotFound: there is none of that name.
        """
        profile = self._known(name).by_name[name]
        try:
            backend = await self._backends.of(profile.name)
            found = await asyncio.wait_for(backend.capabilities(), _TEST_SECONDS)
        except PaiJupyterError as error:
            return _tested(profile, error.message, error.hint)
        except asyncio.TimeoutError:
            return _tested(profile, f"It did not answer in {_TEST_SECONDS:.0f} s.", "Try again.")
        except Exception as error:  # a backend of another package may fail in any way
            return _tested(profile, f"{type(error).__name__}: {error}", "See the engine's log.")
        return _tested(profile, found.unreachable, capabilities=found)

    def _known(self, name: str) -> Profiles:
        found = self._profiles.read()
        if name not in found.by_name:
            raise NotFound("Profile", name, f"Profiles: {', '.join(sorted(found.by_name))}.")
        return found

    def _refuse_if_used(self, name: str, what: str) -> None:
        jobs = self._unfinished(name)
        if jobs:
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            raise Conflict(
                "profile-in-use",
                f"Profile `{name}` is in use by `{jobs[0]}`{more}, so {what}.",
                "Wait until they have ended, or stop them.",
            )

    async def _changed(self, name: str, change: Callable[[], None]) -> dict[str, Any]:
        async with self._turn:
            await asyncio.to_thread(change)
        return self._profiles.read().one_to_json(name)

    def _check(self, after: Profiles, name: str) -> None:
        """Let the backend look at the settings before they are written."""
        profile = after.get(name)
        base.load_backend(profile, self._place)
        unknown = _unknown_settings(profile)
        if unknown:
            raise profile_editing.refused(unknown[0])

    # -- secrets ----------------------------------------------------------------------------------------

    async def secrets(self) -> list[str]:
        """Return the names of the secrets in the keyring; there is no way to get a value."""
        return await keyring.names()

    async def put_secret(self, name: str, value: str) -> None:
        """Store a secret in the keyring."""
        await keyring.put(name, value)

    async def remove_secret(self, name: str) -> None:
        """Remove a secret from the keyring."""
        await keyring.remove(name)

    # -- doctor -----------------------------------------------------------------------------------------

    async def doctor(self) -> list[dict[str, Any]]:
        """Return the checks of this side, ``{name, ok, message, fix}`` each."""
        found = self._profiles.read()
        tests = [await self.test_profile(each) for each in sorted(found.by_name)]
        seen = await checks.examine(self._place, found, tests)
        for each in sorted(found.by_name):
            seen += await self.accounts.examine(each)
        return [check.to_json() for check in seen]


def _tested(
    profile: Profile, wrong: str = "", hint: str = "", capabilities: Capabilities | None = None
) -> dict[str, Any]:
    facts = asdict(capabilities) if capabilities else None
    if facts:
        facts["features"] = sorted(facts["features"])
    return {
        "name": profile.name,
        "kind": profile.kind,
        "ok": not wrong,
        "message": wrong,
        "hint": hint,
        "problems": _unknown_settings(profile),
        "capabilities": facts,
    }


def _unknown_settings(profile: Profile) -> list[str]:
    """Name settings that cannot be used or that the kind does not have; one that lists none is believed."""
    wrong = problems_of(profile)
    point = base.backend_kinds().get(profile.kind)
    known = getattr(point.load(), "SETTINGS", None) if point is not None else None
    if known is None:
        return wrong
    known = {*known, *COMMON_SETTINGS}
    found = wrong
    for name in profile.settings:
        if name not in known:
            near = get_close_matches(name, list(known), 1)
            hint = f"`{near[0]}` is near." if near else f"Known are: {', '.join(sorted(known))}."
            found.append(f"Setting `{name}` is not one of the kind `{profile.kind}`. {hint}")
    return found
