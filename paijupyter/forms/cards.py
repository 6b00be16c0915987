"""A role as a card: what it is at once, the rest when it is unfolded (O7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from paijupyter.errors import Problem
from paijupyter.forms.controls import LABEL, Changed, Control, button, control
from paijupyter.forms.rows import Row


class RoleCard:
    """The widgets of one role.

    Args:
        name: the role's name.
        rows: its fields.
        changed: is told changes of fields.
        asked: is told ``rename`` with a new name, ``copy`` or ``remove``.
    """

    def __init__(
        self, name: str, rows: Sequence[Row], changed: Changed, asked: Callable[[str, str, str], None]
    ) -> None:
        self.name = name
        self._asked = asked
        self.controls: list[Control] = [control(row, changed) for row in rows]
        self.title = ipywidgets.Text(
            name, description="Role", continuous_update=False, style={"description_width": LABEL},
            layout={"width": "24em"}, tooltip="Name of the role; its tasks are NAME-0, NAME-1 and so on",
        )  # fmt: skip
        self.title.observe(self._renamed, "value")
        self.copy = button("Copy", f"Copy role {name}")
        self.remove = button("Remove", f"Remove role {name}")
        self.copy.on_click(lambda _: asked("copy", name, ""))
        self.remove.on_click(lambda _: asked("remove", name, ""))
        heads = [each.widget for each in self.controls if each.row.section == "role"]
        rest = [each.widget for each in self.controls if each.row.section != "role"]
        self.more = ipywidgets.Accordion([ipywidgets.VBox(rest)], titles=("customize",), selected_index=None)
        self.widget = ipywidgets.VBox(
            [ipywidgets.HBox([self.title, self.copy, self.remove]), *heads, self.more],
            layout={
                "border": "1px solid var(--jp-border-color2, #8a8a8a66)",
                "padding": "4px",
                "margin": "4px 0",
            },
        )

    def _renamed(self, change: Any) -> None:
        if change["new"] != self.name:
            self._asked("rename", self.name, str(change["new"]))

    def show(self, data: Mapping[str, Any]) -> None:
        """Show what a document says of the role."""
        self.title.value = self.name
        for each in self.controls:
            each.show(data)

    def mark(self, problems: Mapping[str, Sequence[Problem]]) -> None:
        """Show problems at their fields, and unfold the card where one is hidden."""
        for each in self.controls:
            found = problems.get(each.row.path, ())
            each.mark(found)
            if each.row.section != "role" and any(problem.severity == "error" for problem in found):
                self.more.selected_index = 0
