"""The group's folder: the truth about one group, as a job's folder is about one job.

``group.json`` has facts that never change, ``events.jsonl`` grows line by line, ``round-<n>.json`` has the
documents of one round of submissions, in which each experiment is submitted at most once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from paijupyter.jobs import folders
from paijupyter.jobs.files import replace_synced, sync, to_json, write_synced
from paijupyter.jobs.identity import is_id
from paijupyter.jobs.record import BrokenRecord, Event

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The folder of one group and the facts in it."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The group's id."""
        return cast("str", self.facts["id"])

    @property
    def name(self) -> str:
        """The group's name, unique within its folder."""
        return cast("str", self.facts["name"])

    def events(self) -> Iterator[Event]:
        """Read all events; a line that a crash tore is left out."""
        for line in (self.folder / "events.jsonl").read_bytes().split(b"\n"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event

    def append(self, event: Event) -> None:
        """Add an event; it is on the disk when this returns."""
        descriptor = os.open(self.folder / "events.jsonl", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            line = (b"\n" if torn else b"") + to_json(event) + b"\n"
            while line:
                line = line[os.write(descriptor, line) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def add_round(self, event: Event, documents: Mapping[str, Any]) -> None:
        """Begin a round: its documents first, so that a round that is told of has them."""
        path = self._round(event["number"])
        path.unlink(missing_ok=True)  # of a round that a crash kept from being told of
        write_synced(path, to_json(documents))
        sync(self.folder)
        self.append(event)

    def documents(self, number: int) -> dict[str, Any]:
        """Return the documents of a round by key: ``{document, text}``, the text only of a manifest."""
        return cast("dict[str, Any]", json.loads(self._round(number).read_bytes()))

    def keep_view(self, view: Mapping[str, Any]) -> None:
        """Keep the view of a settled group, so that lists need not read its events."""
        replace_synced(self.folder / "view.json", to_json(view))

    def kept_view(self) -> dict[str, Any] | None:
        """Return the view that was kept, if it is of the events as they are now."""
        try:
            view = json.loads((self.folder / "view.json").read_bytes())
            size = (self.folder / "events.jsonl").stat().st_size
        except (OSError, ValueError):
            return None
        return view if isinstance(view, dict) and view.get("eventsSize") == size else None

    @property
    def size(self) -> int:
        """Length of the events."""
        return (self.folder / "events.jsonl").stat().st_size

    def _round(self, number: int) -> Path:
        return self.folder / f"round-{number}.json"


def create(record: GroupRecord, first: Event, documents: Mapping[str, Any]) -> None:
    """Make a group's folder with its first round: whole or not at all."""
    contents = {
        "group.json": to_json(record.facts) + b"\n",
        "round-1.json": to_json(documents),
        "events.jsonl": to_json(first) + b"\n",
    }
    folders.make(record.folder, contents)


def read(folder: Path) -> GroupRecord:
    """Read the facts of a group's folder.

    Raises:
        BrokenRecord: if it is not one, or is of a later version of this program.
    """
    try:
        facts = json.loads((folder / "group.json").read_bytes())
    except (OSError, ValueError) as error:
        raise BrokenRecord(f"{folder.name}: {error}") from error
    if not isinstance(facts, dict) or facts.get("id") != folder.name or facts.get("schema") != SCHEMA:
        raise BrokenRecord(f"{folder.name}: group.json is not of this folder or version")
    return GroupRecord(folder, facts)


def folder_names(groups: Path) -> list[str]:
    """Return the ids of all groups, oldest first."""
    try:
        return sorted(name for name in os.listdir(groups) if is_id(name))
    except FileNotFoundError:
        return []
