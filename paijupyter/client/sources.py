"""What a job runs: cell, script, command or whole document become document text and generated files."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client.cells_source import cells_run, is_cells, requirements_of
from paijupyter.client.notebook_source import NotebookRun, is_notebook, notebook_run
from paijupyter.client.script_source import find_script
from paijupyter.errors import Problem, UsageProblem

if TYPE_CHECKING:
    from paijupyter.notebook.running import CellsRun
    from paijupyter.notebook.session import Session

# Options that only make sense where we write the document.
WRITES = {
    "role": "--role",
    "gpu": "--gpu",
    "cpu": "--cpu",
    "mem": "--mem",
    "image": "--image",
    "command": "--command",
    "env": "--env",
    "output": "--output",
    "data": "--data",
    "storage": "--storage",
    "requirements": "--requirements",
    "time_limit": "--time-limit",
    "retry": "--retry",
    "install": "--install",
    "build": "--build",
    "virtual_cluster": "--virtual-cluster",
    "cells": "--cells",
    "with_cells": "--with-cells",
    "carry": "--carry",
    "order": "--order",
    "until": "--until",
    "timeout": "--timeout",
    "sh": "--sh",
    "script": "script",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a submission comes from.

    Attributes:
        surface: ``magic`` or ``cli``.
        folder: the notebook's folder, or the command line's.
        python: interpreter that a local task uses, or None for ``python`` on PATH.
        notebook: path of the notebook, where known.
        cell_id: the front end's id of the cell, where it sends one.
        cell_number: place of the cell in its notebook, from 1, where known.
        kernel: id of the kernel, the scope of ``last`` in a notebook.
        session: what that kernel ran and has.
    """

    surface: str
    folder: Path
    python: str | None = None
    notebook: Path | None = None
    cell_id: str | None = None
    cell_number: int | None = None
    kernel: str | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A job document and what has to travel with it.

    Attributes:
        document: text of the source document.
        root: folder of the trainer package, or None where the document names a package already.
        extra_files: generated files of the package.
        body: text of the cell, for its hash.
        problems: warnings found on the way.
        notebook: the notebook that the tasks run, or whose cells they run.
        told: of each cell whether it is in a script of cells, and why.
    """

    document: str
    root: Path | None
    extra_files: Mapping[str, bytes] = field(default_factory=dict)
    body: str = ""
    problems: tuple[Problem, ...] = ()
    notebook: Path | None = None
    told: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """What tasks run: one list of commands for all roles, and what was generated for it."""

    commands: Sequence[str]
    name: str
    extra_files: Mapping[str, bytes] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    notebook: NotebookRun | None = None
    cells: CellsRun | None = None


def source_of(options: Namespace, origin: Origin, body: str | None) -> Source:
    """Make the job document that the options, and the cell below them, ask for.

    Args:
        options: parsed options of ``submit`` or ``plan``.
        origin: where they come from.
        body: the cell below the line of the magic, or None.

    Raises:
        UsageProblem: an option, a value or the cell is wrong.
    """
    if options.yaml and body is None:
        raise UsageProblem("Option `--yaml` needs a cell with a job document below it.")
    if options.file is not None or options.yaml:
        return _given_document(options, origin, body)
    return _written_document(options, origin, body)


def _given_document(options: Namespace, origin: Origin, body: str | None) -> Source:
    from paijupyter.protocol.old import modernised

    clash = [name for attribute, name in WRITES.items() if getattr(options, attribute)]
    if clash:
        raise UsageProblem(
            f"Option `{clash[0]}` does not go with a whole job document.", "Write it in the document."
        )
    if options.file is not None and body is not None:
        raise UsageProblem("Option `--file` does not go with a cell below it.", "Use %paijob submit -f FILE.")
    folder = origin.folder
    if options.file is None:
        text = body or ""
    else:
        path = origin.folder / Path(options.file).expanduser()
        text = read_text(path)
        folder = path.parent
    text, changes = modernised(text)
    text, problems, data = overridden(text, options)
    problems = (*changes, *problems)
    named = ((data.get("extras") or {}).get("paijupyter") or {}).get("package")
    root = None if named else package_root(options, origin.folder if options.package else folder)
    return Source(text, root, body=body or "", problems=problems)


def read_text(path: Path) -> str:
    """Read a document that the user names.

    Raises:
        UsageProblem: it is not there, or no text.
    """
    try:
        # Byte for byte: no translation of line ends.
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UsageProblem(f"File `{path}` does not exist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"File `{path}` cannot be read as text: {error}.") from None


def overridden(text: str, options: Namespace) -> tuple[str, tuple[Problem, ...], Mapping[str, Any]]:
    """Apply ``--name`` and ``--param`` to a document; all other bytes stay."""
    from paijupyter.protocol import edit, read

    data = read(text).data
    patch: list[dict[str, Any]] = []
    if options.name:
        patch.append({"op": "add", "path": "/name", "value": options.name})
    parameters = parameters_of(options)
    if parameters and not data.get("parameters"):
        patch.append({"op": "add", "path": "/parameters", "value": parameters})
    elif parameters:
        for name, value in parameters.items():
            patch.append({"op": "add", "path": f"/parameters/{_escaped(name)}", "value": value})
    if not patch:
        return text, (), data
    edited, problems = edit(text, patch)
    return edited, tuple(problems), data


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _written_document(options: Namespace, origin: Origin, body: str | None) -> Source:
    from paijupyter.protocol import JobOptions, build_document, write
    from paijupyter.protocol.data import parse_data
    from paijupyter.protocol.parameters import parse_env
    from paijupyter.protocol.quantities import parse_duration
    from paijupyter.protocol.secrets import parse_secret

    root = package_root(options, origin.folder)
    roles = _roles(options)
    run = _run(options, origin, root, body, [role.name for role in roles if role.instances])
    required = requirements_of(options, run.cells, root, _requirements(options, root)) if run.cells else {}
    document = build_document(
        JobOptions(
            name=options.name or run.name,
            commands=_per_role(options, run, [role.name for role in roles]),
            roles=roles,
            parameters=_typed(options, run),
            secrets=[parse_secret(text) for text in options.secret],
            image=options.image,
            env=dict(parse_env(text) for text in options.env),
            time_limit=parse_duration(options.time_limit) if options.time_limit else None,
            outputs=tuple(options.output),
            data=[parse_data(text) for text in options.data],
            storages=[_storage(text) for text in options.storage],
            notebook=_notebook(origin, root, run.notebook),
            retry_count=whole(options.retry, "--retry", least=0) or 0,
            requirements=next(iter(required), None) or _requirements(options, root),
            install=options.install,
            build=options.build,
            virtual_cluster=options.virtual_cluster,
        )
    )
    runs = run.notebook.path if run.notebook else run.cells.path if run.cells else None
    told = run.cells.told if run.cells else ()
    files = {**run.extra_files, **required}
    return Source(write(document), root, files, body or "", run.problems, runs, told)


def _typed(options: Namespace, run: _Run) -> Mapping[str, Any]:
    """Return the parameters as what runs wants them."""
    wants = run.notebook or run.cells
    return wants.parameters if wants else parameters_of(options)


def parameters_of(options: Namespace) -> dict[str, Any]:
    """Return the typed parameters of ``--param``."""
    from paijupyter.protocol.parameters import parse_parameter

    return dict(parse_parameter(text) for text in options.param)


def whole(text: str | None, option: str, least: int = 1) -> int | None:
    """Read a whole number of an option; None where it was not given.

    Raises:
        UsageProblem: it is no whole number, or too small.
    """
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise UsageProblem(f"Option `{option}` needs a whole number from {least} on, not `{text[:40]}`.")
    return int(text)


def _storage(text: str) -> dict[str, str]:
    """Return the item of ``extras.storages`` that ``NAME`` or ``NAME:MOUNT`` means."""
    name, colon, mount = text.partition(":")
    if not name or (colon and not mount.startswith("/")):
        raise UsageProblem(f"Option `--storage` needs NAME or NAME:/MOUNT/PATH, not `{text[:40]}`.")
    return {"name": name, "mountPath": mount} if mount else {"name": name}


def package_root(options: Namespace, folder: Path) -> Path:
    """Return the folder of the trainer package.

    Raises:
        UsageProblem: it does not exist.
    """
    root = folder / Path(options.package).expanduser() if options.package else folder
    if not root.is_dir():
        raise UsageProblem(f"Package folder `{root}` does not exist.", "Name another with --package DIR.")
    return root.resolve()


def _run(options: Namespace, origin: Origin, root: Path, body: str | None, roles: Sequence[str]) -> _Run:
    fallback = origin.notebook.stem if origin.notebook else "cell"
    if body is not None:
        if options.script:
            raise UsageProblem(
                f"Script `{options.script}` does not go with a cell below it.",
                "Use %paijob submit for a script, or remove it.",
            )
        if is_cells(options):
            return _of_cells(options, origin, roles, body)
        if options.sh:
            return _Run(_shell_lines(body), fallback)
        return _python_cell(body, options, origin, fallback)
    if options.sh:
        raise UsageProblem("Option `--sh` needs a cell with shell commands below it.")
    if is_cells(options):
        return _of_cells(options, origin, roles, None)
    if is_notebook(options):
        found = notebook_run(options, origin, root)
        return _Run([found.command], found.path.stem, found.extra_files, found.problems, found)
    if options.script:
        script = find_script(options.script, options.arguments, origin.folder, root)
        return _Run([script.command], script.name, problems=script.problems)
    if options.command:
        return _Run((), root.name if origin.notebook is None else fallback)
    raise UsageProblem(
        "Job has nothing to run.", "Name a script, or use --command COMMAND, -f JOB.YAML or a cell."
    )


def _of_cells(options: Namespace, origin: Origin, roles: Sequence[str], body: str | None) -> _Run:
    found = cells_run(options, origin, roles, body)
    return _Run((), found.name, found.files, found.problems, cells=found)


def _python_cell(body: str, options: Namespace, origin: Origin, name: str) -> _Run:
    if not body.strip():
        raise UsageProblem("Cell is empty, so the job has nothing to run.")
    from paijupyter.notebook.cell import entry

    found = entry(body, tuple(parameters_of(options)), origin.cell_number)
    return _Run([found.command], name, {found.path: found.content}, found.problems)


def _shell_lines(body: str) -> list[str]:
    """Return the commands of a shell cell: line by line where nothing depends on their spaces."""
    text = body.strip("\n")
    if not text.strip():
        raise UsageProblem("Cell is empty, so the job has nothing to run.")
    lines = text.split("\n")
    # The protocol trims each command; a here-document or an indented block must stay whole.
    return lines if all(line and line == line.strip() for line in lines) else [text]


def _roles(options: Namespace) -> list[Any]:
    from paijupyter.protocol.quantities import parse_memory
    from paijupyter.protocol.roles import RoleSpec, parse_role

    roles = [parse_role(text) for text in options.role] or [RoleSpec("worker")]
    said = {
        "gpu": whole(options.gpu, "--gpu", least=0),
        "cpu": whole(options.cpu, "--cpu"),
        "memory_mb": parse_memory(options.mem) if options.mem else None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return roles
    if len(roles) > 1:
        option = {"gpu": "--gpu", "cpu": "--cpu", "memory_mb": "--mem"}[next(iter(given))]
        raise UsageProblem(
            f"Option `{option}` is for a job of one role.",
            "Give it to each role: --role worker:4,gpu=1,mem=8Gi.",
        )
    more: dict[str, Any] = {name: value for name, value in given.items() if getattr(roles[0], name) is None}
    return [replace(roles[0], **more)]


def _per_role(options: Namespace, run: _Run, roles: Sequence[str]) -> dict[str, list[str]]:
    """Give each role its commands: its own ``--command``, else the common one, else the cell or script."""
    own: dict[str, list[str]] = {}
    common: list[str] = []
    for text in options.command:
        role, equals, command = text.partition("=")
        if equals and role in roles:
            own.setdefault(role, []).append(command)
        else:
            common.append(text)
    runs = {role: list(run.cells.commands.get(role, ()) if run.cells else run.commands) for role in roles}
    if common and any(runs.values()):
        raise UsageProblem(
            "Option `--command` for all roles does not go with a cell or script.",
            "Write --command ROLE=COMMAND for a role that runs something else.",
        )
    return {role: own.get(role) or common or runs[role] for role in roles}


def _requirements(options: Namespace, root: Path) -> str | None:
    if options.requirements is None:
        return None
    name = Path(options.requirements)
    if name.is_absolute() or ".." in name.parts or not (root / name).is_file():
        raise UsageProblem(f"Requirements file `{name}` is not in the package folder `{root}`.")
    return name.as_posix()


def _notebook(origin: Origin, root: Path, run: NotebookRun | None) -> dict[str, Any] | None:
    if run is not None:
        return {"path": run.inside, "run": True}
    if origin.notebook is None:
        return None
    path = origin.notebook
    inside = path.resolve()
    shown = inside.relative_to(root).as_posix() if inside.is_relative_to(root) else path.name
    return {"path": shown, "cell": origin.cell_id} if origin.cell_id else {"path": shown}
