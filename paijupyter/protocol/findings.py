"""The list that all rules write into: each finding gets its line from the document."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

from paijupyter.errors import Problem, Severity
from paijupyter.protocol.document import Document
from paijupyter.protocol.values import keys_of

Target = Literal["paijupyter", "openpai"]
MOST = 1000


class Findings:
    """Problems of one document, gathered by many rules.

    Attributes:
        document: what is checked.
        target: where it shall run: on our backends or on the original server.
    """

    def __init__(self, document: Document, target: Target = "paijupyter") -> None:
        self.document = document
        self.target = target
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """What was found, each once."""
        return list(self._problems)

    @property
    def is_full(self) -> bool:
        """Whether there are more problems than anyone reads; from then on none are added."""
        return len(self._problems) >= MOST

    def take(self, problems: Iterable[Problem]) -> None:
        """Add problems that somebody else found."""
        for problem in problems:
            if not self.is_full:
                self._problems[problem] = None

    def error(self, code: str, path: str, message: str, hint: str = "") -> None:
        """Add what stops a submission."""
        self.add("error", code, path, message, hint)

    def warning(self, code: str, path: str, message: str, hint: str = "") -> None:
        """Add what deserves a look."""
        self.add("warning", code, path, message, hint)

    def trap(self, code: str, path: str, message: str, hint: str = "") -> None:
        """Add what makes a job fail on the original server, and is only odd on ours."""
        self.add("error" if self.target == "openpai" else "warning", code, path, message, hint)

    def add(
        self, severity: Severity, code: str, path: str, message: str, hint: str = "", line: int | None = None
    ) -> None:
        """Add a finding; its line is that of its path unless a rule knows it better."""
        if self.is_full:
            return
        column = self.document.column_of(path) if line is None else None
        if line is None:
            line = self.document.line_of(path)
        self._problems[Problem(severity, code, message, path, line, column, hint=hint)] = None


def dotted(path: str) -> str:
    """Return a JSON Pointer as people read it: ``taskRoles.worker.commands[0]``."""
    text = ""
    for key in keys_of(path):
        text += f"[{key}]" if key.isdigit() else (f".{key}" if text else key)
    return text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the closest of the known words, or all of them when they are few."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if not near:
        lower = {item.lower(): item for item in words}
        near = [lower[word.lower()]] if word.lower() in lower else []
    if near:
        return f"Did you mean `{near[0]}`?"
    return f"Known: {', '.join(f'`{item}`' for item in words)}." if 0 < len(words) <= 12 else ""
