"""Cards follow their jobs from a thread, by state, until the end (architecture decision 6)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from paijupyter.client.job import Job
from paijupyter.errors import NotFound, PaiJupyterError, Problem
from paijupyter.magics import live
from paijupyter.magics.live import Follower
from paijupyter.magics.show import Display

Until = Callable[..., object]


class Publisher:
    def __init__(self) -> None:
        self.shown: list[tuple[str, str, bool]] = []

    def publish(self, *, data: Any, metadata: Any, transient: Any, update: bool) -> None:
        now = (transient["display_id"], data["text/plain"], update)
        if not self.shown or self.shown[-1] != now:  # The last update is sent twice, for nbclient.
            self.shown.append(now)


class Shell:
    """A shell of ipykernel 7.4, which can pin the thread it is called from."""

    def __init__(self) -> None:
        self.display_pub = Publisher()
        self.pinned: list[tuple[str, Any]] = []

    def get_parent(self) -> dict[str, Any]:
        return {"header": {"msg_id": "cell-a"}}

    def set_thread_parent(self, parent: Any) -> str:
        self.pinned.append((threading.current_thread().name, parent["header"]["msg_id"]))
        return "token"

    def reset_thread_parent(self, token: str) -> None:
        assert token == "token"


@pytest.fixture
def followed(client: Any) -> tuple[Shell, Follower]:
    shell = Shell()
    return shell, Follower(shell)


def follow(shell: Shell, follower: Follower, view: dict[str, Any], problems: tuple[Problem, ...] = ()) -> Job:
    job, display = Job(view), Display(shell)
    display.show({"text/plain": "first"})
    follower.follow(job, display, problems)
    return job


def event(client: Any, **changes: Any) -> dict[str, Any]:
    return {"seq": 2, "type": "job", "job": {**client.view, **changes}}


def states(shell: Shell) -> list[str]:
    return [text.split()[1] for _, text, update in shell.display_pub.shown if update]


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "paijupyter-cards"]


def test_a_card_is_updated_on_each_change_of_state_and_never_for_progress(
    followed: tuple[Shell, Follower], client: Any, until: Until
) -> None:
    shell, follower = followed
    job = follow(shell, follower, client.view, (Problem("hint", "h", "Odd."),))
    for changes in (
        {"state": "running", "reason": ""},
        {"state": "running", "reason": "", "metrics": {"last": {"loss": 1}}},
        {"state": "running", "reason": "", "metrics": {"last": {"loss": 0.5}}},
        {"id": "other", "state": "failed"},
        {"state": "succeeded", "reason": ""},
    ):
        client.stream.put(event(client, **changes))
    until(lambda: not threads(), why="the thread to end with its last job")
    assert states(shell) == ["running", "succeeded"]
    assert job.state == "succeeded"
    ids = {each[0] for each in shell.display_pub.shown}
    assert len(ids) == 1
    assert "· Odd." in shell.display_pub.shown[-1][1]


def test_the_parent_is_pinned_in_the_thread(
    followed: tuple[Shell, Follower], client: Any, until: Until
) -> None:
    """jupyter.md 6.1: what a thread publishes belongs to the cell that submitted."""
    shell, follower = followed
    follow(shell, follower, client.view)
    client.stream.put(event(client, state="succeeded"))
    until(lambda: not threads())
    assert shell.pinned == [("paijupyter-cards", "cell-a")]


def test_one_thread_serves_all_cards(followed: tuple[Shell, Follower], client: Any, until: Until) -> None:
    shell, follower = followed
    jobs = [follow(shell, follower, {**client.view, "id": str(number)}) for number in range(5)]
    assert len(threads()) == 1
    for job in jobs:
        client.stream.put(event(client, id=job.id, state="succeeded"))
    until(lambda: not threads())
    assert {job.state for job in jobs} == {"succeeded"}
    follow(shell, follower, client.view)
    client.stream.put(event(client, state="stopped"))
    until(lambda: states(shell)[-1] == "stopped" and not threads(), why="a later card to be followed too")


def test_a_change_before_the_card_was_registered_is_not_lost(
    followed: tuple[Shell, Follower], client: Any, until: Until
) -> None:
    shell, follower = followed
    follow(shell, follower, client.view)
    client.stream.put(event(client, id="quick", state="succeeded"))
    until(lambda: "quick" in follower._seen)
    late = follow(shell, follower, {**client.view, "id": "quick"})
    assert late.state == "succeeded"
    client.stream.put(event(client, state="succeeded"))
    until(lambda: not threads())


def test_a_job_that_has_ended_needs_no_thread(followed: tuple[Shell, Follower], client: Any) -> None:
    shell, follower = followed
    follow(shell, follower, client.final)
    assert not threads()


def test_what_happened_while_the_stream_was_away_is_looked_up(
    followed: tuple[Shell, Follower], client: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_PAUSE", 0.001)
    shell, follower = followed
    follow(shell, follower, client.view)
    client.stream.put(PaiJupyterError("server-unreachable", "No.", status=503))
    client.stream.put({"seq": 9, "type": "reset"})
    until(lambda: client.stream.empty())
    client.view = {**client.view, "state": "failed"}
    client.stream.put({"seq": 10, "type": "reset"})
    until(lambda: not threads())
    assert states(shell) == ["failed"]


def test_a_server_that_stays_away_is_given_up(
    followed: tuple[Shell, Follower], client: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_PAUSE", 0.001)
    monkeypatch.setattr(live, "_TRIES", 3)
    shell, follower = followed
    for _ in range(3):
        client.stream.put(PaiJupyterError("server-unreachable", "No.", status=503))
    follow(shell, follower, client.view)
    until(lambda: not threads())
    assert states(shell) == []
    follow(shell, follower, client.view)  # A new card tries again, for the old one too.
    client.stream.put(event(client, state="stopped"))
    until(lambda: not threads())
    assert states(shell) == ["stopped", "stopped"]


def test_a_job_that_was_deleted_meanwhile_is_let_go(
    followed: tuple[Shell, Follower], client: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(ref: str) -> Any:
        raise NotFound("Job", ref)

    monkeypatch.setattr(client, "get", get)
    shell, follower = followed
    follow(shell, follower, client.view)
    until(lambda: not threads())


def test_a_deleted_job_is_let_go(followed: tuple[Shell, Follower], client: Any, until: Until) -> None:
    shell, follower = followed
    follow(shell, follower, client.view)
    client.stream.put({"seq": 3, "type": "deleted", "id": client.view["id"]})
    until(lambda: not threads())
    assert states(shell) == []
