"""The exit record: why a task ended, in words and numbers."""

import signal
import time

from .files import write_json
from .process import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from .failure import Failure
    from .memory_limit import MemoryLimit
    from .process import Outcome

OUT_OF_MEMORY = "out-of-memory"
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_SIGNALS_FROM = 128
_TRIES = 30  # a second apart: others may free space
_KILLED = _SIGNALS_FROM + 9


class Exit:
    """Code, signal, reason and message of a task's end; empty reason: it succeeded."""

    def __init__(self, code: "Optional[int]", name: "Optional[str]", reason: str, message: str) -> None:
        self.code = code
        self.signal = name
        self.reason = reason
        self.message = message

    def to_json(self, started: float, ended: float, last_lines: "List[str]") -> "Dict[str, Any]":
        """Return ``exit.json``; times are seconds since the epoch."""
        return {
            "code": self.code,
            "signal": self.signal,
            "reason": self.reason,
            "message": self.message,
            "startedAt": started,
            "endedAt": ended,
            "lastLines": last_lines,
        }


def write(path: str, record: "Dict[str, Any]") -> None:
    """Write the exit record; on a full disk without its last lines, and patiently.

    Raises:
        OSError: there is no place for it after all; the backend will call the task lost.
    """
    for _ in range(_TRIES):
        try:
            write_json(path, record)
            return
        except OSError:
            record["lastLines"] = []
            time.sleep(1)
    write_json(path, record)


def of_failure(failure: "Failure") -> Exit:
    """Return the exit of a task whose command never ran."""
    return Exit(None, None, failure.reason, failure.message)


def of_command(
    outcome: "Outcome",
    why: str,
    memory_kills: int,
    last_lines: "List[str]",
    limit: "Optional[MemoryLimit]" = None,
) -> Exit:
    """Return the exit of the user's command.

    Args:
        outcome: how it ended.
        why: the sentence for the outcome's verdict.
        memory_kills: processes of this control group that memory pressure ended meanwhile.
        last_lines: what it said last.
        limit: its limit of memory, if it had one.
    """
    if outcome.verdict:
        return Exit(outcome.code, outcome.signal, outcome.verdict, why)
    if outcome.code == 0:
        return Exit(0, None, "", "")
    if limit and limit.kills():
        return Exit(outcome.code, outcome.signal, OUT_OF_MEMORY, limit.words)
    killed = outcome.signal == "SIGKILL" or outcome.code == _KILLED
    # Others may share the control group (a notebook server's, say), so the count alone proves nothing.
    if memory_kills > 0 and (killed or any("kill" in line.lower() for line in last_lines)):
        return Exit(outcome.code, outcome.signal, OUT_OF_MEMORY, "The task ran out of memory.")
    return Exit(outcome.code, outcome.signal, "user", _words(outcome, killed))


def _words(outcome: "Outcome", killed: bool) -> str:
    if outcome.signal:
        words = "The command was ended by %s." % outcome.signal
    elif outcome.code == _NOT_FOUND:
        words = "The command was not found (exit status 127)."
    elif outcome.code == _NOT_EXECUTABLE:
        words = "The command is not executable (exit status 126)."
    elif outcome.code is not None and _SIGNALS_FROM < outcome.code < _SIGNALS_FROM + signal.NSIG:
        name = signal_name(outcome.code - _SIGNALS_FROM)
        words = "The command exited with status %d, as after %s." % (outcome.code, name)
    else:
        words = "The command exited with status %s." % outcome.code
    return words + (" Often that means that the machine ran out of memory." if killed else "")
