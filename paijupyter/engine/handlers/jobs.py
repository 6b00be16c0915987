"""Jobs: list, look at, submit, stop, retry, clone, delete, export."""

from __future__ import annotations

from paijupyter.engine.call import Call
from paijupyter.engine.route import YAML, Reply


async def list_jobs(call: Call) -> Reply:
    """Return a page of jobs, latest first, and the number to follow events from."""
    return Reply(call.service.list(**call.query))


async def submit(call: Call) -> Reply:
    """Submit a job, or return the unfinished one of the same cell."""
    view, created = await call.service.submit(call.body)
    return Reply(view, 201 if created else 200)


async def get_job(call: Call) -> Reply:
    """Return one job."""
    return Reply(call.service.get(call.path["ref"], **call.query))


async def delete(call: Call) -> Reply:
    """Forget a final job."""
    await call.service.delete(call.path["ref"])
    return Reply(None, 204)


async def stop(call: Call) -> Reply:
    """Stop a job; asked twice, it is stopped once."""
    return Reply(await call.service.stop(call.path["ref"]))


async def retry(call: Call) -> Reply:
    """Submit the same document and package as a new job."""
    changes = {name: call.body[name] for name in ("secrets", "resumeFrom") if call.body.get(name)}
    request_id = call.body.get("requestId")
    if changes:
        return Reply(await call.service.clone(call.path["ref"], changes, request_id), 201)
    return Reply(await call.service.retry(call.path["ref"], request_id), 201)


async def clone(call: Call) -> Reply:
    """Submit a changed copy as a new job."""
    changes = {name: value for name, value in call.body.items() if name != "requestId"}
    return Reply(await call.service.clone(call.path["ref"], changes, call.body.get("requestId")), 201)


async def export(call: Call) -> Reply:
    """Return the source document byte for byte, or the submitted one."""
    return Reply(call.service.export(call.path["ref"], call.query.get("what", "source")), media=YAML)


async def ports(call: Call) -> Reply:
    """Return the ports of the tasks that run."""
    return Reply({"ports": list(call.service.ports(call.path["ref"]))})


async def tasks(call: Call) -> Reply:
    """Return a page of tasks."""
    return Reply(call.service.tasks(call.path["ref"], **call.query))
