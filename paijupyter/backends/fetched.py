"""Data that the engine has fetched for a job: it travels to the pods like a package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paijupyter.backends.base import Data, Job, Package
from paijupyter.data.cache import DataCache
from paijupyter.data.files import take
from paijupyter.errors import PaiJupyterError
from paijupyter.package import LocalStore
from paijupyter.protocol.data import DataSource


def packed(job: Job, folder: Path) -> Job:
    """Return the job with what was fetched for it as packages. Blocking.

    Args:
        job: the job.
        folder: the data folder of this host, with the cache and the store of packages.

    Raises:
        PaiJupyterError: ``data-gone`` if it is no longer in the cache, or what packing says against it.
    """
    data = [_packed(each, folder) if each.key and not each.package else each for each in job.data]
    return replace(job, data=tuple(data))


def _packed(data: Data, folder: Path) -> Data:
    source = data.source
    content = DataCache(folder).folder / data.key / "content" / source.base
    if not content.exists():
        raise PaiJupyterError(
            "data-gone",
            f"Data `{source.name}` is no longer in the cache of this machine.",
            "Submit the job again: then it is fetched anew.",
            409,
        )
    store = LocalStore(folder)
    sha256 = take(DataSource(source.name, "file", str(content)), folder, store).sha256
    return replace(data, package=Package(sha256, store.folder(sha256), store.blobs))
