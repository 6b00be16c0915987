"""Fuzzed documents and ignore sets, judged by references: the original's JSON schema, and git.

What is counted are differences, so 0 is to be reached. Seeds are fixed: each run sees the same inputs.
The schema comes with the corpus of public documents; where that is not beside the repository, documents are
only read, checked and rendered.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from paijupyter.package import select
from tests.bench.fuzzed_documents import judge
from tests.bench.rows import Row

DOCUMENTS, SETS = 100_000, 20_000
_CHUNK = 1000
_LOTS = 8
_TOGETHER = 500  # ignore sets that one call of git answers
CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus" / "openpai"
# fmt: off
_FOLDERS = ("", "a/", "a/b/", "a/b/.c/", "b/", "b/a b/")
_NAMES = ("a", "b.txt", ".c.txt", "a b", "bé", "x[a]", "aab.py")
_FILES = [folder + name for folder in _FOLDERS for name in _NAMES if folder + name + "/" not in _FOLDERS]
_PIECES = (
    "a", "b", "c", ".txt", ".", "*", "**", "?", "/", "[ab]", "[!a]", "[^b-]", "[a-c]", "[[:alpha:]]",
    "[]a]", "[", "]", r"\*", "\\", "é", "x", "-", "[[:x:]]", "[[:punct:]a]", r"[\a]", r"[a\-c]", " ", r"\ ",
)
_LINES = (
    "a", "/a", "a/", "!a", "!a/", "*.txt", "!*.txt", "b*", "!b*", "a/b", "!a/b", "/*", "!/a", "**/b", "a/**",
    "!a/b/.c/", ".*", "!.c", "*", "!*/", "!*.py", "a/*", "!a/b.txt", "**/a b/", "# no", "", "a/**/b.txt",
)
# fmt: on


def run() -> list[Row]:
    """Count tracebacks and differences."""
    start = time.perf_counter()
    with ProcessPoolExecutor() as processes:
        corpus = str(CORPUS) if CORPUS.is_dir() else ""
        found = list(processes.map(judge, range(DOCUMENTS // _CHUNK), [_CHUNK] * (DOCUMENTS // _CHUNK),
                                   [corpus] * (DOCUMENTS // _CHUNK)))  # fmt: skip
        documents = time.perf_counter() - start
        start = time.perf_counter()
        differ = sum(processes.map(_ignore_sets, range(_LOTS)))
        sets = time.perf_counter() - start
    tracebacks, verdicts, judged = (sum(each[i] for each in found) for i in range(3))
    return [
        _count(f"tracebacks in {DOCUMENTS:,} fuzzed documents", tracebacks, f"{documents:.0f} s"),
        _count(f"verdicts that differ from the schema's, of {judged:,}", verdicts, "jsonschema"),
        _count(f"selections that differ from git's, of {SETS:,} ignore sets", differ, f"{sets:.0f} s"),
    ]


def _count(what: str, count: int, beside: str) -> Row:
    return Row(what, count, 0, beside, "", "0", count == 0)


def _ignore_sets(lot: int) -> int:
    """Return how many of a lot of random ignore sets select other files than git does."""
    source, differ = random.Random(lot), 0
    with tempfile.TemporaryDirectory(prefix="pj") as home:
        subprocess.run(["git", "init", "-q", home], check=True)
        trees = [Path(home, f"tree{number}") for number in range(_TOGETHER)]
        for tree in trees:
            for name in _FILES:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).touch()
        for _ in range(SETS // _LOTS // _TOGETHER):
            for tree in trees:
                _put_rules(tree, source)
            wanted = _selected_by_git(home)
            differ += sum({file.path for file in select(tree).files} != wanted[tree.name] for tree in trees)
    return differ


def _selected_by_git(home: str) -> dict[str, set[str]]:
    command = ["git", "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z"]
    output = subprocess.run(command, cwd=home, check=True, capture_output=True).stdout
    found: dict[str, set[str]] = defaultdict(set)
    for name in output.split(b"\0")[:-1]:
        tree, _, path = os.fsdecode(name).partition("/")
        found[tree].add(path)
    return found


def _put_rules(tree: Path, source: random.Random) -> None:
    chosen = source.sample(_FOLDERS, source.randint(1, 3))
    for folder in _FOLDERS:
        place = tree / folder / ".gitignore"
        if folder in chosen:
            lines = [_line(source) for _ in range(source.randint(1, 6))]
            place.write_bytes("\n".join(lines).encode())
        else:
            place.unlink(missing_ok=True)


def _line(source: random.Random) -> str:
    if source.random() < 0.6:
        return source.choice(_LINES)
    pieces = "".join(source.choices(_PIECES, k=source.randint(1, 5)))
    sign, slash = source.choice(("", "", "", "!", "\\!", "#")), source.choice(("", "", "/", "**/"))
    return sign + slash + pieces + source.choice(("", "", "/", "/**", " ", "\r", "/*"))
