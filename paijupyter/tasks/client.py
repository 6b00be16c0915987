"""The side of a worker."""

import os
import socket
import threading
import time

from .wire import TaskQueueError, address_of, exchange, hear, job_key, own_name, proof, proves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Iterator, Optional, Tuple

_GREETING_TIMEOUT = 10.0
_ANSWER_TIMEOUT = 65.0  # a question may wait for a block, and a disk for its turn
_PAUSE = 0.2  # seconds between two tries to reach the server
_BROKEN = (OSError, ValueError, KeyError, TypeError)


def take_tasks(
    label: str = "tasks",
    address: "Optional[Tuple[str, int]]" = None,
    key: "Optional[bytes]" = None,
    patience: float = 120.0,
) -> "Iterator[Any]":
    """Return an iterator over the blocks that this process gets; asking for the next says that one is done.

    A block whose turn of the loop is left by ``break`` or an exception is given back.

    Args:
        label: of the port that the queue is served on.
        address: host and port instead.
        key: instead of the job's key.
        patience: seconds to go on trying to reach the server.

    Raises:
        TaskQueueError: the queue is not there; at the end: blocks were put aside by the server.
    """
    return _blocks(_Line(address or address_of(label), job_key() if key is None else key, patience))


def _blocks(line: "_Line") -> "Iterator[Any]":
    done = None
    try:
        while True:
            answer = line.ask({"do": "take", "done": done})
            done = None
            if "block" in answer:
                line.hold(answer["block"])
                yield answer["item"]
                line.hold(None)
                done = answer["block"]
            elif answer.get("end"):
                if answer["aside"]:
                    raise TaskQueueError("The task queue ended with %d blocks not done." % answer["aside"])
                return
    finally:
        line.close()


class _Line:
    """A connection to the server that is made again when it breaks, and renews the lease meanwhile."""

    def __init__(self, address: "Tuple[str, int]", key: bytes, patience: float) -> None:
        self._address = address
        self._key = key
        self._patience = patience
        self._lease = 60.0
        self._block: "Optional[int]" = None
        self._stream: "Optional[IO[bytes]]" = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._renewing: "Optional[threading.Thread]" = None

    def ask(self, question: "Dict[str, Any]") -> "Dict[str, Any]":
        """Return the server's answer, however often the connection has to be made for it."""
        end = time.monotonic() + self._patience
        while True:
            try:
                return self._try(question)
            except _BROKEN as error:
                if time.monotonic() >= end:
                    words = "The task queue at %s:%s cannot be reached: %s. Look at the log of its task."
                    raise TaskQueueError(words % (*self._address, error)) from None
            time.sleep(_PAUSE)

    def hold(self, block: "Optional[int]") -> None:
        """Renew the lease of this block until told otherwise."""
        self._block = block
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._renew, daemon=True)
            self._renewing.start()

    def close(self) -> None:
        """Let the server know that nobody is here any more."""
        self._closed.set()
        with self._lock:
            self._hang_up()

    def _renew(self) -> None:
        while not self._closed.wait(self._lease / 3):
            block = self._block
            try:
                if block is not None:
                    self._try({"do": "renew", "block": block})
            except (*_BROKEN, TaskQueueError):
                pass  # the next question, or the next renewal, tries again

    def _try(self, question: "Dict[str, Any]") -> "Dict[str, Any]":
        with self._lock:
            try:
                if self._stream is None:
                    if self._closed.is_set():
                        raise ConnectionError("it is closed")
                    self._stream = self._connect()
                return exchange(self._stream, question)
            except BaseException:
                self._hang_up()
                raise

    def _connect(self) -> "IO[bytes]":
        # The stream keeps the connection open when this name for it is gone.
        with socket.create_connection(self._address, _GREETING_TIMEOUT) as connection:
            stream: "Any" = connection.makefile("rwb")
            try:
                self._greet(stream)
            except BaseException:
                stream.close()
                raise
            connection.settimeout(_ANSWER_TIMEOUT)
            return stream  # type: ignore[no-any-return]

    def _greet(self, stream: "IO[bytes]") -> None:
        theirs = str(hear(stream)["nonce"])
        mine = os.urandom(16).hex()
        answer = exchange(
            stream,
            {"nonce": mine, "proof": proof(self._key, "worker", theirs, mine), "task": own_name()},
        )
        if not proves(str(answer.get("proof")), self._key, "server", theirs, mine):
            raise TaskQueueError("The task queue at %s:%s has another job key." % self._address)
        self._lease = float(answer["lease"])

    def _hang_up(self) -> None:
        stream, self._stream = self._stream, None
        if stream:
            try:
                stream.close()
            except OSError:
                pass  # it was broken already
