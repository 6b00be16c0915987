"""Outputs on their way out of a pod: ``python boot.pyz outputs send|taken SPEC``, run beside the task.

``send`` writes a tar archive to its standard output, ``taken`` lets the pod go on. The pod says in its log
that they wait; where nobody comes it goes on after a time.
"""

import os
import stat
import sys

from .files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Tuple

    from .tasks import Spec

_TAKEN = "outputs.taken"


def main(argv: "List[str]") -> int:
    """Send or acknowledge the outputs of the pod whose spec is the file ``argv[3]``."""
    from .pod import own_spec, read_spec

    spec = own_spec(read_spec(argv[3], os.environ), os.environ)
    if argv[2] == "send":
        _send(spec["output"])
    else:
        with open(_mark(spec), "w"):
            pass
    return 0


def waiting(folder: str) -> "Tuple[int, int]":
    """Return how many outputs there are, and their bytes."""
    sizes = [_size(path) for path, _ in _files(folder)]
    return len(sizes), sum(sizes)


def announced(folder: str) -> str:
    """Return the line of the log that says that outputs wait; "" if there are none."""
    count, size = waiting(folder)
    files = "1 file" if count == 1 else "%d files" % count
    return "Outputs wait to be fetched: %s, %d bytes." % (files, size) if count else ""


def are_taken(spec: "Spec") -> bool:
    """Say whether somebody has fetched them."""
    return os.path.exists(_mark(spec))


def forget(spec: "Spec") -> None:
    """Forget that somebody has fetched them: others will come."""
    remove_file(_mark(spec))


def _mark(spec: "Spec") -> str:
    return os.path.join(os.path.dirname(spec["folder"]), _TAKEN)


def _files(folder: str) -> "Iterator[Tuple[str, str]]":
    """Yield path and name of everything that is a file or a link."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        linked = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted(names + linked):
            path = os.path.join(place, name)
            if stat.S_IFMT(_mode(path)) in (stat.S_IFREG, stat.S_IFLNK):
                yield path, os.path.relpath(path, folder)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0  # gone since it was listed


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _send(folder: str) -> None:
    import tarfile

    with tarfile.open(
        fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT, errors="surrogateescape"
    ) as archive:
        for path, name in _files(folder):
            archive.add(path, name, recursive=False)
    sys.stdout.buffer.flush()
