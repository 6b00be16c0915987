"""``submit train.ipynb``: the whole notebook is what the job runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.errors import Problem, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.sources import Origin
    from paijupyter.notebook.reading import Notebook

THIS = "this-notebook"
_SCRIPT = ".paijob/notebook.py"


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """A notebook that is to run.

    Attributes:
        path: the file.
        inside: its path in the package.
        command: what runs it.
        parameters: those given, as it wants them.
        extra_files: generated files of the package.
        problems: what was found on the way.
    """

    path: Path
    inside: str
    command: str
    parameters: Mapping[str, Any]
    extra_files: Mapping[str, bytes] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def is_notebook(options: Namespace) -> bool:
    """Whether what is to run is a whole notebook."""
    return bool(options.script) and (options.script == THIS or options.script.endswith(".ipynb"))


def notebook_run(options: Namespace, origin: Origin, root: Path) -> NotebookRun:
    """Make the run of the notebook that the options name.

    Raises:
        UsageProblem: it is not there or no notebook, or a parameter, ``--until`` or ``--timeout`` is wrong.
    """
    from paijupyter.notebook import whole
    from paijupyter.notebook.declared import fitted
    from paijupyter.notebook.reading import read_notebook
    from paijupyter.protocol.quantities import parse_duration

    path = _path(options, origin, root)
    inside = _inside(path, root)
    if options.arguments:
        raise UsageProblem(
            f"Argument `{options.arguments[0]}` after the notebook has no use.",
            f"Options of ours go before `{options.script}`; values for it are given with --param.",
        )
    notebook = read_notebook(path)
    if options.until:
        whole.check_until(notebook, options.until)
    timeout = parse_duration(options.timeout) if options.timeout else None
    parameters = fitted(notebook, _texts(options))
    files, problems = dict[str, bytes](), tuple[Problem, ...]()
    if options.install == "never":
        files, problems = _script(notebook, list(parameters), options.until)
    command = whole.command(inside, options.until, timeout, _SCRIPT if _SCRIPT in files else "")
    return NotebookRun(path, inside, command, parameters, files, problems)


def _script(
    notebook: Notebook, parameters: list[str], until: str | None
) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """Return the script that runs where the task has no Jupyter and nothing may be installed."""
    from paijupyter.errors import has_errors
    from paijupyter.notebook.exporting import Wanted, export
    from paijupyter.notebook.whole import cells_until

    numbers = [str(cell.number) for cell in cells_until(notebook, until)]
    try:
        found = export(
            notebook, Wanted(numbers, parameters=parameters, folder=_folder(notebook), order="page")
        )
        wrong = [each for each in found.problems if each.severity == "error"]
    except UsageProblem as error:
        found, wrong = None, [Problem("error", error.code, error.message, hint=error.hint)]
    if found is None or has_errors(wrong):
        why = " ".join(each.message for each in wrong[:1])
        message = f"`{notebook.name}` has no script to run instead where its task has no Jupyter: {why}"
        return {}, (Problem("hint", "no-script", message, file=notebook.name),)
    return {f".paijob/{name}": text for name, text in found.script_files("notebook").items()}, ()


def _folder(notebook: Notebook) -> Path | None:
    return notebook.path.parent if notebook.path else None


def _texts(options: Namespace) -> dict[str, Any]:
    """Return the values of ``--param`` as they were typed; each name is checked."""
    from paijupyter.protocol.parameters import parse_parameter

    return {parse_parameter(text)[0]: text.partition("=")[2] for text in options.param}


def _path(options: Namespace, origin: Origin, root: Path) -> Path:
    if options.script == THIS:
        if origin.notebook is None:
            raise UsageProblem(
                "This notebook's file is not known here.",
                "Name it: %paijob submit NAME.ipynb"
                if origin.surface == "magic"
                else "On the command line, name it: paijob submit NAME.ipynb",
            )
        return origin.notebook.resolve()
    given = Path(options.script).expanduser()
    for place in (origin.folder / given, root / given):
        if place.is_file():
            return place.resolve()
    raise UsageProblem(f"Notebook `{options.script}` does not exist.", f"Looked in `{origin.folder}`.")


def _inside(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        raise UsageProblem(
            f"Notebook `{path}` is not in the package folder `{root}`.", "Name its folder with --package DIR."
        ) from None
