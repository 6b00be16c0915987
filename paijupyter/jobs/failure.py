"""What is known of a failure, and what is said of it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the task that decided a failure.

    Attributes:
        task: its name, ``<role>-<index>``; "" if no task decided it.
        reason: the backend's finer fact.
        message: the backend's own sentence.
        code: exit status.
        signal: name of the signal that ended it, for example ``SIGKILL``.
        last_lines: end of its log.
        memory_mb: memory it asked for, in MiB.
    """

    task: str = ""
    reason: str = ""
    message: str = ""
    code: int | None = None
    signal: str | None = None
    last_lines: tuple[str, ...] = ()
    memory_mb: int | None = None

    @property
    def who(self) -> str:
        """The task in backticks, or ``The job``."""
        return f"`{self.task}`" if self.task else "The job"

    @property
    def text(self) -> str:
        """End of the log as one text."""
        return "\n".join(self.last_lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One sentence, and what to do next or ""."""

    message: str
    advice: str = ""


def last(pattern: str, facts: Facts) -> re.Match[str] | None:
    """Find the last match: the last error in a log is the one that ended it."""
    found = None
    for found in re.finditer(pattern, facts.text, re.M):  # noqa: B007
        pass
    return found
