"""Groups: the verbs on experiments that belong together, and what there is of them."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paijupyter.backends.base import FINAL
from paijupyter.errors import Conflict, InvalidDocument, UsageProblem
from paijupyter.experiments.selection import select
from paijupyter.jobs import group_record as records
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.ending import Endings
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.group import Entry, Group
from paijupyter.jobs.group_planning import GroupPlan, GroupPlanner
from paijupyter.jobs.group_record import GroupRecord
from paijupyter.jobs.group_request import GroupRequest, request_from
from paijupyter.jobs.group_rows import rows_of
from paijupyter.jobs.group_runner import GroupRunner
from paijupyter.jobs.group_shelf import Shelf
from paijupyter.jobs.identity import new_id
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.planning import Planner
from paijupyter.jobs.secrets import SecretStore
from paijupyter.jobs.submission import Submissions

LIMIT = 1000


class Groups:
    """All groups of one data folder. A ``ref`` is an id, or a name: then the latest of that name.

    Args:
        data: the data folder.
        catalog: its jobs.
        bus: where changes are published.
        planner: plans the job of one experiment.
        submissions: makes jobs.
        endings: ends them.
        secrets: keeps values of secrets.
    """

    def __init__(
        self,
        data: Path,
        catalog: Catalog,
        bus: EventBus,
        planner: Planner,
        submissions: Submissions,
        endings: Endings,
        secrets: SecretStore,
    ) -> None:
        self._shelf = Shelf(data, catalog, bus)
        self._catalog = catalog
        self._bus = bus
        self._planner = GroupPlanner(planner, catalog)
        self._secrets = secrets
        self._runner = GroupRunner(catalog, submissions, endings, secrets, self._shelf.tell)
        self._gate = asyncio.Lock()

    async def open(self) -> None:
        """Read the groups of this host that are not settled, and of all others what was kept of them."""
        await self._shelf.fill()

    def resume(self) -> None:
        """Go on with the groups that are not settled."""
        for group in self._shelf.open.values():
            if self._shelf.owns(group) and not group.is_settled:
                self._runner.ensure(group)

    async def close(self) -> None:
        """Let go of all groups."""
        await self._runner.close()

    @property
    def busy(self) -> int:
        """How many groups need this process."""
        return self._runner.busy

    @property
    def unsettled(self) -> builtins.list[str]:
        """Ids of the groups of this host that may need the values of their secrets."""
        return [each.id for each in self._shelf.open.values() if not each.is_settled]

    def packages(self) -> set[str]:
        """Return the hashes of all packages that experiments may still need."""
        return self._shelf.packages()

    # -- rounds -----------------------------------------------------------------------------------------

    async def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what running these experiments would do, with everything that is against it.

        Raises:
            InvalidDocument: template or list cannot be used at all.
        """
        wish = GroupRequest.of(request)
        plan = await self._plan(wish)
        texts = {"texts": plan.texts()} if request.get("texts") else {}
        return {**plan.to_json(wish), **texts}

    async def submit(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Record a round of experiments; they are submitted one after the other from then on.

        Returns:
            The group's view, and whether the group is new.

        Raises:
            InvalidDocument: with all problems of all experiments; nothing was recorded.
            Conflict: ``secrets-needed``.
        """
        wish = GroupRequest.of(request)
        # Shielded: an interrupted surface asks again with the same request id.
        return await asyncio.shield(asyncio.ensure_future(self._submit(wish)))

    async def retry(self, ref: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Run experiments of a group once more, with the documents of their latest round.

        Args:
            ref: the group.
            changes: ``only``: keys, by default those that failed; ``package``: other code; ``resume``: with
                the checkpoints they left; ``secrets``: values that cannot be resolved again.

        Raises:
            UsageProblem: nothing has failed, or a key does not exist.
            Conflict: ``secrets-needed``, or ``experiment-unfinished``.
        """
        group = self._shelf.group(ref)
        async with self._gate:
            wanted = self._retried(group, str(changes.get("only") or ""))
            settings = {**group.settings, "replace": False}
            if changes.get("package"):
                settings["package"] = changes["package"]
            base = request_from(settings, {})
            if changes.get("secrets"):
                given = {name: {"reference": ref} for name, ref in base.secrets.references.items()}
                base = replace(base, secrets=type(base.secrets)({**given, **changes["secrets"]}))
            documents = await asyncio.to_thread(_documents, group, wanted)
            values = await base.secrets.resolve(list(base.secrets.references))
            entries = [
                Entry(each.key, each.values, 0, each.same, each.job if changes.get("resume") else None)
                for each in wanted
            ]
            await self._begin(group, entries, documents, settings, (), values, changes.get("requestId"))
        return self.get(group.id)

    # -- what there is ----------------------------------------------------------------------------------

    def list(
        self, *, folder: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> dict[str, Any]:
        """Return a page of groups, latest first: ``{groups, next, seq}``."""
        found, following = self._shelf.page(folder, limit, cursor)
        return {"groups": found, "next": following, "seq": self._bus.seq}

    def get(self, ref: str) -> dict[str, Any]:
        """Return the view of a group, with ``seq``: what is published later is news.

        Raises:
            NotFound: if there is none.
        """
        return {**self._shelf.view(self._shelf.find(ref)), "seq": self._bus.seq}

    async def experiments(
        self, ref: str, *, offset: int = 0, limit: int = LIMIT, series: bool = False
    ) -> dict[str, Any]:
        """Return a page of a group's experiments, ``{experiments, total}``, in their order."""
        group = self._shelf.group(ref)
        entries = builtins.list(group.entries.values())[offset : offset + limit]
        found = await rows_of(self._catalog, group, entries, series=series)
        return {"experiments": found, "total": len(group.entries)}

    # -- the end ----------------------------------------------------------------------------------------

    async def stop(self, ref: str) -> dict[str, Any]:
        """Stop all of a group that has not ended; what has not begun does not begin."""
        group = self._shelf.group(ref)
        self._shelf.require_ours(group)
        if not group.is_settled:
            await self._runner.stop(group, "user")
        return self.get(group.id)

    async def remove(self, ref: str, only: str = "") -> None:
        """Stop and delete jobs of experiments, and forget them; with all of them goes the group (T6).

        Raises:
            UsageProblem: for a key that there is not.
        """
        group = self._shelf.group(ref)
        self._shelf.require_ours(group)
        async with self._gate:
            keys = select(builtins.list(group.entries), only)
            if not group.stopped_by and len(keys) == len(group.entries):
                await self._runner.stop(group, "user")
            await self._runner.forget(group, keys)
            if not group.entries:
                self._secrets.remove(group.id)
                await self._shelf.remove(group)

    async def delete(self, ref: str) -> None:
        """Delete a settled group with all of its jobs.

        Raises:
            Conflict: ``not-final``.
        """
        group = self._shelf.group(ref)
        self._shelf.require_ours(group)
        if not group.is_settled:
            raise Conflict(
                "not-final",
                f"Group `{group.record.name}` is {group.state} and cannot be deleted.",
                f"Stop it first: stop --group {group.record.name}.",
            )
        async with self._gate:
            await self._runner.forget(group, builtins.list(group.entries))
            self._secrets.remove(group.id)
            await self._shelf.remove(group)

    async def job_deleted(self, job: str, group: str) -> None:
        """Take an experiment out of its group before its job is deleted by itself, so that it stays gone."""
        if group not in self._shelf:
            return
        found = self._shelf.group(group)
        keys = [each.key for each in found.entries.values() if each.job == job]
        if keys and self._shelf.owns(found):
            event = {"type": "forget", "at": now(), "keys": keys}
            await asyncio.to_thread(found.record.append, event)
            found.take(event)
            self._shelf.tell(found)

    def note(self, live: LiveJob) -> None:
        """Take note of what has become of a job."""
        of = live.record.facts.get("group")
        group = self._shelf.open.get(of["id"]) if of else None
        if group is None or not of:
            return
        entry = group.entries.get(str(of.get("key")))
        if entry is None or entry.job not in (None, live.record.id) or live.life.state == entry.state:
            return
        if entry.job is None:
            return  # its round will see it
        entry.state, entry.started = live.life.state, bool(live.life.started_at)
        self._shelf.tell(group)
        if live.life.final:
            group.news.set()

    # -- within -----------------------------------------------------------------------------------------

    async def _plan(self, wish: GroupRequest) -> GroupPlan:
        name = await asyncio.to_thread(self._planner.name_of, wish)
        return await self._planner.plan(wish, self._shelf.named(name, wish.base.context.folder))

    async def _submit(self, wish: GroupRequest) -> tuple[dict[str, Any], bool]:
        async with self._gate:
            known = self._shelf.by_request(wish.request_id)
            if known is not None:
                return self.get(known), False
            plan = await self._plan(wish)
            if any(each.package_missing for each, _ in plan.prepared):
                problem = next(each for each in plan.problems if each.code == "package-missing")
                raise Conflict(problem.code, problem.message, problem.hint)
            if not plan.ok:
                raise InvalidDocument(plan.problems)
            values = await wish.base.secrets.resolve(plan.secrets)
            group = self._shelf.named(plan.name, wish.base.context.folder)
            is_new = group is None
            if group is None:
                group = self._new(plan.name, wish)
            documents = {
                each.key: {"document": each.document, **({"text": each.text} if plan.is_manifest else {})}
                for each, entry in zip(plan.filled, plan.entries, strict=True)
                if not entry.kept
            }
            problems = tuple(each.to_json() for each in plan.problems)
            settings = wish.to_settings(plan.profile)
            await self._begin(group, plan.entries, documents, settings, problems, values, wish.request_id)
        return self.get(group.id), is_new

    async def _begin(
        self,
        group: Group,
        entries: Any,
        documents: Mapping[str, Any],
        settings: Mapping[str, Any],
        problems: tuple[Mapping[str, Any], ...],
        values: Mapping[str, str],
        request_id: str | None,
    ) -> None:
        """Record a round, and let it go on by itself."""
        self._shelf.require_ours(group)
        event = {
            "type": "round",
            "number": group.number + 1,
            "at": now(),
            "requestId": request_id,
            "settings": dict(settings),
            "experiments": [each.to_json() for each in entries],
            "problems": builtins.list(problems),
        }
        await asyncio.to_thread(self._secrets.put, group.id, values)
        is_new = group.number == 0
        if is_new:
            await asyncio.to_thread(records.create, group.record, event, documents)
        else:
            await asyncio.to_thread(group.record.add_round, event, documents)
        group.take(event)
        self._shelf.tell(group)
        self._runner.ensure(group)

    def _retried(self, group: Group, only: str) -> builtins.list[Entry]:
        self._shelf.require_ours(group)
        if only:
            keys = select(builtins.list(group.entries), only)
            wanted = [group.entries[key] for key in keys]
        else:
            wanted = [each for each in group.entries.values() if group.state_of(each) == "failed"]
        if not wanted:
            raise UsageProblem(
                f"No experiment of group `{group.record.name}` has failed.", "Name them with --only."
            )
        busy = [each.key for each in wanted if each.job and each.state not in FINAL]
        if busy:
            raise Conflict(
                "experiment-unfinished",
                f"Experiment `{busy[0]}` of group `{group.record.name}` has not ended.",
                "Stop it first, or wait for its end.",
            )
        return wanted

    def _new(self, name: str, wish: GroupRequest) -> Group:
        host, context, found = self._catalog.host, wish.base.context, new_id()
        facts = {
            "schema": records.SCHEMA,
            "id": found,
            "name": name,
            "folder": context.folder,
            "host": host.name,
            "bootId": host.boot_id,
            "pidNamespace": host.namespace,
            "createdAt": now(),
        }
        return Group(GroupRecord(self._shelf.folder / found, facts))


def _documents(group: Group, entries: builtins.list[Entry]) -> dict[str, Any]:
    """Return the documents that experiments were last submitted with."""
    found: dict[str, Any] = {}
    for number in range(group.number, 0, -1):
        missing = [each.key for each in entries if each.key not in found]
        if not missing:
            break
        of_round = group.record.documents(number)
        found.update({key: of_round[key] for key in missing if key in of_round})
    return found
