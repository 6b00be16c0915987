"""Imports of a package that none of its requirements covers, and the distributions that have them.

Only hints come of it: an import inside ``try`` or a branch may never happen, a module may come from a place
that nobody sees here. What the files import is kept per content, so that only changed files are parsed.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paijupyter import paths
from paijupyter.client.environments import Environment
from paijupyter.errors import Problem
from paijupyter.package import Manifest

_MOST_FILES = 1000
_LARGEST = 2**19  # bytes; what is larger was generated
_KEPT = 5000  # contents
_OURS = frozenset({"paijupyter", "pai_tasks", "paicells", "paicarried"})
_RUNNERS = ("paicells.py", "paicarried.py")  # of ours; what they may import they can do without
_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_INCLUDED = re.compile(r"\s*(?:-r|--requirement)[\s=]+(\S+)")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A module that the package imports and no requirement covers.

    Attributes:
        module: its first name, ``sklearn``.
        file: one file of the package that imports it.
        distribution: what has it here, ``scikit-learn``, or "".
        version: of that.
        needed: whether it is imported in any case, not only in a branch or a function.
    """

    module: str
    file: str
    distribution: str = ""
    version: str = ""
    needed: bool = True

    def to_json(self) -> dict[str, str]:
        """Return what a plan shows."""
        return {
            "module": self.module,
            "file": self.file,
            "distribution": self.distribution,
            "version": self.version,
        }


def look(
    root: Path, manifest: Manifest, generated: Mapping[str, bytes], file: str | None, has: Environment
) -> list[Uncovered]:
    """Return the imports of a package that its requirements do not cover.

    Args:
        root: folder of the package.
        manifest: what is in it.
        generated: files of it that are not in the folder.
        file: its requirements file, None for ``requirements.txt``.
        has: what its interpreter has.
    """
    covered = _covered(root, file or "requirements.txt", has)
    local = _local(manifest)
    found: dict[str, Uncovered] = {}
    for path, modules in _imports(root, manifest, generated):
        for module, needed in modules.items():
            if module in has.standard or module in local or module in _OURS:
                continue
            dists = has.modules.get(module, [])
            if covered & {*dists, plain(module)} or (module in found and found[module].needed >= needed):
                continue
            name, version = has.versions[dists[0]] if dists else ("", "")
            found[module] = Uncovered(module, path, name, version, needed)
    return sorted(found.values(), key=lambda each: each.module.lower())


def problems(found: Sequence[Uncovered]) -> Iterator[Problem]:
    """Say it: in one hint what is installed here, and in one warning what is nowhere."""
    here = [each for each in found if each.distribution]
    nowhere = [each for each in found if not each.distribution and each.needed]
    if here:
        names = list(dict.fromkeys(each.distribution for each in here))
        said = _listed([f"`{each.module}` ({each.distribution} {each.version})" for each in here])
        yield Problem(
            "hint",
            "import-without-requirement",
            f"Imports without a requirement: {said}.",
            file="requirements.txt",
            hint=f"Add to requirements.txt: {' '.join(names)}",
        )
    if nowhere:
        said = _listed([f"`{each.module}` ({each.file})" for each in nowhere])
        yield Problem(
            "warning",
            "import-not-found",
            f"Imports that this Python does not have, and no requirement: {said}.",
            file="requirements.txt",
            hint="Add the distributions that have them to requirements.txt, or the files to the package.",
        )


def imported(source: bytes) -> dict[str, bool]:
    """Return the first names of all modules a file imports, and whether it does so in any case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, bool] = {}
    for node, needed in _statements(tree.body, needed=True):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [node.module] if node.module and not node.level else []
        for name in names:
            module = name.partition(".")[0]
            found[module] = found.get(module, False) or needed
    return found


def plain(name: str) -> str:
    """Normalise the name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _statements(
    body: Sequence[ast.AST], *, needed: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, needed
        elif isinstance(node, ast.Try):
            # `try: import x` has an answer for when it is not there; a module that both try is still used.
            yield from _statements(node.body, needed=False)
            yield from _statements([*node.orelse, *node.finalbody], needed=needed)
        elif isinstance(node, ast.With):
            yield from _statements(node.body, needed=needed)
        elif isinstance(node, ast.If) and _is_for_types(node.test):
            yield from _statements(node.orelse, needed=needed)
        elif isinstance(node, ast.stmt):
            yield from _statements(list(ast.iter_child_nodes(node)), needed=False)


def _is_for_types(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def _local(manifest: Manifest) -> set[str]:
    """Return every name that may be a module of the package, wherever its search path begins."""
    names = set()
    for entry in manifest.entries:
        *folders, file = entry.path.split("/")
        stem, dot, ending = file.partition(".")
        if dot and (ending == "py" or ending.endswith("so")):
            names.update([*folders, stem])
    return names


def _imports(
    root: Path, manifest: Manifest, generated: Mapping[str, bytes]
) -> Iterator[tuple[str, Mapping[str, bool]]]:
    ours = {path for path in generated if path.endswith(_RUNNERS)}
    files = [
        each
        for each in manifest.entries
        if each.path.endswith(".py") and each.size <= _LARGEST and each.path not in ours
    ]
    kept = _Kept()
    for entry in files[:_MOST_FILES]:
        found = kept.get(entry.sha256)
        if found is None:
            content = generated.get(entry.path)
            try:
                content = (root / entry.path).read_bytes() if content is None else content
            except OSError:
                continue
            found = kept.put(entry.sha256, imported(content))
        yield entry.path, found
    kept.save()


class _Kept:
    """What files import, by their content."""

    def __init__(self) -> None:
        self._file = paths.data_dir() / "import-cache" / "files.json"
        self._new = False
        try:
            self._found: dict[str, dict[str, bool]] = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            self._found = {}

    def get(self, sha256: str) -> dict[str, bool] | None:
        return self._found.get(sha256)

    def put(self, sha256: str, modules: dict[str, bool]) -> dict[str, bool]:
        self._new = True
        self._found[sha256] = modules
        return modules

    def save(self) -> None:
        if not self._new:
            return
        latest = dict(list(self._found.items())[-_KEPT:])
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self._file.parent)
            with os.fdopen(handle, "w") as stream:
                json.dump(latest, stream)
            os.replace(draft, self._file)


def _covered(root: Path, file: str, has: Environment) -> set[str]:
    """Return the distributions that a requirements file brings, with what they require themselves."""
    waiting = list(_named(root, file, set()))
    covered: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in covered:
            covered.add(name)
            waiting += has.requires.get(name, ())
    return covered


def _named(folder: Path, file: str, seen: set[Path]) -> Iterator[str]:
    path = folder / file
    if path in seen:
        return
    seen.add(path)
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        included, name = _INCLUDED.match(line), _NAME.match(line)
        if included:
            yield from _named(path.parent, included[1], seen)
        elif name:
            yield plain(name[1])


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])
