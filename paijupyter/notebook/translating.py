"""What becomes of a cell's magics and shell lines in a script: one rule for each, the same for all notebooks.

======================================  ==========================================================
in the notebook                         in the script
======================================  ==========================================================
``%pip install``, ``!pip install``      a line of the requirements
``%%writefile FILE``                    a file of the package; ``-a``, or a path outside: written when run
``!command``, ``%%bash``, ``%%script``  run by the shell; a failure ends the script
``x = !command``, ``%sx``               the lines it prints; a failure does not end the script
``%cd``, ``%env NAME=VALUE``, ``%pwd``  the same in Python; as all magics, also without the ``%``
                                        where it is all that the cell has
``%time``, ``%%time``, ``%%capture``    what they run; nothing is measured
``%timeit``, ``%prun``, ``%memit``      left out: they only measure
``%run FILE.py``                        runs it, and its names are there
``%matplotlib``, ``%load_ext``, …       left out: they are for the notebook only
``%%html``, ``%%markdown``, …           left out: they only show
any other                               refused, with its cell and line
======================================  ==========================================================
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from paijupyter.errors import Problem
from paijupyter.notebook import commands, known
from paijupyter.notebook.reading import NotebookCell
from paijupyter.notebook.rewriting import Edit, rewritten
from paijupyter.notebook.syntax import CellMagic, cell_magic, parsed, plain

ONLY_NOTEBOOK = known.names(
    """
    alias alias_magic autoawait autocall automagic autoreload autosave bookmark clear cls colors config
    connect_info debug dhist dirs doctest_mode gui hist history killbgscripts less load_ext logoff logon
    logstart logstate logstop lsmagic man matplotlib more notebook page paijob pastebin pdb pdef pdoc pfile
    pinfo pinfo2 pprint precision psearch psource qtconsole quickref rehashx reload_ext tb
    tensorboard unalias unload_ext who whos who_ls xmode
    """
)
MEASURES = frozenset({"timeit", "prun", "memit", "mprun", "lprun", "snakeviz", "scalene"})
SHOWS = frozenset({"html", "HTML", "javascript", "js", "svg", "SVG", "latex", "markdown", "mermaid"})
RUNS_BODY = frozenset({"time", "capture"})
SHELLS = frozenset({"bash", "sh", "script", "python", "python3", "perl", "ruby", "zsh", "!", "sx", "system"})
ALIASES = frozenset({"cat", "cp", "ls", "ll", "mkdir", "mv", "rm", "rmdir", "touch"})
AUTOMATIC = ALIASES | frozenset(
    {"cd", "pushd", "popd", "pip", "conda", "env", "set_env", "run", "pwd", "time"}
)
_OPERATORS = tuple("=,!><+*/%^&|([.")
INSTALLS = frozenset({"pip", "uv"})


@dataclass(slots=True)
class Translated:
    """A cell as plain Python.

    Attributes:
        text: with as many lines as the cell, and the same code on the same line.
        tree: of it; empty where it cannot be read.
        requirements: lines of a requirements file, with the line of the cell.
        files: path of a file of the package, and its text.
        problems: why the cell cannot be part of a script; they matter if it has to be.
        notes: what was done, with the line of the cell.
        binds_any: what may bind any name (``%run``), with its line.
        submits: it is a ``%%paijob`` cell; the text is its body.
    """

    text: str = ""
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    requirements: list[tuple[str, int]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    binds_any: list[tuple[int, str]] = field(default_factory=list)
    submits: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to run."""
        return all(isinstance(each, ast.Pass) or _is_none(each) for each in self.tree.body)


def translate(
    cell: NotebookCell, bound: Collection[str], rewritten_files: Collection[str] = ()
) -> Translated:
    """Return a code cell as plain Python.

    Args:
        cell: the cell.
        bound: names that cells of the notebook bind; shell lines are filled in with them.
        rewritten_files: paths that several cells write, each when it runs.
    """
    return _Translator(cell, bound, rewritten_files).done()


class _Translator:
    def __init__(self, cell: NotebookCell, bound: Collection[str], rewritten_files: Collection[str]) -> None:
        self._cell = cell
        self._rewritten_files = rewritten_files
        self._bound = bound
        self._found = Translated()

    def done(self) -> Translated:
        self._source(self._cell.source, 0)
        return self._found

    def _source(self, source: str, above: int) -> None:
        """Translate a cell, or the body of a cell magic that has so many lines above it."""
        magic = cell_magic(source)
        if magic is not None:
            self._cell_magic(magic, above)
        else:
            text, tree = plain("\n" * above + self._with_percent(source))
            self._python(text, tree)

    def _with_percent(self, source: str) -> str:
        """Put the ``%`` before the magic of a cell that has one line only, where IPython needs none."""
        word, _, rest = source.strip().partition(" ")
        if "\n" in source.strip() or word not in AUTOMATIC or word in self._bound or rest[:1] in _OPERATORS:
            return source
        return source.replace(word, f"%{word}", 1)

    def _python(self, text: str, tree: ast.Module | None) -> None:
        try:
            tree = tree or parsed(text)
        except SyntaxError as error:
            said = (error.msg or "invalid syntax").rstrip(".")
            self._refuse("not-python", f"Cell is not valid Python: {said}.", error.lineno)
            return
        except (ValueError, RecursionError, MemoryError) as error:
            self._refuse("not-python", f"Cell cannot be read as Python: {error}.", None)
            return
        edits = list(self._edits(tree)) if "get_ipython" in text else []
        self._found.text = rewritten(text, edits) if edits else text
        self._found.tree = parsed(self._found.text) if edits else tree

    # Cell magics

    def _cell_magic(self, magic: CellMagic, above: int) -> None:
        line = above + magic.number
        name = magic.name
        if name in RUNS_BODY or (name == "paijob" and not above):
            self._found.submits = name == "paijob"
            if name == "capture" and magic.line.split("#")[0].strip() and not magic.line.startswith("-"):
                self._refuse("magic", "`%%capture` into a variable cannot be part of a script.", line)
            self._source(magic.body, line)
            return
        self._found.text = "pass" + "\n" * (line + magic.body.count("\n"))
        if name in ("writefile", "file"):
            self._writefile(magic, line)
        elif name in MEASURES or name in SHOWS or magic.line.startswith("false"):
            does = "measures" if name in MEASURES else "shows"
            self._note(line, f"`%%{name}` is left out: it only {does}")
        elif name in SHELLS:
            self._shell_cell(magic, line)
        else:
            self._unknown(f"%%{name}", line)

    def _writefile(self, magic: CellMagic, line: int) -> None:
        words = shlex.split(magic.line)
        names = [word for word in words if word not in ("-a", "--append")]
        if len(names) != 1:
            self._refuse("magic", f"`%%{magic.name}` needs one file name.", line)
            return
        path = names[0]
        inside = not path.startswith(("/", "~", "..")) and "/.." not in path
        once = path.removeprefix("./") not in self._rewritten_files
        if inside and "{" not in path and "$" not in path and len(words) == 1 and once:
            self._found.files[path.removeprefix("./")] = magic.body
            self._note(line, f"`{path}` is a file of the package")
            return
        where = commands.expanded(path, self._bound)
        self._code(f"paicells.write({magic.body!r}, {len(words) > 1}, {where})", magic, line)

    def _shell_cell(self, magic: CellMagic, line: int) -> None:
        words = [word for word in magic.line.split() if word != "--no-raise-error"]
        flags = [word for word in words if word.startswith("-") and magic.name != "script"]
        if flags:
            self._refuse(
                "magic", f"Option `{flags[0]}` of `%%{magic.name}` cannot be part of a script.", line
            )
            return
        program = (
            "sh"
            if magic.name in ("!", "sx", "system")
            else " ".join(words)
            if magic.name == "script"
            else magic.name
        )
        check = "--no-raise-error" not in magic.line.split()
        self._code(f"paicells.program({program!r}, {magic.body!r}, {check})", magic, line)

    def _code(self, code: str, magic: CellMagic, line: int) -> None:
        """Put one statement where the magic stands, and keep the number of lines."""
        text = "\n" * (line - 1) + code + "\n" * (1 + magic.body.count("\n"))
        self._found.text, self._found.tree = text, parsed(text)

    # Lines

    def _edits(self, tree: ast.Module) -> Iterator[Edit]:
        statements = {id(each.value): each for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not _is_shell(node.func):
                continue
            method = node.func.attr  # type: ignore[attr-defined]
            if method not in ("run_line_magic", "run_cell_magic", "magic", "system", "getoutput"):
                continue
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if len(words) != len(node.args) or not words:
                continue  # Known only when it runs; the stand-in of the shell does what it can.
            yield Edit(
                node, self._line(method, [str(word) for word in words], node.lineno, id(node) in statements)
            )

    def _line(self, method: str, words: list[str], line: int, alone: bool) -> str:
        """Return the code that takes the place of a line magic or a shell line."""
        if method in ("system", "getoutput"):
            return self._shell(words[0], line, captured=method == "getoutput")
        if method == "magic":
            words = [*words[0].partition(" ")[::2]]
        name, rest = words[0].lstrip("%"), (words[1] if len(words) > 1 else "").strip()
        if method == "run_cell_magic":
            self._refuse("magic", f"`%%{name}` inside of Python code cannot be part of a script.", line)
            return "None"
        if name in ONLY_NOTEBOOK or name in MEASURES:
            if not alone:
                self._refuse("magic", f"The value of `%{name}` cannot be part of a script.", line)
            return self._dropped(
                f"%{name}", "only measures" if name in MEASURES else "is for the notebook only", line
            )
        if name in ("sx", "system", "!"):
            return self._shell(rest, line, captured=True)
        if name in ALIASES:
            return self._shell(f"{name} {rest}", line, captured=False)
        if name in INSTALLS:
            return self._install(name, rest, line)
        return self._in_python(name, rest, line, alone)

    def _in_python(self, name: str, rest: str, line: int, alone: bool) -> str:
        """Return what does the same as a magic that has a counterpart in Python."""
        if name == "time":
            return rest if alone else f"({rest})"
        rest = rest.removeprefix("-q ") if name == "cd" else rest
        if name in ("cd", "pushd", "popd") and (rest == "-" or not rest.startswith("-")):
            where = commands.expanded(rest.strip(chr(34) + chr(39)) or "~", self._bound)
            return f"paicells.{name}({where if name != 'popd' else ''})"
        if name == "pwd":
            return "paicells.pwd()"
        if name in ("env", "set_env") and not rest:
            return self._dropped(f"%{name}", "only shows", line)
        if name in ("env", "set_env"):
            variable, separator, value = rest.partition("=" if "=" in rest else " ")
            if not separator:
                return f"__import__('os').environ[{variable!r}]"
            return f"paicells.env({variable.strip()!r}, {commands.expanded(value.strip(), self._bound)})"
        words = rest.split()
        if (name, *words[:1]) in (("store", "-r"), ("pylab",)) or name in ("pylab", "run", "macro"):
            self._found.binds_any.append((line, f"%{name} {rest}".rstrip()))
        if name == "run" and words and words[0].endswith(".py"):
            arguments = "".join(f", {word!r}" for word in words[1:])
            return f"paicells.run_file({commands.expanded(words[0], self._bound)}{arguments})"
        self._unknown(f"%{name}", line)
        return "None"

    def _shell(self, command: str, line: int, *, captured: bool) -> str:
        asked = commands.installs(command)
        if asked is not None and not captured:
            return self._required(asked, f"!{command}", line)
        arguments = commands.expanded(command, self._bound)
        return f"paicells.{'lines' if captured else 'shell'}({arguments})"

    def _install(self, name: str, rest: str, line: int) -> str:
        asked = commands.installs(f"{name} {rest}")
        if asked is None:
            return self._dropped(f"%{name}", "installs nothing", line)
        return self._required(asked, f"%{name} {rest}", line)

    def _required(self, asked: commands.Requirements, said: str, line: int) -> str:
        if asked.refused:
            message = f"`{said[:60]}` cannot become requirements: {asked.refused}."
            self._refuse("requirements", message, line, "Write it into requirements.txt.")
        self._found.requirements += [(each, line) for each in asked.lines]
        if asked.lines:
            self._note(line, f"requirements: {', '.join(asked.lines)}")
        return "None"

    def _dropped(self, name: str, why: str, line: int) -> str:
        self._note(line, f"`{name}` is left out: it {why}")
        return "None"

    def _unknown(self, name: str, line: int) -> None:
        self._refuse(
            "magic",
            f"`{name}` cannot be part of a script.",
            line,
            "Say it in Python, or tag the cell `pai:skip` if the job does not need it.",
        )

    def _refuse(self, code: str, message: str, line: int | None, hint: str = "") -> None:
        self._found.problems.append(
            Problem("error", code, message, line=line, cell=self._cell.number, hint=hint)
        )

    def _note(self, line: int, text: str) -> None:
        self._found.notes.append((line, text))


def _is_shell(function: ast.expr) -> bool:
    """Say whether it is a method of ``get_ipython()``."""
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Call)
        and getattr(function.value.func, "id", "") == "get_ipython"
    )


def _is_none(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is None
