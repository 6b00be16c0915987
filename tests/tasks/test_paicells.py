"""The runner of scripts of cells, as a task starts it: old interpreters, figures, the end, no IPython."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[2] / "paijupyter" / "tasks" / "paicells.py"
# As in tests/runtime: interpreters by PAIJUPYTER_TEST_PYTHONS (a search path), and python3.6 where it is.
_NAMED = os.environ.get("PAIJUPYTER_TEST_PYTHONS", "").split(os.pathsep)


def _runs(python: str) -> bool:
    """Say whether it is an interpreter, and not a stand-in for one that is not there."""
    return bool(python) and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


OLD = [python for python in [*_NAMED, shutil.which("python3.6") or ""] if _runs(python)]


def run(folder: Path, script: str, python: str = sys.executable, code: int = 0, **env: str) -> str:
    """Run a script of cells and return what it printed."""
    (folder / "s.py").write_text(script)
    (folder / "paicells.py").write_bytes(RUNNER.read_bytes())
    done = subprocess.run(
        [python, "paicells.py", "s.py", "argument"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PAI_OUTPUT_DIR": str(folder / "out"), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


PLAIN = """import paicells
# %% n.ipynb[cell 2]
import sys
paicells.shell('echo from ', 'shell')
out = paicells.lines('printf "1\\n2\\n"')
print(out.n == "1\\n2", out.s, sys.argv)
# %% n.ipynb[cell 5]
def fail(x):
    return 1 / x

{"shown": 1}
# %% n.ipynb[cell 7]
5;
fail(0)
"""


@pytest.mark.parametrize("python", [sys.executable, *OLD])
def test_a_script_runs_by_any_python_and_its_traceback_is_of_the_cells(tmp_path: Path, python: str) -> None:
    printed = run(tmp_path, PLAIN, python, code=1)
    assert "from shell\nTrue 1 2 ['s.py', 'argument']\n{'shown': 1}\n" in printed and "\n5\n" not in printed
    first = printed.index('  File "n.ipynb[cell 7]", line 2, in <module>\n    fail(0)\n')
    second = printed.index('  File "n.ipynb[cell 5]", line 2, in fail\n    return 1 / x\n')
    assert first < second and "paicells.py" not in printed
    assert printed.rstrip().endswith("ZeroDivisionError: division by zero")


def test_an_exit_code_is_that_of_the_script(tmp_path: Path) -> None:
    run(tmp_path, "# %% n.ipynb[cell 1]\nraise SystemExit(3)\n", code=3)
    assert "exit status 4" in run(tmp_path, "import paicells\npaicells.shell('exit 4')\n", code=1)


def test_tasks_go_on_from_cell_to_cell(tmp_path: Path) -> None:
    script = """# %% n.ipynb[cell 1]
import asyncio
async def f():
    await asyncio.sleep(0)
    return 5
task = asyncio.ensure_future(f())
# %% n.ipynb[cell 2]
print(await task, [x async for x in g()] if False else await asyncio.gather(f(), f()))
"""
    assert run(tmp_path, script) == "5 [5, 5]\n"


def test_pictures_go_to_the_outputs_and_ipython_is_not_needed(tmp_path: Path) -> None:
    script = """# %% n.ipynb[cell 3]
from IPython.display import HTML, Markdown, clear_output, display
class Picture:
    def _repr_png_(self):
        return b'png'
display(Picture(), Markdown('*text*'))
display(HTML('<b>x</b>'))
get_ipython().user_ns['seen'] = 1
print(seen)
"""
    bare = "import sys\nsys.modules['IPython'] = None\n"  # As where it is not installed.
    (tmp_path / "sitecustomize.py").write_text(bare)
    assert "*text*" in run(tmp_path, script, PYTHONPATH=str(tmp_path))
    shown = tmp_path / "out" / "shown"
    assert sorted(path.name for path in shown.iterdir()) == ["cell-3-1.png", "cell-3-2.html"]
    assert (shown / "cell-3-1.png").read_bytes() == b"png"


def test_figures_are_saved_when_shown_and_at_the_end_of_a_cell(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = """# %% n.ipynb[cell 1]
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
plt.plot([2, 1])
# %% n.ipynb[cell 2]
print(len(plt.get_fignums()))
fig, ax = plt.subplots()
display(fig)
"""
    printed = run(
        tmp_path, script, HOME=str(tmp_path), MPLBACKEND="module://matplotlib_inline.backend_inline"
    )
    names = sorted(path.name for path in (tmp_path / "out" / "shown").iterdir())
    assert names[:2] == ["cell-1-1.png", "cell-1-2.png"] and "cell-2-1.png" in names
    assert (tmp_path / "out" / "shown" / "cell-1-1.png").read_bytes().startswith(b"\x89PNG")
    assert "0" in printed.splitlines()


def test_parameters_are_typed_variables(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"lr": 0.5, "n": 3}')
    script = "import paicells\npaicells.parameters()\n# %% n.ipynb[cell 1]\nlr = 1\n"
    script += "# %% paijob\npaicells.parameters('lr')\n"
    script += "# %% n.ipynb[cell 2]\nprint(lr, n)\n"
    assert run(tmp_path, script, PAI_PARAMETERS_FILE=str(tmp_path / "p.json")) == "0.5 3\n"
