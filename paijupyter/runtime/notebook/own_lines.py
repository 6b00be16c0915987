"""Leave out of a cell what is about jobs: a notebook that is a job must not submit itself once more.

IPython itself says what a line of a cell means, so nothing is looked for in text.
"""

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_LINE, _CELL = "run_line_magic", "run_cell_magic"


def without_job_lines(source: str) -> "Optional[str]":
    """Return what a kernel runs of a cell: all of it where it is not about jobs, None for none of it."""
    if "paijob" not in source and "paijupyter" not in source:
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    text = TransformerManager().transform_cell(source)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return source  # the kernel says so
    calls = [(node, _magic(node)) for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    if any(name == _CELL for _, name in calls):
        return None
    ours = [node for node, name in calls if name == _LINE]
    if not ours:
        return source
    lines = text.split("\n")
    for node in ours:
        column = node.col_offset
        lines[node.lineno - 1] = lines[node.lineno - 1].encode()[:column].decode() + "pass"
        for row in range(node.lineno, node.end_lineno or node.lineno):
            lines[row] = ""
    rest = "\n".join(lines)
    return rest if any(not isinstance(node, ast.Pass) for node in ast.parse(rest).body) else None


def _magic(node: "Any") -> str:
    """Return how a statement calls a magic of ours, or ""."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    if call.func.attr not in (_LINE, _CELL) or not all(isinstance(each, ast.Constant) for each in call.args):
        return ""
    words = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
    if words[:1] == ["paijob"] or (
        words[:1] in (["load_ext"], ["reload_ext"]) and words[1:2] == ["paijupyter"]
    ):
        return call.func.attr
    return ""
