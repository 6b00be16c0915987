"""The job folder: the truth about one job.

Facts are written once, before the folder gets its name. Afterwards only ``events.jsonl`` grows, line by line.
What it looks like on disk is described in ``docs/reference/files``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from paijupyter.jobs import folders
from paijupyter.jobs.files import to_json
from paijupyter.jobs.identity import is_id

SCHEMA = 1
Event = Mapping[str, Any]


class BrokenRecord(Exception):
    """A job folder cannot be read; the reason is its text. Other jobs are not affected."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is written of a job beside its facts when it is made.

    Attributes:
        document: the user's document, as it was.
        submitted: what the backend made of it.
        commands: rendered command text per role.
        first: the event that it begins with.
    """

    document: str
    submitted: str
    commands: Mapping[str, str]
    first: Event


@dataclass(frozen=True, slots=True)
class Record:
    """The facts of one job, which never change after it was made.

    Attributes:
        folder: the job's folder.
        facts: the object in its ``job.json``.
    """

    folder: Path
    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The job's id."""
        return cast("str", self.facts["id"])

    @property
    def profile(self) -> str:
        """Name of the profile it was submitted to."""
        return cast("str", self.facts["profile"])

    @property
    def roles(self) -> dict[str, int]:
        """Task roles in document order, each with its number of instances."""
        return {role["name"]: int(role["instances"]) for role in self.facts["roles"]}

    @property
    def source(self) -> str:
        """The user's document, as it was."""
        return (self.folder / "document.yaml").read_bytes().decode("utf-8")

    @property
    def submitted(self) -> str:
        """What the backend made of it."""
        return (self.folder / "submitted.yaml").read_bytes().decode("utf-8")

    @property
    def commands(self) -> dict[str, str]:
        """Rendered command text per role."""
        return cast("dict[str, str]", json.loads((self.folder / "commands.json").read_bytes()))

    def task_folder(self, key: str, attempt: int) -> Path:
        """Where a task's log lies."""
        return self.folder / "tasks" / key / str(attempt)

    def events(self) -> Iterator[Event]:
        """Read all events; a line that a crash tore is left out."""
        try:
            content = (self.folder / "events.jsonl").read_bytes()
        except FileNotFoundError:
            return
        for line in content.split(b"\n"):
            event = _object(line)
            if event is not None:
                yield event

    def append(self, event: Event, *, durable: bool) -> None:
        """Add an event; with ``durable`` it is on the disk when this returns."""
        path = self.folder / "events.jsonl"
        # No O_CREAT: a removed job must not come back as a folder of one file.
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            line = (b"\n" if torn else b"") + to_json(event) + b"\n"
            while line:
                line = line[os.write(descriptor, line) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create(new: Iterable[tuple[Record, Beginning]]) -> None:
    """Make the folders of jobs: each whole or not at all, also if the machine stops in between.

    Raises:
        OSError: if they cannot be written; then none of them is there.
    """
    folders.make_all({record.folder: _contents(record, each) for record, each in new}, ("tasks", "output"))


def _contents(record: Record, beginning: Beginning) -> dict[str, bytes]:
    return {
        "job.json": to_json(record.facts) + b"\n",
        "document.yaml": beginning.document.encode("utf-8"),
        "submitted.yaml": beginning.submitted.encode("utf-8", "backslashreplace"),
        "commands.json": to_json(beginning.commands) + b"\n",
        "events.jsonl": to_json(beginning.first) + b"\n",
    }


def read(folder: Path) -> Record:
    """Read the facts of a job folder.

    Raises:
        BrokenRecord: if it is not one, or is of a later version of this program.
    """
    try:
        facts = json.loads((folder / "job.json").read_bytes())
    except (OSError, ValueError) as error:
        raise BrokenRecord(f"{folder.name}: {error}") from error
    if not isinstance(facts, dict) or facts.get("id") != folder.name:
        raise BrokenRecord(f"{folder.name}: job.json is not of this folder")
    if facts.get("schema") != SCHEMA:
        raise BrokenRecord(f"{folder.name}: record of schema {facts.get('schema')}, known is {SCHEMA}")
    missing = {"name", "shortName", "profile", "submittedAt", "roles"} - facts.keys()
    if missing:
        raise BrokenRecord(f"{folder.name}: job.json has no {', '.join(sorted(missing))}")
    return Record(folder, facts)


def folder_names(jobs: Path) -> set[str]:
    """Return the ids of all job folders."""
    try:
        return {name for name in os.listdir(jobs) if is_id(name)}
    except FileNotFoundError:
        return set()


def _object(line: bytes) -> Event | None:
    if not line.strip():
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
