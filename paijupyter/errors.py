"""Errors for people: a code, one sentence, what to do next.

A surface turns a :class:`PaiJupyterError` into its own form: a magic into one line, REST into problem
JSON (RFC 9457), the command line into an exit code and one line on stderr. Tracebacks are for bugs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "hint"]
_ORDER: dict[str, int] = {"error": 0, "warning": 1, "hint": 2}


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of a check or a plan, with its place and one thing to do.

    Attributes:
        severity: ``error`` stops the submission, ``warning`` and ``hint`` do not.
        code: stable kebab-case identifier, for example ``unknown-key``.
        message: one sentence; its first word is the thing.
        path: JSON Pointer (RFC 6901) into the job document, or "".
        line: 1-based line in the source document or file.
        column: 1-based column in that line.
        file: package path of the file it is about.
        cell: 1-based number of the notebook cell it is about.
        hint: what to do next, or "".
    """

    severity: Severity
    code: str
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    file: str | None = None
    cell: int | None = None
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this problem, without empty members."""
        return {key: value for key, value in asdict(self).items() if value not in (None, "")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Problem:
        """Build a problem from its JSON object; unknown members are ignored."""
        return cls(**{key: data[key] for key in cls.__dataclass_fields__ if key in data})

    @property
    def place(self) -> str:
        """Where it is, in words: ``cell 4, line 12``, ``train.py, line 3``, ``/taskRoles/worker``."""
        parts = []
        if self.cell is not None:
            parts.append(f"cell {self.cell}")
        if self.file is not None:
            parts.append(self.file)
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.path and self.line is None:
            parts.append(self.path)
        return ", ".join(parts)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text} {self.hint}".rstrip()


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort problems as every screen shows them: errors, warnings, hints; by place within each."""

    def place(problem: Problem) -> tuple[int, int, str, int, str]:
        return (
            _ORDER[problem.severity],
            problem.cell or 0,
            problem.file or "",
            problem.line or 0,
            problem.path,
        )

    return sorted(problems, key=place)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Say whether any problem stops a submission."""
    return any(problem.severity == "error" for problem in problems)


@dataclass(eq=False)
class PaiJupyterError(Exception):
    """Root of all errors that are meant for a person.

    Attributes:
        code: stable kebab-case identifier.
        message: one sentence; its first word is the thing, not "Error".
        hint: what to do next, or "".
        status: HTTP status a REST surface answers with.
        problems: all findings behind it, when there are several.
    """

    code: str
    message: str
    hint: str = ""
    status: int = 400
    problems: list[Problem] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def _render_traceback_(self) -> list[str]:
        """Show it as one line where IPython would print a traceback: those are for bugs."""
        return [str(self)]

    def to_problem_json(self) -> dict[str, Any]:
        """Return the RFC 9457 object: ``type title status detail`` and our ``code hint problems``."""
        return {
            "type": f"urn:paijupyter:{self.code}",
            "title": self.message,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
            "hint": self.hint,
            "problems": [problem.to_json() for problem in self.problems],
        }

    @classmethod
    def from_problem_json(cls, data: Mapping[str, Any], status: int = 500) -> PaiJupyterError:
        """Rebuild the error a REST surface sent; a foreign body becomes code ``http-<status>``."""
        return PaiJupyterError(
            code=str(data.get("code") or f"http-{status}"),
            message=str(data.get("title") or data.get("message") or f"The job server answered {status}."),
            hint=str(data.get("hint") or ""),
            status=int(data.get("status") or status),
            problems=[Problem.from_json(item) for item in data.get("problems") or ()],
        )


class InvalidDocument(PaiJupyterError):
    """The job document cannot be used; ``problems`` has every reason with its place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = in_order(problems)
        errors = [problem for problem in found if problem.severity == "error"]
        more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
        first = str(errors[0]) if errors else "The job document cannot be used."
        super().__init__("invalid-document", f"{first}{more}", "", 422, found)


class NotFound(PaiJupyterError):
    """Nothing has that id or name."""

    def __init__(self, kind: str, ref: str, hint: str = "") -> None:
        super().__init__("not-found", f"{kind} `{ref}` does not exist.", hint, 404)


class Conflict(PaiJupyterError):
    """The thing is in a state that does not allow this."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint, 409)


class UsageProblem(PaiJupyterError):
    """An option, a value or a cell body is wrong."""

    def __init__(self, message: str, hint: str = "", problems: Iterable[Problem] = ()) -> None:
        super().__init__("usage", message, hint, 400, list(problems))


class MissingExtra(PaiJupyterError):
    """An optional part is not installed; the hint is the command that installs it."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            "missing-extra",
            f"{purpose} needs the extra `{extra}`.",
            f"Install it with: pip install 'paijupyter[{extra}]'",
            501,
        )
