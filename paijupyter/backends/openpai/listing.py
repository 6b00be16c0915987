"""The list of a user's jobs, the newest first, as long as it must be to have all that are followed.

A server keeps every job for ever, so a list of all grows for years; one that ends with the oldest job that is
followed does not.
"""

from __future__ import annotations

from collections.abc import Collection

from paijupyter.backends.openpai.answers import Summary, mapping, summary_of
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.server import Server

_LEAST = 200  # jobs in one list
_MOST = 50_000  # the server gives no longer one
_GROWTH = 4
_SECONDS = 30.0  # without a byte


class Listing:
    """Asks for the list of our jobs.

    Args:
        server: whose list it is.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limit = _LEAST

    async def ask(self, wanted: Collection[str]) -> dict[str, Summary]:
        """Return our jobs on the server by name: all those wanted that it has, and newer ones.

        Args:
            wanted: names of the jobs that are followed.

        Raises:
            PaiError: it cannot be had.
        """
        limit = min(max(self._limit, 2 * len(wanted)), _MOST)
        while True:
            listed, count = await self._page(limit)
            if count < limit or limit == _MOST or all(name in listed for name in wanted):
                break
            limit = min(limit * _GROWTH, _MOST)
        places = [place for place, name in enumerate(listed) if name in wanted]
        self._limit = max(_LEAST, 2 * (places[-1] + 1) if places else 0)
        return listed

    async def _page(self, limit: int) -> tuple[dict[str, Summary], int]:
        """Return what a list of some length has, and how many jobs it has."""
        user = await self._server.user()
        query = {"username": user, "offset": 0, "limit": limit, "order": "submissionTime,DESC"}
        call = self._server.client.call
        found = await call("GET", "/jobs", query=query, turn=Turn.LIST, timeout=_SECONDS)
        if not isinstance(found, list):
            raise PaiError(0, "NotOpenPai", "its list of jobs is no list")
        listed: dict[str, Summary] = {}
        for each in found:
            summary = summary_of(mapping(each))
            if summary.user == user:
                listed.setdefault(summary.name.removeprefix(f"{user}~"), summary)
        return listed, len(found)
