"""Wait until every task of the job is ready."""

import os
import time

from .failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .transcript import Transcript
    from .watch import Watch

_SHORTEST = 0.005  # seconds between two looks, at first
_LONGEST = 0.25
_PATIENCE = 5.0  # seconds for the backend to act on a peer that ended before it was ready
SPEAK_AFTER = 5.0  # seconds of waiting until the log says so
DEFAULT_TIMEOUT = 600.0
_NAMED = 5


def wait(barrier: "Dict[str, Any]", watch: "Watch", transcript: "Transcript") -> None:
    """Return when all peers are ready.

    Raises:
        Failure: ``barrier-timeout`` naming who is missing, or the watch's verdict.
    """
    if barrier.get("kind") == "keeper":
        from . import gate

        gate.wait(barrier, watch, transcript)
        return
    begin = time.monotonic()
    timeout = float(barrier.get("timeout") or DEFAULT_TIMEOUT)
    missing = dict(barrier.get("tasks") or {})
    pause = _SHORTEST
    lost_since = 0.0
    spoken = False
    while True:
        # Ended first: a peer that gets ready and ends between the two looks must count as ready.
        ended = [task for task in missing if os.path.exists(os.path.join(missing[task], "exit.json"))]
        missing = {task: at for task, at in missing.items() if not os.path.exists(os.path.join(at, "ready"))}
        if not missing:
            return
        watch.check()
        now = time.monotonic()
        lost = [task for task in ended if task in missing]
        lost_since = lost_since or (now if lost else 0.0)
        if lost and now - lost_since > _PATIENCE:
            raise Failure("barrier-timeout", "%s ended before it was ready." % names(lost))
        if now - begin > timeout:
            raise Failure(
                "barrier-timeout", "%s did not get ready within %g s." % (names(list(missing)), timeout)
            )
        if not spoken and now - begin > SPEAK_AFTER:
            transcript.note("Waiting for %s to get ready." % names(list(missing)))
            spoken = True
        watch.sleep(min(pause, max(0.0, begin + timeout - now) + _SHORTEST))
        pause = min(pause * 1.5, _LONGEST)


def names(tasks: "List[str]", count: int = 0) -> str:
    """Return some tasks by name, and how many more there are.

    Args:
        tasks: those that are known by name.
        count: how many there are in all, if that is more.
    """
    more = max(len(tasks), count) - min(len(tasks), _NAMED)
    shown = ", ".join(tasks[:_NAMED])
    return "%s and %d more tasks" % (shown, more) if more else shown
