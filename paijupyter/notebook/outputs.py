"""What cells of an executed notebook have put out: text and pictures, for whoever compares or shows them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.notebook.reading import Notebook

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that a cell has put out.

    Attributes:
        kind: ``text``, ``error`` or the type of a picture, ``image/png``.
        content: the text, or the picture as a notebook has it: base64, SVG as text.
    """

    kind: str
    content: str

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture."""
        return self.kind in _PICTURES

    @property
    def digest(self) -> str:
        """What tells it from others in one line: its text, or the hash of a picture."""
        if not self.is_picture:
            return self.content
        return f"{self.kind} {hashlib.sha256(self.content.encode('utf-8', 'replace')).hexdigest()[:12]}"


def outputs_by_cell(notebook: Notebook) -> dict[int, list[Output]]:
    """Return what each code cell has put out, by its number; cells that put out nothing are left out."""
    found: dict[int, list[Output]] = {}
    for number, cell in enumerate(notebook.data.get("cells") or (), 1):
        given = cell.get("outputs") if isinstance(cell, Mapping) else None
        outputs = list(_read(given)) if isinstance(given, list) else []
        if outputs:
            found[number] = outputs
    return found


def _read(given: list[Any]) -> Iterator[Output]:
    for each in given:
        if not isinstance(each, Mapping):
            continue
        kind = each.get("output_type")
        if kind == "stream":
            yield Output("text", _text(each.get("text")))
        elif kind == "error":
            yield Output("error", _ANSI.sub("", f"{each.get('ename')}: {each.get('evalue')}"))
        elif isinstance(each.get("data"), Mapping):
            data = each["data"]
            picture = next((name for name in _PICTURES if name in data), None)
            if picture:
                yield Output(picture, _text(data[picture]))
            elif "text/plain" in data:
                yield Output("text", _text(data["text/plain"]))


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else ""
