"""Groups of experiments: plan, run, look at, stop, run again, delete."""

from __future__ import annotations

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply


async def list_groups(call: Call) -> Reply:
    """Return a page of groups, latest first."""
    return Reply(call.service.groups.list(**call.query))


async def plan_group(call: Call) -> Reply:
    """Say what running experiments would do."""
    return Reply(await call.service.groups.plan(call.body))


async def submit_group(call: Call) -> Reply:
    """Record a round of experiments; they are submitted one after the other."""
    view, created = await call.service.groups.submit(call.body)
    return Reply(view, 201 if created else 200)


async def get_group(call: Call) -> Reply:
    """Return one group."""
    return Reply(call.service.groups.get(call.path["ref"]))


async def delete_group(call: Call) -> Reply:
    """Delete a settled group with all of its jobs."""
    await call.service.groups.delete(call.path["ref"])
    return Reply(None, 204)


async def experiments(call: Call) -> Reply:
    """Return a page of experiments."""
    return Reply(await call.service.groups.experiments(call.path["ref"], **call.query))


async def stop_group(call: Call) -> Reply:
    """Stop all of a group."""
    return Reply(await call.service.groups.stop(call.path["ref"]))


async def retry_group(call: Call) -> Reply:
    """Run experiments of a group once more."""
    return Reply(await call.service.groups.retry(call.path["ref"], call.body), 201)


async def remove_experiments(call: Call) -> Reply:
    """Stop and delete experiments."""
    await call.service.groups.remove(call.path["ref"], str(call.body.get("only") or ""))
    return Reply(None, 204)
