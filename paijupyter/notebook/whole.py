"""A whole notebook as what a job runs: its command, and what is against it."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paijupyter.errors import Problem, UsageProblem
from paijupyter.notebook.declared import problems_of
from paijupyter.notebook.reading import Notebook, NotebookCell
from paijupyter.protocol.names import short_name, split_suffix

_START = 'python "$PAI_BOOT" notebook'
_ASKS = re.compile(r"\b(?:input|getpass)\s*\(")
_MANY = 5  # cells that ask for input and are named


def command(path: str, until: str | None = None, timeout: float | None = None, script: str = "") -> str:
    """Return the command that runs a notebook of the package.

    Args:
        path: of the notebook in the package.
        until: the last cell: its number, id or tag.
        timeout: seconds that one cell may take.
        script: file in the package that runs instead where there is no Jupyter and none may be installed.
    """
    words = [_START, shlex.quote(path)]
    if until:
        words.append(f"--until {shlex.quote(until)}")
    if timeout:
        words.append(f"--timeout {timeout:g}")
    if script:
        words.append(f"--script {shlex.quote(script)}")
    return " ".join(words)


def check_until(notebook: Notebook, until: str) -> None:
    """Refuse a last cell that does not exist.

    Raises:
        UsageProblem: no number, id or tag of the notebook is that.
    """
    ids = {cell.id for cell in notebook.cells}
    tags = {tag for cell in notebook.cells for tag in cell.tags}
    if until in ids or until in tags or (until.isdigit() and 1 <= int(until) <= len(notebook.cells)):
        return
    known = ", ".join(f"`{tag}`" for tag in sorted(tags))
    raise UsageProblem(
        f"Cell `{until[:60]}` does not exist in `{notebook.name}`.",
        f"Give a number from 1 to {len(notebook.cells)}, an id, or a tag" + (f": {known}." if known else "."),
    )


def cells_until(notebook: Notebook, until: str | None) -> list[NotebookCell]:
    """Return the code cells that run up to and with a last one, which exists."""
    cells = notebook.cells
    last = len(cells)
    if until:
        by_id = [cell.number for cell in cells if cell.id == until]
        by_tag = [cell.number for cell in cells if until in cell.tags]
        last = (by_id or ([int(until)] if until.isdigit() else by_tag))[0]
    return [cell for cell in notebook.code if cell.number <= last]


def problems(notebook: Notebook, parameters: Mapping[str, Any]) -> list[Problem]:
    """Return everything that is against running a notebook from top to bottom as a job."""
    found = list(problems_of(notebook, parameters)) if notebook.language == "python" else []
    if not notebook.code:
        message = f"`{notebook.name}` has no code, so there is nothing to run."
        found.append(Problem("error", "no-code", message, file=notebook.name))
    if notebook.language != "python":
        found += _other_language(notebook, parameters)
    return [*found, *_asking(notebook)]


def _other_language(notebook: Notebook, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    name = notebook.kernel or notebook.language
    if parameters:
        message = f"`{notebook.name}` is in `{notebook.language}`; parameters can be given to Python only."
        yield Problem("error", "parameters-language", message, file=notebook.name)
    message = f"`{notebook.name}` wants the kernel `{name}` ({notebook.language}), which its task must have."
    hint = "Python notebooks need no kernel: the task's own interpreter runs them."
    yield Problem("warning", "other-kernel", message, file=notebook.name, hint=hint)


def _asking(notebook: Notebook) -> Iterator[Problem]:
    """Name the cells that ask for input, which nobody gives in a job."""
    shown = 0
    for cell in notebook.code:
        if notebook.language != "python" or not _ASKS.search(cell.source):
            continue
        line = _asks(cell.source)
        if line is None:
            continue
        shown += 1
        if shown > _MANY:
            return
        message = "This cell asks for input, and nobody answers in a job: it will fail there."
        hint = "Make it a parameter (--param), or a secret (--secret) if it is one."
        yield Problem(
            "warning", "asks-for-input", message, line=line, file=notebook.name, cell=cell.number, hint=hint
        )


def _asks(source: str) -> int | None:
    """Return the line where a cell calls ``input`` or ``getpass``; None if it does not, or is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ("input", "getpass") and not _is_method(node.func):
                return node.lineno
    return None


def _is_method(function: ast.expr) -> bool:
    """Whether it is a method of some object that happens to be called so; ``getpass.getpass`` is none."""
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") != "getpass"


def executed_name(notebook: str, job: str) -> str:
    """Return the file name of the executed notebook of a job: that of the source, and what tells the job.

    >>> executed_name("train.ipynb", "train-k3f2qd"), executed_name("train.ipynb", "lr-k3f2qd")
    ('train-k3f2qd.ipynb', 'train-lr-k3f2qd.ipynb')
    """
    stem = Path(notebook).stem
    short, suffix = split_suffix(job)
    told = suffix if short == short_name(stem) and suffix else job
    return f"{stem}-{told}.ipynb"
