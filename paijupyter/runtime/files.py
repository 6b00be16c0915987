"""Files that are whole or absent, private folders, and their removal."""

import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_atomic(path: str, data: bytes) -> None:
    """Write a 0600 file so that a reader sees all of it or nothing, also after a crash of the machine."""
    draft = "%s.%d" % (path, os.getpid())
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(draft, path)
    except OSError:
        remove_file(draft)
        raise


def write_json(path: str, value: "Any") -> None:
    """Write JSON by :func:`write_atomic`."""
    write_atomic(path, (json.dumps(value) + "\n").encode("ascii"))


def write_private(path: str, data: bytes) -> None:
    """Write a new 0600 file; it must not exist yet, not even as a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def make_private(folder: str) -> None:
    """Make an empty 0700 folder; what an earlier boot left there goes first."""
    remove_tree(folder)
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.mkdir(folder, 0o700)


def remove_file(path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def remove_tree(folder: "str | bytes") -> None:
    """Remove a folder and all below it, also what its owner made read-only; links are not followed."""
    if not os.path.lexists(folder):
        return
    import shutil

    def again(function: "Any", path: "Any", _: "Any") -> None:
        try:
            os.chmod(os.path.dirname(path), stat.S_IRWXU)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
            if function in (os.unlink, os.rmdir):
                function(path)
            else:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # what cannot be removed stays; the task's result is not changed by it

    shutil.rmtree(folder, onerror=again)
