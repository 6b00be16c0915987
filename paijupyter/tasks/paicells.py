"""Runs a script that was made of the cells of a notebook: ``python paicells.py SCRIPT [ARGUMENTS]``.

Each cell is compiled under its own name, so a traceback says ``quickstart.ipynb[cell 3]`` and the line of
that cell. The script has what a notebook has: ``display``, ``get_ipython()``, ``await`` outside of functions,
the value of a last line, figures (they go to the outputs). IPython is not needed, only the standard library;
``await`` needs Python 3.8.
"""

import ast
import importlib.util
import json
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set, Tuple

MARKER = re.compile(r"^# %% (\S.*)$")
OWN = "paijob"
BACKEND = "paicells_backend"
_SHOWN = "Audio HTML IFrame Image JSON Javascript Latex Markdown Math Pretty SVG Video YouTubeVideo"
_NO_TEXT = re.compile(r"<[\w.]+ object(?: at 0x[0-9a-f]+)?>$")
_AWAIT = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
_FUTURES = sum(
    getattr(__import__("__future__"), name).compiler_flag
    for name in __import__("__future__").all_feature_names
)


class Region:
    """A cell of a script: its label, and its text whose first line is line 1 of the cell."""

    def __init__(self, label: str, text: str) -> None:
        self.label = label
        self.text = text


def regions(script: str) -> "List[Region]":
    """Split a script at its markers ``# %% LABEL``; what stands before the first is of nobody."""
    found = [Region(OWN, "")]
    lines: "List[str]" = []
    for line in script.split("\n"):
        marker = MARKER.match(line)
        if marker:
            found[-1].text = "\n".join(lines)
            found.append(Region(marker.group(1), ""))
            lines = []
        else:
            lines.append(line)
    found[-1].text = "\n".join(lines)
    return found


class _Runner:
    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8", newline="") as stream:
            self._regions = regions(stream.read())
        self.labels = {region.label for region in self._regions}
        self._module = types.ModuleType("__main__")
        self._names = self._module.__dict__
        self._names.update(__file__=path, __builtins__=__builtins__, display=display, get_ipython=get_ipython)
        sys.modules["__main__"] = self._module
        self._flags = _AWAIT

    def run(self) -> None:
        """Run the cells; in one event loop if any of them awaits."""
        parts = [(region, self._compiled(region)) for region in self._regions]
        coroutine = any(code.co_flags & 0x80 for _, codes in parts for code in codes)
        if coroutine:
            import asyncio

            asyncio.run(self._awaiting(parts))
            return
        for region, codes in parts:
            with _Cell(region.label):
                for code in codes:
                    exec(code, self._names)

    async def _awaiting(self, parts: "List[Tuple[Region, List[Any]]]") -> None:
        for region, codes in parts:
            with _Cell(region.label):
                for code in codes:
                    value = eval(code, self._names)
                    if code.co_flags & 0x80:
                        await value

    def _compiled(self, region: Region) -> "List[Any]":
        """Compile a cell: its statements, and its last expression as one whose value is shown."""
        lines = [line + "\n" for line in region.text.split("\n")]
        linecache.cache[region.label] = (len(region.text), None, lines, region.label)
        tree = compile(region.text, region.label, "exec", ast.PyCF_ONLY_AST | self._flags, True)
        shown: "List[Any]" = []
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr) and not _is_silenced(lines, last):
            tree.body.pop()
            shown = [ast.Interactive([last])]
        codes = []
        for part, mode in [(tree, "exec"), *((each, "single") for each in shown)]:
            code = compile(part, region.label, mode, self._flags, True)
            self._flags |= code.co_flags & _FUTURES  # As in a notebook, it holds for all cells that follow.
            codes.append(code)
        return codes


def _is_silenced(lines: "List[str]", node: "Any") -> bool:
    """Say whether a semicolon follows the last expression."""
    end = getattr(node, "end_lineno", len(lines))
    column = getattr(node, "end_col_offset", 0)
    rest = lines[end - 1].encode("utf-8")[column:] if end <= len(lines) else b""
    return rest.lstrip().startswith(b";")


class _Cell:
    """While a cell runs, pictures are named after it; at its end its figures are saved."""

    current = "script"
    count = 0

    def __init__(self, label: str) -> None:
        self._label = label

    def __enter__(self) -> None:
        _Cell.current, _Cell.count = self._label, 0

    def __exit__(self, kind: "Any", *_: "Any") -> None:
        if kind is None:
            show_figures()


def main(argv: "List[str]") -> int:
    """Run a script and return its exit code."""
    if len(argv) < 2:
        sys.stderr.write("usage: python paicells.py SCRIPT [ARGUMENTS]\n")
        return 2
    sys.argv = argv[1:]
    sys.modules["paicells"] = sys.modules[__name__]
    sys.path.insert(0, os.getcwd())
    if os.environ.get("MPLBACKEND", "module://matplotlib_inline").startswith("module://matplotlib_inline"):
        os.environ["MPLBACKEND"] = "module://" + BACKEND
    sys.meta_path.append(_Finder())
    sys.displayhook = _show_value
    runner = None
    try:
        runner = _Runner(argv[1])
        _provide_ipython(argv[1])
        runner.run()
    except Exception:
        _report(runner.labels if runner else set())
        return 1
    return 0


def _report(labels: "Set[str]") -> None:
    """Print the traceback of what ended the script, from the first cell on."""
    kind, error, trace = sys.exc_info()
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename not in labels:
        inner = inner.tb_next
    error = error.with_traceback(inner or trace)  # type: ignore[union-attr]
    sys.stdout.flush()
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(kind, error, error.__traceback__)  # It knows the lines of the cells.
    else:
        sys.excepthook(kind, error, error.__traceback__)  # type: ignore[arg-type]


# What a notebook shows


def _show_value(value: "Any") -> None:
    if value is not None:
        display(value)


def display(*values: "Any", **_: "Any") -> None:
    """Show values: pictures go to the outputs, anything else is printed."""
    for value in values:
        picture = _picture(value)
        if picture is not None:
            ending, content = picture
            path = _file(ending)
            with open(path, "wb") as stream:
                stream.write(content)
            print("[%s]" % path)
        else:
            print(_text(value))


def _picture(value: "Any") -> "Optional[Tuple[str, bytes]]":
    if callable(getattr(value, "savefig", None)):
        import io

        stream = io.BytesIO()
        value.savefig(stream, format="png", bbox_inches="tight")
        return "png", stream.getvalue()
    if isinstance(value, type):
        return None
    kinds = [("png", "_repr_png_"), ("jpeg", "_repr_jpeg_"), ("svg", "_repr_svg_")]
    if _NO_TEXT.match(repr(value)):
        kinds.append(("html", "_repr_html_"))  # Whatever has a text of its own is better read in a log.
    for ending, method in kinds:
        found = getattr(value, method)() if callable(getattr(value, method, None)) else None
        found = found[0] if isinstance(found, tuple) else found
        if found:
            return ending, found.encode("utf-8") if isinstance(found, str) else bytes(found)
    return None


def _text(value: "Any") -> str:
    if _NO_TEXT.match(repr(value)) and isinstance(getattr(value, "data", None), str):
        return str(value.data)  # `Markdown` and its like
    return repr(value)


def _file(ending: str) -> str:
    """Return a new file of the outputs, named after the cell."""
    folder = os.path.join(os.environ.get("PAI_OUTPUT_DIR", "."), "shown")
    os.makedirs(folder, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"^.*\[|\]$", "", _Cell.current)).strip("-") or "script"
    while True:
        _Cell.count += 1
        path = os.path.join(folder, "%s-%d.%s" % (stem, _Cell.count, ending))
        if not os.path.exists(path):
            return path


def show_figures(*_: "Any", **__: "Any") -> None:
    """Save all open figures of matplotlib and close them, as a notebook does."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        display(pyplot.figure(number))
    pyplot.close("all")


class _Finder:
    """Finds the backend of matplotlib that saves figures."""

    def find_spec(self, name: str, *_: "Any") -> "Any":
        if name != BACKEND:
            return None
        return importlib.util.spec_from_loader(name, self)  # type: ignore[arg-type]

    def create_module(self, _: "Any") -> None:
        """Let Python make the module."""

    def exec_module(self, module: "Any") -> None:
        from matplotlib.backend_bases import FigureManagerBase  # type: ignore[import-not-found,unused-ignore]
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found,unused-ignore]

        module.FigureCanvas, module.FigureManager, module.show = (
            FigureCanvasAgg,
            FigureManagerBase,
            show_figures,
        )


class Shown:
    """Stands for ``IPython.display.HTML``, ``Markdown``, ``Image`` and the like where there is no IPython."""

    def __init__(self, data: "Any" = None, *_: "Any", **more: "Any") -> None:
        self.data = data if data is not None else more.get("filename", more.get("url", ""))
        self.metadata = more

    def _repr_html_(self) -> "Any":
        return self.data if type(self).__name__ == "HTML" else None


def _provide_ipython(script: str) -> None:
    """Let ``IPython.display`` show things here, with IPython or without."""
    with open(script, encoding="utf-8") as stream:
        if "IPython" not in stream.read():
            return
    try:
        import IPython  # type: ignore[import-not-found,unused-ignore]
        import IPython.display as shows  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        IPython, shows = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        IPython.__path__ = []  # A package, so that `import IPython.display` looks into it.
        for name in _SHOWN.split():
            setattr(shows, name, type(name, (Shown,), {}))
        shows.clear_output = lambda *_, **__: None  # type: ignore[attr-defined]
        IPython.display = shows  # type: ignore[attr-defined]
        sys.modules["IPython"], sys.modules["IPython.display"] = IPython, shows
    IPython.get_ipython, shows.display = get_ipython, display


# What magics and shell lines become


class Shell:
    """What ``get_ipython()`` gives in a script."""

    @property
    def user_ns(self) -> "Dict[str, Any]":
        """The names of the script."""
        return sys.modules["__main__"].__dict__

    def system(self, command: str) -> None:
        """Run a shell line."""
        shell(command)

    def getoutput(self, command: str) -> "Lines":
        """Return what a shell line prints."""
        return lines(command)

    def run_line_magic(self, name: str, *_: "Any", **__: "Any") -> None:
        """There are no magics in a script."""
        raise NotImplementedError("Magic `%%%s` cannot run in a script." % name)

    run_cell_magic = magic = run_line_magic


def get_ipython() -> Shell:
    """Return the stand-in of IPython's shell."""
    return Shell()


class Lines(list):  # type: ignore[type-arg]
    """The lines that a command printed; ``n``, ``s`` and ``l`` as IPython has them."""

    @property
    def n(self) -> str:
        """The lines as one text."""
        return "\n".join(self)

    @property
    def s(self) -> str:
        """The lines in one, separated by spaces."""
        return " ".join(self)

    @property
    def l(self) -> "List[str]":  # noqa: E743
        """The lines."""
        return self


def _joined(parts: "Tuple[Any, ...]") -> str:
    return "".join(map(str, parts))


def _bash() -> str:
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def shell(*parts: "Any") -> None:
    """Run a shell line.

    Raises:
        CalledProcessError: it failed.
    """
    sys.stdout.flush()
    subprocess.run(_joined(parts), shell=True, executable=_bash(), check=True)


def lines(*parts: "Any") -> Lines:
    """Return the lines that a shell line prints."""
    done = subprocess.run(
        _joined(parts), shell=True, executable=_bash(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return Lines(done.stdout.decode("utf-8", "replace").splitlines())


def program(command: str, text: str, check: bool) -> None:
    """Give a text to the program of a ``%%bash`` or ``%%script`` cell.

    Raises:
        CalledProcessError: it failed, and that is to be checked.
    """
    words = shlex.split(command)
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    sys.stdout.flush()
    subprocess.run(words, input=text.encode("utf-8"), check=check)


_been: "List[str]" = []  # where `cd` was before
_pushed: "List[str]" = []


def cd(*parts: "Any") -> str:
    """Change the working directory and return it; ``-`` is the one before."""
    where, here = _joined(parts), os.getcwd()
    os.chdir(_been[-1] if where == "-" and _been else os.path.expanduser(where))
    _been.append(here)
    return os.getcwd()


def pushd(*parts: "Any") -> str:
    """Change the working directory until ``popd``."""
    _pushed.append(os.getcwd())
    return cd(*parts)


def popd() -> str:
    """Go back to where ``pushd`` was called.

    Raises:
        IndexError: it was not.
    """
    return cd(_pushed.pop())


def pwd() -> str:
    """Return the working directory."""
    return os.getcwd()


def env(name: str, *parts: "Any") -> None:
    """Set a variable of the environment."""
    os.environ[name] = _joined(parts)


def write(text: str, append: bool, *parts: "Any") -> None:
    """Write the file of a ``%%writefile`` cell."""
    with open(os.path.expanduser(_joined(parts)), "a" if append else "w", encoding="utf-8") as stream:
        stream.write(text)


def run_file(path: str, *arguments: str) -> None:
    """Run a script, and bind its names here as ``%run`` does."""
    before, sys.argv = sys.argv, [path, *arguments]
    here = sys.modules["__main__"].__dict__
    try:
        found = runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv = before
    here.update({name: value for name, value in found.items() if not name.startswith("__")})


# What comes from outside


def parameters(*names: str) -> None:
    """Bind the parameters of the job as typed variables: all of them, or those that are named."""
    path = os.environ.get("PAI_PARAMETERS_FILE")
    if not path:
        return
    with open(path, encoding="utf-8") as stream:
        values = json.load(stream)
    here = sys.modules["__main__"].__dict__
    here.update({name: value for name, value in values.items() if not names or name in names})


def carried(*names: str) -> None:
    """Bind objects of the kernel that travel with the script: all of them, or those that are named.

    Raises:
        RuntimeError: this Python cannot read one; it says what differs.
    """
    import paicarried  # type: ignore[import-not-found]

    sys.modules["__main__"].__dict__.update(paicarried.objects(names))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
