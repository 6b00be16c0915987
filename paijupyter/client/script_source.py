"""A script as what a job runs: found in the package, with the program that runs it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paijupyter.errors import Problem, UsageProblem

_RUNNERS = {".py": "python", ".sh": "bash"}


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the package.

    Attributes:
        command: that runs it, with its arguments.
        name: of a job that runs it.
        problems: hints at what may not be meant.
    """

    command: str
    name: str
    problems: tuple[Problem, ...]


def find_script(script: str, arguments: Sequence[str], folder: Path, root: Path) -> Script:
    """Find a script.

    Args:
        script: as a person writes it: a path from a folder, or from that of the package.
        arguments: of the script.
        folder: where the person is.
        root: folder of the package.

    Raises:
        UsageProblem: it is not there, not in the package, or of a kind that nothing here runs.
    """
    given = Path(script).expanduser()
    found = next((place for place in (folder / given, root / given) if place.is_file()), None)
    if found is None:
        raise UsageProblem(f"Script `{script}` does not exist.", _instead(script, arguments, folder))
    try:
        inside = found.resolve().relative_to(root)
    except ValueError:
        raise UsageProblem(
            f"Script `{script}` is not in the package folder `{root}`.",
            "Name its folder with --package DIR.",
        ) from None
    runner = _RUNNERS.get(inside.suffix)
    if runner is None:
        raise UsageProblem(
            f"Script `{script}` is neither .py, .sh nor .ipynb.",
            "Say what runs it with --command COMMAND.",
        )
    command = shlex.join([runner, inside.as_posix(), *arguments])
    return Script(command, inside.stem, tuple(_late_options(script, arguments)))


def _instead(script: str, arguments: Sequence[str], folder: Path) -> str:
    """Say what to write in place of a script that is not there: a program is often meant."""
    if "/" not in script and shutil.which(script):
        command = shlex.quote(shlex.join([script, *arguments]))
        return f"A program is run with: --command {command}"
    return f"Looked in `{folder}`."


def _late_options(script: str, arguments: Sequence[str]) -> list[Problem]:
    """Hint at options of ours after the script: they went to the script."""
    from paijupyter.client.submit_options import SUBMIT_OPTIONS

    ours = {option.name for option in SUBMIT_OPTIONS if option.name.startswith("--")}
    late = next((word for word in arguments if word.split("=")[0] in ours), None)
    if late is None:
        return []
    message = f"Option `{late}` stands after the script, so the script gets it."
    hint = f"To give it to paijob, put it before `{script}`."
    return [Problem("hint", "option-after-script", message, hint=hint)]
