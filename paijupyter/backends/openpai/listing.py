"""The list of a user's jobs, the newest first, as long as it must be to have all that are followed.

A server keeps every job for ever, so a list of all grows for years; one that ends with the oldest job that is
followed does not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from paijupyter.backends.openpai.answers import Summary, mapping, summary_of
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.server import Server

_LEAST = 200  # jobs in one list
_MOST = 50_000  # the server gives no longer one
_GROWTH = 4
_SECONDS = 30.0  # without a byte
Page = tuple[dict[str, Summary], int]
"""What a list has by name, and how many jobs the server put in it."""


class Listing:
    """Asks for the list of our jobs.

    Args:
        server: whose list it is.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limit = _LEAST
        self._read: tuple[str, bytes] = ("", b"")  # the last list, and whose jobs were read in it
        self._found: Page = ({}, 0)

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

    async def _page(self, limit: int) -> Page:
        user = await self._server.user()
        query = {"username": user, "offset": 0, "limit": limit, "order": "submissionTime,DESC"}
        ask = self._server.client.ask
        answer = await ask("GET", "/jobs", query=query, turn=Turn.LIST, timeout=_SECONDS)
        # Nothing has changed in most of the lists, and reading a long one is what following costs.
        if (user, answer.body) != self._read:
            self._found = _page_of(answer.json(), user)
            self._read = (user, answer.body)
        return self._found


def _page_of(found: Any, user: str) -> Page:
    """Read a list of jobs.

    Raises:
        PaiError: it is none.
    """
    if not isinstance(found, list):
        raise PaiError(0, "NotOpenPai", "its list of jobs is no list")
    listed: dict[str, Summary] = {}
    for each in found:
        summary = summary_of(mapping(each))
        if summary.user == user:
            listed.setdefault(summary.name.removeprefix(f"{user}~"), summary)
    return listed, len(found)
