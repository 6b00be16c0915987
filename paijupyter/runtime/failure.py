"""Why a task ends without, or in spite of, its user's command."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional


class Failure(Exception):
    """The task cannot go on.

    Attributes:
        reason: one of the words of ``exit.json``: package, requirements, barrier-timeout, secret, no-shell,
            launcher, ports, stopped, deadline, internal.
        message: one sentence for people.
        lines: what a tool said about it, or None.
    """

    def __init__(self, reason: str, message: str, lines: "Optional[List[str]]" = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.lines = lines or []
