"""The first process of a pod: it keeps the boot process of the task, which is its child.

It hands on what the board says, ends the task when it must, and stays until its outputs are fetched and
nobody needs this pod any more. The child works as on any other machine; a pair of sockets connects the two.
"""

import json
import os
import signal
import socket
import time

from . import codes, memory, outgoing, record, tree
from .alone import Alone
from .failure import Failure
from .loop import Loop
from .process import signal_name
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .host_names import HostNames
    from .tasks import Spec

_TICK = 1.0  # seconds between two looks at what nobody calls for
_SHORT_TICK = 0.2  # while somebody fetches outputs
_PATIENCE = 20.0  # seconds after the grace time until a boot process that does not end is killed
_PEERS = 32  # tasks at most whose names are looked up before the start; the first of each role come first
_DENIED = 35.0  # seconds: CoreDNS, as Kubernetes sets it up, keeps for up to 30 s that a name is not known
_FAREWELL = 60.0  # seconds beyond what others may take
_KILLED = "The boot process of the task was killed, often because memory ran out."


class Keeper:
    """Keeps one task.

    Args:
        spec: of the task.
        boot: runs the task to its end, in the child; it is given the descriptor of its barrier.
        join: makes the connection to the other tasks, whose descriptors wait in the loop.
    """

    def __init__(self, spec: "Spec", boot: "Callable[[int], None]", join: "Callable[[Loop], Any]") -> None:
        self._spec = spec
        self._boot = boot
        self._join = join
        self._loop = Loop()
        self._others: "Any" = Alone()
        self._state: "Dict[str, Any]" = {"ready": False, "ended": None, "done": False}
        self._own_name: "Optional[HostNames]" = None
        self._peer_names: "Optional[HostNames]" = None
        self._child_waits = False
        self._told = b""
        self._failure: "Optional[Failure]" = None
        self._ended_by = ""  # board, signal or lost
        self._kill_at = self._fetch_until = self._leave_by = 0.0
        self._record: "Dict[str, Any]" = {}

    def run(self) -> int:
        """Carry the task to its end; return the exit status of the pod."""
        tree.adopt_orphans()
        self._watch = Watch(None)
        self._kills = memory.kills()
        self._fork()
        self._loop.watch(self._watch.descriptor, self._watch.drain)
        self._loop.watch(self._gate, self._hear_child)
        try:
            self._others = self._join(self._loop)
            self._own_name = self._look_for_own_name()
        except Failure as failure:
            self._failure = failure
        while True:
            now = time.monotonic()
            self._others.tick(now)
            if self._pid:
                self._guide(now)
            elif self._may_leave(now):
                break
            self._loop.turn(_SHORT_TICK if self._fetch_until else _TICK)
            self._reap()
        self._write_record()
        return codes.status(self._record)

    # The child

    def _fork(self) -> None:
        mine, theirs = socket.socketpair()
        # Until the child listens to it, a request to stop must wait and not kill.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                mine.close()
                theirs.setblocking(False)
                self._boot(theirs.fileno())
                status = 0
            finally:
                os._exit(status)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        theirs.close()
        mine.setblocking(False)
        self._gate = mine

    def _hear_child(self) -> None:
        try:
            data = self._gate.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._loop.forget(self._gate)
        else:
            self._child_waits = True

    def _look_for_own_name(self) -> "Optional[HostNames]":
        """Look up what others will call this task by: it is ready once they can."""
        if not self._spec.get("barrier"):
            return None
        from .host_names import HostNames

        return HostNames([(self._spec["hosts"][self._own], "this task")], self._loop)

    def _look_for_peers(self) -> "HostNames":
        """Look up the tasks that this one will call.

        All are known somewhere by now, but a name server that was asked too early may deny it for a while
        yet, and programs such as ``torch.distributed`` give up at once.
        """
        from .host_names import HostNames

        firsts = ["%s-0" % role["name"] for role in self._spec["roles"]]
        peers = firsts + [task for task in self._spec["hosts"] if task not in firsts]
        asked = [task for task in peers if task != self._own][:_PEERS]
        return HostNames([(self._spec["hosts"][task], task) for task in asked], self._loop, _DENIED)

    @property
    def _own(self) -> str:
        return "%s-%d" % (self._spec["role"], self._spec["index"])

    def _may_go(self, orders: "Dict[str, Any]") -> bool:
        """Say whether the barrier is open and the others can be called."""
        if not orders.get("go"):
            return False
        if self._own_name is not None and self._peer_names is None:
            self._peer_names = self._look_for_peers()
        return self._peer_names is None or self._peer_names.are_found

    def _guide(self, now: float) -> None:
        """Tell the child what it waits for, or to end."""
        is_found = self._own_name is None or self._own_name.are_found
        if self._child_waits and is_found and not self._state["ready"]:
            self._say(ready=True)
        orders = self._others.orders
        by = "lost" if self._failure or self._others.is_lost else "board" if orders.get("stop") else ""
        by = by or ("signal" if self._watch.verdict else "")
        if by and not self._ended_by:
            self._ended_by = by
            self._kill_at = now + float(self._spec.get("graceSeconds") or 0) + _PATIENCE
            if by == "lost" and not self._failure:
                self._failure = Failure("lost", "The task ended because %s." % self._others.trouble)
            os.kill(self._pid, signal.SIGTERM)
        if self._kill_at and now > self._kill_at:
            tree.signal_all(signal.SIGKILL, self._pid)
        if self._child_waits and not by:
            told = {key: orders[key] for key in ("missing", "lacking", "gone") if key in orders}
            told["go"] = self._may_go(orders)
            looks = self._peer_names or self._own_name
            trouble = (looks.trouble if looks else "") or self._others.trouble
            text = json.dumps(dict(told, trouble=trouble)).encode("ascii") + b"\n"
            if text != self._told:
                self._told = text
                try:
                    self._gate.send(text)
                except OSError:
                    pass  # past its barrier, or ended

    def _reap(self) -> None:
        """Collect what has ended; orphans of the task come here too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid, status = 0, 0
            if pid == 0:
                return
            if pid == self._pid:
                self._pid = 0
                tree.signal_all(signal.SIGKILL, pid)  # nothing is left unless it was killed itself
                self._take_end(status)

    # Its end

    def _take_end(self, status: int) -> None:
        self._record = self._result(status)
        succeeded = self._record["code"] == 0 and not self._record["reason"]
        stopped = self._record["stoppedBy"] == "board"
        if outgoing.waiting(self._spec["output"])[0]:
            self._fetch_until = time.monotonic() + float(self._spec["outputsSeconds"])
        self._write_record()  # now already: whoever kills this pod later takes no fact along
        self._say(ended={"ok": succeeded, "stopped": stopped})

    def _result(self, status: int) -> "Dict[str, Any]":
        try:
            with open(os.path.join(self._spec["folder"], "exit.json"), "rb") as stream:
                found: "Dict[str, Any]" = json.loads(stream.read().decode("utf-8"))
        except (OSError, ValueError):
            found = self._without_record(status)
        if self._failure and (found["reason"] == "stopped" or self._failure.reason != "lost"):
            found.update(code=None, signal=None, reason=self._failure.reason, message=self._failure.message)
        found["stoppedBy"] = self._ended_by if found["reason"] == "stopped" else None
        return found

    def _without_record(self, status: int) -> "Dict[str, Any]":
        name = signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None
        memory_ran_out = memory.kills() > self._kills
        return {
            "code": None,
            "signal": name,
            "reason": "out-of-memory" if memory_ran_out else "internal" if name is None else "lost",
            "message": "The task ran out of memory." if memory_ran_out else _KILLED,
            "startedAt": None,
            "endedAt": time.time(),
            "lastLines": [],
        }

    def _write_record(self) -> None:
        record.write(self._spec["terminationLog"], self._record)

    # After its end

    def _may_leave(self, now: float) -> bool:
        if self._fetch_until:
            if not self._are_outputs_gone(now):
                return False
            self._fetch_until = 0.0
        if not self._state["done"]:
            self._leave_by = now + float(self._spec["outputsSeconds"]) + _FAREWELL
            self._say(done=True)
        if self._others.is_needed:
            return bool(self._others.may_leave(now))
        if now > self._leave_by:
            return True
        told = bool(self._others.may_leave(now))
        return told and (not self._holds or self._others.is_alone or bool(self._others.orders.get("over")))

    def _are_outputs_gone(self, now: float) -> bool:
        if outgoing.are_taken(self._spec):
            return True
        if self._watch.verdict:  # the pod is being deleted
            self._fetch_until = min(self._fetch_until, now + float(self._spec["fetchSeconds"]))
        if now < self._fetch_until:
            return False
        words = "Its outputs were not fetched in time."
        self._record["message"] = ("%s %s" % (self._record["message"], words)).lstrip()
        return True

    @property
    def _holds(self) -> bool:
        """Say whether this pod's end would take others along.

        A failed pod makes Kubernetes end the others of its role, with what they still have to say. Where
        failures are forgiven the Job is told so (``backoffLimitPerIndex``), and does not.
        """
        (role,) = [each for each in self._spec["roles"] if each["name"] == self._spec["role"]]
        return codes.status(self._record) != 0 and role["minFailed"] == 1 and not self._watch.verdict

    def _say(self, **news: "Any") -> None:
        self._state = dict(self._state, **news)
        self._others.tell(self._state)
