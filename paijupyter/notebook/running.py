"""Cells of a notebook as what a job runs: commands, generated files, requirements and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paijupyter.errors import Problem
from paijupyter.notebook.declared import declared
from paijupyter.notebook.exporting import Export, Wanted, export
from paijupyter.notebook.reading import Notebook

FOLDER = ".paijob/"
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class CellsRun:
    """Cells that are to run.

    Attributes:
        name: of the job.
        commands: of each role.
        parameters: typed, with the defaults of the notebook's own.
        requirements: lines of a requirements file.
        files: generated files of the package.
        told: of each cell, and each object, what there is to say.
        problems: what was found on the way.
        path: the notebook, where it is known.
    """

    name: str
    commands: Mapping[str, Sequence[str]]
    parameters: Mapping[str, Any]
    requirements: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    told: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()
    path: Path | None = None


def run_of(
    notebook: Notebook, wanted: Wanted, roles: Sequence[str], given: Mapping[str, Any], folder: str = FOLDER
) -> CellsRun:
    """Make the scripts of chosen cells.

    Args:
        notebook: the notebook.
        wanted: what of it.
        roles: roles of the job.
        given: parameters, as the notebook wants them.
        folder: where in the package the scripts go.

    Raises:
        UsageProblem: the notebook has no code, or a cell does not exist.
    """
    found = export(notebook, wanted)
    stem = notebook.path.stem if notebook.path else "cells"
    files = {f"{folder}{name}": content for name, content in found.script_files(stem).items()}
    files.update(found.files)
    told = tuple(
        {"cell": each.number, "included": each.included, "why": each.why, "role": each.role}
        for each in found.told
    )
    return CellsRun(
        stem,
        {role: [found.command(role, folder, stem)] for role in roles},
        {**_defaults(notebook, found), **given},
        tuple(found.requirements),
        files,
        told,
        tuple(found.problems),
        notebook.path,
    )


def requirements_file(
    lines: Sequence[str], root: Path, own: str | None, folder: str = FOLDER
) -> dict[str, bytes]:
    """Return the requirements file that has the package's own lines and those of cells, if these have any.

    Args:
        lines: what the cells install.
        root: folder of the package.
        own: the package's requirements file, or None for the usual one.
        folder: where in the package the new one goes.
    """
    if not lines:
        return {}
    own = own or ("requirements.txt" if (root / "requirements.txt").is_file() else "")
    if folder:
        head = f"-r ../{own}\n" if own else ""
    else:
        head = (root / own).read_text("utf-8", "replace").rstrip("\n") + "\n" if own else ""
    return {f"{folder}requirements.txt": (head + "".join(f"{line}\n" for line in lines)).encode()}


def _defaults(notebook: Notebook, found: Export) -> dict[str, Any]:
    """Return the plain defaults of the notebook's own parameters, so that a document shows them."""
    if not found.parameters:
        return {}
    return {each.name: each.default for each in declared(notebook) if isinstance(each.default, _PLAIN)}
