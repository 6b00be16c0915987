"""Ignore files: per folder ``.gitignore``, then ``.paiignore``, from the git root down; last match wins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from paijupyter.package.ignore_patterns import Pattern, byte_text, parse

IGNORE_FILES = (".gitignore", ".paiignore")
INSISTING = ".paiignore"


class Decision(NamedTuple):
    """What the ignore files say about one path.

    Attributes:
        ignored: whether it is left out.
        file: the ignore file that says so, relative to the package's root.
        insists: it is taken because a ``.paiignore`` has ``!`` before it.
    """

    ignored: bool
    file: str
    insists: bool


class _Matcher:
    """Patterns of one sign, of which it does not matter which one matches."""

    __slots__ = ("_name_regex", "_names", "_path_regex", "_paths", "_suffixes")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        found = list(patterns)
        self._names = frozenset(p.literal for p in found if p.literal is not None and not p.anchored)
        self._paths = frozenset(p.literal for p in found if p.literal is not None and p.anchored)
        self._suffixes = tuple(p.suffix for p in found if p.suffix is not None)
        self._name_regex = _any_of(p.regex for p in found if p.regex and not p.anchored)
        self._path_regex = _any_of(p.regex for p in found if p.regex and p.anchored)

    def __call__(self, name: str, path: str) -> bool:
        return (
            name in self._names
            or name.endswith(self._suffixes)
            or path in self._paths
            or bool(self._name_regex and self._name_regex.fullmatch(name))
            or bool(self._path_regex and self._path_regex.fullmatch(path))
        )


def _any_of(regexes: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = "|".join(f"(?:{regex})" for regex in regexes)
    return re.compile(alternatives, re.DOTALL) if alternatives else None


class _RuleFile:
    """One ignore file: how to see a path from its folder, and its rules, the last one first."""

    __slots__ = ("cut", "files", "folders", "lead")

    def __init__(self, patterns: list[Pattern], file: str, cut: int, lead: str) -> None:
        self.cut = cut
        self.lead = lead
        insisting = file.rpartition("/")[2] == INSISTING
        self.folders = list(_runs(patterns, file, insisting))
        self.files = list(_runs([p for p in patterns if not p.folders_only], file, insisting))


def _runs(patterns: list[Pattern], file: str, insisting: bool) -> Iterator[tuple[_Matcher, Decision]]:
    for ignores, run in groupby(reversed(patterns), key=lambda pattern: pattern.ignores):
        yield _Matcher(run), Decision(ignores, file, insisting and not ignores)


class Rules:
    """The ignore files that apply in one folder, the deepest first. Immutable: a subfolder extends a copy."""

    __slots__ = ("_chain",)

    def __init__(self, chain: tuple[_RuleFile, ...] = ()) -> None:
        self._chain = chain

    def __bool__(self) -> bool:
        return bool(self._chain)

    @classmethod
    def above(cls, root: Path) -> Rules:
        """Return the rules from outside that apply in a root: those of the folders up to the git root."""
        rules = cls()
        folders = _up_to_git_root(root)
        for depth, folder in zip(range(len(folders), 0, -1), reversed(folders), strict=True):
            lead = byte_text("/".join(root.parts[-depth:])) + "/"
            rules = rules._with(folder, IGNORE_FILES, "../" * depth, 0, lead)
        return rules

    def below(self, folder: str | Path, names: Iterable[str], prefix: str) -> Rules:
        """Return the rules of a folder that has some ignore files.

        Args:
            folder: where it is.
            names: those of :data:`IGNORE_FILES` that are in it.
            prefix: its path in the package, ending with ``/``, or "" for the root.
        """
        present = [name for name in IGNORE_FILES if name in set(names)]
        return self._with(folder, present, prefix, len(byte_text(prefix)), "")

    def _with(self, folder: str | Path, names: Iterable[str], label: str, cut: int, lead: str) -> Rules:
        chain = self._chain
        for name in names:
            patterns = parse(_read(os.path.join(folder, name)))
            if patterns:
                chain = (_RuleFile(patterns, label + name, cut, lead), *chain)
        return Rules(chain) if chain is not self._chain else self

    def file(self, prefix: str, name: str) -> Decision | None:
        """Say what applies to a file ``prefix + name``, or None."""
        if not name.isascii() or not prefix.isascii():
            prefix, name = byte_text(prefix), byte_text(name)
        path = prefix + name
        for rule_file in self._chain:
            seen = rule_file.lead + path[rule_file.cut :]
            for matches, decision in rule_file.files:
                if matches(name, seen):
                    return decision
        return None

    def folder(self, prefix: str, name: str) -> Decision | None:
        """Say what applies to a folder ``prefix + name``, or None; what it holds is not asked then."""
        if not name.isascii() or not prefix.isascii():
            prefix, name = byte_text(prefix), byte_text(name)
        path = prefix + name
        for rule_file in self._chain:
            seen = rule_file.lead + path[rule_file.cut :]
            for matches, decision in rule_file.folders:
                if matches(name, seen):
                    return decision
        return None


def _up_to_git_root(root: Path) -> list[Path]:
    """The folders above a root, up to the one that has ``.git``; none if the root has it or nobody does."""
    if (root / ".git").exists():
        return []
    above: list[Path] = []
    for folder in root.parents:
        above.append(folder)
        if (folder / ".git").exists():
            return above
    return []


def _read(path: str) -> bytes:
    """Read an ignore file; like git, follow no link. One that cannot be read says nothing."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as file:
            return file.read()
    except OSError:
        return b""
