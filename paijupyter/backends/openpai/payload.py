"""What travels inside a job document: the boot program, what the tasks are told, small packages.

A gzip'd tar of ``boot/`` (sources of the boot program, without comments), ``spec.json``, ``parcels/<n>/``,
``beside/<n>/`` (what no commit has) and ``commands/<role>.sh`` (for images without Python). The same job
gives the same bytes.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from paijupyter.backends.base import Job, Package
from paijupyter.backends.data_told import data_told
from paijupyter.backends.delivery.archive import contents, manifest_of, members
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.backends.told import common
from paijupyter.data.storages import used_by

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

RUN = "/tmp/paijupyter"  # noqa: S108 - in a container of its own, which has no other user
"""Folder of a task for all that is ours."""
_BOOT = "boot/paiboot/"
_LIBRARY = "boot/library.json"
_READING = threading.Lock()
# Modules that only some jobs need; all others always travel.
_OF_PODS = frozenset(
    (
        "alone",
        "board",
        "gate",
        "gpus",
        "host",
        "host_names",
        "keeper",
        "loop",
        "member",
        "outgoing",
        "pod",
        "record",
        "wire",
    )
)
_OF_DATA = frozenset(("cache", "data", "fetch", "git_source", "http_source"))
_OF_ADDRESSES = frozenset(("cache", "fetch", "http_source"))
_OF_COMMITS = _OF_ADDRESSES | {"git_source"}
_OF_REQUIREMENTS = frozenset(("missing", "requirements"))


def spec_of(
    job: Job, settings: OpenPaiSettings, parcels: Sequence[Mapping[str, Any]], kept: str | None
) -> dict[str, Any]:
    """Return ``spec.json`` of a job (see ``paijupyter.runtime.openpai``). Nothing in it is secret.

    Args:
        job: the job.
        settings: of the profile.
        parcels: the packages, as the delivery says where the tasks find them.
        kept: folder of the job in a storage, as the tasks have it, or None.
    """
    storages = storages_told(job, settings)
    return {
        **common(job, 0, settings.told()),
        "commands": dict(job.commands),
        "secretNames": [str(name) for name in job.document.get("secrets") or {}],
        "parcels": [dict(parcel) for parcel in parcels],
        "package": 0 if job.package else None,
        "requirements": {
            "file": job.extras.get("requirements"),
            "policy": job.extras.get("install") or settings.install,
            "environments": "environments",
            "index": settings.index_url or None,
        },
        "python": settings.python or None,
        "data": data_told(job, parcels, storages, "task/work", "data"),
        "storages": storages,
        "kept": kept,
        "memoryLimit": "none",  # the kubelet's affair
    }


def storages_told(job: Job, settings: OpenPaiSettings) -> list[dict[str, str]]:
    """Return name and path in the task of each storage of a job."""
    return [{"name": name, "path": path} for name, path in used_by(job.document, settings.storages) if name]


def pack(
    job: Job,
    spec: Mapping[str, Any],
    inside: Sequence[tuple[int, Package]],
    beside: Sequence[tuple[int, Package, Sequence[str]]] = (),
) -> bytes:
    """Return what travels in the document. Blocking.

    Args:
        job: the job.
        spec: from :func:`spec_of`.
        inside: the packages that travel in it, with their numbers.
        beside: those of which only the files of some paths do.
    """
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name, content in _members(job, spec, inside, beside):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o600
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def beside_told(package: Package, paths: Sequence[str]) -> list[dict[str, str]]:
    """Return what tasks are told of files that travel beside a commit (``runtime.git_parcel``)."""
    modes = {entry.path: entry.mode for entry in manifest_of(package).entries}
    return [{"path": path, "mode": modes[path], "file": str(number)} for number, path in enumerate(paths)]


def _members(
    job: Job,
    spec: Mapping[str, Any],
    inside: Sequence[tuple[int, Package]],
    beside: Sequence[tuple[int, Package, Sequence[str]]],
) -> Iterator[tuple[str, bytes]]:
    yield "spec.json", json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode()
    wanted = _with_imports(_left_out(job, spec))
    for name, source in boot_sources().items():
        if _module(name) in wanted:
            yield name, source
    for number, package in inside:
        for name, path in members(package):
            yield f"parcels/{number}/{name}", path.read_bytes()
    for number, package, paths in beside:
        files = {path: str(place) for place, path in enumerate(paths)}
        for entry, pieces in contents(package):
            if entry.path in files:
                yield f"beside/{number}/{files[entry.path]}", b"".join(pieces)
    if works_without_python(job):
        for role, command in job.commands.items():
            yield f"commands/{role}.sh", command.encode("utf-8", "surrogateescape")


def works_without_python(job: Job) -> bool:
    """Say whether a shell alone can run the job's commands as they are meant."""
    extras = job.extras
    of_roles = [each or {} for each in (extras.get("roles") or {}).values()]
    wanted = ("data", "outputs", "notebook", "timeLimit", "env")
    return not (
        job.package
        or job.data
        or any(extras.get(key) for key in wanted)
        or any(each.get("launcher", "plain") != "plain" or each.get("env") for each in of_roles)
        or any("<%" in command for command in job.commands.values())
    )


def _left_out(job: Job, spec: Mapping[str, Any]) -> frozenset[str]:
    found = set(_OF_PODS)
    ways = {parcel.get("way") for parcel in spec["parcels"]}
    if not job.data:
        # An address is fetched as data of kind `http` are, a commit as those of kind `git`.
        needed = (_OF_ADDRESSES if "url" in ways else frozenset()) | (
            _OF_COMMITS if "git" in ways else frozenset()
        )
        found |= _OF_DATA - needed
    if "git" not in ways:
        found.add("git_parcel")
    if not spec.get("outputsTo"):
        found.add("returned")
    if not spec["runsNotebook"]:
        found.add("notebook")
        if not job.package:
            found |= _OF_REQUIREMENTS
    return frozenset(found)


@lru_cache(maxsize=16)
def _with_imports(left_out: frozenset[str]) -> frozenset[str]:
    """Return the modules that travel: all but those left out, and what they need to be loaded."""
    imports = _boot().imports
    found = set(imports) - left_out
    while more := set().union(*(imports.get(name, set()) for name in found)) - found:
        found |= more
    return frozenset(found)


def _imported(source: bytes) -> set[str]:
    """Return the modules beside it that a module imports when it is loaded."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module.split(".")[0]} if node.module else {each.name for each in node.names}
    return found


def _module(name: str) -> str:
    """Return the module, or the package below ours, that a file of the boot program belongs to."""
    return name.removeprefix(_BOOT).removesuffix(".py").split("/")[0]


class _Boot(NamedTuple):
    """Sources of the boot program by their names in the archive; by module, what it imports when loaded."""

    sources: Mapping[str, bytes]
    imports: Mapping[str, set[str]]


def boot_sources() -> Mapping[str, bytes]:
    """Return the sources of the boot program by their names in the archive, without comments."""
    return _boot().sources


def _boot() -> _Boot:
    # Once, and by one thread: CPython 3.11 counts the depths of all threads that parse as one, and raises.
    with _READING:
        return _read_boot()


@lru_cache(maxsize=1)
def _read_boot() -> _Boot:
    runtime = dict(sorted(_sources(files("paijupyter") / "runtime", _BOOT)))
    runtime["boot/__main__.py"] = runtime.pop("boot/paiboot/__main__.py")
    library = dict(sorted(_sources(files("paijupyter") / "tasks", "pai_tasks/")))
    texts = {name: source.decode() for name, source in library.items()}
    sources = {**runtime, _LIBRARY: json.dumps(texts).encode("ascii")}
    imports: dict[str, set[str]] = {}
    for name, source in sources.items():
        imports.setdefault(_module(name), set())
        if name.startswith(_BOOT) and name.count("/") == 2:
            imports[_module(name)] |= _imported(source)
    return _Boot(sources, imports)


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield prefix + entry.name, _small(entry.read_text("utf-8")).encode()


def _small(source: str) -> str:
    """Return a module without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and _is_text(node.body[:1]):
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return ast.unparse(tree)


def _is_text(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Constant)
        and isinstance(each.value.value, str)
        for each in body
    )
