"""``--cells``, ``--with-cells`` and ``export NOTEBOOK``: cells of a notebook as what a job runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client.notebook_source import THIS, is_notebook
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.sources import Origin
    from paijupyter.notebook.carrying import Carried
    from paijupyter.notebook.reading import Notebook
    from paijupyter.notebook.running import CellsRun
    from paijupyter.notebook.session import Cells

_WITHOUT_TAG = "pai:export"
_OPTIONS = ("--with-cells", "--cells", "--carry", "--order")


def is_cells(options: Namespace) -> bool:
    """Whether what is to run are cells of a notebook: an option says so that means nothing else."""
    return bool(_given(options))


def _given(options: Namespace) -> str:
    """Return the option that says that cells are to run, or nothing."""
    return next((each for each in _OPTIONS if getattr(options, each[2:].replace("-", "_"))), "")


def cells_run(
    options: Namespace, origin: Origin, roles: Sequence[str], body: str | None, folder: str | None = None
) -> CellsRun:
    """Make the scripts of the cells that the options choose.

    Args:
        options: parsed options of ``submit``, ``plan`` or ``export``.
        origin: where they come from.
        roles: roles of the job.
        body: the cell below the magic, or None.
        folder: where in the package the scripts go; by default where the options say.

    Raises:
        UsageProblem: the notebook cannot be read, a cell does not exist, an object cannot be carried.
    """
    from paijupyter.notebook.carrying import Carried, carry
    from paijupyter.notebook.exporting import Wanted
    from paijupyter.notebook.running import FOLDER, run_of

    _check(options, body)
    folder = getattr(options, "script_folder", FOLDER) if folder is None else folder
    cells = cells_named(options, origin, body)
    given = _parameters(cells.notebook, options)
    carried = Carried()
    if options.carry:
        if origin.session is None:
            hint = "Submit from the notebook: %paijob submit this-notebook --cells … --carry NAME"
            raise UsageProblem("Option `--carry` needs a kernel, and the command line has none.", hint)
        carried = carry(options.carry, origin.session.names)
    chosen = list(options.cells) or ([str(cells.current)] if cells.current else [_WITHOUT_TAG])
    wanted = Wanted(
        chosen,
        roles,
        tuple(given),
        tuple(name for name, *_ in carried.told),
        options.order or "",
        origin.folder,
        cells.history,
    )
    run = run_of(cells.notebook, wanted, roles, given, folder)
    return replace(
        run,
        requirements=(*run.requirements, *carried.requirements),
        files={**run.files, **_carried_files(carried, folder)},
        told=(*run.told, *_told_objects(carried)),
        problems=(*cells.problems, *run.problems),
    )


def _check(options: Namespace, body: str | None) -> None:
    if options.with_cells and body is None:
        raise UsageProblem(
            "Option `--with-cells` needs a cell below it.",
            "For chosen cells: submit this-notebook --cells TAG",
        )
    if options.sh or options.yaml:
        raise UsageProblem(f"Option `{_given(options)}` is for a cell with Python.")
    if body is None and not is_notebook(options):
        raise UsageProblem(
            f"Option `{_given(options)}` needs a notebook.",
            "Name it: submit NAME.ipynb --cells TAG, or this-notebook.",
        )


def cells_named(options: Namespace, origin: Origin, body: str | None) -> Cells:
    """Return the cells of the notebook that the options name, or of the one that they are given in."""
    from paijupyter.notebook.session import cells_of

    if body is None and options.script and options.script != THIS:
        path = (origin.folder / Path(options.script).expanduser()).resolve()
        here = origin.notebook is not None and origin.notebook.resolve() == path
        return cells_of(origin.session if here else None, path, None, None)
    return cells_of(origin.session, origin.notebook, origin.cell_id, body)


def _parameters(notebook: Notebook, options: Namespace) -> dict[str, Any]:
    from paijupyter.notebook.declared import fitted
    from paijupyter.protocol.parameters import parse_parameter

    return fitted(notebook, {parse_parameter(text)[0]: text.partition("=")[2] for text in options.param})


def _carried_files(carried: Carried, folder: str) -> dict[str, bytes]:
    from paijupyter.notebook.exporting import LOADER, support

    if not carried.files:
        return {}
    files = {f"{folder}{name}": content for name, content in carried.files.items()}
    return {**files, f"{folder}{LOADER}": support(LOADER)}


def _told_objects(carried: Carried) -> list[dict[str, Any]]:
    return [
        {"object": name, "type": kind, "bytes": size, "format": form}
        for name, kind, size, form in carried.told
    ]


def requirements_of(options: Namespace, run: CellsRun, root: Path, given: str | None) -> dict[str, bytes]:
    """Return the requirements file that has the package's own and those of the cells, if they have any."""
    from paijupyter.notebook.running import FOLDER, requirements_file

    return requirements_file(run.requirements, root, given, getattr(options, "script_folder", FOLDER))


def told_rows(told: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return label and sentence of each thing that is told, for people."""
    from paijupyter.client.words import size

    rows = []
    for each in told:
        if "object" in each:
            form = "cloudpickle" if each["format"] == "pickle" else each["format"]
            rows.append((f"carried {each['object']}", f"{each['type']}, {size(each['bytes'])}, as {form}"))
        else:
            role = f" {each['role']}" if each.get("role") else ""
            sign = "+" if each["included"] else "-"
            rows.append((f"{sign} cell {each['cell']}{role}", str(each["why"])))
    return rows
