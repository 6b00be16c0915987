"""Which way each package of a job travels, and sending it: the first way of the profile that it fits.

A server takes no files, only a document of at most 102,400 bytes. So small packages travel inside it, larger
ones by a storage that this host and the tasks both have, by a store that both reach, or not at all: where a
git remote has the same files, the tasks take them from there. The way of outputs is chosen here, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Package
from paijupyter.backends.delivery import archive
from paijupyter.backends.delivery.commits import Match, Mirror
from paijupyter.backends.openpai import emit, head, payload
from paijupyter.backends.openpai.emit import Carried
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.backends.told import tasks_of
from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.protocol.quantities import format_memory

_INSIDE = 512 * 1024
"""Bytes of a package that may still fit into a document; more are not tried."""
_FEW = 3  # files that a message names
_ADDRESS = 1024  # bytes of an address that only sending can tell, at most as a rule
_SIGNATURE = 80  # bytes of a task's own part of it: 64 digits, with what stands around
WORDS = {
    "document": "inside the document",
    "storage": "by storage `{storage}`, which this host has too",
    "object": "by bucket `{bucket}`",
    "webhdfs": "by WebHDFS at {webhdfs}",
    "git": "as commit {commit} of {git}",
}


@dataclass(frozen=True, slots=True)
class Leg:
    """The chosen way of one package.

    Attributes:
        number: of the package in the job.
        package: what travels.
        way: one of ``settings.WAYS``.
        size: its bytes.
        match: the commit that has it, of the way ``git``.
    """

    number: int
    package: Package
    way: str
    size: int
    match: Match | None = None

    @property
    def inside(self) -> int:
        """Bytes of it that travel in the document."""
        if self.way == "document":
            return self.size
        return self.match.size if self.match else 0


@dataclass(frozen=True, slots=True)
class Load:
    """Everything of ours that a job takes along.

    Attributes:
        legs: how its packages travel.
        carried: what its document carries.
        problems: what is to be said of ways that were not taken.
    """

    legs: tuple[Leg, ...]
    carried: Carried
    problems: tuple[Problem, ...] = ()


def load(
    job: Job, name: str, settings: OpenPaiSettings, secrets: Mapping[str, str], mirror: Mirror | None
) -> Load:
    """Choose the ways; sends nothing. Blocking.

    Args:
        job: the job, with what was fetched for it as packages.
        name: what it is called on the server.
        settings: of the profile.
        secrets: their values, for they count for the size of the document.
        mirror: the commits of the profile's git remote.

    Raises:
        PaiJupyterError: ``package-too-big`` if no way takes one; it lists what could be set up.
    """
    problems: list[Problem] = []
    ways = [
        _Ways(_legs(number, package, settings, mirror, problems))
        for number, package in enumerate(archive.packages_of(job))
    ]
    while True:
        legs = tuple(each.now() for each in ways)
        found = Load(legs, _carried(job, name, settings, legs, {}, {}), tuple(dict.fromkeys(problems)))
        size = len(emit.text_of(job, name, settings, secrets, found.carried).encode())
        size += _told_later(job, settings, found.carried)
        if size <= emit.LARGEST:
            return found
        largest = max(legs, key=lambda leg: leg.inside, default=None)
        if largest is None or not largest.inside:
            raise _too_long(size)
        ways[largest.number].give_up()


def _told_later(job: Job, settings: OpenPaiSettings, carried: Carried) -> int:
    """Return about how many bytes the document gets that only sending can tell."""
    size = _ADDRESS * len(carried.urls)
    if carried.outputs is not None:
        size += _ADDRESS
        if outputs_way(settings) == "object":
            size += sum(_SIGNATURE + len(task.key) for task in tasks_of(job))
    return size


class _Ways:
    """The ways that one package could take, in order."""

    def __init__(self, legs: Iterator[Leg]) -> None:
        self._legs = legs
        self._now: Leg | None = None

    def now(self) -> Leg:
        """Return the way that is taken now.

        Raises:
            PaiJupyterError: ``package-too-big`` if there is none left.
        """
        self._now = self._now or next(self._legs)
        return self._now

    def give_up(self) -> None:
        """Take the next one: the document has no room for what this one puts into it."""
        self._now = None


def _legs(
    number: int, package: Package, settings: OpenPaiSettings, mirror: Mirror | None, problems: list[Problem]
) -> Iterator[Leg]:
    """Yield the ways that a package could take; add what is to be said of those it cannot."""
    size = archive.size_of(package)
    for way in there(settings):
        if way == "git":
            yield from _git_leg(number, package, size, mirror, problems)
        elif way != "document" or size <= _INSIDE:
            yield Leg(number, package, way, size)
    raise _too_big(size, settings, problems)


def _git_leg(
    number: int, package: Package, size: int, mirror: Mirror | None, problems: list[Problem]
) -> Iterator[Leg]:
    try:
        match = mirror.nearest(package) if mirror else None
    except PaiJupyterError as error:
        problems.append(Problem("warning", error.code, error.message, hint=error.hint))
        return
    if match is not None and match.size <= _INSIDE:
        yield Leg(number, package, "git", size, match)
    problems.append(
        Problem(
            "warning",
            "git-differs",
            f"Package `{package.sha256[:12]}` differs from every commit of the git remote"
            + (f", from {match.commit[:10]} by {_named(match.beside)}" if match else "")
            + "; that is too much for the job document.",
            hint="Commit and push it, or name another way in the profile.",
        )
    )


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FEW} more" if len(paths) > _FEW else ""
    return ", ".join(f"`{path}`" for path in paths[:_FEW]) + more


async def send(
    found: Load, job: Job, name: str, settings: OpenPaiSettings, staging: Path, mirror: Mirror | None
) -> Carried:
    """Bring the packages to where the tasks find them; return what the document carries.

    Args:
        found: from :func:`load`.
        job: the job.
        name: what it is called on the server.
        settings: of the profile.
        staging: a folder for archives on their way.
        mirror: the commits of the profile's git remote.

    Raises:
        PaiJupyterError: ``package-not-sent`` with the reason.
    """
    facts: dict[int, archive.Archive] = {}
    urls: dict[int, str] = {}
    for leg in found.legs:
        if leg.way == "storage":
            await asyncio.to_thread(_to_storage, leg.package, settings)
        elif leg.way == "object" and settings.bucket is not None:
            from paijupyter.backends.delivery import objects

            sent = await asyncio.to_thread(objects.put, leg.package, settings.bucket, staging)
            facts[leg.number], urls[leg.number] = sent
        elif leg.way == "webhdfs" and settings.webhdfs is not None:
            from paijupyter.backends.openpai.webhdfs import put

            sent = await asyncio.to_thread(put, leg.package, settings.webhdfs, staging)
            facts[leg.number], urls[leg.number] = sent
        elif leg.way == "git" and mirror is not None:
            urls[leg.number] = json.dumps(await asyncio.to_thread(mirror.place))
    if not urls:
        return found.carried
    return await asyncio.to_thread(_carried, job, name, settings, found.legs, facts, urls)


def in_words(leg: Leg, settings: OpenPaiSettings) -> str:
    """Say by which way a package travels."""
    words = WORDS[leg.way].format(
        storage=settings.storage,
        bucket=settings.bucket.bucket if settings.bucket else "",
        webhdfs=settings.webhdfs.url if settings.webhdfs else "",
        git=settings.git.url if settings.git else "",
        commit=leg.match.commit[:10] if leg.match else "",
    )
    if leg.match is None or not leg.match.beside:
        return words
    return f"{words}; what no pushed commit has is inside the document: {_named(leg.match.beside)}"


def outputs_way(settings: OpenPaiSettings) -> str:
    """Return the way by which outputs come back: ``storage``, ``object``, ``webhdfs``, or "" for none."""
    if settings.shared is not None:
        return "storage"
    return next((each for each in there(settings) if each in ("object", "webhdfs")), "")


def outputs_in_words(settings: OpenPaiSettings) -> str:
    """Say by which way outputs come back; "" for none."""
    chosen = outputs_way(settings)
    if chosen == "storage":
        return f"by storage `{settings.storage}`"
    if chosen == "object" and settings.bucket:
        return f"by bucket `{settings.bucket.bucket}`, if the job ends within a week of its submission"
    return f"by WebHDFS at {settings.webhdfs.url}" if chosen and settings.webhdfs else ""


def sends_outputs(job: Job, settings: OpenPaiSettings) -> bool:
    """Say whether the tasks of a job send their outputs: not where they write into a storage."""
    return bool(job.extras.get("outputs")) and outputs_way(settings) in ("object", "webhdfs")


def kept_folder(name: str, settings: OpenPaiSettings) -> str | None:
    """Return the folder of a job in the profile's storage as its tasks have it, None without a storage."""
    shared = settings.shared
    return f"{shared.mount_path}/{settings.folder}/jobs/{name}" if shared else None


def kept_here(name: str, settings: OpenPaiSettings) -> Path | None:
    """Return the folder of :func:`kept_folder` as this host has it."""
    shared = settings.shared
    return shared.folder / settings.folder / "jobs" / name if shared and shared.folder else None


def there(settings: OpenPaiSettings) -> list[str]:
    """Return the ways that there are, in the profile's order."""
    found = {
        "document": True,
        "storage": settings.shared is not None,
        "object": settings.bucket is not None,
        "webhdfs": settings.webhdfs is not None,
        "git": settings.git is not None,
    }
    return [way for way in settings.ways if found[way]]


def _too_big(size: int, settings: OpenPaiSettings, problems: Sequence[Problem]) -> PaiJupyterError:
    why = "".join(f" {each.message}" for each in dict.fromkeys(problems))
    return PaiJupyterError(
        "package-too-big",
        f"Package of {format_memory(max(size / 2**20, 0.1))} does not fit into a job document, and profile "
        f"`{settings.name}` has no other way for it.{why}",
        "Leave large files out (.paiignore) and read them as data; or set up in the profile `storage` (with "
        "`storages`), `packageObject`, `packageWebHdfs` or `packageGit`.",
        413,
    )


def _too_long(size: int) -> PaiJupyterError:
    return PaiJupyterError(
        "too-large",
        f"Job document would have {size} bytes; OpenPAI takes at most {emit.LARGEST}.",
        "Make its commands shorter: code and data belong into the trainer package.",
        413,
    )


def _carried(
    job: Job,
    name: str,
    settings: OpenPaiSettings,
    legs: Sequence[Leg],
    facts: Mapping[int, archive.Archive],
    urls: Mapping[int, str],
) -> Carried:
    told = [_told(leg, settings, facts.get(leg.number)) for leg in legs]
    spec = payload.spec_of(job, settings, told, kept_folder(name, settings))
    inside = [(leg.number, leg.package) for leg in legs if leg.way == "document"]
    beside = [(leg.number, leg.package, leg.match.beside) for leg in legs if leg.match]
    # What only sending can tell; `load` has kept room for it.
    shown = {leg.number: "" for leg in legs if leg.way in ("object", "webhdfs", "git")}
    shared = settings.shared
    more = [{"name": shared.name, "path": shared.mount_path}] if shared else []
    outputs = "" if sends_outputs(job, settings) else None
    spec["outputsTo"] = None if outputs is None else head.OUTPUTS_FILE
    return Carried(payload.pack(job, spec, inside, beside), {**shown, **urls}, more, outputs)


def _told(leg: Leg, settings: OpenPaiSettings, facts: archive.Archive | None) -> dict[str, Any]:
    sha256, number = leg.package.sha256, leg.number
    if leg.way == "document":
        return {"sha256": sha256, "way": "folder", "folder": f"parcels/{number}"}
    if leg.way == "storage" and settings.shared is not None:
        place = f"{settings.shared.mount_path}/{settings.folder}/packages/{sha256}"
        return {"sha256": sha256, "way": "folder", "folder": place}
    if leg.match is not None:
        return {
            "sha256": sha256,
            "way": "git",
            "urlFile": head.url_file(number),
            "commit": leg.match.commit,
            "ref": leg.match.ref,
            "subfolder": settings.git.folder if settings.git else "",
            "leftOut": list(leg.match.left_out),
            "folder": f"beside/{number}",
            "beside": payload.beside_told(leg.package, leg.match.beside),
        }
    known = facts or archive.Archive("0" * 64, leg.size)
    return {
        "sha256": sha256,
        "way": "url",
        "urlFile": head.url_file(number),
        "archive": {"sha256": known.sha256, "bytes": known.size},
    }


def _to_storage(package: Package, settings: OpenPaiSettings) -> None:
    from paijupyter.backends.delivery import folder

    shared = settings.shared
    if shared is None or shared.folder is None or not shared.folder.is_dir():
        raise _not_sent(settings, "it is no folder on this host")
    try:
        folder.put(package, shared.folder / settings.folder / "packages")
    except OSError as error:
        raise _not_sent(settings, error.strerror or str(error)) from error


def _not_sent(settings: OpenPaiSettings, why: str) -> PaiJupyterError:
    where = settings.shared.folder if settings.shared else "?"
    return PaiJupyterError(
        "package-not-sent",
        f"Package cannot be copied to `{where}`, where storage `{settings.storage}` should be: {why}.",
        "Mount the storage there, correct `storages` of the profile, or take `storage` out of `packageWays`.",
        507,
    )
