"""Jobs that run a whole notebook: what is against one, where its executed copy goes, how far it is."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from paijupyter.errors import PaiJupyterError, Problem, UsageProblem
from paijupyter.jobs.outputs import output_file
from paijupyter.jobs.record import Record
from paijupyter.notebook import whole
from paijupyter.notebook.reading import Notebook, parse_notebook
from paijupyter.package import LocalStore

if TYPE_CHECKING:
    from paijupyter.jobs.live import LiveJob

_log = logging.getLogger(__name__)


def notebook_that_runs(data: Mapping[str, Any]) -> str | None:
    """Return the path in the package of the notebook that a document's tasks run, or None."""
    extras = data.get("extras")
    ours = extras.get("paijupyter") if isinstance(extras, Mapping) else None
    told = ours.get("notebook") if isinstance(ours, Mapping) else None
    if not isinstance(told, Mapping) or told.get("run") is not True:
        return None
    return str(told.get("path") or "") or None


def problems_of(data: Mapping[str, Any], sha256: str, store: LocalStore) -> list[Problem]:
    """Return what is against running the notebook of a document, read from its package."""
    path = notebook_that_runs(data)
    if path is None:
        return []
    try:
        notebook = parse_notebook(store.content(sha256, path), Path(path))
    except UsageProblem as error:
        return error.problems or [Problem("error", error.code, error.message, hint=error.hint)]
    except PaiJupyterError as error:
        message = f"Notebook `{path}` is not in the package."
        return [Problem("error", "notebook-missing", message, hint=error.message)]
    parameters = data.get("parameters")
    return whole.problems(notebook, parameters if isinstance(parameters, Mapping) else {})


def executed_output(record: Record) -> str | None:
    """Return the path of the executed notebook among a job's outputs, whether it is there yet or not."""
    path = record.facts.get("runsNotebook")
    if not path:
        return None
    roles = record.facts["roles"]
    chief = next((role for role in roles if not role.get("service")), roles[0])
    return f"{chief['name']}-0/{PurePosixPath(path).name}"


def read_executed(record: Record) -> Notebook | None:
    """Return the executed notebook of a job, as far as it has come; None if there is none."""
    path = executed_output(record)
    if path is None:
        return None
    try:
        return parse_notebook(output_file(record.folder, path).read_bytes(), Path(path))
    except (PaiJupyterError, OSError):
        return None  # It has not begun yet, or somebody has removed it.


def number_in_source(executed: Notebook, number: int) -> int:
    """Return the number that a cell of an executed notebook has in its source, without the injected cell."""
    told = (executed.data.get("metadata") or {}).get("paijupyter")
    injected = told.get("injected") if isinstance(told, Mapping) else None
    return number - 1 if isinstance(injected, int) and injected < number else number


def place_beside(record: Record) -> Path | None:
    """Return where the executed notebook of a job goes: beside its source; None where that is not known."""
    source = record.facts.get("notebook")
    if not record.facts.get("runsNotebook") or not source:
        return None
    path = Path(source)
    return path.with_name(whole.executed_name(path.name, str(record.facts["name"])))


def bring_beside(record: Record) -> None:
    """Copy the executed notebook beside its source: never over a file that is there, whole or not at all."""
    target, output = place_beside(record), executed_output(record)
    if target is None or output is None or not Path(str(record.facts["notebook"])).is_file():
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        content = output_file(record.folder, output).read_bytes()
        draft.write_bytes(content)
        _name_new(draft, target)
    except FileExistsError:
        return
    except (OSError, PaiJupyterError) as error:
        _log.info("the executed notebook of job %s stays among its outputs: %s", record.id, error)
    finally:
        draft.unlink(missing_ok=True)


def _name_new(draft: Path, target: Path) -> None:
    """Give a file its name, unless something has that name already: a rename would replace it.

    Raises:
        FileExistsError: something has.
    """
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(str(target)) from None
        draft.rename(target)


def bringing_notebooks(then: Callable[[LiveJob], None]) -> Callable[[LiveJob], None]:
    """Return what is done with a job that is about to end: its notebook is brought, then the rest happens."""

    def end(live: LiveJob) -> None:
        bring_beside(live.record)
        then(live)

    return end


def brought(record: Record) -> str | None:
    """Return the path of the executed notebook beside its source, if it is there."""
    place = place_beside(record)
    return str(place) if place is not None and place.is_file() else None
