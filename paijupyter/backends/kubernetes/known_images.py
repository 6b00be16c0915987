"""What is installed in images, as far as jobs that ran in them have told; and what of requirements they lack.

A name of an image may stand for another one tomorrow, so what is said of it is said with its time.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.kubernetes import layout

_FOLDER = "images"
_SCHEMA = 1
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:==\s*([A-Za-z0-9.+!-]+))?")


@dataclass(frozen=True, slots=True)
class KnownImage:
    """What an image had.

    Attributes:
        at: when a job ran in it, seconds since the epoch.
        packages: versions by name of distribution, in small letters with ``-``.
    """

    at: float
    packages: Mapping[str, str]


def remember(data: Path, image: str, lock: Mapping[str, object]) -> None:
    """Keep what a task in an image has told. Blocking.

    Args:
        data: the data folder of this host.
        image: as documents name it.
        lock: of the task's environment; one that the task has made for itself says nothing of the image.

    Raises:
        OSError: it cannot be written.
    """
    packages = lock.get("packages")
    if not isinstance(packages, Mapping) or str(lock.get("executable") or "").startswith(layout.ROOT):
        return
    (data / _FOLDER).mkdir(parents=True, exist_ok=True)
    told = {"schema": _SCHEMA, "image": image, "at": time.time(), "packages": dict(packages)}
    write_json(_file(data, image), told)


def known(data: Path, image: str) -> KnownImage | None:
    """Return what an image had, None if no job has told. Blocking."""
    found = read_json(_file(data, image))
    if not found or not isinstance(found.get("packages"), dict):
        return None
    return KnownImage(float(found.get("at") or 0), {str(k): str(v) for k, v in found["packages"].items()})


def lacking(requirements: str, packages: Mapping[str, str]) -> list[str]:
    """Return the requirements that are certainly not there: by name, or by another exact version.

    Lines that only an installer understands (options, addresses, markers, ranges) are passed over.
    """
    found = []
    for line in requirements.splitlines():
        text = line.partition("#")[0].strip()
        match = _REQUIREMENT.match(text)
        if match is None or ";" in text or "://" in text or "@" in text:
            continue
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        version = packages.get(name, "").partition(" ")[0]
        if not version or (match[2] and match.end() == len(text) and match[2] != version):
            found.append(text)
    return found


def _file(data: Path, image: str) -> Path:
    return data / _FOLDER / f"{hashlib.sha256(image.encode()).hexdigest()[:32]}.json"
