"""One row of the table of fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["basic", "advanced"]
Widget = Literal[
    "text", "number", "select", "switch", "lines", "table", "roles", "memory", "duration", "flags", "kinds"
]  # flags: a mapping of yes and no; kinds: a list of objects of several kinds


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a job.

    Attributes:
        path: JSON Pointer into the document; ``*`` stands for each name of a role, parameter or label.
        label: the words beside it in the form, sentence case.
        help: one sentence on what it does.
        unit: of a number, or "".
        level: whether the form shows it at once or when unfolded.
        flag: the option of magic and command line, or "" where it is part of another (``--role``).
        widget: how the form shows it.
        default: what happens when it is left out, as a value or in words; None: nothing is set.
        required: whether a job cannot do without.
        profiles: kinds of profiles that heed it; (): all. A form shows it for these, and where it is set.
        elsewhere: of a list of several kinds, those that have other fields in the form.
    """

    path: str
    label: str
    help: str
    unit: str = ""
    level: Level = "basic"
    flag: str = ""
    widget: Widget = "text"
    default: Any = None
    required: bool = False
    profiles: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
