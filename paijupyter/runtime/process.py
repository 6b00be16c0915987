"""Run one command: read its output through one pipe, end its whole tree of processes."""

import os
import select
import signal
import time

from . import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

    from .memory_limit import MemoryLimit
    from .reports import Reports
    from .watch import Watch

SILENCE = 1.0  # seconds that a background process may stay silent after the command has ended
LONGEST_SILENCE = 5.0  # seconds that one that is not silent may go on
LEFTOVER_GRACE = 2.0  # seconds between TERM and KILL for what the command left behind
TICK = 0.05  # seconds between two looks at a tree that is being ended
_CHUNK = 1 << 18
_F_SETPIPE_SZ = 1031


class Outcome:
    """How a command ended.

    Attributes:
        code: exit status, or None if a signal ended it.
        signal: name of the signal that ended it, or None.
        verdict: why it was made to end, "" if it ended by itself.
        error: why it could not be started, or None.
    """

    def __init__(self, status: int, verdict: str, error: "Optional[OSError]") -> None:
        killed = os.WIFSIGNALED(status)
        self.code = None if killed or error else os.WEXITSTATUS(status)
        self.signal = signal_name(os.WTERMSIG(status)) if killed else None
        self.verdict = verdict
        self.error = error


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


class Runner:
    """Runs commands, one at a time.

    Args:
        watch: what may end them early.
        whole_tree: their orphans become children of this process (:func:`tree.adopt_orphans`).
    """

    def __init__(self, watch: "Watch", whole_tree: bool) -> None:
        self._watch = watch
        self._whole_tree = whole_tree

    def run(
        self,
        argv: "List[str]",
        env: "Dict[str, str]",
        cwd: str,
        sink: "Callable[[bytes], None]",
        grace: float,
        limit: "Optional[MemoryLimit]" = None,
        reports: "Optional[Reports]" = None,
    ) -> Outcome:
        """Run a command to its end; nothing of it is left when this returns.

        Args:
            argv: the command; its first word is a path.
            env: all its environment.
            cwd: its working directory.
            sink: gets its stdout and stderr, in the order in which they were written.
            grace: seconds between TERM and KILL.
            limit: what it may use of memory, or None.
            reports: tell of it while it runs, or None.
        """
        run = _Run(self._watch, sink, grace, self._whole_tree, limit, reports)
        return run.complete(argv, env, cwd)


class _Run:
    def __init__(
        self,
        watch: "Watch",
        sink: "Callable[[bytes], None]",
        grace: float,
        whole_tree: bool,
        limit: "Optional[MemoryLimit]",
        reports: "Optional[Reports]",
    ) -> None:
        self._limit = limit
        self._reports = reports
        self._watch = watch
        self._sink = sink
        self._grace = grace
        self._whole_tree = whole_tree
        self._status: "Optional[int]" = None
        self._verdict = ""
        self._kill_at: "Optional[float]" = None
        self._heard = 0.0
        self._ended = 0.0

    def complete(self, argv: "List[str]", env: "Dict[str, str]", cwd: str) -> Outcome:
        pid, output, error = spawn(argv, env, cwd, self._limit.door if self._limit else None)
        self._pid = pid
        self._open = True
        if self._limit:
            self._limit.begin(pid)
        poll = select.poll()
        poll.register(output, select.POLLIN)
        poll.register(self._watch.descriptor, select.POLLIN)
        try:
            while self._goes_on():
                for descriptor, _ in poll.poll(self._timeout()):
                    if descriptor == output and not self._read(output):
                        poll.unregister(output)
                        self._open = False
                self._watch.drain()
            self._read_rest(output)
        finally:
            os.close(output)
        return Outcome(self._status or 0, self._verdict, error)

    def _goes_on(self) -> bool:
        """Reap, begin or go on with ending, and say whether anything is left to wait for."""
        now = time.monotonic()
        left = self._reap()
        if self._reports and self._status is None:
            self._reports.beat()
        if self._status is not None and not self._ended:
            self._ended = self._heard = now
        if not self._verdict and self._status is None:
            self._verdict = self._watch.verdict
            if self._verdict:
                self._end(now + self._grace)
            elif self._limit and self._limit.is_exceeded():
                self._verdict = "out-of-memory"
                self._end(now)  # no grace: what it would take is what others lack
        if self._status is not None:
            if not left:
                return False
            waited = now - self._heard >= SILENCE or now - self._ended >= min(self._grace, LONGEST_SILENCE)
            if self._kill_at is None and (waited or not self._open):
                self._end(now + min(self._grace, LEFTOVER_GRACE))
        if self._kill_at is not None and now >= self._kill_at:
            tree.signal_all(signal.SIGKILL, self._pid)
        return True

    def _end(self, kill_at: float) -> None:
        self._kill_at = kill_at
        tree.signal_all(signal.SIGTERM, self._pid)

    def _timeout(self) -> "Optional[float]":
        """Return the milliseconds until something may be due without a signal or output."""
        if self._kill_at is not None or self._status is not None:
            return TICK * 1000
        dues = [self._watch.left(), self._limit.period if self._limit else None]
        dues.append(self._reports.left() if self._reports else None)
        known = [due for due in dues if due is not None]
        return min(known) * 1000 + 1 if known else None

    def _reap(self) -> bool:
        """Collect ended children; say whether processes of the command are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._whole_tree and tree.group_alive(self._pid)
            if pid == 0:
                return True
            if pid == self._pid:
                self._status = status

    def _read_rest(self, output: int) -> None:
        """Pass on what is still in the pipe, and do not wait for somebody who may keep it open."""
        try:
            while self._open and self._read(output):
                pass
        except BlockingIOError:
            pass

    def _read(self, output: int) -> bool:
        """Pass on what has been written; say whether the pipe is still open.

        Raises:
            BlockingIOError: nothing has been written since the last time.
        """
        data = os.read(output, _CHUNK)
        if data:
            self._heard = time.monotonic()
            self._sink(data)
        return bool(data)


def spawn(
    argv: "List[str]", env: "Dict[str, str]", cwd: str, door: "Optional[str]" = None
) -> "Tuple[int, int, Optional[OSError]]":
    """Start a command in a process group of its own, stdin empty, stdout and stderr on one pipe.

    Args:
        argv: the command; its first word is a path.
        env: all its environment.
        cwd: its working directory.
        door: by which it enters a control group, or None; one that stays shut is no error.

    Returns:
        Its pid, the reading end of the pipe, and why it could not be executed, if so.
    """
    reader, writer = os.pipe()
    error_reader, error_writer = os.pipe()
    _enlarge(writer)
    variables = {_encode(name): _encode(value) for name, value in env.items()}
    pid = os.fork()
    if pid == 0:
        _enter(door)
        _execute([_encode(word) for word in argv], variables, cwd, writer, error_writer)
    os.close(writer)
    os.close(error_writer)
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # the child was faster
    with os.fdopen(error_reader, "rb") as stream:
        number = stream.read()
    os.set_blocking(reader, False)
    return pid, reader, OSError(int(number), os.strerror(int(number))) if number else None


def _enter(door: "Optional[str]") -> None:
    try:
        if door:
            descriptor = os.open(door, os.O_WRONLY | os.O_CLOEXEC)
            os.write(descriptor, b"0")  # whoever writes it
            os.close(descriptor)
    except OSError:
        pass


def _execute(
    argv: "List[bytes]", variables: "Dict[bytes, bytes]", cwd: str, output: int, errors: int
) -> "NoReturn":
    """Become the command; runs in the child and never returns."""
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # Python ignores these, and an ignored signal stays ignored over exec: `yes | head` would differ.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.chdir(_encode(cwd))
        os.execve(argv[0], argv, variables)
    except OSError as error:
        os.write(errors, b"%d" % (error.errno or 1))
    finally:
        os._exit(127)


def find(name: str, path: str) -> "Optional[str]":
    """Return the first executable file of that name on a search path, or None."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    return None


def _enlarge(pipe: int) -> None:
    """Let the pipe hold a megabyte where the system allows it: a burst of output need not wait for us."""
    try:
        import fcntl

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, 1 << 20)
    except (ImportError, OSError):
        pass


def _encode(text: "Any") -> bytes:
    return str(text).encode("utf-8", "surrogateescape")
