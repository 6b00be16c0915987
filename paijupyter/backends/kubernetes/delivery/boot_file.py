"""The boot file as pods get it: compressed, as a ConfigMap holds 1 MiB and every node of a job fetches it."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=2)
def packed(archive: Path) -> bytes:
    """Return the zipapp with its members compressed. Blocking.

    Args:
        archive: the zipapp; its folder is named by its content, so what was read once stays true.
    """
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(archive) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target,
    ):
        for entry in source.infolist():
            copy = zipfile.ZipInfo(entry.filename, entry.date_time)
            copy.external_attr = entry.external_attr
            copy.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(copy, source.read(entry))
    return buffer.getvalue()
