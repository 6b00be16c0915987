"""``%paijob form`` and ``%%paijob --form``: one output that each front end draws in the best way it can.

A kernel does not know which front end shows its output. So the output has the form in several media types:
JupyterLab with our labextension takes the reference and opens its own form; VS Code, Colab and nbclassic
take the widgets; a page that is only read has the plan as HTML and text.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from paijupyter import forms
from paijupyter.client import card
from paijupyter.client.client import JobsClient
from paijupyter.client.job import Job
from paijupyter.client.sources import Origin
from paijupyter.errors import MissingExtra, UsageProblem
from paijupyter.magics.show import Display

if TYPE_CHECKING:
    from paijupyter.client.submission import Submitted
    from paijupyter.forms.draft import Plan

MIME = "application/vnd.paijupyter.form+json"
Keep = Callable[[Job, Display, tuple[Any, ...], Mapping[str, Any]], None]


def run(
    shell: Any, client: JobsClient, parsed: Namespace, origin: Origin, cell: str | None, keep: Keep
) -> None:
    """Show a form.

    Args:
        shell: the user's shell.
        client: client of the engine.
        parsed: options of ``form``, or of ``submit`` with ``--form``.
        origin: where the cell is.
        cell: the cell below the line, or None.
        keep: lets a display follow a job.

    Raises:
        PaiJupyterError: an option, the cell or the document cannot be used, or there are no widgets here.
    """
    from paijupyter.forms.draft import Draft

    if parsed.variable is not None and not parsed.variable.isidentifier():
        raise UsageProblem(f"Option `--as` needs a name of a variable, not `{parsed.variable[:40]}`.")
    if not hasattr(shell, "kernel"):
        raise UsageProblem(
            "Form needs a notebook.", "In a terminal, `%paijob submit --help` has every option."
        )
    only_widgets = getattr(parsed, "widgets", False)
    if not forms.is_installed() and (only_widgets or parsed.variable):
        raise MissingExtra("forms", "A form of widgets")
    draft = Draft(client, parsed, origin, cell)
    bundle: dict[str, Any] = {}
    if not only_widgets:
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        bundle[MIME] = {**draft.reference(), "at": at}
    if not forms.is_installed():
        missing = str(MissingExtra("forms", "A form of widgets"))
        shell.display_pub.publish(data={**bundle, **_snapshot(draft.plan(), missing)}, metadata={})
        return
    below = CardBelow(shell, client, keep)
    profiles = [str(each["name"]) for each in client.profiles()]
    form = forms.Form(draft, profiles, below.submitted)
    shown = (
        _snapshot(form.plan, "A form, which this page cannot show.")
        if form.plan
        else {"text/plain": repr(form)}
    )
    bundle |= {**form.widget._repr_mimebundle_(), **shown}
    shell.display_pub.publish(data=bundle, metadata={})
    below.open()
    if parsed.variable:
        shell.user_ns[parsed.variable] = form


def _snapshot(plan: Plan, note: str) -> dict[str, str]:
    """Return what a page shows that has neither our labextension nor widgets."""
    from html import escape

    shown = card.plan_bundle(plan.data, plan.left_out)
    return {
        "text/html": f"{shown['text/html']}<div>{escape(note)}</div>",
        "text/plain": f"{shown['text/plain']}\n{note}",
    }


class CardBelow:
    """The place below a form where the card of its job will be, also in a saved notebook.

    It is opened with the form: what a thread shows for the first time would land below the cell that was run
    last.

    Args:
        shell: the user's shell.
        client: client of the engine.
        keep: lets a display follow a job.
    """

    def __init__(self, shell: Any, client: JobsClient, keep: Keep) -> None:
        self._shell, self._client, self._keep = shell, client, keep
        self._display = Display(shell)
        get_parent = getattr(shell, "get_parent", None)
        self._parent = dict(get_parent()) if get_parent is not None else {}

    def open(self) -> None:
        """Take the place; nothing is to be seen there yet."""
        self._display.show({"text/plain": "", "text/html": ""})

    def submitted(self, submitted: Submitted, told: Callable[[str], None]) -> Job:
        """Show a job's card and let it follow the job.

        Args:
            submitted: the job.
            told: is given the text of each new card.
        """
        job = Job(submitted.view, self._client, submitted.problems)
        problems = tuple(submitted.problems)
        display = _Told(self._display, told)
        display.show(card.bundle(job.view, problems))
        self._keep(job, display, problems, self._parent)
        return job


class _Told(Display):
    """A display that also says what it shows."""

    def __init__(self, display: Display, told: Callable[[str], None]) -> None:
        self.__dict__.update(display.__dict__)
        self._told = told

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Show a bundle in place of what was shown before, and say its text."""
        super().show(bundle)
        self._told(str(bundle["text/plain"]))
