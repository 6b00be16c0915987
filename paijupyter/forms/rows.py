"""The rows of a form laid over one document: which field stands where, and what it may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paijupyter.forms.patches import at
from paijupyter.protocol.form import form_rows
from paijupyter.protocol.values import pointer

Section = Literal["what", "where", "with", "advanced", "role", "customize"]
_HEADS = ("/taskRoles/*/instances", "/taskRoles/*/commands", "/taskRoles/*/resourcePerInstance/gpu")
_ROLES = ("/taskRoles/*", "/extras/paijupyter/roles/*", "/extras/hivedScheduler/taskRoles/*")
_IMAGES = "/prerequisites/*"
_OWN_PARTS = ("/taskRoles", "/secrets")  # cards of roles and rows of secrets are no single fields


@dataclass(frozen=True, slots=True)
class Row:
    """One field of one document.

    Attributes:
        path: JSON Pointer of its value in this document.
        pattern: that of the table of fields, with ``*`` for names.
        section: where the form shows it.
        label: the words beside it; they say of which image, where there are several.
        help: one sentence on what it does.
        widget: how it is shown.
        unit: of a number, or "".
        default: what happens when it is left out, in words, or "".
        required: whether a job cannot do without.
        choices: the only values it may have, or the names of its yes and no; () where it is free.
        is_list: whether its lines are items of a list.
        role: the role it belongs to, or "".
    """

    path: str
    pattern: str
    section: Section
    label: str
    help: str
    widget: str
    unit: str = ""
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    is_list: bool = False
    role: str = ""


def rows_of(data: Mapping[str, Any]) -> list[Row]:
    """Return the fields of a document in the order of the table; roles and secrets have parts of their own.

    Args:
        data: the document's values.
    """
    return [row for field in form_rows() if field["path"] not in _OWN_PARTS for row in _rows(field, data)]


def _rows(field: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Row]:
    pattern = str(field["path"])
    if "*" not in pattern:
        yield _row(field, pattern, field["section"])
    elif pattern.startswith(_ROLES):
        start = next(each for each in _ROLES if pattern.startswith(each))
        roles = at(data, "/taskRoles")
        for name in roles if isinstance(roles, Mapping) else ():
            path = pointer(start.removesuffix("/*"), name) + pattern.removeprefix(start)
            yield _row(field, path, "role" if pattern in _HEADS else "customize", role=str(name))
    elif pattern.startswith(_IMAGES):
        images = _images(data)
        for place, name in images:
            label = str(field["label"]) if len(images) == 1 else f"{field['label']} {name}"
            yield _row(field, f"/prerequisites/{place}" + pattern.removeprefix(_IMAGES), "where", label)


def _row(field: Mapping[str, Any], path: str, section: Section, label: str = "", role: str = "") -> Row:
    schema = field["schema"]
    return Row(
        path=path,
        pattern=str(field["path"]),
        section=section,
        label=label or str(field["label"]),
        help=str(field["help"]),
        widget=str(field["widget"]),
        unit=str(field["unit"]),
        default="" if field["default"] is None else str(field["default"]),
        required=bool(field["required"]),
        choices=tuple(map(str, schema.get("enum") or schema.get("properties") or ())),
        is_list=schema.get("type") == "array",
        role=role,
    )


def _images(data: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return place and name of each container image among the prerequisites."""
    items = at(data, "/prerequisites")
    return [
        (place, str(item.get("name")))
        for place, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, Mapping) and item.get("type") == "dockerimage"
    ]
