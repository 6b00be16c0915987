"""What an interpreter has: its version, its standard library, and which distribution a module comes from.

Asking takes some tenths of a second, so a process of its own does it, at the lowest priority, and writes the
answer into a file that holds until something is installed or removed there. Whoever does not want to wait
finds it the next time.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter import paths

_FORMAT = 1
_PATIENCE = 20.0  # seconds
_PROGRAM = r"""
import os, sys
os.nice(19)
import importlib.metadata as metadata, json, re, tempfile
target, form = sys.argv[1], int(sys.argv[2])
plain = lambda name: re.sub("[-_.]+", "-", name).lower()
modules, versions, requires = {}, {}, {}
for dist in metadata.distributions():
    name = dist.metadata["Name"]
    if not name or plain(name) in versions:
        continue
    versions[plain(name)] = [name, dist.version]
    requires[plain(name)] = sorted({
        plain(re.match(r"[\w.-]+", each).group()) for each in dist.requires or () if "extra ==" not in each
    })
    top = (dist.read_text("top_level.txt") or "").split()
    for file in () if top else dist.files or ():
        first = file.parts[0]
        if first.endswith((".dist-info", ".egg-info", ".pth", "..")) or first in ("__pycache__", "..", "bin"):
            continue
        if len(file.parts) > 1 or first.endswith((".py", ".so", ".pyd")):
            top.append(first.partition(".")[0])
    for module in set(top):
        modules.setdefault(module, []).append(plain(name))
places = {}
for place in sys.path:
    if place and os.path.isdir(place):
        places[place] = os.stat(place).st_mtime_ns
answer = {
    "format": form, "version": "%d.%d.%d" % sys.version_info[:3], "modules": modules, "versions": versions,
    "requires": requires, "places": places,
    "standard": sorted(getattr(sys, "stdlib_module_names", ()) or sys.builtin_module_names),
}
handle, draft = tempfile.mkstemp(dir=os.path.dirname(target))
with os.fdopen(handle, "w") as stream:
    json.dump(answer, stream)
os.replace(draft, target)
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """The answer of an interpreter. Names of distributions are normalised (``scikit-learn``).

    Attributes:
        version: of Python, ``3.11.7``.
        standard: modules of the standard library.
        modules: module → distributions that have it.
        versions: distribution → its name as it writes it, and its version.
        requires: distribution → what it requires without any extra.
    """

    version: str
    standard: frozenset[str]
    modules: Mapping[str, list[str]]
    versions: Mapping[str, tuple[str, str]]
    requires: Mapping[str, list[str]]


def known(python: str) -> Environment | None:
    """Return what is known of an interpreter, None if nothing is or something was installed since."""
    try:
        answer = json.loads(_file(python).read_bytes())
        if answer["format"] != _FORMAT or not _holds(answer["places"]):
            return None
        return _environment(answer)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ask(python: str) -> Environment | None:
    """Return what an interpreter has, asking it if need be; None without an answer (before Python 3.8)."""
    found = known(python)
    if found is not None:
        return found
    target = _file(python)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # It may outlive us: who does not wait leaves the answer to the next one.
        process = subprocess.Popen(
            [python, "-c", _PROGRAM, str(target), str(_FORMAT)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        process.wait(_PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return None
    return known(python)


def _file(python: str) -> Path:
    digest = hashlib.sha256(os.fsencode(python)).hexdigest()[:16]
    return paths.data_dir() / "import-cache" / f"python-{digest}.json"


def _holds(places: Mapping[str, int]) -> bool:
    return all(os.stat(place).st_mtime_ns == changed for place, changed in places.items())


def _environment(answer: Mapping[str, Any]) -> Environment:
    return Environment(
        answer["version"],
        frozenset(answer["standard"]),
        answer["modules"],
        {name: (told[0], told[1]) for name, told in answer["versions"].items()},
        answer["requires"],
    )
