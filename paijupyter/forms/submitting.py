"""The lower end of a form: what its button would do, the question, and how the job is."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from paijupyter.client.card_html import rich

_AUTO = {"width": "auto"}


class SubmitPart:
    """The button, which asks before it submits, and the line about the job.

    Args:
        submit: is called when a person has confirmed.
        stop: is called when a person stops the job.
    """

    def __init__(self, submit: Callable[[], None], stop: Callable[[], None]) -> None:
        self._submit = submit
        self.button = ipywidgets.Button(
            description="Submit", disabled=True, button_style="primary", layout=_AUTO
        )
        self.button.on_click(lambda _: self._ask())
        self.reason = ipywidgets.HTML()
        self._question = ipywidgets.HTML()
        self.confirm = ipywidgets.Button(description="Submit now", button_style="primary", layout=_AUTO)
        self.confirm.on_click(lambda _: self._confirmed())
        self.refrain = ipywidgets.Button(description="Not yet", layout=_AUTO)
        self.refrain.on_click(lambda _: self.withdraw())
        self._asking = ipywidgets.HBox([self._question, self.confirm, self.refrain])
        self._asking.layout.display = "none"
        self.state = ipywidgets.HTML()
        self.stop = ipywidgets.Button(description="Stop", layout=_AUTO)
        self.stop.layout.display = "none"
        self.stop.on_click(lambda _: stop())
        self.widget = ipywidgets.VBox(
            [
                ipywidgets.HBox([self.button, self.reason], layout={"flex_flow": "row wrap"}),
                self._asking,
                ipywidgets.HBox([self.state, self.stop]),
            ]
        )

    def offer(self, action: str, question: str) -> None:
        """Let the button be pressed.

        Args:
            action: its words.
            question: what a person confirms, as HTML.
        """
        self.button.description, self.button.disabled = action, False
        self.reason.value, self._question.value = "", question

    def refuse(self, reason: str, action: str = "Submit") -> None:
        """Disable the button, with the reason beside it."""
        self.withdraw()
        self.button.description, self.button.disabled = action, True
        self.reason.value = rich(reason)

    def withdraw(self) -> None:
        """Take the question back."""
        self._asking.layout.display = "none"

    def say(self, html: str) -> None:
        """Say something in the line about the job."""
        self.state.value = html

    def follow(self, html: str, is_final: bool) -> None:
        """Say how the job is."""
        self.state.value = html
        self.stop.layout.display = "none" if is_final else None

    def _ask(self) -> None:
        if not self.button.disabled:
            self._asking.layout.display = None

    def _confirmed(self) -> None:
        if self._asking.layout.display is None:  # Pressed twice, it submits once.
            self.withdraw()
            self._submit()
