"""What is set up beside jobs: profiles, stored secrets, and whether all is well."""

from __future__ import annotations

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply


async def profiles(call: Call) -> Reply:
    """List the profiles."""
    return Reply(call.service.settings.profiles())


async def get_profile(call: Call) -> Reply:
    """Return one profile."""
    return Reply(call.service.settings.profile(call.path["profile"]))


async def add_profile(call: Call) -> Reply:
    """Write a new profile into the user's file."""
    return Reply(await call.service.settings.add_profile(call.body["name"], call.body["settings"]), 201)


async def edit_profile(call: Call) -> Reply:
    """Change fields of a profile in the user's file."""
    changes, unset = call.body.get("set") or {}, call.body.get("unset") or []
    return Reply(await call.service.settings.edit_profile(call.path["profile"], changes, unset))


async def remove_profile(call: Call) -> Reply:
    """Take a profile out of the user's file."""
    left = await call.service.settings.remove_profile(call.path["profile"])
    return Reply(None, 204) if left is None else Reply(left)


async def choose_profile(call: Call) -> Reply:
    """Make a profile the default one."""
    return Reply(await call.service.settings.choose_profile(call.path["profile"]))


async def test_profile(call: Call) -> Reply:
    """Ask a profile's backend what it can do."""
    return Reply(await call.service.settings.test_profile(call.path["profile"]))


async def list_secrets(call: Call) -> Reply:
    """Return the names of the stored secrets."""
    return Reply({"names": await call.service.settings.secrets()})


async def put_secret(call: Call) -> Reply:
    """Store a secret."""
    await call.service.settings.put_secret(call.path["name"], call.body["value"])
    return Reply(None, 204)


async def remove_secret(call: Call) -> Reply:
    """Remove a secret."""
    await call.service.settings.remove_secret(call.path["name"])
    return Reply(None, 204)


async def give_secrets(call: Call) -> Reply:
    """Give a waiting job the values of its secrets again."""
    return Reply(await call.service.give_secrets(call.path["ref"], call.body.get("secrets") or {}))


async def doctor(call: Call) -> Reply:
    """Return the checks of this side."""
    return Reply({"checks": await call.service.settings.doctor()})
