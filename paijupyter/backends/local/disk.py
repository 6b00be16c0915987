"""The room on the disk of the jobs, and the floor below which none starts."""

from __future__ import annotations

import os
from pathlib import Path

from paijupyter.backends.base import Profile
from paijupyter.backends.local.settings import number

_FLOOR_MB = 1024  # packages, environments and checkpoints take more than one thinks
_LOG_SHARE = 16  # a log may go on longer than jobs may start: it says why things fail
_MIB = 2**20


class Disk:
    """The file system that a folder lies on.

    Raises:
        PaiJupyterError: ``bad-setting`` if the profile's ``diskFloorMB`` is no number.
    """

    def __init__(self, folder: Path, profile: Profile) -> None:
        self._folder = folder
        self._floor = int(number(profile, "diskFloorMB", _FLOOR_MB)) * _MIB

    @property
    def log_floor(self) -> int:
        """Bytes of room below which logs pause."""
        return self._floor // _LOG_SHARE

    @property
    def shortage(self) -> str:
        """Why no job may start now, in one sentence; "" if one may."""
        if not self._floor or self._free() >= self._floor:
            return ""
        return f"Less than {_said(self._floor)} is free on the disk of `{self._folder}`, so no job starts."

    def _free(self) -> int:
        for folder in (self._folder, *self._folder.parents):  # it may not be there yet
            try:
                found = os.statvfs(folder)
            except OSError:
                continue
            return found.f_bavail * found.f_frsize
        return self._floor  # whoever writes there will say what is wrong


def _said(size: int) -> str:
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else f"{size // _MIB} MiB"
