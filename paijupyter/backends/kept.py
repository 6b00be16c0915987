"""What a backend keeps of a job beside its folder's record: a dataclass as one durable file of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from paijupyter.backends.base import Job
from paijupyter.backends.jsonfiles import read_json, write_json, write_json_durably
from paijupyter.backends.outcome import Outcome, change_of

K = TypeVar("K", bound="Kept")


class Kept:
    """What the dataclasses of backends have in common; ``outcome`` and ``last`` are known here."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"schema": 1, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    def from_json(cls: type[K], data: Mapping[str, Any]) -> K:
        """Rebuild it; unknown members are ignored."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}  # type: ignore[arg-type]
        if known.get("outcome"):
            known["outcome"] = Outcome(**known["outcome"])
        if known.get("last"):
            known["last"] = change_of(known["last"])
        return cls(**known)


def read(job: Job, kind: type[K]) -> K | None:
    """Return what is kept of a job, None if there is nothing, or nothing whole. Blocking."""
    data = read_json(journal_file(job))
    return None if data is None else kind.from_json(data)


def write(job: Job, kept: Kept) -> None:
    """Keep it so that it survives a power cut. Blocking."""
    write_json_durably(journal_file(job), kept.to_json())


def jot(job: Job, kept: Kept) -> None:
    """Keep what can be found out again after a power cut. Blocking; many times as quick as :func:`write`."""
    write_json(journal_file(job), kept.to_json())


def journal_file(job: Job) -> Path:
    """Return where a backend keeps its own record of a job; no task is called so."""
    return job.folder / "tasks" / "backend.json"
