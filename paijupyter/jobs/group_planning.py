"""The plan of a group: every experiment as it would be submitted, and everything against any of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.backends.base import FINAL
from paijupyter.errors import PaiJupyterError, Problem, UsageProblem, has_errors, in_order
from paijupyter.experiments.gathering import Gathered
from paijupyter.experiments.manifest import LOST
from paijupyter.experiments.selection import select, spans
from paijupyter.experiments.sweep import Filled, Sweep, fill, masked, shape
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.checkpoints import look
from paijupyter.jobs.group import Entry, Group
from paijupyter.jobs.group_request import GroupRequest
from paijupyter.jobs.planning import Planner, Prepared, role_facts, secret_names
from paijupyter.jobs.view import json_safe

_SHAPES = 20  # kinds of documents that the backend is asked about; of more the first ones speak for the rest


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What a round would do.

    Attributes:
        name: of the group.
        entries: the chosen experiments, with the job that is kept where nothing was changed.
        filled: their documents, in the same order.
        problems: all that was found, errors first.
        prepared: the plans of the kinds of documents, and how many there are of each.
    """

    name: str
    entries: tuple[Entry, ...]
    filled: tuple[Filled, ...]
    problems: tuple[Problem, ...]
    prepared: tuple[tuple[Prepared, int], ...] = ()
    is_manifest: bool = False
    estimate: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is against it."""
        return not has_errors(self.problems)

    @property
    def profile(self) -> str:
        """Name of the profile."""
        found = [each.profile for each, _ in self.prepared if each.profile]
        return found[0].name if found else ""

    @property
    def secrets(self) -> list[str]:
        """Names of all secrets that a document declares."""
        return list(dict.fromkeys(name for each in self.filled for name in secret_names(each.data)))

    def to_json(self, request: GroupRequest) -> dict[str, Any]:
        """Return the plan as every screen shows it."""
        first = self.prepared[0][0] if self.prepared else None
        return {
            "ok": self.ok,
            "name": self.name,
            "profile": self.profile or request.base.profile,
            "count": sum(not each.kept for each in self.entries),
            "kept": sum(each.kept for each in self.entries),
            "isManifest": self.is_manifest,
            "experiments": [
                {
                    "key": entry.key,
                    "name": str(each.data.get("name") or ""),
                    "values": json_safe(dict(entry.values)),
                    "keeps": entry.job if entry.kept else None,
                }
                for entry, each in zip(self.entries, self.filled, strict=True)
            ],
            "roles": [
                {key: role[key] for key in ("name", "instances", "cpu", "memoryMB", "gpu")}
                for role in role_facts(first.data if first else {})
            ],
            "atOnce": request.listing.at_once,
            "stopAfter": request.listing.stop_after,
            "package": first.to_json(request.base)["package"] if first else None,
            "estimate": dict(self.estimate),
            "secretNames": self.secrets,
            "secretReferences": request.base.secrets.references,
            "problems": [each.to_json() for each in self.problems],
        }

    def texts(self) -> dict[str, str]:
        """Return the filled templates by key, secrets masked (T8)."""
        return {each.key: masked(each.text) for each in self.filled}


class GroupPlanner:
    """Plans groups.

    Args:
        planner: plans the job of one experiment.
        catalog: the jobs there are.
    """

    def __init__(self, planner: Planner, catalog: Catalog) -> None:
        self._planner = planner
        self._catalog = catalog

    def name_of(self, request: GroupRequest) -> str:
        """Return the name that a request gives its group."""
        return fill(
            request.template,
            request.listing,
            name=request.name,
            only=(),
            has_placeholders=request.has_placeholders,
        ).name

    async def plan(self, request: GroupRequest, group: Group | None) -> GroupPlan:
        """Fill the template, and say everything that is against the chosen experiments.

        Args:
            request: the request.
            group: the group as it is so far, if there is one.

        Raises:
            InvalidDocument: the template cannot be used at all.
            UsageProblem: the selection is empty, or names what there is not.
        """
        keys = _chosen(request, group)
        sweep = await asyncio.to_thread(_fill, request, keys)
        gathered = Gathered(keys)
        former = group.entries if group is not None else {}
        entries = []
        for each in sweep.filled:
            entry, against = self._entry(each, former.get(each.key), request)
            entries.append(entry)
            gathered.add(each.key, against)
        prepared, against_all = await self._prepared(sweep, request, gathered)
        # What the planner says of a document has been said, with all experiments that have it.
        said = {(each.code, each.line, each.path) for each in sweep.problems}
        of_all = list(sweep.problems)
        if prepared and all(each.plan is not None and each.plan.as_written for each, _ in prepared):
            of_all = [each for each in of_all if not (sweep.is_manifest and each.code in LOST)]
        more = [each for each in gathered.problems() if (each.code, each.line, each.path) not in said]
        problems = in_order([*of_all, *more, *against_all])
        return GroupPlan(
            sweep.name,
            tuple(entries),
            sweep.filled,
            tuple(problems),
            prepared,
            sweep.is_manifest,
            self._estimate(prepared, entries, request, group),
        )

    def _entry(
        self, each: Filled, former: Entry | None, request: GroupRequest
    ) -> tuple[Entry, list[Problem]]:
        """Return what would become of one experiment, given its former job."""
        same = _same(each, request)
        entry = Entry(each.key, json_safe(dict(each.values)), 0, same)
        if former is None or former.job is None or request.replace:
            return entry, []
        is_same = bool(each.same) and former.same == same
        if former.state not in FINAL:
            if is_same:
                return replace(entry, job=former.job, kept=True, state=former.state), []
            message = "Its former job has not ended, and the experiment was changed."
            hint = "Stop it, or let --replace stop and delete it first."
            return entry, [Problem("error", "experiment-unfinished", message, hint=hint)]
        if is_same and former.state == "succeeded" and not (request.again or request.failed):
            return replace(entry, job=former.job, kept=True, state=former.state), []
        return self._resumed(entry, former.job) if request.resume else (entry, [])

    def _resumed(self, entry: Entry, former: str) -> tuple[Entry, list[Problem]]:
        row = self._catalog.index.get(former)
        try:
            if row is not None:
                look(self._catalog.job(row))
                return replace(entry, resume=former), []
        except PaiJupyterError:
            pass  # it left none, which is no reason not to run it
        return entry, [Problem("hint", "nothing-to-resume", "It has no checkpoint and begins anew.")]

    async def _prepared(
        self, sweep: Sweep, request: GroupRequest, gathered: Gathered
    ) -> tuple[tuple[tuple[Prepared, int], ...], list[Problem]]:
        """Ask about one document of each kind; what is said of it holds for all of that kind."""
        kinds: dict[str, list[Filled]] = {}
        for each in sweep.filled:
            if each.data:
                kinds.setdefault(shape(each.data), []).append(each)
        found = []
        for alike in list(kinds.values())[:_SHAPES]:
            prepared = await self._planner.prepare(replace(request.base, document=alike[0].document))
            for each in alike:
                gathered.add(each.key, prepared.problems)
            found.append((prepared, len(alike)))
        if len(kinds) > _SHAPES:
            message = f"Experiments are of {len(kinds)} kinds; only {_SHAPES} were planned on the profile."
            return tuple(found), [Problem("hint", "many-kinds", message)]
        return tuple(found), []

    def _estimate(
        self,
        prepared: Sequence[tuple[Prepared, int]],
        entries: Sequence[Entry],
        request: GroupRequest,
        group: Group | None,
    ) -> dict[str, Any]:
        """Say how many GPUs and GPU hours it would take, as far as a job of the group, or a limit, tells."""
        jobs = (each.job for each in (group.entries.values() if group else ()) if each.state == "succeeded")
        row = next((row for job in jobs if job and (row := self._catalog.index.get(job))), None)
        former = self._catalog.view(row) if row else None
        runs = sum(not each.kept for each in entries)
        share = runs / len(entries) if entries else 0
        gpus, hours, most = 0, 0.0, 0.0
        known = limited = bool(prepared)
        for each, count in prepared:
            of_job = sum(int(role["instances"]) * int(role["gpu"] or 0) for role in role_facts(each.data))
            gpus = max(gpus, of_job)
            said = each.estimate(former) or {}
            known = known and said.get("gpuHours") is not None
            hours += count * float(said.get("gpuHours") or 0)
            limit = (each.data.get("extras") or {}).get("paijupyter", {}).get("timeLimit")
            limited = limited and isinstance(limit, (int, float))
            most += count * of_job * float(limit or 0) / 3600
        at_once = min(request.listing.at_once or runs, runs)
        return {
            "gpu": gpus * at_once,
            "gpuHours": round(hours * share, 3) if known and gpus else None,
            "like": former["name"] if former and known and gpus else None,
            "atMostGpuHours": round(most * share, 3) if limited and gpus else None,
        }


def _chosen(request: GroupRequest, group: Group | None) -> list[str]:
    keys = select(request.listing.keys, request.only)
    if not request.failed:
        return keys
    failed = {
        each.key
        for each in (group.entries.values() if group else ())
        if group and group.state_of(each) == "failed"
    }
    chosen = [key for key in keys if key in failed]
    if not chosen:
        raise UsageProblem(
            "No experiment that is chosen has failed, so nothing would run.",
            f"Failed: {spans(sorted(failed))}." if failed else "Leave out --failed to run them all.",
        )
    return chosen


def _fill(request: GroupRequest, keys: Sequence[str]) -> Sweep:
    return fill(
        request.template,
        request.listing,
        name=request.name,
        only=frozenset(keys),
        has_placeholders=request.has_placeholders,
    )


def _same(each: Filled, request: GroupRequest) -> str:
    """Return what is equal where document, package, data and profile are."""
    parts = [each.same, request.base.package or "", request.base.profile or ""]
    parts += [f"{name} {sha256}" for name, sha256 in sorted(request.base.data.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
