"""The list of our jobs: one whose bytes are those of before is not read again, any other one is."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from paijupyter.backends.openpai.answers import Summary
from paijupyter.backends.openpai.client import Answer
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.listing import Listing
from paijupyter.backends.openpai.server import Server


class Portal:
    """A server whose list is what a test says, whoever asks; of old ones it was so."""

    def __init__(self) -> None:
        self.login = "alice"
        self.jobs: Any = []
        self.limits: list[int] = []
        self.listing = Listing(cast(Server, self))

    @property
    def client(self) -> Portal:
        return self

    async def user(self) -> str:
        return self.login

    async def ask(self, method: str, path: str, *, query: dict[str, Any], **_: Any) -> Answer:
        self.limits.append(query["limit"])
        found = self.jobs[: query["limit"]] if isinstance(self.jobs, list) else self.jobs
        return Answer(f"{method} {path}", 200, json.dumps(found).encode())

    def states(self, *wanted: str) -> dict[str, str]:
        return {name: job.state for name, job in self.listed(*wanted).items()}

    def listed(self, *wanted: str) -> dict[str, Summary]:
        return asyncio.run(self.listing.ask(wanted))


def job(name: str, state: str = "RUNNING", user: str = "alice") -> dict[str, str]:
    return {"name": name, "username": user, "state": state}


@pytest.fixture
def portal() -> Portal:
    return Portal()


def test_a_list_that_is_as_it_was_is_not_read_again(portal: Portal) -> None:
    """Two thousand jobs in a list cost 90 ms to read; most lists say nothing new."""
    portal.jobs = [job("a"), job("b", "WAITING")]
    first = portal.listed("a", "b")
    assert portal.listed("a", "b") is first
    portal.jobs = [job("a"), job("b")]
    assert portal.states("a", "b") == {"a": "RUNNING", "b": "RUNNING"}
    portal.jobs = [job("a"), job("b", "WAITING")]
    assert portal.states("a", "b") == {"a": "RUNNING", "b": "WAITING"}


def test_another_login_reads_the_same_list_for_itself(portal: Portal) -> None:
    portal.jobs = [job("a"), job("a", "FAILED", "bob")]
    assert portal.states("a") == {"a": "RUNNING"}
    portal.login = "bob"
    assert portal.states("a") == {"a": "FAILED"}


def test_a_list_is_as_long_as_the_oldest_job_needs(portal: Portal) -> None:
    """A list is as long as it must be for the oldest job that is followed; one that nobody has ends it."""
    portal.jobs = [job(f"job-{number}") for number in range(1000)]
    assert "job-999" in portal.listed("job-999")
    assert portal.limits == [200, 800, 3200]
    assert "gone" not in portal.listed("gone", "job-999")
    assert portal.limits[3:] == [2000]


def test_what_was_read_is_kept_from_an_answer_that_is_no_list(portal: Portal) -> None:
    portal.jobs = [job("a")]
    assert portal.states("a") == {"a": "RUNNING"}
    portal.jobs = {"code": "no list"}
    for _ in range(2):
        with pytest.raises(PaiError, match="no list"):
            portal.listed("a")
    portal.jobs = [job("a")]
    assert portal.states("a") == {"a": "RUNNING"}
