"""The table of what OpenPAI's tutorial on submitting asks for, with the tests that show each, by backend.

A test names a requirement by its id, in its name (``test_o27_…``) or its docstring (``O4-O8``).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

OPENPAI = {
    "O1": "several ways to submit, one job document",
    "O2": "one task, or many",
    "O3": "logging in",
    "O4": "virtual cluster, name of job and role",
    "O5": "the first job",
    "O6": "a command of several lines",
    "O7": "resources, simple and in detail",
    "O8": "image, credentials of a registry",
    "O9": "a name that is unique",
    "O10": "task roles",
    "O11": "instances",
    "O12": "GPU, CPU, memory",
    "O13": "the environment that tasks get",
    "O14": "a shell in a task",
    "O15": "files in and out",
    "O16": "team storage",
    "O17": "storage is no text in the command",
    "O18": "more sources of data",
    "O19": "parameters",
    "O20": "secrets",
    "O21": "retries",
    "O22": "ports",
    "O23": "completion",
    "O24": "tasks know each other",
    "O25": "the variables",
    "O26": "variables in the job file",
    "O27": "edit, export, import",
    "O28": "waiting for resources",
    "O29": "pulling the image",
    "O30": "logs and metrics",
    "O31": "exit codes",
    "O32": "states",
    "O33": "old documents",
}
PLACES = ("local", "kubernetes", "openpai", "everywhere")
_PLACE_OF = (
    ("openpai", r"openpai/|backends/openpai/"),
    ("kubernetes", r"cluster/|backends/kubernetes/|runtime/pods/"),
    ("local", r"backends/test_local|jobs/test_local"),
)
_CITED = re.compile(r"\bO(\d{1,2})(?:\s*(?:-|to)\s*O(\d{1,2}))?\b")
_NAMED = re.compile(r"(?<=_)o(\d{1,2})(?=_)")


def table(tests: Path) -> str:
    """Return the table of requirements as Markdown."""
    found = cited(tests)
    lines = ["| | what | local | Kubernetes | OpenPAI | on every backend |", "|---|---|---|---|---|---|"]
    for name, words in OPENPAI.items():
        cells = (_cell(found[name, place]) for place in PLACES)
        lines.append(f"| {name} | {words} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cited(tests: Path) -> dict[tuple[str, str], Counter[str]]:
    """Return for each requirement and place the files that show it, and how many tests of each."""
    found = {(name, place): Counter[str]() for name in OPENPAI for place in PLACES}
    for path in sorted(tests.rglob("test_*.py")):
        file = path.relative_to(tests).as_posix()
        place = next((name for name, pattern in _PLACE_OF if re.match(pattern, file)), "everywhere")
        for ids in _of_tests(ast.parse(path.read_text(encoding="utf-8"))):
            for name in ids & OPENPAI.keys():
                found[name, place][file] += 1
    for expected in sorted((tests / "conformance").glob("*/expected.yaml")):
        for line in expected.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith("proves:"):
                for name in _ids(line) & OPENPAI.keys():
                    for place in PLACES[:3]:
                        found[name, place]["conformance"] += 1
    return found


def _of_tests(tree: ast.AST) -> Iterator[set[str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield _ids(ast.get_docstring(node) or "") | {f"O{n}" for n in _NAMED.findall(f"{node.name}_")}


def _ids(text: str) -> set[str]:
    ids: set[str] = set()
    for first, last in _CITED.findall(text):
        ids |= {f"O{number}" for number in range(int(first), int(last or first) + 1)}
    return ids


def _cell(files: Counter[str]) -> str:
    return ", ".join(f"`{file}` ({count})" for file, count in sorted(files.items())) or "–"
