"""The verb ``data``: files in the storages of a profile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import tables, words
from paijupyter.client.sources import Origin
from paijupyter.client.storages import split
from paijupyter.client.verbs import Reply
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

Progress = Callable[[int, int], None]


def data(client: JobsClient, options: Namespace, origin: Origin, progress: Progress | None) -> Reply:
    """Carry out ``data ls|put|rm``.

    Raises:
        PaiJupyterError: the storage or path does not exist, or the storage refuses.
    """
    action = options.action or "ls"
    if options.recursive and action != "rm":
        raise UsageProblem("Option `--recursive` goes with data rm.", "Folders are put as they are.")
    if options.second and action != "put":
        raise UsageProblem(
            f"Argument `{options.second}` is one too many.", f"Write: data {action} STORAGE:path."
        )
    if action == "put":
        return _put(client, options, origin, progress)
    if action == "rm":
        return _remove(client, options)
    return _list(client, options)


def _list(client: JobsClient, options: Namespace) -> Reply:
    storages = client.storages(options.profile)
    if not options.first:
        found = storages.all()
        rows = [_storage(each) for each in found["storages"]]
        if not rows:
            return Reply(f"Profile `{found['profile']}` has no storages.", found["storages"])
        return _table(("storage", "access", "in tasks", "here"), rows, found["storages"])
    storage, path = split(options.first)
    entries = storages.entries(storage, path)
    if not entries:
        return Reply(f"`{options.first}` is empty.", [])
    return _table(("name", "size", "changed"), [_entry(each) for each in entries], entries)


def _storage(found: dict[str, Any]) -> tuple[str, ...]:
    access = "read-only" if found["readOnly"] else "read and write"
    name = f"{found['name']} (default)" if found["default"] else found["name"]
    return name, access, str(found["mount"]), str(found["path"] or "") if found["usable"] else "not there"


def _entry(found: dict[str, Any]) -> tuple[str, ...]:
    if found["folder"]:
        return f"{found['name']}/", "", ""
    changed = datetime.fromtimestamp(found["modified"], timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return found["name"], words.size(found["size"]), changed


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]], data: Any) -> Reply:
    return Reply(tables.plain(columns, rows), data, tables.html(columns, rows))


def _put(client: JobsClient, options: Namespace, origin: Origin, progress: Progress | None) -> Reply:
    if not options.first or not options.second:
        raise UsageProblem("Argument is missing.", "Write: data put FILE STORAGE:path.")
    source = origin.folder / Path(options.first).expanduser()
    storage, path = split(options.second)
    count = client.storages(options.profile).put(source, storage, path, progress)
    text = f"{words.count(count, 'file')} of `{options.first}` in `{options.second}`."
    return Reply(text, {"storage": storage, "path": path, "files": count})


def _remove(client: JobsClient, options: Namespace) -> Reply:
    if not options.first:
        raise UsageProblem("Argument is missing.", "Write: data rm STORAGE:path.")
    storage, path = split(options.first)
    if not path.strip("/"):
        raise UsageProblem(
            f"Storage `{storage}` itself cannot be removed.", "Name something in it: STORAGE:path."
        )
    client.storages(options.profile).remove(storage, path.strip("/"), recursive=options.recursive)
    return Reply(f"`{options.first}` is gone.", {"storage": storage, "path": path})
