"""``export NOTEBOOK``: its cells as a script to keep, or a folder that is submitted without the notebook."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paijupyter import paths
from paijupyter.client.cells_source import cells_run, told_rows
from paijupyter.client.notebook_source import THIS
from paijupyter.client.sources import Origin, Source, source_of
from paijupyter.client.verbs import Reply, writing
from paijupyter.errors import UsageProblem, has_errors

DOCUMENT = "job.yaml"


def export_notebook(options: Namespace, origin: Origin) -> Reply:
    """Write the script of a notebook's cells, or all that a job of them needs.

    Raises:
        UsageProblem: something of it cannot be a script, each with its cell; or a file is in the way.
    """
    given = _as_submit(options, origin)
    origin = _beside(given, origin)
    if options.folder:
        return _folder(given, origin, origin.folder / Path(options.folder).expanduser())
    run = cells_run(given, origin, ["worker"], None, "")
    _refuse(run.problems)
    stem = run.name
    if not options.to:
        script = next(text for name, text in run.files.items() if name == f"{stem}.py").decode()
        return Reply(script, {"script": script, "cells": list(run.told)})
    target = origin.folder / Path(options.to).expanduser()
    with writing(target):
        for name, content in run.files.items():
            path = target if name == f"{stem}.py" else target.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    said = [f"Script `{options.to}` has the cells. Run it with: python paicells.py {target.name}"]
    return Reply(_said(said, run.told, run.problems), list(run.told))


def _as_submit(options: Namespace, origin: Origin) -> Namespace:
    """Return the options as those of ``submit``: what is not given is as there."""
    from paijupyter.client.options import parse_verb

    script = str(options.job)
    given = parse_verb("submit", [script], "magic" if origin.surface == "magic" else "cli")
    for name, value in vars(options).items():
        if hasattr(given, name) and name not in ("verb", "job"):
            setattr(given, name, value)
    given.cells = list(options.cells) or [_default_cells(given, origin)]
    given.script_folder = ""
    return given


def _beside(options: Namespace, origin: Origin) -> Origin:
    """Let a notebook's own folder be its package, where another is not named."""
    if options.script == THIS:
        return origin
    path = (origin.folder / Path(options.script).expanduser()).resolve()
    return replace(origin, notebook=origin.notebook if origin.session else path)


def _default_cells(options: Namespace, origin: Origin) -> str:
    """Take the tagged cells where there are any, else all."""
    from paijupyter.client.cells_source import cells_named
    from paijupyter.notebook.parts import EXPORT, ROLE

    tags = {tag for cell in cells_named(options, origin, None).notebook.code for tag in cell.tags}
    return EXPORT if EXPORT in tags else "" if any(tag.startswith(ROLE) for tag in tags) else "all"


def _folder(options: Namespace, origin: Origin, folder: Path) -> Reply:
    if folder.suffix == ".py":
        raise UsageProblem(
            f"Folder `{folder.name}` is named like a script.",
            f"Write the script alone with --to {folder.name}, or name a folder.",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageProblem(f"Folder `{folder}` is not empty.", "Name a new one: -o DIR")
    source = source_of(options, origin, None)
    _refuse(source.problems)
    files = _package(source, folder)
    with writing(folder):
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copy2(content, path)
            else:
                path.write_bytes(content)
        (folder / DOCUMENT).write_text(source.document, "utf-8")
    said = [
        f"Folder `{_named(folder, origin)}` has `{DOCUMENT}` and a package of {len(files)} files.",
        f"Submit it with: paijob submit -f {_named(folder, origin)}/{DOCUMENT}",
    ]
    return Reply(_said(said, source.told, source.problems), list(source.told))


def _named(folder: Path, origin: Origin) -> str:
    return str(folder.relative_to(origin.folder)) if folder.is_relative_to(origin.folder) else str(folder)


def _package(source: Source, target: Path) -> dict[str, Path | bytes]:
    """Return the files of the package by their path: as they lie in its folder, or as generated."""
    from paijupyter.package import LocalStore, snapshot

    if source.root is None:
        return dict(source.extra_files)
    found = snapshot(source.root, LocalStore(paths.data_dir()), extra_files=source.extra_files)
    files: dict[str, Path | bytes] = {}
    for entry in found.manifest.entries:
        path = source.root / entry.path
        if source.notebook is not None and path.resolve() == source.notebook.resolve():
            continue  # The script is instead of it.
        if not path.is_relative_to(target.resolve()):
            files[entry.path] = source.extra_files.get(entry.path, path)
    return files


def _refuse(problems: Any) -> None:
    """Refuse with all that is wrong, each with its cell."""
    from paijupyter.errors import in_order

    if not has_errors(problems):
        return
    wrong = [each for each in in_order(problems) if each.severity == "error"]
    more = "" if len(wrong) == 1 else f" ({len(wrong) - 1} more, each in a line below)"
    lines = "".join(f"\n{each}" for each in wrong[1:])
    first = str(wrong[0])
    raise UsageProblem(f"{first[:1].upper()}{first[1:]}{more}{lines}", "", list(problems))


def _said(lines: list[str], told: tuple[Mapping[str, Any], ...], problems: Any) -> str:
    from paijupyter.client.card import problem_text

    rows = told_rows(told)
    width = max((len(label) for label, _ in rows), default=0)
    shown = [f"  {label:<{width}}  {text}" for label, text in rows]
    return "\n".join([*lines, *shown, *map(problem_text, problems)])
