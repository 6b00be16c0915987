"""A queue of blocks, served by one task (P41): nothing lost, nothing recorded twice, whoever dies when."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.tasks import TaskQueueError, serve_tasks, take_tasks
from paijupyter.tasks.board import Board
from paijupyter.tasks.ledger import Ledger
from paijupyter.tasks.wire import proof


def test_every_block_is_done_once_and_both_sides_end(group, outcome):
    job = group(3)
    server = job.serve("[{'file': n} for n in range(40)]")
    workers = [job.work(index) for index in range(3)]
    ends = [outcome(worker) for worker in workers]
    assert [code for code, *_ in ends] == [0, 0, 0], ends
    taken = [line for _, out, _ in ends for line in out.splitlines()]
    assert sorted(taken) == sorted(str({"file": n}) for n in range(40))
    code, out, error = outcome(server)
    assert code == 0, error
    assert sum(json.loads(out).values()) == 40
    assert sorted(job.recorded()) == list(range(40))


def test_a_worker_killed_in_the_middle_of_a_block_gives_it_back(group, outcome, until):
    """kill -9, lease of an hour: it is the broken connection that tells."""
    job = group(2)
    server = job.serve("range(6)", "lease=3600, linger=0.5")
    (job.folder / "gate").touch()
    victim = job.work(
        0, "open('taken', 'a').write('%d ' % block)\n    while os.path.exists('gate'): time.sleep(0.01)"
    )
    until(lambda: (job.folder / "taken").exists() and (job.folder / "taken").read_text().endswith(" "))
    lost = int((job.folder / "taken").read_text())
    other = job.work(1)
    until(lambda: len(job.recorded()) == 5)
    assert lost not in job.recorded()
    victim.kill()
    code, out, error = outcome(other)
    assert code == 0, error
    assert out.split()[-1] == str(lost)
    code, out, _ = outcome(server)
    assert (code, json.loads(out)) == (0, {"worker-1": 6})
    assert sorted(job.recorded()) == list(range(6))


def test_a_worker_that_stands_still_loses_its_block_and_counts_once(group, outcome, until):
    """SIGSTOP keeps the connection: here the lease tells. Its late word changes nothing."""
    job = group(2)
    server = job.serve("range(3)", "lease=0.6")
    still = job.work(0, "open('taken', 'a').write('%d ' % block); time.sleep(0.2)")
    until(lambda: (job.folder / "taken").exists() and (job.folder / "taken").read_text().endswith(" "))
    still.send_signal(signal.SIGSTOP)
    other = job.work(1)
    until(lambda: sorted(job.recorded()) == [0, 1, 2])
    still.send_signal(signal.SIGCONT)
    assert [outcome(each)[0] for each in (still, other, server)] == [0, 0, 0]
    assert sorted(job.recorded()) == [0, 1, 2]


def test_a_renewed_lease_does_not_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("paijupyter.tasks.board.time.monotonic", lambda: now[0])
    board = Board(1, set(), lease=10, tries=3)
    assert board.take("a") == 0
    for _ in range(5):
        now[0] += 9
        board.renew("a", 0)
        assert board.take("b") is None
    now[0] += 10
    board.renew("a", 0)
    assert board.take("b") is None, "late, but nobody else had it"
    now[0] += 10
    assert board.take("b") == 0
    board.renew("a", 0)
    now[0] += 10
    assert board.take("c") == 0, "the renewal of one that lost it changes nothing"


def test_a_worker_renews_by_itself(monkeypatch):
    renewed = threading.Semaphore(0)
    monkeypatch.setattr(Board, "renew", lambda *_: renewed.release())
    with here(["long"], lease=0.3) as (address, _):
        for _ in take_tasks(address=address, key=b"k", patience=20):
            assert all(renewed.acquire(timeout=20) for _ in range(3))


def test_a_server_killed_goes_on_where_it_was(group, outcome, until):
    """A new attempt serves from the same file; workers that wait for it go on too."""
    job = group(1)
    server = job.serve("range(30)")
    worker = job.work(0, "print(block, flush=True); time.sleep(0.02)")
    until(lambda: len(job.recorded()) >= 5)
    server.kill()
    server.wait()
    with job.state.open("a") as stream:
        stream.write('{"done": 2')  # what a crash of the machine leaves
    server = job.serve("range(30)")
    code, out, error = outcome(worker)
    assert code == 0, error
    assert outcome(server)[0] == 0
    assert sorted(job.recorded()) == list(range(30))
    assert sorted(set(map(int, out.split()))) == list(range(30))


def test_a_finished_queue_says_so_at_once(group, outcome):
    job = group(1)
    for expected in ("0\n1\n", ""):
        server, worker = job.serve("range(2)"), job.work(0)
        assert outcome(worker)[:2] == (0, expected)
        assert outcome(server)[:2] == (0, '{"worker-0": 2}\n')


def test_a_block_that_breaks_every_worker_is_put_aside_and_named(group, outcome):
    job = group(4)
    server = job.serve("['good', 'poison', 'fine']", "tries=3, linger=0.5")
    ends = [outcome(job.work(index, "assert block != 'poison'")) for index in range(3)]
    assert [error for _, _, error in ends] == ["AssertionError"] * 3
    code, _, error = outcome(job.work(3))
    assert (code, error.partition(": ")[2]) == (1, "The task queue ended with 1 blocks not done.")
    code, _, error = outcome(server)
    assert code == 1
    assert error.endswith('1 of 3 blocks were given back too often and are not done: "poison".')
    assert sorted(job.recorded()) == [0, 2]


def test_leaving_the_loop_gives_the_block_back(group, outcome):
    job = group(2)
    server = job.serve("range(3)", "linger=0.5")
    first = job.work(0, "break")
    assert outcome(first)[0] == 0
    assert sorted(outcome(job.work(1))[1].split()) == ["0", "1", "2"]
    assert outcome(server)[:2] == (0, '{"worker-1": 3}\n')


def test_another_key_is_refused_on_both_sides(group, outcome, tmp_path):
    job = group(1)
    server = job.serve("range(2)")
    (tmp_path / "other.key").write_text("x")
    code, out, error = outcome(
        job.start("worker", 0, "import tasks; print(list(tasks.take_tasks()))", PAI_JOB_KEY_FILE="other.key")
    )
    assert (code, out) == (1, "")
    assert error.endswith(f"The task queue at 127.0.0.1:{job.port} has another job key.")
    assert outcome(job.work(0))[:2] == (0, "0\n1\n")
    assert outcome(server)[0] == 0


def test_a_stranger_gets_no_block_and_disturbs_nobody(group, outcome):
    job = group(1)
    server, worker = job.serve("['treasure', 2]"), job.work(0, "print(block); time.sleep(0.3)")
    for words in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 10000,
        b'{"nonce": 1}\n',
        b'{"nonce":"a","proof":"b"}\n',
    ):
        heard = _say(job.port, words)
        assert b"treasure" not in heard and b"proof" not in heard
    assert outcome(worker)[:2] == (0, "treasure\n2\n")
    assert outcome(server)[0] == 0


def _say(port: int, words: bytes) -> bytes:
    end = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as stranger:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: stranger.recv(4096), b""))
        except ConnectionError:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_the_key_is_on_no_command_line_and_in_no_environment(group, until):
    job = group(1)
    server, worker = job.serve("range(2)"), job.work(0, "time.sleep(60)")
    until(lambda: job.state.exists())
    for process in (server, worker):
        for name in ("cmdline", "environ"):
            assert b"k" * 64 not in Path(f"/proc/{process.pid}/{name}").read_bytes()


def test_a_proof_of_one_side_is_none_of_the_other():
    assert proof(b"k", "worker", "a", "b") != proof(b"k", "server", "a", "b")


def test_no_server_is_an_error_that_says_where(until):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TaskQueueError, match=f"127.0.0.1:{port} cannot be reached: .*refused"):
        next(iter(take_tasks(address=("127.0.0.1", port), key=b"k", patience=0.3)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: take_tasks(key=b"k"), "No task of this job has a port `tasks`"),
        (lambda: serve_tasks([1], label="more", key=b"k"), "--role queue:1,port=more"),
        (lambda: serve_tasks([1], port=1), "PAI_JOB_KEY_FILE"),
        (lambda: serve_tasks([{1}], port=1, key=b"k"), "JSON can hold"),
        (
            lambda: serve_tasks([1], port=1, key=b"k", state="/nowhere/x"),
            "`/nowhere/x` cannot be used: No such",
        ),
    ],
)
def test_what_is_missing_is_said_at_once(call, words):
    with pytest.raises(TaskQueueError, match=words):
        call()


def test_a_file_of_other_blocks_is_refused(tmp_path):
    path = str(tmp_path / "q")
    with Ledger([1, 2], path) as ledger:
        ledger.record(0, "w")
        with pytest.raises(TaskQueueError, match="another process serves from it"), Ledger([1, 2], path):
            pass
    with pytest.raises(TaskQueueError, match="about other blocks"), Ledger([1, 3], path):
        pass
    with Ledger([1, 2], path) as ledger:
        assert (ledger.done, ledger.by) == ({0}, {"w": 1})


def test_a_disk_without_room_ends_the_queue_with_its_reason(group, outcome):
    job = group(1)
    limited = "import resource, tasks; resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))\n"
    server = job.start("queue", 0, limited + "tasks.serve_tasks(range(9), linger=0)")
    worker = job.work(0)
    code, _, error = outcome(server)
    assert (code, error.partition(": ")[2]) == (
        1,
        "What is done cannot be recorded: No space left on device.",
    )
    worker.kill()
    assert job.state.stat().st_size <= 150


def test_one_process_may_serve_and_work():
    """Outside of a job, with a thread: how a script is tried out."""
    with here(range(5)) as (address, found):
        assert list(take_tasks(address=address, key=b"k", patience=20)) == [0, 1, 2, 3, 4]
    assert found == {f"process-{os.getpid()}": 5}


@contextlib.contextmanager
def here(items, **options):
    """Serve from a thread; at the end the result has what each worker has done."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: dict[str, int] = {}
    serve = partial(serve_tasks, items, port=port, key=b"k", linger=0.05, **options)
    server = threading.Thread(target=lambda: found.update(serve()))
    server.start()
    yield ("127.0.0.1", port), found
    server.join(20)
    assert not server.is_alive()


@given(st.data())
def test_no_block_is_lost_or_with_two_holders_whatever_happens(data):
    """Takes, renewals, ends, losses and expiries in any order, then two honest workers finish the rest."""
    count = data.draw(st.integers(0, 6))
    done: set[int] = set()
    board = Board(count, done, data.draw(st.sampled_from([0.0, 3600.0])), tries=float("inf"))
    workers = [object(), object(), object()]
    held: dict[object, int | None] = dict.fromkeys(workers)
    for _ in range(data.draw(st.integers(0, 25))):
        who = data.draw(st.sampled_from(workers))
        action = data.draw(st.sampled_from(["take", "renew", "finish", "leave"]))
        block = held[who]
        if action == "take" and block is None:
            held[who] = board.take(who)
            assert held[who] not in done
            if board.lease:
                others = [other for name, other in held.items() if name != who and other is not None]
                assert held[who] is None or held[who] not in others
        elif block is not None and action == "renew":
            board.renew(who, block)
        elif block is not None and action == "finish":
            done.add(block)
            board.finish(block)
            held[who] = None
        elif action == "leave":
            board.give_back(who)
            held[who] = None
    for who in held:
        board.give_back(who)
    rest = []
    while (block := board.take(None)) is not None:
        rest.append(block)
        done.add(block)
        board.finish(block)
    assert len(rest) == len(set(rest))
    assert done == set(range(count)) and board.is_settled
