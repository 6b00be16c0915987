"""Trainer packages: content-addressed snapshots of a notebook's folder (P9-P18).

:func:`snapshot` takes one and puts it into a :class:`Store`; :func:`select` only says what it would hold.
Names are loaded when they are first used: a kernel that only watches jobs never loads them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.package.excluded import Excluded
    from paijupyter.package.limits import Limits, readable_size
    from paijupyter.package.local_store import LocalStore
    from paijupyter.package.manifest import SMALL, Changes, Entry, Manifest
    from paijupyter.package.selection import Selected, Selection, select
    from paijupyter.package.snapshots import Snapshot, snapshot
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
_HOMES = {
    "excluded": ("Excluded",),
    "limits": ("Limits", "readable_size"),
    "local_store": ("LocalStore",),
    "manifest": ("SMALL", "Changes", "Entry", "Manifest"),
    "selection": ("Selected", "Selection", "select"),
    "snapshots": ("Snapshot", "snapshot"),
    "store": ("AdoptingStore", "Missing", "Store"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
