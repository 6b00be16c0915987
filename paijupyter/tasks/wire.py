"""Words between server and worker, the proof that both know the key, and where they find each other."""

import hmac
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Set, Tuple


class TaskQueueError(Exception):
    """The queue of blocks cannot be served or used."""


def say(stream: "Any", message: "Dict[str, Any]") -> None:
    """Write one message, a line of JSON."""
    stream.write(json.dumps(message).encode("ascii") + b"\n")
    stream.flush()


def hear(stream: "IO[bytes]") -> "Dict[str, Any]":
    """Read one message.

    Raises:
        ConnectionError: the other side is gone.
        ValueError: it speaks another language.
    """
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("it hung up")
    found: "Dict[str, Any]" = json.loads(line.decode("ascii"))
    return found


def exchange(stream: "IO[bytes]", message: "Dict[str, Any]") -> "Dict[str, Any]":
    """Say something and return the answer."""
    say(stream, message)
    return hear(stream)


def proof(key: bytes, side: str, server: str, worker: str) -> str:
    """Return what only one who knows the key can say about these two random texts, as that side."""
    words = "pai-tasks 1 %s %s %s" % (side, server, worker)
    return hmac.new(key, words.encode("utf-8"), "sha256").hexdigest()


def proves(said: str, key: bytes, side: str, server: str, worker: str) -> bool:
    """Say whether the other side has proved to know the key."""
    expected = proof(key, side, server, worker).encode("ascii")
    return hmac.compare_digest(said.encode("utf-8", "replace"), expected)


def address_of(label: str) -> "Tuple[str, int]":
    """Return where the first task serves that has a port of this label.

    Raises:
        TaskQueueError: there is none.
    """
    for role in (os.environ.get("PAI_TASK_ROLE_LIST") or "").split(","):
        port = os.environ.get("PAI_PORT_LIST_%s_0_%s" % (role, label), "").split(",")[0]
        if port:
            return os.environ["PAI_HOST_IP_%s_0" % role], int(port)
    words = "No task of this job has a port `%s`: give one to the role that serves (--role queue:1,port=%s)."
    raise TaskQueueError(words % (label, label))


def job_key() -> bytes:
    """Return what all tasks of this attempt of the job know, and nobody else.

    Raises:
        TaskQueueError: this is no task, or its backend gives it no key.
    """
    try:
        with open(os.environ["PAI_JOB_KEY_FILE"], "rb") as stream:
            return stream.read()
    except (KeyError, OSError):
        raise TaskQueueError("The job's key is not there ($PAI_JOB_KEY_FILE); pass one as key=.") from None


def own_name() -> str:
    """Return the name of this task, or of this process outside of a job."""
    role = os.environ.get("PAI_CURRENT_TASK_ROLE_NAME")
    index = os.environ.get("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "0")
    return "%s-%s" % (role, index) if role else "process-%d" % os.getpid()


def other_tasks() -> "Set[str]":
    """Return the names of all tasks of the job but this one; none outside of a job."""
    found: "Set[str]" = set()
    for role in filter(None, (os.environ.get("PAI_TASK_ROLE_LIST") or "").split(",")):
        count = int(os.environ.get("PAI_TASK_ROLE_TASK_COUNT_" + role) or 0)
        found.update("%s-%d" % (role, index) for index in range(count))
    return found - {own_name()}
