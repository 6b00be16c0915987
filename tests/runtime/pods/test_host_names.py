"""Names of a cluster that are known late, or here only later than elsewhere (P28)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

import pytest

from paijupyter.runtime.host_names import HostNames
from paijupyter.runtime.loop import Loop

PEERS = [("a.demo", "worker-0"), ("b.demo", "worker-1")]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[bool]]:
    """Say what the name server answers, in turn; the last answer stays."""
    told: dict[str, list[bool]] = {}

    def look(name: str, port: None) -> Iterable[object]:
        turns = told[name]
        if not (turns.pop(0) if len(turns) > 1 else turns[0]):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look)
    return told


def test_all_are_waited_for(answers: dict[str, list[bool]]) -> None:
    answers.update({"a.demo": [True], "b.demo": [False, False, True]})
    loop = Loop()
    names = HostNames(PEERS, loop)
    loop.turn(60)
    assert names.are_found and names.trouble == ""


def test_who_is_not_known_is_named(
    answers: dict[str, list[bool]], until: Callable[[Callable[[], bool]], object]
) -> None:
    answers.update({"a.demo": [True], "b.demo": [False]})
    names = HostNames(PEERS, Loop())
    until(lambda: "not known" in names.trouble)
    assert names.trouble == "the name b.demo of worker-1 cannot be looked up (name or service not known)"
    assert not names.are_found
    answers["b.demo"] = [True]
    until(lambda: names.are_found)
    assert names.trouble == ""


def test_peers_are_not_waited_for_without_end(answers: dict[str, list[bool]]) -> None:
    """One may have done its work and be gone by now; its name goes with it."""
    answers.update({"a.demo": [False], "b.demo": [False]})
    loop = Loop()
    names = HostNames(PEERS, loop, patience=0.0)
    loop.turn(60)
    assert names.are_found and names.trouble == ""
