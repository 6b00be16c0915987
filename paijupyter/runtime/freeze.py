"""What is installed where the task runs, for its record: ``python boot.pyz freeze FILE``.

Names and versions are those of the folders that installers leave, so nothing is imported and hardly anything
read: some milliseconds for hundreds of distributions. Only what did not come from an index says from where.
"""

import json
import os
import re
import sys

from .files import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

SCHEMA = 1
_INFO = re.compile(r"(.+?)-([^-]+?)(?:-py[\d.]+)?\.(dist-info|egg-info)\Z")
_LINE = re.compile(r"(Name|Version): *(.*)")


def main(argv: "List[str]") -> int:
    """Write the list into the file ``argv[2]``."""
    try:
        os.nice(19)
    except OSError:
        pass
    write_atomic(argv[2], json.dumps(lock(sys.path)).encode("ascii"))
    return 0


def lock(places: "List[str]") -> "Dict[str, Any]":
    """Return what this interpreter is and what is installed in places, as ``pip freeze`` would list it.

    Args:
        places: folders, the first one first, as of ``sys.path``.
    """
    found: "Dict[str, Tuple[str, str]]" = {}
    changed: "Dict[str, int]" = {}
    for place in places:
        try:
            names = sorted(os.listdir(place))
            changed[place] = os.stat(place).st_mtime_ns
        except OSError:
            continue
        for name in names:
            if not name.endswith(("-info", ".egg-link")):
                continue
            told = _distribution(place, name)
            if told is not None:
                found.setdefault(_plain(told[0]), told)
    return {
        "schema": SCHEMA,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "platform": _platform(),
        "packages": {name: found[name][1] for name in sorted(found)},
        "places": changed,
    }


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _distribution(place: str, name: str) -> "Any":
    match = _INFO.match(name)
    if not match:
        return None
    folder = os.path.join(place, name)
    origin = _origin(os.path.join(folder, "direct_url.json"))
    return match.group(1), match.group(2) + (" @ " + origin if origin else "")


def _origin(path: str) -> str:
    """Return where a distribution came from if not from an index; never the credentials of an address."""
    try:
        with open(path, encoding="utf-8") as stream:
            told = json.load(stream)
        url = re.sub(r"//[^/@]*@", "//", str(told["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    commit = (told.get("vcs_info") or {}).get("commit_id")
    return "%s@%s" % (url, commit) if commit else url


def _platform() -> str:
    found = os.uname()
    return "%s %s %s" % (found.sysname, found.release, found.machine)


def provide(python: str, target: str, kept: "Optional[str]", run: "Callable[[List[str]], int]") -> None:
    """Have the list of an interpreter in a file; a list that cannot be had is no reason to end a task.

    Args:
        python: the interpreter of the command.
        target: the file.
        kept: a folder where lists are kept until something is installed or removed, or None.
        run: runs a command and returns its exit status.
    """
    known = os.path.join(kept, "lock-%s.json" % _key(python)) if kept else None
    data = _recalled(known) if known else None
    if data is not None:
        write_atomic(target, data)
        return
    archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if run([python, archive, "freeze", target]) != 0 or not known:
        return
    try:
        with open(target, "rb") as stream:
            data = stream.read()
    except FileNotFoundError:
        return  # what calls itself an interpreter did something else
    os.makedirs(os.path.dirname(known), exist_ok=True)
    write_atomic(known, data)


def _recalled(path: str) -> "Optional[bytes]":
    """Return a list that is kept, if nothing was installed or removed since."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
        places = json.loads(data.decode("ascii"))["places"]
        holds = all(os.stat(place).st_mtime_ns == changed for place, changed in places.items())
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return data if holds else None


def _key(python: str) -> str:
    """Return a file name for a path; without hashlib, which takes longer to load than all else here."""
    from binascii import crc32

    return "%08x-%s" % (crc32(os.fsencode(python)), re.sub(r"[^A-Za-z0-9.]+", "-", python)[-80:])
