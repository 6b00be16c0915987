"""Secrets: a name, where its value comes from, and a field for the value that keeps none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets

from paijupyter.errors import Problem
from paijupyter.forms.controls import button, heading, said
from paijupyter.forms.entry import SecretEntry

_SOURCES = (
    ("typed here", "ask"),
    ("environment variable", "env"),
    ("keyring", "keyring"),
    ("Kubernetes secret", "k8s"),
)
_TARGETS = {"env": "variable", "keyring": "entry", "k8s": "secret/key"}


@dataclass(slots=True)
class _Line:
    name: Any
    source: Any
    target: Any
    entry: Any
    remove: Any

    @property
    def reference(self) -> str:
        if self.source.value == "ask":
            return "ask"
        return f"{self.source.value}:{self.target.value.strip() or self.name.value.strip()}"


class SecretsPart:
    """The rows of secrets.

    Args:
        changed: is told the references of all secrets by name.
        given: is told name, reference and the value that was typed.
    """

    def __init__(
        self, changed: Callable[[dict[str, str]], None], given: Callable[[str, str, str], None]
    ) -> None:
        self._changed, self._given = changed, given
        self.pending = 0
        self.lines: list[_Line] = []
        self._rows = ipywidgets.VBox([])
        self._said = ipywidgets.HTML()
        self.add = button("Add to secrets")
        self.add.on_click(lambda _: self._set([*self.lines, self._line("", "ask")]))
        head = heading("Secrets", "Private values, each by a reference; a notebook never has a value")
        self.widget = ipywidgets.HBox([head, ipywidgets.VBox([self._rows, self.add, self._said])])

    def show(self, references: Mapping[str, str], known: Sequence[str]) -> None:
        """Show which secrets there are; of those in ``known`` a value was typed."""
        now = {line.name.value.strip(): line.reference for line in self.lines if line.name.value.strip()}
        if not self.pending and now != dict(references):
            self._set([self._line(name, reference) for name, reference in references.items()])
        for line in self.lines:
            if line.source.value == "ask":
                line.entry.told = "value is given" if line.name.value.strip() in known else "no value yet"

    def told(self, name: str, text: str) -> None:
        """Say something beside the value of a secret."""
        for line in self.lines:
            if line.name.value.strip() == name:
                line.entry.told = text

    def mark(self, problems: Sequence[Problem]) -> None:
        """Show what a plan finds wrong with them."""
        self._said.value = "".join(
            said(each.severity, f"{each.message} {each.hint}".strip()) for each in problems
        )

    def _set(self, lines: list[_Line]) -> None:
        self.lines = lines
        self._rows.children = tuple(
            ipywidgets.HBox([each.name, each.source, each.target, each.entry, each.remove]) for each in lines
        )

    def _line(self, name: str, reference: str) -> _Line:
        scheme, _, target = reference.partition(":")
        line = _Line(
            ipywidgets.Text(name, placeholder="name", tooltip="Name of the secret", continuous_update=False),
            ipywidgets.Dropdown(options=_SOURCES, value=scheme, tooltip="Where its value comes from"),
            ipywidgets.Text(target, placeholder="the same name", continuous_update=False),
            SecretEntry(lambda value: self._value(line, value)),
            button("Remove", "Remove the secret"),
        )
        line.remove.on_click(lambda _: self._remove(line))
        for widget, width in ((line.name, "10em"), (line.source, "11em"), (line.target, "9em")):
            widget.layout.width = width
            widget.observe(lambda _: self._typed(line), "value")
        self._fit(line)
        return line

    def _fit(self, line: _Line) -> None:
        """Show only what the source needs."""
        source = str(line.source.value)
        line.target.layout.display = "none" if source == "ask" else None
        line.target.tooltip = f"Name of the {_TARGETS.get(source, 'source')}"
        line.entry.layout.display = None if source in ("ask", "keyring") else "none"
        line.entry.verb = "Store in the keyring" if source == "keyring" else "Use"
        line.entry.label = f"Value of secret {line.name.value.strip()}"
        line.entry.told = ""

    def _typed(self, line: _Line) -> None:
        self._fit(line)
        self._tell()

    def _value(self, line: _Line, value: str) -> None:
        name = line.name.value.strip()
        if name:
            self._given(name, line.reference, value)
        else:
            line.entry.told = "name the secret first"

    def _remove(self, line: _Line) -> None:
        self._set([each for each in self.lines if each is not line])
        self._tell()

    def _tell(self) -> None:
        named = [line for line in self.lines if line.name.value.strip()]
        self._changed({line.name.value.strip(): line.reference for line in named})
