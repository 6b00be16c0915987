"""Taking over jobs that another host submitted: their place remembers what they are."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paijupyter.backends.base import Remembering
from paijupyter.errors import Conflict
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.identity import id_for, is_id
from paijupyter.jobs.life import Life
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.record import SCHEMA, Beginning, Record
from paijupyter.jobs.watchers import Backends, Watchers


class Adoption:
    """Makes records of jobs that this host has none of.

    Args:
        catalog: where they go.
        profiles: the profiles of this host.
        backends: who remembers jobs.
        watchers: who hears of them from then on.
    """

    def __init__(
        self, catalog: Catalog, profiles: ProfileFiles, backends: Backends, watchers: Watchers
    ) -> None:
        self._catalog = catalog
        self._profiles = profiles
        self._backends = backends
        self._watchers = watchers

    async def adopt(self, profile: str | None, user: str | None) -> dict[str, Any]:
        """Take over the unfinished jobs of a user that a profile's place remembers: ``{profile, jobs}``.

        A host that is still at it goes on too: what both do, they do alike and once.

        Args:
            profile: its name; None: the default one.
            user: for whom they run; None: whoever runs the engine.

        Raises:
            Conflict: ``not-remembered`` where the place knows nothing of jobs.
            PaiJupyterError: the place cannot be asked.
        """
        name = self._profiles.read().get(profile).name
        backend = await self._backends.of(name)
        if not isinstance(backend, Remembering):
            raise Conflict(
                "not-remembered",
                f"Profile `{name}` remembers no jobs of other hosts.",
                "A job runs on only where it was submitted.",
            )
        wanted = user or getpass.getuser()
        taken = []
        for found in await backend.remembered():
            facts = _with_id(found.get("facts") or {})
            is_new = self._catalog.index.get(str(facts.get("id"))) is None
            if is_new and found.get("user") == wanted and facts.get("schema") == SCHEMA:
                taken.append(await self._take(found, facts, name))
        if taken:
            self._watchers.include(name, None)
        return {"profile": name, "jobs": [self._catalog.view(row) for row in map(self._row, taken) if row]}

    async def _take(self, found: Mapping[str, Any], facts: Mapping[str, Any], profile: str) -> str:
        host, source = self._catalog.host, str(found.get("source") or "")
        own = {"profile": profile, "host": host.name, "bootId": host.boot_id, "pidNamespace": host.namespace}
        record = Record(self._catalog.folder / str(facts["id"]), {**facts, **own})
        created = {"type": "created", "at": facts["submittedAt"]}
        beginning = Beginning(source, source, dict(found["commands"]), created)
        await self._catalog.add([(LiveJob(record, Life()), beginning)])
        await self._catalog.append(record.id, {"type": "submitted", "at": now()})
        return record.id

    def _row(self, job: str) -> Any:
        return self._catalog.index.get(job)


def _with_id(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return facts with an id of ours: a job that was submitted elsewhere by others has none."""
    if is_id(str(facts.get("id"))):
        return facts
    at = datetime.fromisoformat(
        str(facts.get("submittedAt") or "1970-01-01T00:00:00Z").replace("Z", "+00:00")
    )
    return {**facts, "id": id_for(str(facts.get("id")), at.timestamp())}
