"""Checks of the engine's side: its folders, the room on the disk, the keyring, the profiles, the clock."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paijupyter.backends.accounts import Check
from paijupyter.backends.base import Place
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs import keyring
from paijupyter.jobs.profiles import Profiles

LEAST_FREE = 1024**3  # bytes; a package, its environment and some checkpoints take more than one thinks
MOST_SKEW = 2.0  # seconds
_FIRST_YEAR = 2024


async def examine(place: Place, profiles: Profiles, tests: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Look at everything that only the engine sees.

    Args:
        place: its folders.
        profiles: the profiles as the files are now.
        tests: the test of each profile.
    """
    return [
        await asyncio.to_thread(folder, "data folder", place.data),
        await asyncio.to_thread(room, place.data),
        await asyncio.to_thread(clock, place.data),
        await _keyring(),
        files_of_profiles(profiles),
        *(profile(test) for test in tests),
    ]


def folder(name: str, path: Path) -> Check:
    """Look whether a folder is there, writable, and nobody else's to write."""
    try:
        found = path.stat()
    except FileNotFoundError:
        above = next(each for each in path.parents if each.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Check(name, True, f"`{path}`, made when first needed")
        return Check(name, False, f"`{path}` cannot be made in `{above}`", f"chmod u+rwx {above}")
    except OSError as error:
        return Check(name, False, f"`{path}`: {error.strerror}", f"mkdir -p -m 700 {path}")
    if not stat.S_ISDIR(found.st_mode):
        return Check(name, False, f"`{path}` is no folder", f"mv {path} {path}.old")
    if not os.access(path, os.W_OK | os.X_OK):
        return Check(name, False, f"`{path}` cannot be written", f"chmod u+rwx {path}")
    if found.st_uid != os.getuid():
        return Check(name, False, f"`{path}` belongs to somebody else", f"chown -R $USER {path}")
    if found.st_mode & 0o077:
        mode = stat.filemode(found.st_mode)
        return Check(name, False, f"`{path}` is open to others ({mode})", f"chmod 700 {path}")
    return Check(name, True, f"`{path}`, private")


def room(path: Path) -> Check:
    """Look at the free room below a folder."""
    usage = shutil.disk_usage(path)
    said = f"{usage.free / 1024**3:.1f} GiB free of {usage.total / 1024**3:.1f} GiB"
    if usage.free >= LEAST_FREE:
        return Check("disk", True, said)
    return Check("disk", False, said, "Delete old jobs (paijob delete NAME), or set PAIJUPYTER_DATA_DIR.")


def clock(path: Path) -> Check:
    """Compare the clock with that of the file system, which may be another machine's."""
    with tempfile.TemporaryFile(dir=path) as probe:
        before = time.time()
        probe.write(b"x")
        probe.flush()
        os.utime(probe.fileno())
        skew = os.fstat(probe.fileno()).st_mtime - before
    if time.gmtime(before).tm_year < _FIRST_YEAR:
        return Check("clock", False, f"it is {time.ctime(before)} here", "sudo timedatectl set-ntp true")
    if abs(skew) > MOST_SKEW:
        said = f"the clock of the file system is {skew:+.1f} s off"
        return Check("clock", False, said, "sudo timedatectl set-ntp true (here and on the file server)")
    return Check("clock", True, f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(before))} UTC")


async def _keyring() -> Check:
    try:
        return Check("keyring", True, await keyring.backend(), needed=False)
    except PaiJupyterError as error:
        return Check("keyring", False, error.message.rstrip("."), error.hint, needed=False)


def files_of_profiles(profiles: Profiles) -> Check:
    """Say what is wrong with the files of profiles."""
    if profiles.problems:
        return Check("profiles", False, " ".join(profiles.problems), "Mend the file, or: paijob profile edit")
    names = ", ".join(sorted(profiles.by_name))
    return Check("profiles", True, f"{names}; default {profiles.default}")


def profile(test: Mapping[str, Any]) -> Check:
    """Say what became of a profile's test."""
    name = f"profile {test['name']}"
    if not test["ok"]:
        fix = test["hint"] or f"paijob profile show {test['name']}"
        return Check(name, False, str(test["message"]).rstrip("."), fix)
    if test["problems"]:
        return Check(name, False, test["problems"][0], f"paijob profile edit {test['name']} --unset NAME")
    return Check(name, True, capacity(test.get("capabilities") or {}))


def capacity(facts: Mapping[str, Any]) -> str:
    """Return in words what a profile has, and what of it is free."""
    free = facts.get("free") or {}
    said = [
        f"{name} {free.get(name, total):g} of {total:g} free"
        for name, total in (facts.get("capacity") or {}).items()
    ]
    return ", ".join(said) or "answers"
