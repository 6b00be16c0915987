"""How outputs of tasks come home: by the storage that both sides have, else by a bucket or WebHDFS.

Into a bucket or a Hadoop file system each task puts one archive when its command has ended, by an address
that its document has among the secrets; the engine fetches it before it says that the job has ended.
"""

from __future__ import annotations

import json
import logging
import shutil
import tarfile
import tempfile
import urllib.error
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from paijupyter.backends.base import Job
from paijupyter.backends.delivery import objects, returned
from paijupyter.backends.delivery.signing import SIGNATURE
from paijupyter.backends.openpai import ladder, webhdfs
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.backends.told import tasks_of
from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)
_ENDING = ".tar.gz"


def told(job: Job, name: str, settings: OpenPaiSettings) -> str:
    """Return what tasks are told of where they send their outputs (``runtime.returned``). Secret. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` without credentials for the bucket.
    """
    if settings.webhdfs is not None and ladder.outputs_way(settings) == "webhdfs":
        before, after = webhdfs.writing(settings.webhdfs, _folder(name))
        return json.dumps({"way": "webhdfs", "before": before, "after": _ENDING + after})
    if settings.bucket is None:
        return ""
    found: dict[str, Any] = {"way": "object", "signatures": {}}
    for task in tasks_of(job):
        url = objects.writing(settings.bucket, _folder(name) + task.key + _ENDING)
        address, _, found["signatures"][task.key] = url.partition(SIGNATURE)
        before, _, after = address.partition(f"{task.key}{_ENDING}")
        found.update(before=before, after=_ENDING + after + SIGNATURE)
    return json.dumps(found)


def bring(job: Job, name: str, settings: OpenPaiSettings) -> str:
    """Bring the outputs of a job that has ended home; return a sentence on what could not be. Blocking."""
    if ladder.outputs_way(settings) == "storage":
        return _from_storage(job, name, settings)
    if not ladder.sends_outputs(job, settings):
        return ""
    failed = ""
    for task in tasks_of(job):
        try:
            with tempfile.TemporaryFile(dir=job.folder) as archive:  # /tmp may be small
                if _fetch(settings, _folder(name) + task.key + _ENDING, archive):
                    returned.receive(archive, job.folder / "output" / task.key)
        except (OSError, HTTPException, EOFError, tarfile.TarError, PaiJupyterError) as error:
            _log.warning("outputs of job %s, task %s: %s", job.id, task.key, error)
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            words = ladder.outputs_in_words(settings).partition(",")[0]
            failed = f"Outputs of {task.key} could not be brought {words}: {why}."
    return failed


def _folder(name: str) -> str:
    return f"jobs/{name}/"


def _fetch(settings: OpenPaiSettings, name: str, archive: IO[bytes]) -> bool:
    """Fetch an archive; say whether there is one."""
    try:
        with _opened(settings, name) as answer:
            shutil.copyfileobj(answer, archive, 1 << 20)
            if archive.tell() < int(answer.headers.get("content-length") or 0):
                raise OSError("the connection ended early")
    except FileNotFoundError:
        return False
    except urllib.error.HTTPError as error:
        with error:
            # Without the right to list a bucket, what is not there is forbidden.
            if error.code not in (403, 404):
                raise
            return False
    return True


def _opened(settings: OpenPaiSettings, name: str) -> Any:
    if settings.webhdfs is not None and ladder.outputs_way(settings) == "webhdfs":
        return webhdfs.reading(settings.webhdfs, name)
    if settings.bucket is None:
        raise FileNotFoundError(name)
    return objects.reading(settings.bucket, name)


def _from_storage(job: Job, name: str, settings: OpenPaiSettings) -> str:
    source = ladder.kept_here(name, settings)
    if source is None:
        return ""
    try:
        _copy(source / "output", job.folder / "output")
    except OSError as error:
        _log.warning("outputs of job %s: %s", job.id, error)
        return f"Its outputs stay in {source}: {error.strerror or error}."
    return ""


def _copy(source: Path, target: Path) -> None:
    for file in sorted(source.rglob("*")):
        if file.is_file() and not file.is_symlink():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{place.name}.part")
            shutil.copyfile(file, draft)
            draft.replace(place)
