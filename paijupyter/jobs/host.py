"""Which machine this is, and what kind of file system a folder lies on."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# Everything else (NFS, CIFS, FUSE, 9p, Lustre, …) is taken for shared: there SQLite's WAL is unsafe.
_LOCAL_TYPES = frozenset(
    {
        "apfs", "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay",
        "ramfs", "reiserfs", "rootfs", "tmpfs", "ufs", "vfat", "xfs", "zfs",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Host:
    """One machine as job records know it.

    Attributes:
        name: host name.
        boot_id: kernel's id of this boot, or "" where there is none.
        namespace: pid namespace, so that two containers on one kernel are told apart.
    """

    name: str
    boot_id: str
    namespace: str

    def owns(self, facts: Mapping[str, Any]) -> bool:
        """Say whether a job record was made on this host.

        The host name decides. A machine whose name changed while it ran is known by its boot id and pid
        namespace; a container that only shares the kernel is not.
        """
        if facts.get("host") == self.name:
            return True
        same_boot = bool(self.boot_id) and facts.get("bootId") == self.boot_id
        return same_boot and bool(self.namespace) and facts.get("pidNamespace") == self.namespace


@lru_cache(maxsize=1)
def this_host() -> Host:
    """Return this machine; it is asked once per process."""
    return Host(socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid"))


def on_local_file_system(folder: Path, mounts: str | None = None) -> bool:
    """Say whether a folder certainly lies on a file system of this machine alone.

    Args:
        folder: an existing folder.
        mounts: text of ``/proc/mounts``; read if None. Where there is none the answer is False.
    """
    text = _read("/proc/mounts") if mounts is None else mounts
    real = os.path.realpath(folder)
    best, kind = "", ""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        # Spaces and the like in a mount point are written as octal escapes, for example \040.
        point = fields[1].encode("latin-1", "replace").decode("unicode_escape")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # The last mount on a point hides those before it, so equal length wins.
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind in _LOCAL_TYPES


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
