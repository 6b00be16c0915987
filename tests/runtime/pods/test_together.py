"""The tasks of a job in pods meet and end together by their own board (decision 10; P28, P36, O23)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

import pytest

FOREVER = "sleep 600"


def test_nobody_starts_before_all_are_ready(make_job, until):
    """P28: pods of different nodes start minutes apart."""
    job = make_job(ps=1, worker=2)
    job.spec["commands"] = {"ps": FOREVER, "worker": "echo $PAI_HOST_IP_worker_1; date +%s%N"}
    late, *early = reversed(job.pods.values())
    for pod in early:
        pod.start()
    until(lambda: (early[0].run_folder / "task" / "ready").exists())
    until(lambda: (early[1].run_folder / "task" / "ready").exists())
    assert [pod.log for pod in early] == ["", ""]
    begun = time.time()
    late.start()
    ended = {pod.key: pod.end() for pod in job.pods.values()}
    assert {each["status"] for each in ended.values()} == {0}, job.logs()
    addresses, times = zip(*(job.pods[f"worker-{i}"].log.split() for i in (0, 1)), strict=True)
    assert set(addresses) == {"127.0.0.3"}
    assert min(int(at) for at in times) / 1e9 >= begun


@pytest.mark.parametrize("turned", [False, True])
def test_a_rank_is_the_index_of_its_pod(make_job, turned):
    """D5: neither the order of addresses, which a restart changes, nor that of their starts decides it."""
    job = make_job(worker=3)
    hosts = job.spec["hosts"]
    if turned:
        job.spec["hosts"] = dict(zip(hosts, reversed(hosts.values()), strict=True))
    job.role("worker")["launcher"] = "torchrun"
    job.spec["commands"]["worker"] = "echo $RANK $PAI_TASK_INDEX $MASTER_ADDR"
    for pod in reversed(job.pods.values()):
        pod.start()
    assert [pod.end()["status"] for pod in job.pods.values()] == [0, 0, 0], job.logs()
    first = job.spec["hosts"]["worker-0"]
    assert [pod.log for pod in job.pods.values()] == [f"{i} {i} {first}\n" for i in range(3)]


def test_services_end_with_the_workers(make_job):
    """P36: nothing outside the pods is there to end them."""
    job = make_job(ps=1, worker=2)
    ended = job.run(ps=FOREVER, worker="echo done")
    assert [each["status"] for each in ended.values()] == [0, 0, 0]
    assert (ended["ps-0"]["reason"], ended["ps-0"]["stoppedBy"]) == ("stopped", "board")
    assert ended["worker-0"]["reason"] == ended["worker-1"]["reason"] == ""


def test_the_board_may_be_with_a_worker(make_job):
    job = make_job(worker=2, ps=1)
    ended = job.run(ps=FOREVER, worker="true")
    assert ended["ps-0"]["reason"] == "stopped"
    assert ended["worker-0"]["code"] == 0


@pytest.mark.parametrize("failing", ["0", "1", "2"])
def test_a_failure_ends_the_others(make_job, failing):
    """O23, O31: whoever fails, also the task that keeps the board."""
    job = make_job(worker=3)
    command = f"if [ $PAI_TASK_INDEX = {failing} ]; then echo why; exit 5; fi; {FOREVER}"
    ended = job.run(worker=command)
    failed = ended.pop(f"worker-{failing}")
    assert (failed["status"], failed["code"], failed["lastLines"]) == (5, 5, ["why"])
    for each in ended.values():
        assert (each["status"], each["reason"], each["stoppedBy"]) == (0, "stopped", "board")
        assert each["endedAt"] >= failed["endedAt"]


def test_a_failed_pod_leaves_last(make_job, until):
    """Its end makes Kubernetes end the others of its role, whose outputs may still be on their way."""
    job = make_job(worker=2)
    job.spec["commands"]["worker"] = (
        'if [ $PAI_TASK_INDEX = 0 ]; then until [ -e "$GO" ]; do sleep 0.05; done; exit 5; fi; '
        'echo x > "$PAI_OUTPUT_DIR/x"; touch "$GO"; ' + FOREVER
    )
    job.spec["env"]["GO"] = str(job.home / "go")
    first, second = (pod.start() for pod in job.pods.values())
    until(lambda: "Outputs wait to be fetched: 1 file, 2 bytes." in second.log)
    assert not first.ended
    assert first.record["code"] == 5, "the record is there all the same"
    second.outputs("taken")
    assert second.end()["status"] == 0
    assert first.end()["status"] == 5


def test_failures_may_be_forgiven(make_job):
    """O23: minFailedInstances -1; such a pod need not wait for the others."""
    job = make_job(worker=3)
    job.role("worker")["minFailed"] = -1
    job.spec["commands"]["worker"] = (
        'if [ $PAI_TASK_INDEX = 1 ]; then exit 5; fi; until [ -e "$GO" ]; do sleep 0.05; done'
    )
    job.spec["env"]["GO"] = str(job.home / "go")
    pods = [pod.start() for pod in job.pods.values()]
    assert pods[1].end()["status"] == 5
    assert not pods[0].ended
    (job.home / "go").touch()
    assert [pod.end()["status"] for pod in pods] == [0, 5, 0]


def test_enough_successes_end_the_job(make_job):
    """O23: minSucceededInstances."""
    job = make_job(worker=3)
    job.role("worker")["minSucceeded"] = 1
    ended = job.run(worker=f"test $PAI_TASK_INDEX = 2 || {FOREVER}")
    assert [each["reason"] for each in ended.values()] == ["stopped", "stopped", ""]
    assert {each["status"] for each in ended.values()} == {0}


def test_the_missing_are_named(make_job):
    """P28: with a time limit."""
    job = make_job(worker=3)
    job.spec["barrier"]["timeout"] = 3
    pods = [job.pods[key].start() for key in ("worker-0", "worker-1")]
    ended = [pod.end() for pod in pods]
    assert {each["reason"] for each in ended} <= {"barrier-timeout", "stopped"}
    first = min(ended, key=lambda each: each["endedAt"])
    assert first["reason"] == "barrier-timeout"
    assert first["status"] == 43
    assert first["message"].endswith("worker-2 did not get ready within 3 s."), (
        "others may have been late too"
    )


def test_a_peer_whose_name_is_not_known_here_yet_is_waited_for(make_job, until):
    """P28: ready it says to be, but this pod's name server denies it: its program would give up at once."""
    job = make_job(ps=1, worker=2)
    job.spec["commands"] = {"ps": FOREVER, "worker": f"echo begun; {FOREVER}"}
    first, second = job.pods["worker-0"], job.pods["worker-1"]
    second.changes["hosts"] = {**job.spec["hosts"], "worker-0": "nowhere.invalid"}
    for pod in job.pods.values():
        pod.start()
    until(lambda: first.log == "begun\n")
    until(lambda: "the name nowhere.invalid of worker-0 cannot be looked up" in second.log)
    assert "begun" not in second.log
    second.stop()
    assert second.end()["stoppedBy"] == "signal"


def test_a_board_that_never_comes_is_named(make_job):
    """Its name may not even resolve yet."""
    job = make_job(worker=2)
    job.spec["barrier"]["timeout"] = 1.5
    job.spec["hosts"]["worker-0"] = "nowhere.invalid"
    job.spec["outputsSeconds"] = 0.0
    pod = job.pods["worker-1"].start()
    until_board = pod.process.wait(90)
    assert until_board == 43
    message = pod.record["message"]
    assert message.startswith("The tasks did not meet within 1.5 s: worker-0, which keeps the board")
    assert "nowhere.invalid" in message


def test_a_task_whose_name_nobody_knows_is_not_ready(make_job):
    """The names of a cluster come after its pods, and others would look for them in vain."""
    job = make_job(worker=2)
    job.spec["barrier"]["timeout"] = 2
    job.spec["hosts"]["worker-1"] = "nowhere.invalid"
    ended = job.run(worker="true")
    failed = [each for each in ended.values() if each["reason"] == "barrier-timeout"]
    assert failed
    for each in failed:
        assert "worker-1 did not get ready" in each["message"] or "nowhere.invalid" in each["message"]
    assert {each["code"] for each in ended.values()} == {None}


def test_a_stranger_is_not_listened_to(make_job):
    """Decision 10: authenticated by a key in the job's Secret."""
    job = make_job(worker=2)
    job.spec["barrier"]["timeout"] = 3
    job.spec["outputsSeconds"] = 0.0
    first, second = job.pods.values()
    first.start()
    (job.home / "other-key").write_text("ff" * 32)
    job.spec["keyFile"] = str(job.home / "other-key")
    second.start()
    assert first.end()["message"] == "worker-1 did not get ready within 3 s."
    assert second.process.wait(90) == 43


def test_without_a_barrier_each_begins_at_once(make_job, until):
    """extras.gangAllocation: false; the board still ends the job."""
    job = make_job(ps=1, worker=1)
    job.spec["barrier"] = None
    job.spec["commands"] = {"ps": f"echo on; {FOREVER}", "worker": "true"}
    ps = job.pods["ps-0"].start()
    until(lambda: ps.log == "on\n")
    worker = job.pods["worker-0"].start()
    assert (worker.end()["status"], ps.end()["status"]) == (0, 0)
    assert ps.record["stoppedBy"] == "board"


def test_without_a_barrier_a_late_task_does_not_wait_for_a_board_that_has_gone(make_job):
    """The first one began alone, kept the board and has left: nobody holds a node for minutes then."""
    job = make_job(first=1, second=1)
    job.spec.update(barrier=None, boardSeconds=2.0)
    job.spec["commands"] = {"first": "true", "second": "true"}
    first, second = job.pods.values()
    assert first.start().end()["status"] == 0
    assert second.start().end()["status"] == 0, "which waits a minute for it, and a barrier may take ten"


def test_a_board_that_dies_ends_its_job(make_job, until):
    """The node of the first task is lost: nobody trains on for ever."""
    job = make_job(worker=2)
    job.spec["boardSeconds"] = 2.0
    job.spec["commands"]["worker"] = f"echo on; {FOREVER}"
    first, second = (pod.start() for pod in job.pods.values())
    until(lambda: second.log == "on\n")
    os.kill(first.process.pid, signal.SIGKILL)
    ended = second.end()
    assert (ended["status"], ended["reason"]) == (48, "lost")
    assert ended["message"].startswith("The task ended because worker-0, which keeps the board of the job,")


def test_a_task_that_dies_ends_its_job(make_job, until):
    """Its pod was deleted, or its node is gone: it can say nothing any more."""
    job = make_job(worker=3)
    job.spec["boardSeconds"] = 2.0
    job.spec["commands"]["worker"] = f"echo on; {FOREVER}"
    pods = [pod.start() for pod in job.pods.values()]
    until(lambda: all(pod.log == "on\n" for pod in pods))
    os.kill(pods[2].process.pid, signal.SIGKILL)
    assert [pod.end()["stoppedBy"] for pod in pods[:2]] == ["board", "board"]


def test_a_lost_connection_is_made_again(make_job, until):
    """O32: a network that fails for a moment costs nothing."""
    job = make_job(worker=2)
    job.spec["commands"]["worker"] = 'echo on; until [ -e "$GO" ]; do sleep 0.05; done'
    job.spec["env"]["GO"] = str(job.home / "go")
    first, second = job.pods.values()
    with Proxy(job.spec["board"]["port"]) as proxy:
        second.changes["board"] = {"task": "worker-0", "port": proxy.port}
        first.start()
        second.start()
        until(lambda: first.log == second.log == "on\n")
        proxy.cut()
        until(lambda: proxy.accepted > 1)
        (job.home / "go").touch()
        assert (first.end()["status"], second.end()["status"]) == (0, 0)


def test_deleting_all_pods_ends_all_at_once(make_job, until):
    """P24: a stop of the job."""
    job = make_job(ps=1, worker=2)
    job.spec["commands"] = dict.fromkeys(("ps", "worker"), f"echo on; {FOREVER}")
    pods = [pod.start() for pod in job.pods.values()]
    until(lambda: all(pod.log == "on\n" for pod in pods))
    for pod in pods:
        pod.stop()
    for pod in pods:
        assert pod.end()["reason"] == "stopped"


class Proxy:
    """A way to the board that can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self._open: list[socket.socket] = []

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:  # the board is not there yet; who asks for it asks again
                    near.close()
                    continue
                self._open += [near, far]
                self.accepted += 1
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(4096):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
    one.close()
