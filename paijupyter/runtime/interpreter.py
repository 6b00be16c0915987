"""Make ``python`` mean the interpreter that the job is for."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional

_NAMES = ("python", "python3")


def put_first(python: "Optional[str]", private: str, variables: "Dict[str, str]") -> None:
    """Change PATH so that ``python`` and ``python3`` are this interpreter.

    Its own folder goes first. If ``python`` there is another one, or none (``/usr/bin/python3.12``), a folder
    with two starters goes before it: a link would make an interpreter forget its virtual environment.
    """
    if not python:
        return
    folder = os.path.dirname(python)
    path = variables.get("PATH") or os.defpath
    variables["PATH"] = path if path.split(os.pathsep)[0] == folder else folder + os.pathsep + path
    other = [name for name in _NAMES if not _same(os.path.join(folder, name), python)]
    if not other:
        return
    starters = os.path.join(private, "bin")
    os.mkdir(starters, 0o700)
    for name in other:
        descriptor = os.open(os.path.join(starters, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("#!/bin/sh\nexec '%s' \"$@\"\n" % python.replace("'", "'\\''"))
    variables["PATH"] = starters + os.pathsep + variables["PATH"]


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
