"""The groups there are: those that go on in memory, all others as the view that was kept of them."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, NotFound
from paijupyter.jobs import folders
from paijupyter.jobs import group_record as records
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.group import Group
from paijupyter.jobs.identity import not_before
from paijupyter.jobs.record import BrokenRecord

_log = logging.getLogger(__name__)
_LOOK_AGAIN = 2.0  # seconds between two looks for groups of other hosts


class Shelf:
    """All groups of one data folder. A ``ref`` is an id, or a name: then the latest of that name.

    Args:
        data: the data folder.
        catalog: its jobs.
        bus: where changes are published.

    Attributes:
        open: the groups in memory, by id.
    """

    def __init__(self, data: Path, catalog: Catalog, bus: EventBus) -> None:
        self.folder = data / "groups"
        self.open: dict[str, Group] = {}
        self._catalog = catalog
        self._bus = bus
        self._views: dict[str, dict[str, Any]] = {}
        self._looked = 0.0

    async def fill(self) -> None:
        """Read the groups that are not settled, and of all others what was kept of them."""
        await asyncio.to_thread(folders.sweep, self.folder)
        names = await asyncio.to_thread(records.folder_names, self.folder)
        not_before(max(names, default=""))
        for name in names:
            self._take_in(name)
        self._looked = time.monotonic()

    def page(
        self, folder: str | None, limit: int, cursor: str | None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return up to ``limit`` groups, latest first, and the cursor of the next page or None."""
        self._look_around()
        found = [
            each
            for each in sorted(self._views, reverse=True)
            if (cursor is None or each < cursor)
            and (folder is None or self._views[each].get("folder") == folder)
        ]
        return [self.view(each) for each in found[:limit]], found[limit - 1] if len(found) > limit else None

    def packages(self) -> set[str]:
        """Return the hashes of all packages that experiments may still need."""
        found = {str(view["packageSha256"]) for view in self._views.values() if view.get("packageSha256")}
        for group in self.open.values():
            found |= set((group.settings.get("data") or {}).values())
        return found

    def __contains__(self, group: object) -> bool:
        return group in self._views

    def tell(self, group: Group) -> None:
        """Tell readers of a change of a group."""
        if group.is_removed:
            return
        view = group.view(mine=self.owns(group))
        self.open[group.id] = group
        self._views[group.id] = view
        self._bus.publish_passing(group.id, {"type": "group", "group": view})

    async def remove(self, group: Group) -> None:
        """Remove a group's folder and everything that is known of it."""
        group.is_removed = True
        self.open.pop(group.id, None)
        self._views.pop(group.id, None)
        await asyncio.to_thread(folders.remove, group.record.folder)
        self._bus.forget_passing(group.id)
        self._bus.publish({"type": "group-deleted", "id": group.id})

    def find(self, ref: str) -> str:
        """Return the id of a group.

        Raises:
            NotFound: if there is none.
        """
        self._look_around()
        if ref in self._views:
            return ref
        named = [each for each, view in self._views.items() if view.get("name") == ref]
        if not named:
            raise NotFound("Group", ref, "See what there is with: list --groups.")
        return max(named)

    def named(self, name: str, folder: str | None) -> Group | None:
        """Return the group of a name in a folder."""
        named = [
            each
            for each, view in self._views.items()
            if view.get("name") == name and view.get("folder") == folder and view.get("mine")
        ]
        return self.group(max(named)) if named else None

    def by_request(self, request_id: str | None) -> str | None:
        """Return the id of the group whose round a request has begun."""
        return next((each.id for each in self.open.values() if request_id in each.requests), None)

    def group(self, ref: str) -> Group:
        """Return a group with its experiments.

        Raises:
            NotFound: if there is none.
        """
        found = self.find(ref)
        if found not in self.open:
            record = records.read(self.folder / found)
            self.open[found] = Group.read(record, self._catalog.index.of_group(found))
        return self.open[found]

    def view(self, group: str) -> dict[str, Any]:
        """Return the view of a group as it is now."""
        found = self.open.get(group)
        return found.view(mine=self.owns(found)) if found is not None else self._views[group]

    def _take_in(self, name: str) -> None:
        try:
            record = records.read(self.folder / name)
            view = record.kept_view()
            if view is not None:
                self._views[name] = {**view, "mine": self._catalog.host.owns(record.facts)}
                return
            group = Group.read(record, self._catalog.index.of_group(name))
        except (BrokenRecord, OSError, KeyError, TypeError, ValueError) as error:
            _log.warning("group folder %s is left out: %s", name, error)
            return
        self.open[name] = group
        self._views[name] = group.view(mine=self.owns(group))

    def _look_around(self) -> None:
        """Take in groups that other hosts have made on a shared home."""
        if time.monotonic() - self._looked < _LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        there = records.folder_names(self.folder)
        for name in set(there) - self._views.keys():
            self._take_in(name)

    def owns(self, group: Group) -> bool:
        """Say whether a group is of this host."""
        return self._catalog.host.owns(group.record.facts)

    def require_ours(self, group: Group) -> None:
        """Refuse to touch a group of another host.

        Raises:
            Conflict: ``other-host``.
        """
        if not self.owns(group):
            raise Conflict(
                "other-host",
                f"Group `{group.record.name}` belongs to host `{group.record.facts.get('host')}`.",
                "It is only shown here.",
            )
