"""Which files of a folder belong to its package, and what is left out and why. Reads names, not contents."""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from stat import S_ISLNK, S_ISREG, S_IXUSR
from typing import NamedTuple

from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.package import builtin_rules as builtin
from paijupyter.package.excluded import Excluded, ExcludedList
from paijupyter.package.ignore import IGNORE_FILES, Decision, Rules
from paijupyter.package.limits import Limits
from paijupyter.package.manifest import EXECUTABLE, FILE, LINK
from paijupyter.package.problems import bad_name, folded, outside_link, unreadable

_NOTABLE_NAMES, _NOTABLE_ENDINGS = builtin.NOTABLE_NAMES, builtin.NOTABLE_ENDINGS
_ENVIRONMENT_PARTS = frozenset({"bin", "include", "lib", "lib64", "share"})
_GIVE_UP = 4
"""The walk ends at so many times the limit of files; what is largest is clear by then."""


class Selected(NamedTuple):
    """A file that belongs to the package, as the walk saw it; the numbers tell whether it changed since."""

    path: str
    mode: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass
class Selection:
    """What a package of a folder would hold.

    Attributes:
        root: the folder.
        real_root: the same without symbolic links.
        files: sorted by path.
        links: target of each selected symbolic link.
        excluded: what was left out and why, the largest first.
        problems: what stands against it; an error means that no package can be made.
    """

    root: Path
    real_root: str
    files: list[Selected] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    excluded: list[Excluded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes of all selected files as they lie in the folder."""
        return sum(file.size for file in self.files)


def select(root: Path, *, limits: Limits | None = None, never: frozenset[Path] = frozenset()) -> Selection:
    """Say which files of a folder belong to its package.

    Args:
        root: the folder.
        limits: what it may hold; the usual limits by default.
        never: folders that are left out wherever they lie, such as our own data folder.

    Raises:
        PaiJupyterError: ``package-folder`` if the root is no folder that can be read.
    """
    return _Walk(root.absolute(), limits or Limits(), never).run()


class _Folder(NamedTuple):
    path: str  # where it is
    prefix: str  # in the package, ending with "/", or ""
    rules: Rules
    rule: builtin.Rule | None = None  # leaves it out unless it turns out to hold source


class _Walk:
    """One walk through a folder."""

    def __init__(self, root: Path, limits: Limits, never: frozenset[Path]) -> None:
        self._root = os.path.realpath(root)
        self._limits = limits
        self._never = frozenset(os.path.realpath(path) for path in never)
        self._is_home = self._root == os.path.realpath(os.path.expanduser("~"))
        self._found = Selection(root, self._root)
        self._excluded = ExcludedList(self._root)

    def run(self) -> Selection:
        found = self._found
        todo = [_Folder(self._root, "", Rules.above(Path(self._root)))]
        complete = True
        while todo and complete:
            todo += self._enter(todo.pop())
            complete = len(found.files) <= self._limits.files * _GIVE_UP
        found.files.sort(key=itemgetter(0))
        found.excluded = self._excluded.rows()
        found.problems = folded(found.problems)
        if not complete or not self._limits.hold(len(found.files), found.bytes):
            sizes = [(file.path, file.size) for file in found.files]
            found.problems.append(self._limits.problem(sizes, complete))
        return found

    def _enter(self, folder: _Folder) -> list[_Folder]:
        """Select what lies directly in a folder; return the folders in it that are to be entered."""
        path, prefix, rules, _ = folder
        try:
            with os.scandir(path) as entries:
                listed = list(entries)
        except OSError as error:
            self._cannot_enter(folder, error)
            return []
        names = {entry.name for entry in listed}
        rule = self._rule_of_content(folder, names)
        if rule:
            self._leave_out_folder(prefix, rule.reason, rule)
            return []
        if not names.isdisjoint(IGNORE_FILES):
            rules = rules.below(path, names, prefix)
        folders = []
        add, new = self._found.files.append, tuple.__new__
        for entry in listed:  # the hot loop: ten thousand turns have to cost some ten milliseconds
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                continue
            decision = rules.file(prefix, name) if rules else None
            if (
                decision
                or name in _NOTABLE_NAMES
                or name[0] == "."
                or name.rpartition(".")[2] in _NOTABLE_ENDINGS
                or not name.isascii()
            ) and self._is_left_out(entry, prefix, decision):
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it has just vanished
            mode = found.st_mode
            if not S_ISREG(mode):
                self._add_other(entry, prefix, found)
                continue
            add(
                new(
                    Selected,
                    (
                        prefix + name,
                        EXECUTABLE if mode & S_IXUSR else FILE,
                        found.st_size,
                        found.st_mtime_ns,
                        found.st_ctime_ns,
                        found.st_ino,
                    ),
                )
            )
        return [below for name in folders if (below := self._below(path, prefix, name, rules, names))]

    def _rule_of_content(self, folder: _Folder, names: Set[str]) -> builtin.Rule | None:
        """Return the rule that leaves a folder out because of what is in it; never the root."""
        if not folder.prefix:
            return None
        if folder.rule and not builtin.holds_source(names):
            return folder.rule
        return builtin.content_rule(folder.path, names)

    def _below(self, path: str, prefix: str, name: str, rules: Rules, siblings: Set[str]) -> _Folder | None:
        """Say whether a folder is to be entered; if not, note why."""
        inside = f"{prefix}{name}/"
        decision = rules.folder(prefix, name) if rules else None
        rule = builtin.folder_rule(name) or self._home_rule(prefix, name)
        if not prefix and name in _ENVIRONMENT_PARTS and "pyvenv.cfg" in siblings:
            rule = builtin.ENVIRONMENT  # `python -m venv .` in the root itself
        folder = _Folder(f"{path}/{name}", inside, rules)
        if folder.path in self._never:
            self._leave_out_folder(inside, builtin.CACHE.reason, builtin.CACHE)
        elif rule and not rule.may_insist:
            self._leave_out_folder(inside, rule.reason, rule)
        elif decision and decision.ignored:
            self._leave_out_folder(inside, decision.file, None)
        elif rule and not (decision and decision.insists):
            if rule is builtin.CHECKPOINT:
                return folder._replace(rule=rule)
            self._leave_out_folder(inside, rule.reason, rule)
        elif not _is_utf8(name):
            self._found.problems.append(bad_name(inside))
        else:
            return folder
        return None

    def _is_left_out(self, entry: os.DirEntry[str], prefix: str, decision: Decision | None) -> bool:
        """Say whether a file is left out by the ignore files or a rule of ours, and note why."""
        path = prefix + entry.name
        if decision and decision.ignored:
            self._excluded.add_file(path, decision.file, _size(entry), folded=f"{prefix}*")
            return True
        rule = builtin.file_rule(entry.name, partial(_first_bytes, entry.path))
        rule = rule or self._home_rule(prefix, entry.name)
        if rule and not (rule.may_insist and decision and decision.insists):
            kind = "" if rule.singly else f"*.{entry.name.rpartition('.')[2]}"
            self._excluded.add_file(path, rule.reason, _size(entry), folded=kind, hint=_insist(path, rule))
            return True
        if not _is_utf8(path):
            self._found.problems.append(bad_name(path))
            return True
        return False

    def _home_rule(self, prefix: str, name: str) -> builtin.Rule | None:
        hidden = self._is_home and not prefix and name.startswith(".") and name not in IGNORE_FILES
        return builtin.HOME if hidden else None

    def _add_other(self, entry: os.DirEntry[str], prefix: str, found: os.stat_result) -> None:
        """Select a symbolic link that stays inside, and note whatever else is no regular file."""
        path = prefix + entry.name
        if not S_ISLNK(found.st_mode):
            self._excluded.add_file(path, "not a regular file", 0, folded=f"{prefix}*")
            return
        try:
            target = os.readlink(entry.path)
        except OSError:
            return  # it has just vanished
        if os.path.isabs(target) or not self._is_inside(entry.path) or not _is_utf8(target):
            self._excluded.add_file(path, f"link to `{os.fsencode(target).decode(errors='replace')}`", 0)
            self._found.problems.append(outside_link(path, target))
            return
        self._found.links[path] = target
        size = len(os.fsencode(target))
        self._found.files.append(
            Selected(path, LINK, size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        )

    def _is_inside(self, link: str) -> bool:
        """Say whether a link leads into the root, also by way of other links."""
        return os.path.realpath(link).startswith(self._root.rstrip("/") + "/") or (
            os.path.realpath(link) == self._root
        )

    def _leave_out_folder(self, path: str, reason: str, rule: builtin.Rule | None) -> None:
        plain = rule is not None and not rule.singly
        self._excluded.add_folder(
            path,
            reason,
            folded=path.rstrip("/").rpartition("/")[2] + "/" if plain else "",
            hint=_insist(path, rule) if rule else "",
            worth_measuring=not plain,
        )

    def _cannot_enter(self, folder: _Folder, error: OSError) -> None:
        if not folder.prefix:
            raise PaiJupyterError(
                "package-folder",
                f"Folder `{self._found.root}` cannot be read: {error.strerror}.",
                "Choose another with `--package`.",
            ) from error
        if not isinstance(error, FileNotFoundError):
            self._found.problems.append(unreadable(folder.prefix, error))


def _insist(path: str, rule: builtin.Rule) -> str:
    return f"To take it all the same, write `!/{path}` into `.paiignore`." if rule.may_insist else ""


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _first_bytes(path: str, most: int) -> bytes:
    """Read the beginning of a file; one that cannot be read is somebody else's finding."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
