"""Logging in to the servers of profiles, and what these offer."""

from __future__ import annotations

from paijupyter.backends.accounts import Login
from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply


async def get_account(call: Call) -> Reply:
    """Say who is logged in."""
    return Reply(await call.service.settings.accounts.account(call.path["profile"]))


async def log_in(call: Call) -> Reply:
    """Log in and keep what the server gives."""
    login = Login(**{key: str(value) for key, value in call.body.items()})
    return Reply(await call.service.settings.accounts.login(call.path["profile"], login))


async def log_out(call: Call) -> Reply:
    """Forget what logins have kept."""
    return Reply(await call.service.settings.accounts.logout(call.path["profile"]))


async def get_offers(call: Call) -> Reply:
    """Return what a form offers for a profile."""
    refresh = bool(call.query.get("refresh"))
    return Reply(await call.service.settings.accounts.offers(call.path["profile"], refresh))
