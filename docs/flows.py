"""The page of what tests do in a real browser: each flow with what it shows and the pictures it leaves.

Made from the tests themselves: a module's docstring is a heading's text, a test's is its row.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Outside of tests/browser, what drives one names it.
_DRIVES = re.compile(r"\b(page|browser|page_on|started_browser)\b")
_SHOT = re.compile(r"shoot\(\"([\w-]+)\"\)|SCREENSHOTS / \"([\w-]+)\.png\"")


class Flow(NamedTuple):
    """A test in the browser.

    Attributes:
        name: of the test, without ``test_``.
        shows: what it shows, in a sentence or two.
        pictures: names of those it leaves in ``tests/browser/screenshots``.
    """

    name: str
    shows: str
    pictures: tuple[str, ...]


def page(tests: Path) -> str:
    """Return the flows of all files as Markdown."""
    parts = []
    for file, (about, flows) in flows_of(tests).items():
        parts.append(f"### `{file}`\n\n{about}\n\n| flow | what it shows | pictures |\n|---|---|---|")
        parts += [f"| {each.name} | {_safe(each.shows)} | {_pictures(each)} |" for each in flows]
        parts.append("")
    return "\n".join(parts)


def flows_of(tests: Path) -> dict[str, tuple[str, list[Flow]]]:
    """Return for each file that drives a browser what it is about, and its flows."""
    found = {}
    for path in sorted(tests.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if path.parent.name == "browser" or "from tests.browser" in source:
            tree = ast.parse(source)
            flows = list(_flows(tree, source, path.parent.name == "browser"))
            if flows:
                found[path.relative_to(tests).as_posix()] = (_words(tree), flows)
    return found


def _flows(tree: ast.Module, source: str, all_drive: bool) -> Iterator[Flow]:
    for node in tree.body:
        if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_")):
            continue
        text = ast.get_source_segment(source, node) or ""
        if all_drive or _DRIVES.search(text):
            shots = (one or other for one, other in _SHOT.findall(text))
            name = node.name.removeprefix("test_").replace("_", " ")
            yield Flow(name, _words(node), tuple(dict.fromkeys(shots)))


def _words(node: ast.Module | ast.FunctionDef) -> str:
    return " ".join((ast.get_docstring(node) or "").split())


def _pictures(flow: Flow) -> str:
    return ", ".join(f"`{each}`" for each in flow.pictures) or "–"


def _safe(text: str) -> str:
    return text.replace("|", "\\|")
