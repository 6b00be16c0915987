"""The barrier of a task in a pod: its keeper, the parent process, says when it opens."""

import json
import os
import select
import time

from .barrier import DEFAULT_TIMEOUT, SPEAK_AFTER, names
from .failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from .transcript import Transcript
    from .watch import Watch

_LONGEST = 1.0  # seconds between two looks at the clock


def wait(barrier: "Dict[str, Any]", watch: "Watch", transcript: "Transcript") -> None:
    """Say that this task is ready, and return when all peers are.

    Args:
        barrier: ``descriptor`` of the connection to the keeper, ``timeout``.
        watch: what may end the task early.
        transcript: where it is said who is missing.

    Raises:
        Failure: ``barrier-timeout`` naming who is missing, or the watch's verdict.
    """
    descriptor = int(barrier["descriptor"])
    os.write(descriptor, b"ready\n")
    begin = time.monotonic()
    timeout = float(barrier.get("timeout") or DEFAULT_TIMEOUT)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(watch.descriptor, select.POLLIN)
    unread = b""
    told: "Dict[str, Any]" = {}
    spoken = False
    while not told.get("go"):
        watch.check()
        waited = time.monotonic() - begin
        if told.get("gone"):
            raise Failure("barrier-timeout", "%s ended before it was ready." % names(told["gone"]))
        if waited > timeout:
            raise Failure("barrier-timeout", _missing(told, timeout))
        if not spoken and waited > SPEAK_AFTER and told:
            transcript.note(told.get("trouble") or _waiting(told))
            spoken = True
        poll.poll(min(_LONGEST, max(timeout - waited, 0.01)) * 1000)
        watch.drain()
        *lines, unread = (unread + _read(descriptor)).split(b"\n")
        if lines:
            told = json.loads(lines[-1].decode("ascii"))


def _waiting(told: "Dict[str, Any]") -> str:
    return "Waiting for %s to get ready." % names(told["missing"], told["lacking"])


def _missing(told: "Dict[str, Any]", timeout: float) -> str:
    if told.get("trouble") or not told.get("missing"):
        return "The tasks did not meet within %g s: %s." % (timeout, told.get("trouble") or "nobody answered")
    return "%s did not get ready within %g s." % (names(told["missing"], told["lacking"]), timeout)


def _read(descriptor: int) -> bytes:
    try:
        data = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""
    if not data:
        raise Failure("lost", "The first process of the pod is gone.")
    return data
