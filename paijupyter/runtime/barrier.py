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
_SPEAK_AFTER = 5.0  # seconds of waiting until the log says so
_DEFAULT_TIMEOUT = 600.0


def wait(barrier: "Dict[str, Any]", watch: "Watch", transcript: "Transcript") -> None:
    """Return when all peers are ready.

    Raises:
        Failure: ``barrier-timeout`` naming who is missing, or the watch's verdict.
    """
    if barrier.get("kind", "files") != "files":
        raise Failure("internal", "The barrier of kind `%s` is not known in the task." % barrier["kind"])
    begin = time.monotonic()
    timeout = float(barrier.get("timeout") or _DEFAULT_TIMEOUT)
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
            raise Failure("barrier-timeout", "%s ended before it was ready." % _names(lost))
        if now - begin > timeout:
            raise Failure(
                "barrier-timeout", "%s did not get ready within %g s." % (_names(list(missing)), timeout)
            )
        if not spoken and now - begin > _SPEAK_AFTER:
            transcript.note("Waiting for %s to get ready." % _names(list(missing)))
            spoken = True
        watch.sleep(min(pause, max(0.0, begin + timeout - now) + _SHORTEST))
        pause = min(pause * 1.5, _LONGEST)


def _names(tasks: "List[str]") -> str:
    shown = ", ".join(tasks[:5])
    return shown if len(tasks) <= 5 else "%s and %d more tasks" % (shown, len(tasks) - 5)
