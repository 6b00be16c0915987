"""The handle of a job in a notebook, and its log as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.client import card
from paijupyter.client.follow import LinePrefixer, prefixed, width_of
from paijupyter.client.job import Job, JobFailed
from paijupyter.errors import PaiJupyterError


@dataclass(frozen=True)
class Chunk:
    task: str
    text: str
    attempt: int = 0


def view(state: str = "running", **changes: Any) -> dict[str, Any]:
    roles = {"worker": {"instances": 12, "states": {}}, "ps": {"instances": 1, "states": {}}}
    return {"id": "01", "name": "mnist-k3f2qd", "profile": "local", "state": state, "roles": roles, **changes}


class FakeClient:
    def __init__(self, now: Mapping[str, Any] | None = None, chunks: Sequence[Chunk] = ()) -> None:
        self.now = now
        self.chunks = chunks
        self.asked: list[Any] = []

    def get(self, ref: str, **scope: Any) -> Mapping[str, Any]:
        self.asked.append(("get", ref))
        if self.now is None:
            raise PaiJupyterError("server-unreachable", "The job server does not answer.", status=503)
        return self.now

    def wait(self, ref: str, timeout: float | None = None) -> Mapping[str, Any]:
        self.asked.append(("wait", ref, timeout))
        assert self.now is not None
        return self.now

    stop = get

    def retry(self, ref: str, secrets: Any = None, **more: Any) -> Mapping[str, Any]:
        return view("waiting", id="02", name="mnist-aaaaa2")

    def logs(self, ref: str, task: str | None = None, **more: Any) -> Iterator[Chunk]:
        self.asked.append(("logs", task, more))
        return iter(self.chunks)

    def files(self, ref: str) -> list[dict[str, Any]]:
        return [{"path": "worker-0/m.npz", "size": 3}]

    def pull(self, ref: str, dest: Path, paths: Sequence[str] | None) -> list[Path]:
        self.asked.append(("pull", dest, paths))
        return [dest / "worker-0" / "m.npz"]


def job(now: Mapping[str, Any] | None = None, *, state: str = "running", chunks: Sequence[Chunk] = ()) -> Job:
    client: Any = FakeClient(now, chunks)
    return Job(view(state), client)


def test_a_handle_knows_its_job() -> None:
    found = job()
    assert (found.id, found.name, found.state, found.is_final) == ("01", "mnist-k3f2qd", "running", False)
    assert repr(found) == "<Job mnist-k3f2qd running>"


def test_waiting_and_stopping_return_the_handle_with_the_new_state() -> None:
    assert job(view("succeeded")).wait().check().state == "succeeded"
    assert job(view("stopped")).stop().state == "stopped"


def test_a_failed_job_is_one_sentence_that_names_role_index_and_exit() -> None:
    task = {"role": "worker", "index": 2, "code": None, "signal": "SIGKILL", "lastLines": []}
    found = job(view("failed", failedTask=task, advice="Give it more memory."))
    with pytest.raises(JobFailed) as caught:
        found.wait().check()
    said = "Job `mnist-k3f2qd` failed: worker-2 was ended by signal SIGKILL. Give it more memory."
    assert str(caught.value) == said
    assert caught.value._render_traceback_() == [said]
    assert caught.value.code == "job-failed"


def test_retry_gives_another_handle() -> None:
    found = job()
    assert found.retry().name == "mnist-aaaaa2"
    assert found.name == "mnist-k3f2qd"


def test_outputs_and_pull(tmp_path: Path) -> None:
    found = job()
    assert found.outputs == ["worker-0/m.npz"]
    assert found.pull(str(tmp_path)) == [tmp_path / "worker-0" / "m.npz"]


def test_metrics_are_looked_up_now() -> None:
    assert job(view(metrics={"last": {"loss": 0.1}})).metrics == {"loss": 0.1}


def test_the_card_of_an_unfinished_job_is_of_now_and_survives_a_server_that_is_away() -> None:
    assert "✓ succeeded" in job(view("succeeded"))._repr_mimebundle_()["text/plain"]
    assert "● running" in job(None)._repr_mimebundle_()["text/plain"]
    final = job(None, state="failed")
    final._repr_mimebundle_()
    assert final.client.asked == []  # type: ignore[attr-defined]


def test_the_bundle_has_the_three_forms() -> None:
    assert set(job(view())._repr_mimebundle_()) == {card.MIME, "text/html", "text/plain"}


def test_logs_of_all_tasks_have_the_task_before_each_line() -> None:
    chunks = [
        Chunk("worker-0", "a\nb"),
        Chunk("ps-0", "c\n"),
        Chunk("worker-0", "b\n"),
        Chunk("worker-11", "d"),
    ]
    lines = job(view(), chunks=chunks).logs().splitlines()
    assert lines == ["worker-0   a", "ps-0       c", "worker-0   bb", "worker-11  d"]


def test_the_log_of_one_task_is_as_it_is() -> None:
    chunks = [Chunk("worker-0", "a\r50%\r", -1), Chunk("worker-0", "100%\nend", -1)]
    assert job(view(), chunks=chunks).logs("worker-0") == "a\r50%\r100%\nend"


def test_frames_of_a_progress_bar_are_one_line() -> None:
    """tqdm writes carriage returns (jupyter.md 11.3)."""
    chunks = [Chunk("w-0", f"\r{percent} %") for percent in range(100)] + [Chunk("w-0", "\r100 %\nend\r\n")]
    prefixer = LinePrefixer()
    assert "".join(map(prefixer.feed, chunks)) == "w-0  100 %\nw-0  end\n"
    prefixer = LinePrefixer()
    for chunk in chunks[:-1]:
        prefixer.feed(chunk)
    assert len(prefixer._open["w-0"]) < 20  # A bar that never ends its line does not grow in memory.
    assert prefixer.rest() == "w-0  99 %\n"


def test_attempts_are_kept_apart() -> None:
    """O21."""
    chunks = [Chunk("w-0", "one"), Chunk("w-0", "two\n", 1)]
    assert list(prefixed(chunks, {})) == ["w-0  one\nw-0  ── attempt 2 ──\nw-0  two\n"]
    # -1: of one task, the number of its attempt is not told.
    assert list(prefixed([Chunk("w-0", "a\n", -1)], {})) == ["w-0  a\n"]


def test_the_width_is_that_of_the_longest_task() -> None:
    assert width_of(view()) == len("worker-11")
    assert width_of({}) == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text("xy\n", max_size=8)), max_size=20))
def test_no_line_is_lost_or_cut_however_chunks_fall(pieces: list[tuple[str, str]]) -> None:
    shown = "".join(prefixed([Chunk(f"{task}-0", text) for task, text in pieces], {})).split("\n")
    for task in "ab":
        whole = "".join(text for name, text in pieces if name == task)
        expected = whole.removesuffix("\n").split("\n") if whole else []
        assert [line[5:] for line in shown if line.startswith(f"{task}-0  ")] == expected
