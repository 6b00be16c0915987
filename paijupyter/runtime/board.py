"""The board of a job: what its tasks say of themselves, and what they are to do. No input or output here.

It holds the barrier, applies the completion policy and tells the rest to end, so that a job of several roles
ends by itself, whoever is there to watch it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .tasks import Spec

PATIENCE = 120.0
"""Seconds after which a task that says nothing counts as lost, and so does the board."""
_NAMED = 5


class Board:
    """What is known of all tasks.

    Args:
        spec: of any of them.
        deciding: the module of that name: when has the job ended?
        tasks: their keys, in document order.
        now: seconds on the clock that all calls use.
    """

    def __init__(self, spec: "Spec", deciding: "Any", tasks: "List[str]", now: float) -> None:
        self._deciding = deciding
        self._tasks = tasks
        self._policies = {
            role["name"]: deciding.Policy(role["instances"], role["minFailed"], role["minSucceeded"])
            for role in spec["roles"]
        }
        self._patience = float(spec.get("boardSeconds") or PATIENCE)
        barrier = spec.get("barrier")
        self._barrier = bool(barrier)
        self._patient_until = now + float((barrier or {}).get("timeout") or 0)
        self._heard: "Dict[str, float]" = {}
        self._ready: "Dict[str, bool]" = {}
        self._ends: "Dict[str, str]" = {}  # task to succeeded, failed or stopped
        self._done: "Dict[str, bool]" = {}
        self._go = not self._barrier
        self.stop = ""  # why all tasks are to end, once that is decided

    def hear(self, task: str, state: "Dict[str, Any]", now: float) -> None:
        """Take what a task says: ``ready``, ``ended`` (``ok``, ``stopped``) or None, ``done``."""
        if task not in self._tasks:
            return
        self._heard[task] = now
        self._ready[task] = self._ready.get(task, False) or bool(state.get("ready"))
        self._go = self._go or all(self._ready.get(each) for each in self._tasks)
        ended = state.get("ended")
        if ended and task not in self._ends:
            self._take_end(
                task, "stopped" if ended.get("stopped") else "succeeded" if ended["ok"] else "failed"
            )
        if state.get("done"):
            self._done[task] = True

    def look(self, now: float) -> "List[str]":
        """Count tasks that have been silent for too long as failed; return their names."""
        silent = [
            task for task, at in self._heard.items() if now - at > self._patience and not self._done.get(task)
        ]
        for task in silent:
            self._done[task] = True
            if task not in self._ends:
                self._take_end(task, "failed")
        return silent

    def is_over(self, now: float) -> bool:
        """Say whether nobody is left who needs the board."""
        if not all(self._done.get(task) for task in self._heard):
            return False
        return bool(self.stop) or len(self._heard) == len(self._tasks) or now > self._patient_until

    def orders(self, now: float) -> "Dict[str, Any]":
        """Return what every task is told: all of it, each time.

        ``go``: the barrier is open; ``missing``: some who are not ready, of ``lacking`` in all; ``gone``:
        some of them that have ended; ``stop``: why to end, or ""; ``over``: no task has anything left to do.
        """
        missing = [] if self._go else [task for task in self._tasks if not self._ready.get(task)]
        return {
            "go": self._go,
            "missing": missing[:_NAMED],
            "lacking": len(missing),
            "gone": [task for task in missing if task in self._ends][:_NAMED],
            "stop": self.stop,
            "over": self.is_over(now),
        }

    def _take_end(self, task: str, how: str) -> None:
        self._ends[task] = how
        if self.stop or how == "stopped":
            return
        counts = {}
        for role in self._policies:
            ends = [end for each, end in self._ends.items() if each.rpartition("-")[0] == role]
            counts[role] = self._deciding.Counts(ends.count("succeeded"), ends.count("failed"))
        verdict = self._deciding.decide(self._policies, counts)
        if verdict:
            self.stop = verdict.message
