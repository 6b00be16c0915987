"""The form: fields, the source text, the plan beside them, and what became of the job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets

from paijupyter.errors import PaiJupyterError, Problem, UsageProblem
from paijupyter.forms import look, patches
from paijupyter.forms.cards import RoleCard
from paijupyter.forms.controls import LABEL, Control, button, control, said
from paijupyter.forms.draft import Draft, Plan
from paijupyter.forms.rows import Row, rows_of
from paijupyter.forms.secrets import SecretsPart
from paijupyter.forms.submitting import SubmitPart
from paijupyter.forms.worker import Worker

if TYPE_CHECKING:
    from paijupyter.client.submission import Submitted

_SECTIONS = ("what", "where", "with", "advanced")


class Form:
    """A form of one job. ``widget`` is what a cell shows.

    Args:
        draft: the job, as far as it is written.
        profiles: names of the profiles, the default one first.
        submitted: shows the card of a job that was submitted, and tells the form the text of each new card.

    Attributes:
        widget: the whole of it.
        plan: what a submission would do, as last asked.
        job: handle of the latest job of this form, or None.
    """

    def __init__(
        self,
        draft: Draft,
        profiles: Sequence[str],
        submitted: Callable[[Submitted, Callable[[str], None]], Any],
    ) -> None:
        self._draft = draft
        self._show_job = submitted
        self._worker = Worker(self._failed)
        self._lock = threading.Lock()
        self.plan: Plan | None = None
        self.job: Any = None
        self.controls: dict[str, Control] = {}
        self.roles: dict[str, RoleCard] = {}
        self.profile = ipywidgets.Dropdown(
            options=list(dict.fromkeys([*([draft.profile] if draft.profile else []), *profiles])),
            description="Profile", tooltip="Where the job runs",
            style={"description_width": LABEL}, layout={"width": "32em"},
        )  # fmt: skip
        self.profile.observe(lambda change: self._do(lambda: self._choose(change["new"])), "value")
        self.secrets = SecretsPart(
            lambda references: self._pending(self.secrets, lambda: draft.refer(references)),
            lambda *given: self._do(lambda: self._value(*given)),
        )
        self.add_role = button("Add a role")
        self.add_role.on_click(lambda _: self._do(lambda: draft.apply(patches.add_role(draft.data or {}))))
        self._parts = {name: ipywidgets.VBox([]) for name in (*_SECTIONS, "roles")}
        self.source = ipywidgets.Textarea(
            continuous_update=False, rows=24, layout={"width": "99%"}, tooltip="The job document"
        )
        self.source.observe(self._source_typed, "value")
        self._source_said = ipywidgets.HTML()
        self._plan_said = ipywidgets.HTML()
        self.submitting = SubmitPart(
            lambda: self._worker.do(self._submit), lambda: self._worker.do(self._stop)
        )
        self.widget = self._laid_out()
        self._show()
        self._replan()

    def __repr__(self) -> str:
        name = patches.at(self._draft.data or {}, "/name")
        return f"<Form of {name}>"

    def _laid_out(self) -> Any:
        parts = self._parts
        advanced = ipywidgets.Accordion([parts["advanced"]], titles=("advanced",), selected_index=None)
        fields = ipywidgets.VBox(
            [
                *(parts["what"], self.profile, parts["roles"], self.add_role, parts["where"]),
                *(parts["with"], self.secrets.widget, advanced),
            ]
        )
        text = ipywidgets.VBox([self.source, self._source_said])
        self.tabs = ipywidgets.Tab([fields, text], titles=("Fields", "YAML"), layout={"flex": "1 1 36em"})
        beside = ipywidgets.VBox([self._plan_said, self.submitting.widget], layout={"flex": "1 1 24em"})
        return ipywidgets.HBox([self.tabs, beside], layout={"flex_flow": "row wrap", "width": "100%"})

    @property
    def text(self) -> str:
        """The job document as it stands."""
        return self._draft.text

    def reference(self) -> dict[str, Any]:
        """Return what a form of another kind begins with, without a value of a secret."""
        return self._draft.reference()

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until everything that was asked for is done, in a notebook that runs without its user.

        Raises:
            UsageProblem: the time is up.
        """
        if not self._worker.wait(seconds):
            raise UsageProblem(f"Form is still at work after {seconds:g} s.")

    # -- what a person does ----------------------------------------------------------------------------

    def _do(self, change: Callable[[], None]) -> None:
        """Make a change, then show what became of it and plan again; all of it beside the kernel."""
        self.submitting.withdraw()
        self._worker.do(lambda: self._changed(change))

    def _changed(self, change: Callable[[], None]) -> None:
        try:
            change()
        finally:
            self._show()
        if not self._worker.has_more():
            self._replan()

    def _pending(self, part: Control | SecretsPart, change: Callable[[], None]) -> None:
        """Make a change that a part told; until it is made, the part shows what was typed."""

        def made() -> None:
            try:
                change()
            finally:
                with self._lock:
                    part.pending -= 1

        with self._lock:
            part.pending += 1
        self._do(made)

    def _field(self, part: Control, value: Any) -> None:
        draft, path = self._draft, part.row.path
        if isinstance(value, UsageProblem):
            self._judge()
        else:
            self._pending(part, lambda: draft.apply(patches.change(draft.data or {}, path, value)))

    def _role(self, what: str, name: str, new: str) -> None:
        draft = self._draft
        patch = {
            "copy": lambda: patches.add_role(draft.data or {}, name),
            "remove": lambda: patches.remove_role(draft.data or {}, name),
            "rename": lambda: patches.rename_role(draft.data or {}, name, new.strip()),
        }[what]
        self._do(lambda: draft.apply(patch()))

    def _choose(self, profile: str) -> None:
        self._draft.profile = profile

    def _value(self, name: str, reference: str, value: str) -> None:
        told = self._draft.take_value(name, reference, value)
        self.secrets.told(name, told)

    def _source_typed(self, change: Any) -> None:
        text = str(change["new"])
        if text != _as_shown(self._draft.text):
            self._do(lambda: self._draft.set_text(_as_written(text, self._draft.text)))

    # -- what is shown ---------------------------------------------------------------------------------

    def _show(self) -> None:
        """Show what the document says now, in the fields and as text."""
        draft = self._draft
        self.source.value = _as_shown(draft.text)
        self._source_said.value = look.unreadable(draft.unreadable)
        if draft.data is None:
            return
        self._rebuild(rows_of(draft.data))
        for each in self.controls.values():
            each.show(draft.data)
        for card in self.roles.values():
            card.show(draft.data)
        names = draft.secret_names
        self.secrets.show(
            {name: draft.references[name] for name in names}, [n for n in names if n in draft.vault]
        )

    def _rebuild(self, rows: Sequence[Row]) -> None:
        """Make the widgets of new fields and roles; those that are there stay, with what is typed in them."""
        single = {row.path: row for row in rows if not row.role}
        if list(single) != list(self.controls) or any(self.controls[p].row != r for p, r in single.items()):
            self.controls = {
                path: there
                if (there := self.controls.get(path)) and there.row == row
                else control(row, self._field)
                for path, row in single.items()
            }
            for section in _SECTIONS:
                found = [each.widget for each in self.controls.values() if each.row.section == section]
                self._parts[section].children = tuple(found)
        names = list(dict.fromkeys(row.role for row in rows if row.role))
        if names != list(self.roles):
            self.roles = {name: self.roles.get(name) or self._card(name, rows) for name in names}
            self._parts["roles"].children = tuple(card.widget for card in self.roles.values())

    def _card(self, name: str, rows: Sequence[Row]) -> RoleCard:
        return RoleCard(name, [row for row in rows if row.role == name], self._field, self._role)

    def _all(self) -> list[Control]:
        return [*self.controls.values(), *(each for card in self.roles.values() for each in card.controls)]

    def _replan(self) -> None:
        if self._draft.data is None:
            self.plan = None
            self._judge()
            return
        try:
            self.plan = self._draft.plan()
        except PaiJupyterError:
            self.plan = None
            self._judge()
            raise
        self._plan_said.value = look.plan(self.plan)
        self._mark(self.plan.problems)
        self._judge()

    def _mark(self, problems: Sequence[Problem]) -> None:
        """Put each problem beside the field it is about."""
        paths = {each.row.path for each in self._all()}
        placed: dict[str, list[Problem]] = {}
        for problem in problems:
            path = problem.path
            while path and path not in paths:
                path = path.rpartition("/")[0]
            placed.setdefault(path, []).append(problem)
        for each in self.controls.values():
            each.mark(placed.get(each.row.path, ()))
        for card in self.roles.values():
            card.mark(placed)
        self.secrets.mark([each for each in problems if each.path.startswith("/secrets")])
        self._source_said.value = "".join(
            said(each.severity, str(each)) for each in problems if each.line is not None and not each.file
        )

    def _judge(self) -> None:
        """Say whether it can be submitted, and if not why not."""
        mistake = next((each.mistake for each in self._all() if each.mistake), "")
        if self._draft.data is None:
            self.submitting.refuse("The text cannot be read as a job document.")
        elif mistake:
            self.submitting.refuse(mistake)
        elif self.plan is None:
            self.submitting.refuse("There is no plan.")
        elif not self.plan.is_possible:
            self.submitting.refuse(
                next((str(each.message) for each in self.plan.problems), ""), self._action(self.plan)
            )
        else:
            self.submitting.offer(self._action(self.plan), look.question(self.plan))

    def _action(self, plan: Plan) -> str:
        return look.action(plan.data.get("roles") or ())

    def _failed(self, error: PaiJupyterError) -> None:
        self.submitting.say(said("error", str(error)))

    # -- the job ---------------------------------------------------------------------------------------

    def _submit(self) -> None:
        self.submitting.say("being submitted")
        submitted = self._draft.submit()
        self._forgotten()
        self.job = self._show_job(submitted, self._told)

    def _forgotten(self) -> None:
        """Say which values have to be typed again for another job: they were sent, and are kept nowhere."""
        draft = self._draft
        names = [name for name in draft.secret_names if draft.references[name] == "ask"]
        for name in names:
            self.secrets.told(name, "no value yet")
        if names and self.plan is not None:
            reason = f"Another job needs the value of `{names[0]}` again."
            self.submitting.refuse(reason, self._action(self.plan))

    def _told(self, text: str) -> None:
        self.submitting.follow(look.state(text), _is_final(text))

    def _stop(self) -> None:
        if self.job is not None:
            self.job.stop()


def _is_final(text: str) -> bool:
    from paijupyter.client.words import FINAL

    return text.split(maxsplit=2)[1:2] != [] and text.split(maxsplit=2)[1] in FINAL


def _as_shown(text: str) -> str:
    """Return a text as a browser's field has it: lines end with one character."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _as_written(text: str, before: str) -> str:
    """Give a text the line ends of the one that it replaces."""
    return text.replace("\n", "\r\n") if "\r\n" in before else text
