"""Bring declared outputs from the package folder into the output folder."""

import os
import re
import stat

from .unpack import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Pattern, Tuple

    from .unpack import State


def collect(patterns: "List[str]", work: str, output: str, before: "Dict[bytes, State]") -> "List[str]":
    """Move the files that match into the output folder, under the same paths.

    A folder that matches comes with all it holds. Files that came with the package and were not touched stay,
    unless a pattern names them exactly. A link comes as what it points to if that is a file of the package
    folder, and as a link if it is a folder that comes too; no other link comes.

    Returns:
        Sentences on what was declared and could not be brought.
    """
    collection = _Collection(os.fsencode(work), os.fsencode(output), before)
    for pattern in patterns:
        collection.take(pattern)
    collection.link()
    return collection.notes


class _Collection:
    def __init__(self, root: bytes, output: bytes, before: "Dict[bytes, State]") -> None:
        self.notes: "List[str]" = []
        self._root = root
        self._output = output
        self._before = before
        self._found = list(_walk(root))
        self._put_there = list(_walk(output))  # by the task itself
        self._links: "List[Tuple[bytes, bytes]]" = []

    def take(self, pattern: str) -> None:
        """Bring everything that matches one pattern."""
        expression = glob_expression(pattern)
        chosen = [name for name in self._found if expression.match(name)]
        if not chosen and not any(expression.match(name) for name in self._put_there):
            self.notes.append("The output `%s` matched no file." % pattern)
        exact = not any(char in pattern for char in "*?[")
        for name in chosen:
            source = os.path.join(self._root, name)
            try:
                mode = os.lstat(source)
            except OSError:
                continue  # an earlier pattern has taken it
            if not exact and self._before.get(name) == state_of(mode):
                continue  # came with the package
            try:
                self._bring(name, source, mode.st_mode)
            except OSError as error:
                self._leave(name, "could not be kept (%s)" % (error.strerror or error))

    def link(self) -> None:
        """Make the links to folders that came too."""
        for name, target in self._links:
            destination = os.path.join(self._output, name)
            if not os.path.isdir(os.path.join(os.path.dirname(destination), target)):
                self._leave(name, "is a link to a folder that is no output")
            elif not os.path.lexists(destination):
                os.symlink(target, destination)

    def _bring(self, name: bytes, source: bytes, mode: int) -> None:
        linked = stat.S_ISLNK(mode)
        if linked and not _inside(self._root, source):
            self._leave(name, "is a link that leads out of the package folder")
            return
        if linked and os.path.isdir(source):
            self._links.append((name, os.readlink(source)))
            return
        if not os.path.isfile(source):
            self._leave(name, "is not a file")
            return
        destination = os.path.join(self._output, name)
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        if not _inside(self._output, os.path.dirname(destination)):
            self._leave(name, "would leave the output folder")
            return
        self._move(source, destination, linked)

    def _move(self, source: bytes, destination: bytes, linked: bool) -> None:
        """Publish the file by a rename, so that a reader never sees half of it."""
        draft = destination + b".part"
        try:
            if linked:
                raise OSError("its content is wanted, not the link")
            os.rename(source, draft)
        except OSError:
            from shutil import copyfile

            copyfile(source, draft)  # also from another file system
        os.rename(draft, destination)

    def _leave(self, name: bytes, why: str) -> None:
        self.notes.append("The output `%s` %s; it is left out." % (os.fsdecode(name), why))


def _inside(root: bytes, path: bytes) -> bool:
    real = os.path.realpath(path)
    base = os.path.realpath(root)
    return real == base or real.startswith(base + b"/")


def _walk(root: bytes) -> "Iterator[bytes]":
    """Yield the paths of everything that is not a folder, relative, sorted; links are not followed."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in sorted(files + linked):
            yield os.path.relpath(os.path.join(folder, name), root)


def glob_expression(pattern: str) -> "Pattern[bytes]":
    """Return what matches the paths of a glob, and all below a folder that it names.

    ``*``, ``?`` and ``[…]`` stay within one name, ``**`` spans folders; ``./`` and a last ``/`` do not count.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    text = ""
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        if part == "**":
            text += ".*" if last else "(?:[^/]+/)*"
        else:
            text += _name_expression(part) + ("" if last else "/")
    text = "(?:%s)(?:/.*)?" % text if parts else ".*"
    return re.compile((text + r"\Z").encode("utf-8", "surrogateescape"), re.DOTALL)


def _name_expression(part: str) -> str:
    text = ""
    position = 0
    while position < len(part):
        char = part[position]
        end = part.find("]", position + 2) if char == "[" else -1
        if char == "*":
            text += "[^/]*"
        elif char == "?":
            text += "[^/]"
        elif end > 0:
            text += _class_expression(part[position + 1 : end])
            position = end
        else:
            text += re.escape(char)
        position += 1
    return text


def _class_expression(inner: str) -> str:
    """Return what matches one character of a class; a range whose end is before its start holds none."""
    negated = inner[0] in "!^" and len(inner) > 1
    chars = inner[1:] if negated else inner
    held, position = "", 0
    while position < len(chars):
        span = chars[position : position + 3]
        if len(span) == 3 and span[1] == "-":
            if span[0] <= span[2]:
                held += "%s-%s" % (re.escape(span[0]), re.escape(span[2]))
            position += 3
        else:
            held += re.escape(span[0])
            position += 1
    if not held:
        return "[^/]" if negated else "(?!)"
    return "(?!/)[%s%s]" % ("^" if negated else "", held)
