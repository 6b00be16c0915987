"""One Python cell becomes the entry file of a job.

The file's line numbers are those of the cell: the ``%%paijob`` line, which is not Python, gives its place to
the one line that we add. So a traceback in a log says the line that the user sees in the notebook. All other
bytes are the user's.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Collection
from dataclasses import dataclass

from paijupyter.errors import Problem, UsageProblem

ENTRY = ".paijob/cell.py"
COMMAND = f"python {ENTRY}"
_FIRST_LINE = 2  # The body starts below the line of the magic.
_BIND = (
    'globals().update(__import__("json").loads(__import__("pathlib").Path('
    '__import__("os").environ["PAI_PARAMETERS_FILE"]).read_text("utf-8")))'
)
_HEADER = "# a %%paijob cell; its line numbers are the notebook's"


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry file of a cell.

    Attributes:
        path: where it lies in the package.
        content: its bytes.
        command: what starts it.
        problems: warnings about the cell.
    """

    path: str
    content: bytes
    command: str
    problems: tuple[Problem, ...] = ()


def entry(body: str, parameters: Collection[str] = (), number: int | None = None) -> Entry:
    """Make the entry file of a Python cell.

    Args:
        body: the cell below the line of the magic.
        parameters: names that are bound as typed variables before the body runs.
        number: place of the cell in its notebook, from 1, where known.

    Raises:
        UsageProblem: the body is not plain Python; it says which line of the cell.
    """
    tree = _parse(body, number)
    _check_encoding(body, number)
    content = _with_parameters(body, tree) if parameters else f"{_HEADER}\n{body}"
    problems = tuple(_overwritten(tree, parameters, number))
    return Entry(ENTRY, content.encode("utf-8", "surrogatepass"), COMMAND, problems)


def _parse(body: str, number: int | None) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A warning about the user's code belongs into the job's log.
            compile(body, "<cell>", "exec", dont_inherit=True)
            return ast.parse(body)
    except SyntaxError as error:
        raise _explain(body, error, number) from None
    except ValueError as error:  # A null byte.
        raise _refuse("not-python", f"Cell cannot be read as Python: {error}.", None, number) from None


def _explain(body: str, error: SyntaxError, number: int | None) -> UsageProblem:
    lines = body.splitlines()
    shell = _ipython_line(lines, error.lineno)
    if shell:
        return _refuse(
            "ipython-syntax",
            f"`{lines[shell - 1].strip()[:60]}` is IPython, not Python, so a job cannot run it.",
            shell,
            number,
            "Use %%paijob --sh for shell commands, or subprocess.run in Python.",
        )
    if _awaits(body):
        return _refuse(
            "top-level-await",
            "`await` outside a function runs only in a notebook.",
            error.lineno,
            number,
            "Put it into `async def main()` and end the cell with `asyncio.run(main())`.",
        )
    text = (error.msg or "invalid syntax").rstrip(".")
    return _refuse("not-python", f"Cell is not valid Python: {text}.", error.lineno, number)


def _ipython_line(lines: list[str], near: int | None) -> int | None:
    """Return the 1-based line at or just before an error that has IPython's own syntax."""
    if not near or near > len(lines):
        return None
    line = lines[near - 1].strip()
    if line.startswith(("!", "%", "?")) or line.endswith("?"):
        return near
    _, assigned, value = line.partition("=")
    return near if assigned and value.strip().startswith(("!", "%")) else None


def _awaits(body: str) -> bool:
    try:
        compile(body, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _refuse(code: str, message: str, line: int | None, number: int | None, hint: str = "") -> UsageProblem:
    place = line + _FIRST_LINE - 1 if line else None
    problem = Problem("error", code, message, line=place, cell=number, hint=hint)
    where = problem.place
    said = f"{where[:1].upper()}{where[1:]}: {message}" if where else message
    return UsageProblem(said, hint, [problem])


def _check_encoding(body: str, number: int | None) -> None:
    try:
        # The body's first line is the file's second, and only the first two may name an encoding.
        first = body.split("\n", 1)[0]
        encoding, _ = tokenize.detect_encoding(io.BytesIO(first.encode("utf-8", "replace")).readline)
    except SyntaxError:
        encoding = "unknown"
    if encoding not in ("utf-8", "utf-8-sig"):
        raise _refuse(
            "cell-encoding",
            "The encoding of a cell is always UTF-8.",
            1,
            number,
            "Remove the coding comment.",
        )


def _with_parameters(body: str, tree: ast.Module) -> str:
    """Add the line that binds the parameters where Python allows it, without moving any line."""
    leading = _leading(tree)
    if not leading:
        return f"{_BIND}\n{body}"
    last = leading[-1]
    lines = _python_lines(body)
    row = (last.end_lineno or 1) - 1
    line = lines[row].encode()
    column = last.end_col_offset or 0
    lines[row] = (line[:column] + f"; {_BIND}".encode() + line[column:]).decode()
    return f"{_HEADER}\n{''.join(lines)}"


def _python_lines(body: str) -> list[str]:
    """Split as Python's parser counts lines; ``splitlines`` also splits at form feeds."""
    return io.StringIO(body, newline="").readlines()


def _leading(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that must stay first: the docstring and the imports from ``__future__``."""
    found: list[ast.stmt] = []
    for place, statement in enumerate(tree.body):
        docstring = (
            place == 0
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            break
        found.append(statement)
    return found


def _overwritten(tree: ast.Module, parameters: Collection[str], number: int | None) -> list[Problem]:
    """Warn of parameters that the body assigns itself: the value given for the job would be lost."""
    found = []
    for statement in tree.body:
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        for name in sorted(names & set(parameters)):
            found.append(
                Problem(
                    "warning",
                    "parameter-overwritten",
                    f"Parameter `{name}` is assigned again here, so the value given for the job is not used.",
                    line=statement.lineno + _FIRST_LINE - 1,
                    cell=number,
                    hint="Remove the assignment.",
                )
            )
    return found
