"""Cells of a notebook become a script, what it needs, and a report that says of each cell why it is in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from paijupyter.errors import Problem, UsageProblem, in_order
from paijupyter.notebook import choosing
from paijupyter.notebook.parts import PARAMETERS, Part, parts_of
from paijupyter.notebook.reading import Notebook, NotebookCell
from paijupyter.notebook.slicing import CHOSEN, Slice, slice_of

RUNNER, LOADER = "paicells.py", "paicarried.py"
_MARKER = re.compile(r"^# %% (?:\S.*\[(?:cell|In) \d+\]|paijob)$", re.MULTILINE)
_OWN = "# %% paijob"


@dataclass(frozen=True, slots=True)
class Told:
    """What a person is told of one cell: whether it is in, and why."""

    number: int
    included: bool
    why: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A script of cells.

    Attributes:
        text: it.
        cells: numbers of its cells, in order.
    """

    text: str
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be exported.

    Attributes:
        cells: which cells are chosen: tags, numbers, ``all``.
        roles: roles of the job.
        parameters: names that the job gives values to.
        carried: names whose objects come from the kernel.
        order: ``page``, ``run``, or "" to ask where that makes a difference.
        folder: of the notebook, for modules beside it.
        history: the cells are those that a kernel ran; there is no page.
    """

    cells: Sequence[str] = ()
    roles: Sequence[str] = ()
    parameters: Sequence[str] = ()
    carried: Sequence[str] = ()
    order: str = ""
    folder: Path | None = None
    history: bool = False


@dataclass(slots=True)
class Export:
    """Scripts and what goes with them.

    Attributes:
        scripts: by role; with the key "" the one of all roles.
        requirements: lines of a requirements file.
        files: files of the package that cells write.
        told: of each cell whether it is in, and why.
        problems: what cannot be known or exported, worst first.
        parameters: whether the cell with the parameters is in.
    """

    scripts: dict[str, Script] = field(default_factory=dict)
    requirements: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    parameters: bool = False

    def command(self, role: str, folder: str, stem: str) -> str:
        """Return what runs the script of a role, with its files in that folder of the package."""
        return shlex.join(["python", f"{folder}{RUNNER}", f"{folder}{self.file(role, stem)}"])

    def file(self, role: str, stem: str) -> str:
        """Return the name of the script of a role."""
        return f"{stem}-{role}.py" if role in self.scripts and role else f"{stem}.py"

    def script_files(self, stem: str) -> dict[str, bytes]:
        """Return the scripts and what they need to run, by file name."""
        found = {self.file(role, stem): script.text.encode() for role, script in self.scripts.items()}
        return {**found, RUNNER: support(RUNNER)}


def support(name: str) -> bytes:
    """Return a module that scripts need in the task."""
    return (files("paijupyter") / "tasks" / name).read_bytes()


def export(notebook: Notebook, wanted: Wanted) -> Export:
    """Make scripts of the chosen cells and all that they need.

    Args:
        notebook: the notebook.
        wanted: what of it.

    Raises:
        UsageProblem: the notebook has no code, or no cell is what ``cells`` names.
    """
    code = notebook.code
    if not code:
        raise UsageProblem(f"`{notebook.name}` has no code, so there is nothing to run.")
    if notebook.language != "python":
        raise UsageProblem(
            f"`{notebook.name}` is a notebook in {notebook.language}; only Python can be exported."
        )
    found = Export()
    tagged = [role for role in choosing.roles(code) if _is_role(role, wanted, found)]
    by_role = {role: choosing.chosen(code, wanted.cells, role) for role in (wanted.roles if tagged else [""])}
    parts = parts_of(_ordered(code, wanted), wanted.folder, set().union(*by_role.values()))
    for role, meant in by_role.items():
        if not meant:
            raise UsageProblem(
                f"Role `{role}` has no cells.", f"Tag them `pai:role={role}`, or `pai:export` for all roles."
            )
        cut = slice_of(parts, meant, [*wanted.carried, *wanted.parameters])
        if not wanted.order and not wanted.history:
            found.problems += _order_questions(code, cut, meant, wanted)
        _add(found, role, cut, notebook, wanted)
    found.problems = in_order(dict.fromkeys([*found.problems, *_writes_itself(found, parts, notebook)]))
    return found


def _is_role(role: str, wanted: Wanted, found: Export) -> bool:
    if role in wanted.roles:
        return True
    message = f"Tag `pai:role={role}` names a role that the job does not have."
    found.problems.append(Problem("error", "unknown-role", message, hint=f"Add it: --role {role}:1"))
    return False


def _ordered(code: Sequence[NotebookCell], wanted: Wanted) -> Sequence[NotebookCell]:
    return choosing.in_run_order(code) if wanted.order == "run" else code


def _order_questions(
    code: Sequence[NotebookCell], page: Slice, meant: set[int], wanted: Wanted
) -> list[Problem]:
    """Ask which order is meant, where that in which cells ran makes another script than the page."""
    if choosing.ran_as_on_page(code):
        return []
    parts = parts_of(choosing.in_run_order(code), wanted.folder, meant)
    run = slice_of(parts, meant, [*wanted.carried, *wanted.parameters])
    if run.numbers == page.numbers:
        return []
    counts = {cell.number: cell.executed for cell in code}
    ran = ", ".join(f"cell {number} as [{counts[number] or ' '}]" for number in run.numbers[:8])
    first = next(
        (here for here, there in zip(page.numbers, run.numbers, strict=False) if here != there), None
    )
    message = (
        f"Cells ran in another order than that of the page, and it makes a difference: {ran}; "
        f"the page has {', '.join(map(str, page.numbers[:8]))}."
    )
    hint = "Say which is meant: --order page or --order run; or run all cells from the top and save."
    return [Problem("error", "run-order", message, cell=first, hint=hint)]


def _add(found: Export, role: str, cut: Slice, notebook: Notebook, wanted: Wanted) -> None:
    found.scripts[role] = Script(_script(cut, role, notebook, wanted), tuple(cut.numbers))
    found.problems += [*cut.problems, *_overwritten(cut, wanted)]
    inside = {part.number for part, _ in cut.included}
    for part, reasons in cut.included:
        found.told.append(Told(part.number, True, _said(part, reasons), role))
        found.files.update({path: text.encode() for path, text in part.code.files.items()})
        found.parameters |= PARAMETERS in part.cell.tags
    for part, why in cut.left_out:
        found.told.append(Told(part.number, False, why, role))
    found.told.sort(key=lambda each: each.number)
    # What cells install is not known by names, so it is taken from all of them.
    for part in [*(part for part, _ in cut.included), *(part for part, _ in cut.left_out)]:
        if not part.is_skipped:
            found.requirements += [
                line for line, _ in part.code.requirements if line not in found.requirements
            ]
            if part.number not in inside:
                found.problems += [each for each in part.code.problems if each.code == "requirements"]


def _said(part: Part, reasons: Sequence[str]) -> str:
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return "; ".join([reasons[0] + more, *(text for _, text in part.code.notes)])


def _script(cut: Slice, role: str, notebook: Notebook, wanted: Wanted) -> str:
    name = notebook.path.name if notebook.path else "notebook"
    numbers = ", ".join(map(str, cut.numbers))
    head = [f"# Cells {numbers} of {name}{f', for role {role}' if role else ''}."]
    head += ["# Run it with: python paicells.py <this file>", "import paicells", ""]
    if wanted.carried:
        head.append("paicells.carried()")
    if wanted.parameters:
        head.append("paicells.parameters()")
    text = "\n".join(head).rstrip("\n") + "\n"
    for part, reasons in cut.included:
        if _MARKER.search(part.code.text):
            raise UsageProblem(
                f"Cell {part.number} has a line that begins a cell in a script.", "Change its line `# %% …`."
            )
        text += f"# %% {label(name, part.cell, history=wanted.history)}\n{part.code.text.rstrip()}\n"
        text += _again(part, wanted, is_chosen=CHOSEN in reasons)
    return text


def label(name: str, cell: NotebookCell, *, history: bool = False) -> str:
    """Return how a traceback calls a cell: ``quickstart.ipynb[cell 3]``."""
    return f"{name}[{'In' if history else 'cell'} {cell.number}]"


def _again(part: Part, wanted: Wanted, *, is_chosen: bool) -> str:
    """Return what binds again, after a cell, the values that come from outside."""
    lines = []
    for function, names in (("carried", wanted.carried), ("parameters", wanted.parameters)):
        bound = [name for name in names if part.binds(name) is not None]
        if bound and (not is_chosen or PARAMETERS in part.cell.tags):
            lines.append(f"paicells.{function}({', '.join(map(repr, bound))})\n")
    return f"{_OWN}\n{''.join(lines)}" if lines else ""


def _overwritten(cut: Slice, wanted: Wanted) -> list[Problem]:
    found = []
    for part, reasons in cut.included:
        if CHOSEN not in reasons or PARAMETERS in part.cell.tags:
            continue
        for name in sorted({*wanted.parameters, *wanted.carried} & set(part.facts.binds)):
            what = "Parameter" if name in wanted.parameters else "Object"
            message = f"{what} `{name}` is assigned again here, so the value given for the job is not used."
            hint = "Remove the assignment, or move it into a cell tagged `parameters`."
            found.append(Problem("warning", "parameter-overwritten", message, cell=part.number, hint=hint))
    return found


def _writes_itself(found: Export, parts: Sequence[Part], notebook: Notebook) -> list[Problem]:
    inside = {number for script in found.scripts.values() for number in script.cells}
    problems = []
    for part in parts:
        line = part.facts.written.get(notebook.name) if notebook.path else None
        if part.number in inside and line is not None:
            message = f"`{notebook.name}` is written here, which in a job is the copy in its package."
            problems.append(Problem("warning", "edits-itself", message, line=line, cell=part.number))
    return problems


def told_lines(told: Sequence[Told]) -> list[str]:
    """Return the report as lines for people: a sign, the cell, why."""
    lines = []
    for each in told:
        role = f" [{each.role}]" if each.role else ""
        lines.append(f"{'+' if each.included else '-'} cell {each.number}{role}: {each.why}")
    return lines
