"""The index: one SQLite file over all job folders, for lists and look-ups. It can be made anew at any time.

A row holds what lists filter by and the JobView as JSON (see :mod:`paijupyter.jobs.view`), so that a
list of thousands of jobs opens no folder. Calls are short and synchronous, from the engine's one loop.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from paijupyter.backends.base import FINAL
from paijupyter.errors import UsageProblem
from paijupyter.jobs.host import Host, on_local_file_system
from paijupyter.jobs.identity import is_id

_log = logging.getLogger(__name__)
T = TypeVar("T")
APPLICATION_ID = 0x7061696A  # "paij": a file of another program is not taken for ours

# One script per version; a database at version n gets scripts n, n+1, … Never edit one that was released.
MIGRATIONS = (
    """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        short_name TEXT NOT NULL,
        profile TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        final INTEGER NOT NULL,
        host TEXT NOT NULL,
        submitted_at TEXT NOT NULL,
        folder TEXT,
        kernel TEXT,
        cell TEXT,
        request_id TEXT,
        package TEXT,
        events_size INTEGER NOT NULL,
        view TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX by_time ON jobs (submitted_at DESC, id DESC);
    CREATE INDEX by_name ON jobs (name);
    CREATE INDEX by_short_name ON jobs (short_name, submitted_at);
    CREATE INDEX by_folder ON jobs (folder, submitted_at);
    CREATE INDEX by_kernel ON jobs (kernel, submitted_at);
    CREATE INDEX by_cell ON jobs (cell) WHERE final = 0;
    CREATE INDEX by_request ON jobs (request_id) WHERE request_id IS NOT NULL;
    CREATE INDEX unfinished ON jobs (profile, submitted_at) WHERE final = 0;
    """,
    # Ids are in the order of submission; times are not, once the clock was set back.
    """
    DROP INDEX by_time;
    DROP INDEX by_short_name;
    DROP INDEX by_folder;
    DROP INDEX by_kernel;
    DROP INDEX unfinished;
    CREATE INDEX by_short_name ON jobs (short_name, id);
    CREATE INDEX by_folder ON jobs (folder, id);
    CREATE INDEX by_kernel ON jobs (kernel, id);
    CREATE INDEX unfinished ON jobs (profile, id) WHERE final = 0;
    """,
    # Experiments know their group ("group" is a word of SQL).
    """
    ALTER TABLE jobs ADD COLUMN sweep TEXT;
    CREATE INDEX by_sweep ON jobs (sweep, id) WHERE sweep IS NOT NULL;
    """,
)
_COLUMNS = (
    "id", "name", "short_name", "profile", "state", "reason", "final", "host", "submitted_at", "folder",
    "kernel", "cell", "request_id", "package", "events_size", "view", "sweep",
)  # fmt: skip
_UPSERT = (
    f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS[1:])}"
)
_SCOPES = {"kernel": "kernel = ?", "folder": "folder = ?", "all": "1 = 1"}


@dataclass(frozen=True, slots=True)
class Row:
    """One job in the index."""

    id: str
    name: str
    short_name: str
    profile: str
    state: str
    reason: str
    host: str
    submitted_at: str
    folder: str | None
    kernel: str | None
    cell: str | None
    request_id: str | None
    package: str | None
    events_size: int
    view: Mapping[str, Any]
    sweep: str | None = None

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINAL


class Index:
    """The index file of this host; opened, migrated or made anew at once.

    Args:
        data: the data folder.
        host: this machine.
        refill: gives all rows, for a file that is found damaged while it is in use.
    """

    def __init__(self, data: Path, host: Host, refill: Callable[[], Iterable[Row]] = tuple) -> None:
        self._refill = refill
        self._local = on_local_file_system(data)
        # On a shared file system each host has its own: SQLite's locks cannot be trusted there.
        self.path = data / ("index.sqlite" if self._local else f"index-{_file_name(host.name)}.sqlite")
        self.fresh = False
        self._db = self._open()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, rows: Iterable[Row]) -> None:
        """Add or replace rows, all of them in one transaction."""
        values = [_values(row) for row in rows]
        self._sound(lambda: self._write(_UPSERT, values))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows."""
        values = [(each,) for each in ids]
        self._sound(lambda: self._write("DELETE FROM jobs WHERE id = ?", values))

    def get(self, job: str) -> Row | None:
        """Return the row of an id."""
        return self._one("id = ?", job)

    def find(self, ref: str) -> Row | None:
        """Return the job of an id, a full name, or the latest of a short name."""
        return self.get(ref) or self._one("name = ?", ref) or self._one("short_name = ?", ref)

    def latest(self, scope: str, value: str = "") -> Row | None:
        """Return the latest job of a ``kernel`` or ``folder``, or of ``all``."""
        return self._one(_SCOPES[scope], *(() if scope == "all" else (value,)))

    def latest_succeeded(self, short_name: str, profile: str) -> Row | None:
        """Return the latest job of a short name that succeeded on a profile."""
        return self._one("short_name = ? AND profile = ? AND state = 'succeeded'", short_name, profile)

    def by_request(self, request_id: str) -> Row | None:
        """Return the job that a request made."""
        return self._one("request_id = ?", request_id)

    def unfinished_of_cell(self, cell: str) -> list[Row]:
        """Return the unfinished jobs of a cell, latest first."""
        return self._rows("final = 0 AND cell = ? ORDER BY id DESC", cell)

    def unfinished_named(self, short_name: str, folder: str | None) -> list[Row]:
        """Return the unfinished jobs of a short name in a folder, latest first."""
        where = "final = 0 AND short_name = ? AND folder IS ? ORDER BY id DESC"
        return self._rows(where, short_name, folder)

    def of_group(self, group: str) -> list[Row]:
        """Return all jobs of a group, oldest first."""
        return self._rows("sweep = ? ORDER BY id", group)

    def unfinished(self) -> list[Row]:
        """Return all unfinished jobs, oldest first."""
        return self._rows("final = 0 ORDER BY id")

    def sizes(self) -> dict[str, int | None]:
        """Return of every unfinished job the length of the events it was made from; of a final one None."""
        rows = self._read("SELECT id, events_size, final FROM jobs")
        return {job: None if final else size for job, size, final in rows}

    def packages(self) -> set[str]:
        """Return the hashes of all packages that jobs were made with, those of their data included."""
        rows = self._read("SELECT DISTINCT package FROM jobs WHERE package IS NOT NULL")
        found = {package for (package,) in rows}
        for (view,) in self._db.execute("SELECT view FROM jobs WHERE view LIKE '%\"data\":[{%'"):
            data = json.loads(view).get("data") or ()
            found |= {each["package"] for each in data if each.get("package")}
        return found

    def page(
        self,
        states: Iterable[str],
        profile: str | None,
        folder: str | None,
        limit: int,
        cursor: str | None,
        group: str | None = None,
    ) -> tuple[list[Row], str | None]:
        """Return up to ``limit`` jobs, latest first, and the cursor of the next page or None.

        ``group`` is the id of a group whose jobs are meant; "" means those of no group.

        A job that is added meanwhile moves none from one page to another.
        """
        where, values = ["1 = 1"], list[Any]()
        wanted = list(states)
        if wanted:
            where.append(f"state IN ({', '.join('?' * len(wanted))})")
            values += wanted
        for column, value in (("profile", profile), ("folder", folder)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        if group is not None:
            where.append("sweep = ?" if group else "sweep IS NULL")
            values += [group] if group else []
        if cursor is not None:
            where.append("id < ?")
            values.append(_read_cursor(cursor))
        order = "ORDER BY id DESC LIMIT ?"
        rows = self._rows(f"{' AND '.join(where)} {order}", *values, limit + 1)
        more = len(rows) > limit
        return rows[:limit], _cursor(rows[limit - 1]) if more else None

    def _one(self, where: str, *values: Any) -> Row | None:
        rows = self._rows(f"{where} ORDER BY id DESC LIMIT 1", *values)
        return rows[0] if rows else None

    def _rows(self, where: str, *values: Any) -> list[Row]:
        # `where` is always text of this module; values travel apart from it.
        query = f"SELECT {', '.join(_COLUMNS)} FROM jobs WHERE {where}"  # noqa: S608
        return [_row(found) for found in self._read(query, values)]

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._sound(lambda: self._db.execute(query, values).fetchall())

    def _write(self, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        with self._db:
            self._db.executemany(statement, values)

    def _sound(self, action: Callable[[], T]) -> T:
        """Do something with the file; one that turns out to be damaged is made anew first."""
        try:
            return action()
        except sqlite3.OperationalError:
            raise  # full, locked or not readable: it is no better as a new file
        except sqlite3.DatabaseError as error:
            damage = error
        self._db.close()
        self._db = self._anew(damage)
        self._write(_UPSERT, [_values(row) for row in self._refill()])
        return action()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except (sqlite3.DatabaseError, _Foreign) as error:
            return self._anew(error)

    def _anew(self, error: Exception) -> sqlite3.Connection:
        _log.warning("index %s is made anew: %s", self.path, error)
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=5)
        try:
            self.path.chmod(0o600)
            database.execute(f"PRAGMA journal_mode = {'WAL' if self._local else 'DELETE'}").fetchone()
            database.execute("PRAGMA synchronous = NORMAL")
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("it is damaged")
            self._migrate(database)
            database.execute(f"SELECT {', '.join(_COLUMNS)} FROM jobs LIMIT 0")  # noqa: S608
        except BaseException:
            database.close()
            raise
        return database

    def _migrate(self, database: sqlite3.Connection) -> None:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        application = database.execute("PRAGMA application_id").fetchone()[0]
        empty = not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if not empty and application != APPLICATION_ID:
            raise _Foreign("it is of another program")
        if version > len(MIGRATIONS):
            raise _Foreign(f"it is of version {version}, known is {len(MIGRATIONS)}")
        self.fresh = empty
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            stamp = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
            database.executescript(f"BEGIN; {script} {stamp} COMMIT;")


class _Foreign(Exception):
    """The file is not an index that this version may use."""


def _values(row: Row) -> tuple[Any, ...]:
    return (
        row.id, row.name, row.short_name, row.profile, row.state, row.reason, int(row.final), row.host,
        row.submitted_at, row.folder, row.kernel, row.cell, row.request_id, row.package, row.events_size,
        json.dumps(row.view, separators=(",", ":")), row.sweep,
    )  # fmt: skip


def _row(found: tuple[Any, ...]) -> Row:
    values = dict(zip(_COLUMNS, found, strict=True))
    del values["final"]
    return Row(**{**values, "view": json.loads(values["view"])})


def _cursor(row: Row) -> str:
    return base64.urlsafe_b64encode(row.id.encode()).decode()


def _read_cursor(text: str) -> str:
    try:
        job = base64.urlsafe_b64decode(text.encode()).decode()
    except ValueError as error:
        raise UsageProblem("Cursor is not one of this list.", "Start without a cursor.") from error
    if not is_id(job):
        raise UsageProblem("Cursor is not one of this list.", "Start without a cursor.")
    return job


def _file_name(host: str) -> str:
    return "".join(each if each.isalnum() or each in "-_." else "_" for each in host) or "host"
