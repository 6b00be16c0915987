"""The code cells of a notebook with all that is known of each: its Python, its names, what it changes."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paijupyter.notebook import known, paths
from paijupyter.notebook.effects import Effects, Flow
from paijupyter.notebook.names import Facts
from paijupyter.notebook.reading import NotebookCell
from paijupyter.notebook.syntax import parsed, plain
from paijupyter.notebook.translating import AUTOMATIC, Translated, translate
from paijupyter.notebook.walking import facts_of

SKIP, ALL, EXPORT, ROLE = "pai:skip", "pai:needs-all", "pai:export", "pai:role="
PARAMETERS = "parameters"


@dataclass(slots=True)
class Part:
    """A code cell with what is known of it.

    Attributes:
        cell: the cell.
        code: it as plain Python.
        facts: its names.
        effects: what it changes.
        binds_any: why it may bind any name, or "".
        stars: names that its star imports bind, where they are known.
        modules: module behind each name that it imports.
        missing: paths that it names and where nothing lies.
        acts: line of a shell line that may make any file, or 0.
    """

    cell: NotebookCell
    code: Translated
    facts: Facts
    effects: Effects = field(default_factory=Effects)
    binds_any: str = ""
    stars: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    acts: int = 0

    @property
    def number(self) -> int:
        """Number of the cell."""
        return self.cell.number

    @property
    def is_skipped(self) -> bool:
        """Whether its author wants it in no script."""
        return SKIP in self.cell.tags

    def binds(self, name: str) -> bool | None:
        """Say whether it binds a name whenever it runs; None where it does not at all."""
        if name in self.facts.binds:
            return self.facts.binds[name]
        if name in self.stars:
            return True
        return False if name in self.effects.binds else None


def parts_of(
    cells: Iterable[NotebookCell], folder: Path | None = None, chosen: Collection[int] = ()
) -> list[Part]:
    """Read code cells, in the order in which they run.

    Args:
        cells: the cells; those that are not code are left out.
        folder: where modules of the notebook lie, for star imports of them.
        chosen: numbers of cells that are in, whatever their tags say.
    """
    code = [cell for cell in cells if cell.is_code]
    shell = any(mark in cell.source for cell in code for mark in "!%")
    shell |= any(cell.source.split(None, 1)[0] in AUTOMATIC for cell in code)
    bound = _bound(code) if shell else set()
    again = _written_again(code) if shell else set()
    flow = Flow()
    found = []
    for cell in code:
        translated = translate(cell, bound, again)
        facts = facts_of(translated.tree)
        part = Part(cell, translated, facts)
        if cell.number in chosen or not (part.is_skipped or translated.submits):
            part.effects = flow.go_through(facts)
        _look_at_commands(part)
        _look_at_stars(part, folder)
        for line, what in [*translated.binds_any, *facts.unknown]:
            part.binds_any = part.binds_any or f"`{what}` in line {line} may bind any name"
        part.modules = {name: event.module for event in facts.events if event.module for name in event.names}
        if folder is not None:
            part.missing = [path for path in facts.files if _is_missing(folder, path)]
        found.append(part)
    return found


def _is_missing(folder: Path, path: str) -> bool:
    return paths.is_file_name(path) and not folder.joinpath(path).exists()


def _bound(cells: Sequence[NotebookCell]) -> set[str]:
    """Return all names that cells bind at their top level, roughly: shell lines are filled in with them."""
    found: set[str] = set()
    for cell in cells:
        _, tree = plain(cell.source)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return found


def _written_again(cells: Sequence[NotebookCell]) -> set[str]:
    """Return the files that several cells write by ``%%writefile``: each is written when its cell runs."""
    found = [path for cell in cells if "writefile" in cell.source for path in translate(cell, ()).files]
    return {path for path in found if found.count(path) > 1}


def _look_at_commands(part: Part) -> None:
    """Take every word of a shell line for a file that it may make."""
    for node in ast.walk(part.code.tree) if "paicells." in part.code.text else ():
        if not isinstance(node, ast.Call) or not known.dotted(node.func).startswith("paicells."):
            continue
        if paths.writes(node):
            part.acts = part.acts or node.lineno
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                for word in each.value.replace("'", " ").replace('"', " ").split():
                    if len(word) > 1 and not word.startswith("-"):
                        part.facts.written.setdefault(word.lstrip(">"), node.lineno)
                    if "://" in word:  # What is fetched or cloned from there has that name.
                        name = word.rstrip("/").rpartition("/")[2].removesuffix(".git")
                        part.facts.written.setdefault(name, node.lineno)
    for path in [*part.code.files, *part.effects.written]:
        part.facts.written.setdefault(path, part.effects.written.get(path, 1))


def _look_at_stars(part: Part, folder: Path | None) -> None:
    for module, level, line in part.facts.stars:
        names = None if level else _public_names(module, folder)
        if names is None:
            part.binds_any = f"`from {'.' * level}{module} import *` in line {line} may bind any name"
        else:
            part.stars |= names


def _public_names(module: str, folder: Path | None) -> set[str] | None:
    """Return what a star import of a module binds; None where only importing it would tell."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        found = importlib.import_module(module)
        return set(getattr(found, "__all__", [name for name in dir(found) if not name.startswith("_")]))
    if folder is None:
        return None
    path = folder.joinpath(*module.split("."))
    file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    try:
        facts = facts_of(parsed(file.read_text("utf-8")))
    except (OSError, SyntaxError, ValueError):
        return None
    if facts.stars or facts.unknown or "__all__" in facts.binds:
        return None
    return {name for name in facts.binds if not name.startswith("_")}
