"""What of the lab is still on this machine: after a stop there must be nothing but the cache."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tests.cluster.lab import network
from tests.cluster.lab.places import STATE


def leftovers(state: Path = STATE) -> list[str]:
    """Name everything that is there, a line each.

    Args:
        state: the folder of a running lab.
    """
    return [
        *(f"process {pid}: {command[:120]}" for pid, command in _processes(state)),
        *(f"mount {place}" for place in mounts(state)),
        *network.left(),
        *(f"link {link}" for link in _links(state)),
        *(f"control group {group}" for group in _groups()),
        *([f"folder {state}"] if state.exists() else []),
    ]


def mounts(state: Path = STATE) -> list[str]:
    """Return what is mounted below the state folder, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = (line.split()[4].replace("\\040", " ") for line in lines)
    return sorted((each for each in places if each.startswith(f"{state}/")), key=len, reverse=True)


def _processes(state: Path) -> list[tuple[int, str]]:
    """Return pid and command of what names the state folder in its arguments, or works in it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_there = os.readlink(folder / "cwd").startswith(str(state))
            if words != [b""] and (is_there or any(f"{state}/".encode() in word for word in words)):
                found.append((int(folder.name), b" ".join(words).decode("utf-8", "replace").strip()))
    return sorted(found)


def _links(state: Path) -> list[Path]:
    return [
        link
        for link in Path("/var/log/containers").glob("*")
        if link.is_symlink() and str(os.readlink(link)).startswith(f"{state}/")
    ]


def _groups() -> list[Path]:
    if "kubepods" in Path("/proc/self/cgroup").read_text():
        return []  # this is a pod itself: they are its own cluster's
    return sorted(Path("/sys/fs/cgroup").glob("**/kubepods"))
