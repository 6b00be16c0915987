"""A job document as it was read: the user's text, its values, and the place of each value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paijupyter.errors import InvalidDocument, Problem
from paijupyter.protocol.corrections import correct
from paijupyter.protocol.source import decode, parse
from paijupyter.protocol.values import Construction, Place


@dataclass(frozen=True)
class Document:
    """One job document.

    Attributes:
        text: the source, as it was given.
        data: its values by the original server's rules, with ``corrections`` made.
        corrections: what was changed in ``data`` because only some validators accept it.
        raw: its values without corrections.
        places: JSON Pointer → place in the text; members that a correction added have none.
    """

    text: str
    data: dict[str, Any]
    corrections: list[Problem] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
    places: dict[str, Place] = field(default_factory=dict, repr=False)

    def place_of(self, path: str) -> Place | None:
        """Return the place of a member, or of the nearest one around it that stands in the text."""
        while path not in self.places:
            if not path:
                return None
            path = path.rpartition("/")[0]
        return self.places[path]

    def line_of(self, path: str) -> int | None:
        """Return the 1-based line of the member a JSON Pointer names, or of the nearest one around it."""
        place = self.place_of(path)
        return place.line if place else None

    def column_of(self, path: str) -> int | None:
        """Return the 1-based column that goes with :meth:`line_of`."""
        place = self.place_of(path)
        return place.column if place else None


def read(text: str | bytes) -> Document:
    """Read a job document.

    What any of the public validators accepts is read; what the others refuse is corrected in ``data`` and
    listed. Whether it makes sense is for :func:`paijupyter.protocol.check`.

    Raises:
        InvalidDocument: if it is not one YAML document with a mapping at its top; with every reason found.
    """
    source = decode(text)
    raw, places, problems = parse_values(source)
    if problems:
        raise InvalidDocument(problems)
    data, corrections, places = correct(raw, places)
    return Document(source, data, corrections, raw, places)


def parse_values(source: str) -> tuple[dict[str, Any], dict[str, Place], list[Problem]]:
    """Return the uncorrected values, their places, and what forbids reading them.

    Raises:
        InvalidDocument: if the text is not YAML.
    """
    node = parse(source)
    construction = Construction()
    data = construction.value(node)
    problems = construction.problems
    if not isinstance(data, dict):
        message = "Job document must be a mapping of keys like `name` and `taskRoles`."
        problems.append(Problem("error", "not-a-mapping", message, "", node.line, node.column))
        data = {}
    return data, construction.places, problems
