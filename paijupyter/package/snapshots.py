"""Take a trainer package: select the files, hash what changed since the last look, store what is missing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from paijupyter import paths
from paijupyter.errors import PaiJupyterError, Problem, UsageProblem, has_errors
from paijupyter.package.deliver import Delivery
from paijupyter.package.excluded import Excluded
from paijupyter.package.identify import Contents, Identification, Moved
from paijupyter.package.limits import Limits
from paijupyter.package.manifest import Manifest, check_path
from paijupyter.package.parallel import WORKERS
from paijupyter.package.problems import changing, folded
from paijupyter.package.progress import Meter, Progress
from paijupyter.package.selection import Selection, select
from paijupyter.package.staging import Staging
from paijupyter.package.stat_cache import StatCache, all_settled, fingerprint
from paijupyter.package.store import Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A trainer package that was taken, or the reasons why it could not be.

    Attributes:
        sha256: its name, or "" if ``problems`` has an error; then nothing was stored.
        manifest: what it holds.
        excluded: what was left out and why, the largest first.
        problems: errors, and warnings about what travels.
    """

    sha256: str
    manifest: Manifest
    excluded: list[Excluded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def files(self) -> int:
        """How many files it holds."""
        return self.manifest.files

    @property
    def bytes(self) -> int:
        """Bytes of all its files."""
        return self.manifest.size


def snapshot(
    root: Path,
    store: Store,
    *,
    progress: Progress | None = None,
    extra_files: Mapping[str, bytes] | None = None,
    limits: Limits | None = None,
) -> Snapshot:
    """Take the trainer package of a folder and store it.

    The same contents give the same hash on every host, whoever owns the files and whatever their times are.
    Empty folders do not travel.

    Args:
        root: the folder.
        store: where the package is put; only what it lacks is sent.
        progress: called with the bytes done and the bytes to do, the last time with both equal.
        extra_files: generated files by package path; they are always in it, in place of a file of that name.
        limits: what a package may hold; the usual limits by default.

    Raises:
        PaiJupyterError: ``package-folder`` if the root cannot be read, ``package-store`` if the disk of the
            store is full or may not be written, and what the store raises.
        UsageProblem: if a path of ``extra_files`` cannot be one, or is a folder on disk.
    """
    extra = dict(extra_files or {})
    meter = Meter(progress)
    moved = ""
    for _ in range(2):  # a folder that changes under our hands is looked at once more
        selected_at_ns = time.time_ns()
        selection = select(root, limits=limits, never=_ours())
        if has_errors(selection.problems):
            return Snapshot("", Manifest(()), selection.excluded, selection.problems)
        _check_extra(extra, selection)
        try:
            taken = _take(selection, extra, store, selected_at_ns, meter)
        except Moved as error:
            moved = error.path
        except OSError as error:  # those of the user's files became problems where they were read
            raise _cannot_store(error) from error
        else:
            meter.finish()
            return taken
    return Snapshot("", Manifest(()), selection.excluded, [*selection.problems, changing(moved)])


def _take(
    selection: Selection, extra: Mapping[str, bytes], store: Store, selected_at_ns: int, meter: Meter
) -> Snapshot:
    contents = Contents.of(selection, extra)
    cache = StatCache(paths.data_dir() / "stat-cache", selection.real_root)
    look = fingerprint(selection.files, extra)
    manifest = cache.recall(look)
    with Staging(store, meter) as staging, _threads() as pool:
        if manifest is None:
            known = cache.load()
            manifest = Identification(contents, selected_at_ns, pool, staging, meter).run(known)
            if contents.fresh or len(known) > manifest.files:
                still = {e.path: known[e.path] for e in manifest.entries if e.path in known}
                cache.save(still | contents.fresh)
            if not contents.problems and all_settled(selection.files, selected_at_ns):
                cache.remember(look, manifest)
        problems = folded([*selection.problems, *contents.problems])
        if has_errors(problems):
            return Snapshot("", Manifest(()), selection.excluded, problems)
        Delivery(contents, manifest, pool, staging, meter).run(store)
    return Snapshot(manifest.sha256, manifest, selection.excluded, problems)


def _ours() -> frozenset[Path]:
    """The folders of our own records and secrets, should they lie in the user's folder."""
    return frozenset({paths.data_dir(), paths.runtime_dir().parent})


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, "paijupyter-package")


def _check_extra(extra: Mapping[str, bytes], selection: Selection) -> None:
    selected = {file.path for file in selection.files} if extra else set()
    for path in extra:
        why = check_path(path)
        parents = {path[:end] for end, char in enumerate(path) if char == "/"}
        if not why and not parents.isdisjoint(selected | extra.keys()):
            why = "lies in a folder that is a file here"
        if not why and any(other.startswith(path + "/") for other in selected):
            why = "is a folder here"
        if why:
            raise UsageProblem(f"Generated file `{path}` {why}.", "Choose another name for it.")


def _cannot_store(error: OSError) -> PaiJupyterError:
    place = error.filename or paths.data_dir()
    return PaiJupyterError(
        "package-store",
        f"Package cannot be stored in `{place}`: {error.strerror}.",
        "Free some space there, or set PAIJUPYTER_DATA_DIR to another folder.",
        507,
    )
