"""One field as widgets: a label, what is typed, what is wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol

import ipywidgets

from paijupyter.client.card_html import rich
from paijupyter.client.words import SEVERITIES
from paijupyter.errors import Problem, UsageProblem
from paijupyter.forms.patches import at
from paijupyter.forms.rows import Row
from paijupyter.forms.values import Pair, entered, from_pairs, pairs, shown

LABEL = "11em"
_WIDE = "32em"


class Control(Protocol):
    """A field of a form."""

    row: Row
    widget: Any
    mistake: str
    pending: int

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says."""

    def mark(self, problems: Sequence[Problem]) -> None:
        """Show what a plan finds wrong with it."""


Changed = Callable[[Control, Any], None]


class _Base:
    """What the kinds of fields share.

    Args:
        row: the field.
        changed: is told a value that a person gave, None where it was taken away, or what is wrong with it.

    Attributes:
        mistake: what is wrong with what stands there, or "".
        pending: how many changes were told and are not made yet; until then what is typed stays.
    """

    widget: Any

    def __init__(self, row: Row, changed: Changed) -> None:
        self.row = row
        self.mistake = ""
        self.pending = 0
        self._changed = changed
        self._showing: int | None = None
        self._said = ipywidgets.HTML()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Set widgets without taking that for typing; a person's typing comes on another thread."""
        self._showing = threading.get_ident()
        try:
            yield
        finally:
            self._showing = None

    def _typed(self, _: Any = None) -> None:
        if self._showing == threading.get_ident():
            return
        try:
            value = self._entered()
        except UsageProblem as error:
            self.mistake = str(error)
            self._said.value = said("error", self.mistake)
            self._changed(self, error)
            return
        self.mistake = self._said.value = ""
        self._changed(self, value)

    def _entered(self) -> Any:
        raise NotImplementedError

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says."""
        raise NotImplementedError

    def mark(self, problems: Sequence[Problem]) -> None:
        """Show what a plan finds wrong with it; what cannot be read at all goes before."""
        if not self.mistake:
            lines = [said(each.severity, f"{each.message} {each.hint}".strip()) for each in problems]
            self._said.value = "".join(lines)


class TextControl(_Base):
    """Text, numbers and amounts, in one line or several."""

    def __init__(self, row: Row, changed: Changed) -> None:
        super().__init__(row, changed)
        kind = ipywidgets.Textarea if row.widget == "lines" else ipywidgets.Text
        self.input = kind(continuous_update=False, placeholder=_placeholder(row), **_labelled(row))
        if row.widget == "lines":
            self.input.rows = 3
        self.input.observe(self._typed, "value")
        self.widget = ipywidgets.VBox([self.input, self._said])

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says; what cannot be read and was typed here stays."""
        text = shown(self.row, at(data, self.row.path))
        if not self.mistake and not self.pending and text != self.input.value:
            with self._quiet():
                self.input.value = text

    def _entered(self) -> Any:
        return entered(self.row, str(self.input.value))


class ChoiceControl(_Base):
    """One of a few values, or yes and no; the first choice is to leave it out."""

    def __init__(self, row: Row, changed: Changed) -> None:
        super().__init__(row, changed)
        self._switch = row.widget == "switch"
        words = (("yes", "true"), ("no", "false")) if self._switch else [(each, each) for each in row.choices]
        self._options = [(_placeholder(row) or "not set", ""), *words]
        self.input = ipywidgets.Dropdown(options=self._options, value="", **_labelled(row))
        self.input.observe(self._typed, "value")
        self.widget = ipywidgets.VBox([self.input, self._said])

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says, also where that is none of the choices."""
        text = shown(self.row, at(data, self.row.path))
        if self.pending or text == self.input.value:
            return
        with self._quiet():
            if text not in [value for _, value in self._options]:
                self._options.append((text, text))
                self.input.options = self._options
            self.input.value = text

    def _entered(self) -> Any:
        text = str(self.input.value)
        return {"": None, "true": True, "false": False}.get(text, text) if self._switch else text or None


class TableControl(_Base):
    """Names with values: parameters, variables, ports, data, storages."""

    def __init__(self, row: Row, changed: Changed) -> None:
        super().__init__(row, changed)
        self._before: Any = None
        self._rows: list[tuple[Any, Any, Any]] = []
        self._lines = ipywidgets.VBox([])
        self.add = button(f"Add to {row.label.lower()}")
        self.add.on_click(lambda _: self._append("", ""))
        head = heading(row.label, row.help)
        right = ipywidgets.VBox([self._lines, self.add, self._said])
        self.widget = ipywidgets.HBox([head, right])

    @property
    def entries(self) -> list[tuple[Any, Any]]:
        """The widgets of names and values, row by row."""
        return [(name, value) for name, value, _ in self._rows]

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says; rows that have no name yet stay."""
        self._before = at(data, self.row.path)
        wanted = pairs(self.row.pattern, self._before)
        if self.mistake or self.pending or wanted == [pair for pair in self._pairs() if pair[0].strip()]:
            return
        with self._quiet():
            self._set([self._entry(name, text) for name, text in wanted])

    def _set(self, rows: list[tuple[Any, Any, Any]]) -> None:
        self._rows = rows
        self._lines.children = tuple(ipywidgets.HBox(list(each)) for each in rows)

    def _append(self, name: str, text: str) -> None:
        self._set([*self._rows, self._entry(name, text)])

    def _entry(self, name: str, text: str) -> tuple[Any, Any, Any]:
        what = self.row.label.lower()
        fields = [
            ipywidgets.Text(name, placeholder="name", tooltip=f"Name in {what}", continuous_update=False),
            ipywidgets.Text(text, placeholder="value", tooltip=f"Value in {what}", continuous_update=False),
        ]
        remove = button("Remove", f"Remove it from {what}")
        for each, width in zip(fields, ("10em", "18em"), strict=True):
            each.layout.width = width
            each.observe(self._typed, "value")
        entry = (fields[0], fields[1], remove)
        remove.on_click(lambda _: self._remove(entry))
        return entry

    def _remove(self, entry: tuple[Any, Any, Any]) -> None:
        self._set([each for each in self._rows if each is not entry])
        self._typed()

    def _pairs(self) -> list[Pair]:
        return [(str(name.value), str(value.value)) for name, value, _ in self._rows]

    def _entered(self) -> Any:
        return from_pairs(self.row.pattern, self._pairs(), self._before)


class FlagsControl(_Base):
    """A mapping of yes and no."""

    def __init__(self, row: Row, changed: Changed) -> None:
        super().__init__(row, changed)
        self._before: Mapping[str, Any] = {}
        self.boxes = {
            name: ipywidgets.Checkbox(description=name, indent=False, layout={"width": "auto"})
            for name in row.choices
        }
        for box in self.boxes.values():
            box.observe(self._typed, "value")
        boxes = ipywidgets.HBox(list(self.boxes.values()), layout={"flex_flow": "row wrap"})
        self.widget = ipywidgets.HBox([heading(row.label, row.help), ipywidgets.VBox([boxes, self._said])])

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says."""
        before = at(data, self.row.path)
        self._before = before if isinstance(before, Mapping) else {}
        if not self.pending:
            with self._quiet():
                for name, box in self.boxes.items():
                    box.value = self._before.get(name) is True

    def _entered(self) -> Any:
        chosen = {name: box.value for name, box in self.boxes.items()}
        kept = {**self._before, **{name: on for name, on in chosen.items() if on or name in self._before}}
        return kept if any(chosen.values()) or set(kept) - set(chosen) else None


def control(row: Row, changed: Changed) -> Control:
    """Make the control of a field."""
    if row.widget == "flags":
        return FlagsControl(row, changed)
    if row.widget in ("select", "switch"):
        return ChoiceControl(row, changed)
    return TableControl(row, changed) if row.widget in ("table", "kinds") else TextControl(row, changed)


def heading(label: str, explanation: str) -> Any:
    """Return the words beside a part that has several fields, where those of a single field stand."""
    html = (
        f'<div style="text-align:right;padding-right:8px" title="{escape(explanation)}">{escape(label)}</div>'
    )
    return ipywidgets.HTML(html, layout={"width": LABEL, "flex": "0 0 auto"})


def button(text: str, tooltip: str = "") -> Any:
    """Return a button that is as wide as its word, wherever it stands."""
    layout = {"width": "auto", "flex": "0 0 auto", "align_self": "flex-start"}
    return ipywidgets.Button(description=text, tooltip=tooltip, layout=layout)


def said(severity: str, text: str) -> str:
    """Return one problem as HTML: its sign and its words."""
    return (
        f'<div role="status" style="line-height:1.4">{SEVERITIES[severity]} {rich(text)}</div>'
        if text
        else ""
    )


def _placeholder(row: Row) -> str:
    return "required" if row.required else f"default: {row.default}" if row.default else ""


def _labelled(row: Row) -> dict[str, Any]:
    unit = f" ({row.unit})" if row.widget == "number" and row.unit not in ("", row.label) else ""
    return {
        "description": f"{row.label}{unit}",
        "tooltip": f"{row.help} ({'required' if row.required else 'optional'})",
        "style": {"description_width": LABEL},
        "layout": {"width": _WIDE},
    }
