"""A task in a pod: ``python -I -S boot.pyz pod SPEC``, the first process of its container.

All pods of an attempt have the same spec; role and index come from the environment. Beyond what
:mod:`paijupyter.runtime` describes, or in place of it, the spec has:

- ``commands``: by role; ``keyFile``: with what only the tasks of the job know, or null for a task alone
- ``run``: a folder that is this pod's own: records, package, outputs, caches; ``kept``: a folder of the job
  on a volume, for checkpoints and outputs, or null
- ``parcels``: packages as they were delivered, see :mod:`.parcels`; ``package`` and the ``package`` of a
  source of data name one by its number
- ``board``: ``task`` that keeps it and ``port``, or null; ``boardSeconds``: after how long a silent side is
  given up; ``barrier``: ``timeout``, or null
- ``outputsSeconds``: how long outputs wait until they are fetched, ``fetchSeconds``: when the pod is deleted
- ``terminationLog``: where the record of the end goes
"""

import json
import os
import signal
import sys
import time

from . import codes, exits, files, outgoing, record
from .alone import Alone
from .delivered import delivered
from .failure import Failure
from .keeper import Keeper
from .stdout import StandardOutput
from .tasks import all_tasks, key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

    from .loop import Loop
    from .tasks import Spec

ROLE = "PAIJUPYTER_ROLE"
INDEX = "JOB_COMPLETION_INDEX"
_TERMINATION_LOG = "/dev/termination-log"
_SOON = 30.0  # seconds for the board of a job to be found where tasks do not wait for each other


def main(argv: "List[str]") -> int:
    """Run the task of this pod, by the spec file ``argv[2]``; return the exit status of its container."""
    log = StandardOutput()
    spec: "Spec" = {"terminationLog": _TERMINATION_LOG}
    started = time.time()
    try:
        spec = read_spec(argv[2], os.environ)
        own = own_spec(spec, os.environ)
        secret = _secret(spec)
        _forget_earlier(own)
        _make_home(own)
        return Keeper(own, lambda gate: _boot(own, secret, gate), lambda loop: _join(own, secret, loop)).run()
    except Failure as failure:
        reason, message = failure.reason, failure.message
    except Exception as error:  # a mistake of ours must leave a record too
        import traceback

        reason, message = "internal", "The pod failed (%s: %s)." % (type(error).__name__, error)
        log.note(traceback.format_exc())
    log.note(message)
    found = exits.Exit(None, None, reason, message).to_json(started, time.time(), log.last_lines())
    found["stoppedBy"] = None
    record.write(spec["terminationLog"], found)
    return codes.status(found)


def read_spec(path: str, variables: "Mapping[str, str]") -> "Spec":
    """Read the spec of this pod's job; of several jobs that are one on the cluster, each index is one."""
    with open(path, "rb") as stream:
        spec: "Dict[str, Any]" = json.loads(stream.read().decode("utf-8"))
    if "members" in spec:
        spec = dict(spec["members"][int(variables.get(INDEX) or 0)], index=0)
    return spec


def own_spec(spec: "Spec", variables: "Mapping[str, str]") -> "Spec":
    """Return the spec of this pod's task, as boot understands it.

    Raises:
        Failure: ``internal`` if the variables name no task of the job.
    """
    role, index = variables.get(ROLE, ""), int(spec.get("index", variables.get(INDEX) or 0))
    tasks = [key(*pair) for pair in all_tasks(spec)]
    own = "%s-%d" % (role, index)
    if own not in tasks:
        raise Failure("internal", "The pod is for the task `%s`, which the job does not have." % own)
    run, kept = spec["run"], spec.get("kept")
    found = dict(
        spec,
        role=role,
        index=index,
        command=spec["commands"][role],
        folder=os.path.join(run, "task"),
        private=os.path.join(run, "private"),
        output=os.path.join(kept, "output", own) if kept else os.path.join(run, "output"),
        checkpoints=os.path.join(kept or run, "checkpoints"),
        fetch=True,
    )
    found.update(delivered(spec, run))
    return found


def _secret(spec: "Spec") -> bytes:
    """Return what only the tasks of the job know."""
    if not spec.get("keyFile"):
        return b""
    try:
        with open(spec["keyFile"], "rb") as stream:
            return stream.read().strip()
    except OSError as error:
        raise Failure("secret", "The key of the job cannot be read (%s)." % error.strerror) from error


def _forget_earlier(spec: "Spec") -> None:
    """Remove what a container before this one, of the same pod, has left to be read."""
    files.remove_file(os.path.join(spec["folder"], "exit.json"))
    outgoing.forget(spec)


def _make_home(spec: "Spec") -> None:
    """Give a user without a home or a name, as images run by number have, what programs ask for."""
    run = spec["run"]
    home = os.environ.get("HOME") or "/"
    if home == "/" or not os.access(home, os.W_OK):
        os.environ["HOME"] = os.path.join(run, "home")
        os.makedirs(os.environ["HOME"], exist_ok=True)
    if not os.environ.get("USER"):
        os.environ["USER"] = os.environ.get("LOGNAME") or _user_name() or spec["job"]["user"]
    os.environ.setdefault("LOGNAME", os.environ["USER"])
    if not os.access(os.environ.get("TMPDIR") or "/tmp", os.W_OK):
        os.environ["TMPDIR"] = os.path.join(run, "tmp")
        os.makedirs(os.environ["TMPDIR"], exist_ok=True)


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _boot(spec: "Spec", secret: bytes, gate: int) -> None:
    """Be the boot process of the task."""
    from .boot import Boot

    os.setsid()
    told = dict(spec)
    if spec.get("barrier"):
        told["barrier"] = dict(spec["barrier"], kind="keeper", descriptor=gate)
    if secret:
        from .wire import derived

        told["key"] = derived(secret, "tasks of attempt %d" % spec["job"]["attempt"]).hex()
    else:  # a task alone shares it with nobody
        told["key"] = os.urandom(32).hex()
    os.makedirs(spec["folder"], mode=0o700, exist_ok=True)
    boot = Boot(told, StandardOutput(int(spec.get("logLimitBytes") or 0)))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
    boot.run()


def _join(spec: "Spec", secret: bytes, loop: "Loop") -> "Any":
    """Return the connection to the other tasks, or the board itself."""
    board = spec.get("board")
    if not board:
        return Alone()
    from .barrier import DEFAULT_TIMEOUT
    from .board import PATIENCE, Board
    from .wire import derived

    if not secret:
        raise Failure("secret", "The key of the job is empty, so its tasks cannot talk to each other.")
    own = "%s-%d" % (spec["role"], spec["index"])
    board_key = derived(secret, "board of attempt %d" % spec["job"]["attempt"])
    if own != board["task"]:
        from .member import Member

        task, patience = board["task"], float(spec.get("boardSeconds") or PATIENCE)
        barrier = spec.get("barrier")
        # Where nothing waits for all, the task with the board may have ended before this one has begun.
        first_patience = float(barrier.get("timeout") or DEFAULT_TIMEOUT) if barrier else min(patience, _SOON)
        address = (spec["hosts"][task], board["port"])
        return Member(own, task, address, board_key, patience, first_patience, loop)
    from . import deciding  # type: ignore[attr-defined] # in the archive only: a copy of protocol/deciding.py
    from .host import Host

    tasks = [key(*pair) for pair in all_tasks(spec)]
    return Host(Board(spec, deciding, tasks, time.monotonic()), own, board_key, board["port"], loop)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
