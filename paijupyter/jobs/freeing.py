"""Room on the disk: packages of no job, and data not used for long, go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from paijupyter.data.cache import DataCache
from paijupyter.jobs.catalog import Catalog
from paijupyter.package import LocalStore

_log = logging.getLogger(__name__)


async def free_room(
    catalog: Catalog, packages: LocalStore, cache: DataCache, needed: Collection[str]
) -> None:
    """Remove packages of no job; recent ones stay, a submission may be about to name them.

    Args:
        catalog: the jobs, whose packages stay.
        packages: the packages.
        cache: the data that was fetched.
        needed: packages that stay although no job has them yet.
    """
    if catalog.broken:
        return  # a job that cannot be read may need any of them
    try:
        freed = await asyncio.to_thread(packages.sweep, catalog.index.packages() | set(needed))
        freed += await asyncio.to_thread(cache.sweep)
    except OSError:
        _log.exception("old packages could not be removed")
    else:
        _log.info("packages of no job and data not used for long: %d bytes freed", freed)
