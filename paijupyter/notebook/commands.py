"""Shell lines of a notebook: what IPython fills into them, and which of them install requirements."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from string import Formatter

from paijupyter.notebook.names import BUILTIN

_DOLLAR = re.compile(r"\$\$|\$([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_INSTALLERS = (["pip"], ["pip3"], ["uv", "pip"], ["python", "-m", "pip"], ["python3", "-m", "pip"])
_NEEDLESS = re.compile(
    r"-(?:q+|U|v+|y)$|--(?:quiet|upgrade|user|verbose|no-cache-dir|disable-pip-version-check|no-input|yes|system"
    r"|break-system-packages|force-reinstall|no-warn-script-location|root-user-action.*|upgrade-strategy.*"
    r"|progress-bar.*)$"
)
_OPTION_LINES = (
    "--index-url",
    "-i",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--trusted-host",
    "--pre",
    "--no-index",
)
_WITHOUT_VALUE = ("--pre", "--no-index")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Lines of a requirements file that an installation asks for; ``refused`` says why there are none."""

    lines: tuple[str, ...] = ()
    refused: str = ""


def expanded(command: str, bound: Collection[str]) -> str:
    """Return a command as arguments of a Python call: literals, and expressions that the notebook fills in.

    As IPython: ``{expression}`` and ``$name`` are filled in where they can be evaluated; where one in braces
    cannot (``awk '{print $1}'``), the whole command stays as it is.

    Args:
        command: the text.
        bound: names that cells of the notebook bind.

    >>> expanded("ls {folder}/$name $HOME", {"folder", "name"})
    "'ls ', folder, '/', name, ' $HOME'"
    """
    try:
        fields = list(Formatter().parse(command))
    except ValueError:
        fields = [(command, None, None, None)]
    parts: list[str] = []
    for literal, field, form, conversion in fields:
        parts += _dollars(literal, bound)
        if field is None:
            continue
        field = f"{field}:{form}" if form else field  # IPython takes it for a slice.
        if not _known(field, bound):
            return repr(command)
        value = (
            f"{ {'r': 'repr', 's': 'str', 'a': 'ascii'}[conversion] }({field})"
            if conversion
            else field.strip()
        )
        parts.append(value)
    return ", ".join(parts) or "''"


def _known(expression: str, bound: Collection[str]) -> bool:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    names = {
        part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    own = {
        part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return all(name in bound or name in BUILTIN for name in names - own)


def _dollars(text: str, bound: Collection[str]) -> list[str]:
    """Split at ``$name`` of names that are bound; a ``$`` of others is the shell's."""
    parts, literal, place = [], "", 0
    for found in _DOLLAR.finditer(text):
        literal += text[place : found.start()]
        place = found.end()
        if found[1] and found[1].partition(".")[0] in bound:
            parts += [repr(literal), found[1]] if literal else [found[1]]
            literal = ""
        else:
            literal += "$" if found[0] == "$$" and bound else found[0]
    literal += text[place:]
    return [*parts, repr(literal)] if literal else parts


def installs(command: str) -> Requirements | None:
    """Return what a shell line installs by pip; None for any other line."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return None
    words = _without_redirections(words)
    if words and words[0] == "{sys.executable}":
        words[0] = "python"
    for start in _INSTALLERS:
        if words[: len(start) + 1] == [*start, "install"]:
            return requirements(words[len(start) + 1 :])
    return None


def _without_redirections(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in (">", ">>", "2>", "&>"):
            skip = True
        elif not re.fullmatch(r"(?:[12]|&)?>>?(?:&[12]|\S+)", word):
            kept.append(word)
    return kept


def requirements(words: list[str]) -> Requirements:
    """Return the lines of a requirements file that the words after ``pip install`` mean."""
    lines: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if any(mark in word for mark in ("{", "$", "|", ";")) or word in ("&&", "&"):
            return Requirements(refused=f"`{word}` cannot be read before it runs")
        if _NEEDLESS.match(word):
            continue
        if word in ("-r", "--requirement", "-c", "--constraint"):
            option = "-r" if word in ("-r", "--requirement") else "-c"
            lines.append(f"{option} {waiting.pop(0) if waiting else ''}".rstrip())
        elif name in _OPTION_LINES:
            if name in _WITHOUT_VALUE:
                lines.append(name)
            else:
                lines.append(f"{name} {value if equals else waiting.pop(0) if waiting else ''}".rstrip())
        elif word.startswith("-"):
            return Requirements(refused=f"option `{word}` has no place in a requirements file")
        else:
            lines.append(word)
    return Requirements(tuple(lines))
