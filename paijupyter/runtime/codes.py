"""The exit status of a pod's container: the user's own, or one that tells our failures apart."""

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

INTERNAL = 49
TERMINATED = 143  # as after SIGTERM: for Kubernetes a task that somebody else ended has not succeeded
_CODES = {
    "package": 41,
    "requirements": 42,
    "barrier-timeout": 43,
    "data": 44,
    "secret": 45,
    "no-shell": 46,
    "launcher": 46,
    "ports": 46,
    "deadline": 47,
    "lost": 48,
    "internal": INTERNAL,
}
_SIGNALS_FROM = 128


def status(record: "Dict[str, Any]") -> int:
    """Return the exit status for a record of how a task ended (see :mod:`.record`)."""
    reason = record["reason"]
    if reason == "stopped":
        return 0 if record["stoppedBy"] == "board" else TERMINATED
    if record["code"] == 0 and not reason:
        return 0
    if reason in _CODES:
        return _CODES[reason]
    if record["signal"]:
        return _SIGNALS_FROM + int(getattr(signal, record["signal"], 0))
    return int(record["code"] or 1)
