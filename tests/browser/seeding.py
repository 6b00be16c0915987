"""Jobs for a list to show: many ended ones, as copies of one that has really run, and groups that go on."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.documents import document

_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"  # as in ids of jobs: base32, in the order of their code points
_FACTS = ("document.yaml", "submitted.yaml", "commands.json")
_NAP = "echo lr {lr}; while [ ! -e GO ]; do sleep 0.2; done"


def copy_back(data: Path, job: str, count: int, apart: timedelta) -> list[str]:
    """Copy a job's folder; return the copies' names, latest first. The engine must not run meanwhile.

    Args:
        data: the data folder.
        job: id of a job that has ended.
        count: how many copies.
        apart: time from each submission to the one before; the first copy's is before the job's own.
    """
    pattern = data / "jobs" / job
    facts = json.loads((pattern / "job.json").read_text())
    events = [json.loads(line) for line in (pattern / "events.jsonl").read_text().splitlines()]
    kept = {name: (pattern / name).read_bytes() for name in _FACTS}
    began = _moment(facts["submittedAt"])
    names = []
    for number in range(count):
        way = -(number + 1) * apart
        name = f"{facts['shortName']}-{number:06}"
        folder = data / "jobs" / _id(began + way, number)
        (folder / "tasks").mkdir(parents=True)
        (folder / "output").mkdir()
        for file, content in kept.items():
            (folder / file).write_bytes(content)
        own = {"id": folder.name, "name": name, "requestId": None, "submittedAt": _text(began + way)}
        (folder / "job.json").write_text(json.dumps(facts | own))
        moved = [json.dumps({**each, "at": _text(_moment(each["at"]) + way)}) + "\n" for each in events]
        (folder / "events.jsonl").write_text("".join(moved))
        names.append(name)
    return names


def sweep(lab: Any, name: str, count: int) -> str:
    """Submit a group whose jobs wait for the file ``go`` in the server's folder; return its id."""
    template = document(_NAP.replace("GO", str(lab.root / "go")), name=name, cpu=0, memory=64)
    experiments = {"experiments": {str(each): {"lr": each / 10} for each in range(1, count + 1)}}
    request = {
        "template": template,
        "experiments": json.dumps(experiments),
        "context": {"folder": "", "python": sys.executable},
    }
    return str(lab.post("groups", request)["id"])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _id(moment: datetime, number: int) -> str:
    return _base32(round(moment.timestamp() * 1000), 10) + _base32(number, 8)


def _base32(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
