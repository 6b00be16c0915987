"""Trainer packages: content-addressed snapshots of a notebook's folder (P9-P18).

:func:`snapshot` takes one and puts it into a :class:`Store`; :func:`select` only says what it would hold.
"""

from __future__ import annotations

from paijupyter.package.excluded import Excluded
from paijupyter.package.limits import Limits, readable_size
from paijupyter.package.local_store import LocalStore
from paijupyter.package.manifest import SMALL, Changes, Entry, Manifest
from paijupyter.package.selection import Selected, Selection, select
from paijupyter.package.snapshot import Snapshot, snapshot
from paijupyter.package.store import AdoptingStore, Missing, Store

__all__ = [
    "SMALL",
    "AdoptingStore",
    "Changes",
    "Entry",
    "Excluded",
    "Limits",
    "LocalStore",
    "Manifest",
    "Missing",
    "Selected",
    "Selection",
    "Snapshot",
    "Store",
    "readable_size",
    "select",
    "snapshot",
]
