"""The side of the task that serves the blocks."""

import json
import os
import socket
import socketserver
import threading
import time

from .board import Board
from .ledger import Ledger, state_file
from .wire import TaskQueueError, address_of, job_key, other_tasks, proof, proves, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Set

_LONGEST_POLL = 5.0  # seconds that a worker's question may wait for a block
_GREETING_TIMEOUT = 10.0
_LONGEST_GREETING = 4096  # bytes read from somebody who has not proved anything yet
_ONE_MACHINE = ("127.0.0.1", "::1")


def serve_tasks(
    items: "Iterable[Any]",
    label: str = "tasks",
    port: "Optional[int]" = None,
    key: "Optional[bytes]" = None,
    lease: float = 60.0,
    tries: float = 3,
    state: "Optional[str]" = None,
    linger: float = 60.0,
) -> "Dict[str, int]":
    """Hand the items out, one by one, until all are done and the workers know it.

    The role that serves is a service (``service=true``): a job of several roles has succeeded as soon as
    one of them has, and what the workers do after their last block shall not be cut off.

    Args:
        items: the blocks: anything that JSON can hold.
        label: of the port to serve on (``--role queue:1,port=tasks``), and part of the file's name.
        port: instead of the one of that label, for this machine only.
        key: instead of the job's key.
        lease: seconds after which a worker that has not been heard of loses its block.
        tries: so often a block is handed out; one that was given back that often is put aside.
        state: file that records what is done; a later attempt goes on from there. By default in
            ``$PAI_CHECKPOINT_DIR``, else ``$PAI_OUTPUT_DIR``; outside of a job there is none.
        linger: seconds without a question, after the last block, to wait for tasks that do not know yet.

    Returns:
        How many blocks each worker has done, by the worker's name.

    Raises:
        TaskQueueError: blocks were put aside, or the queue cannot be served.
    """
    blocks = list(items)
    host, number = address_of(label) if port is None else (_ONE_MACHINE[0], port)
    secret = job_key() if key is None else key
    with Ledger(blocks, state_file(label) if state is None else state) as ledger:
        desk = Desk(blocks, ledger, Board(len(blocks), ledger.done, lease, tries), other_tasks())
        try:
            server = Server(host, number, secret, desk)
        except OSError as error:
            words = "Port %s cannot be served on: %s." % (number, error.strerror or error)
            raise TaskQueueError(words) from None
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            desk.wait(linger)
        finally:
            server.shutdown()
            server.server_close()
        return ledger.by


class Desk:
    """Answers the workers' questions, one at a time."""

    def __init__(self, blocks: "List[Any]", ledger: Ledger, board: Board, others: "Set[str]") -> None:
        self.board = board
        self._blocks = blocks
        self._ledger = ledger
        self._untold = others
        self._knows_the_others = bool(others)
        self._present: "Set[Any]" = set()
        self._heard = time.monotonic()
        self._problem = ""
        self._news = threading.Condition()

    def enter(self, holder: "Any") -> None:
        """Note that a worker is here."""
        with self._news:
            self._present.add(holder)

    def leave(self, holder: "Any") -> None:
        """Take back what a worker has that is gone."""
        with self._news:
            self._present.discard(holder)
            self.board.give_back(holder)
            self._news.notify_all()

    def answer(self, holder: "Any", worker: str, question: "Dict[str, Any]") -> "Dict[str, Any]":
        """Return what to tell a worker; may wait a little for a block."""
        with self._news:
            self._heard = time.monotonic()
            if question["do"] == "renew":
                self.board.renew(holder, int(question["block"]))
                return {}
            if question.get("done") is not None:
                self._finish(int(question["done"]), worker)
            return self._hand_out(holder, worker)

    def wait(self, linger: float) -> None:
        """Return when all is done and known.

        Raises:
            TaskQueueError: blocks were put aside, or what is done cannot be recorded.
        """
        with self._news:
            while not self._problem and not (self.board.is_settled and self._is_known(linger)):
                self._news.wait(0.2)
            if self._problem:
                raise TaskQueueError(self._problem)
            aside = self.board.aside
            if aside:
                shown = ", ".join(json.dumps(self._blocks[block])[:80] for block in aside[:5])
                words = "%d of %d blocks were given back too often and are not done: %s%s."
                more = ", …" if len(aside) > 5 else ""
                raise TaskQueueError(words % (len(aside), len(self._blocks), shown, more))

    def _is_known(self, linger: float) -> bool:
        everywhere = self._knows_the_others and not self._untold and not self._present
        return everywhere or time.monotonic() - self._heard >= linger

    def _finish(self, block: int, worker: str) -> None:
        if not 0 <= block < len(self._blocks):
            raise ValueError("no such block")
        try:
            self._ledger.record(block, worker)
        except OSError as error:
            self._problem = "What is done cannot be recorded: %s." % (error.strerror or error)
            self._news.notify_all()
            raise
        self.board.finish(block)
        self._news.notify_all()

    def _hand_out(self, holder: "Any", worker: str) -> "Dict[str, Any]":
        end = time.monotonic() + _LONGEST_POLL
        while not self.board.is_settled:
            block = self.board.take(holder)
            if block is not None:
                return {"block": block, "item": self._blocks[block]}
            left = end - time.monotonic()
            if left <= 0:
                return {"wait": True}
            self._news.wait(min(left, self.board.until_next_expiry()))
        self._untold.discard(worker)
        return {"end": True, "aside": len(self.board.aside)}


class Server(socketserver.ThreadingTCPServer):
    """Listens where the other tasks can reach it: on one machine only for that machine."""

    allow_reuse_address = True  # a new attempt may follow at once
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, key: bytes, desk: Desk) -> None:
        self.key = key
        self.desk = desk
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Elsewhere the address that others see need not be one of ours.
        super().__init__((host if host in _ONE_MACHINE else "", port), Conversation)


class Conversation(socketserver.StreamRequestHandler):
    """One connection of a worker; it ends with the worker, whatever happens to it."""

    server: Server
    timeout = _GREETING_TIMEOUT

    def handle(self) -> None:
        """Answer until the other side is gone."""
        desk = self.server.desk
        try:
            worker = self._greet(self.server.key, desk.board.lease)
            desk.enter(self)
            self.connection.settimeout(None)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for line in self.rfile:
                say(self.wfile, desk.answer(self, worker, json.loads(line.decode("utf-8"))))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # whoever it was is gone or speaks another language
        finally:
            desk.leave(self)

    def _greet(self, key: bytes, lease: float) -> str:
        """Return the name of a worker that has proved to know the key."""
        mine = os.urandom(16).hex()
        say(self.wfile, {"nonce": mine})
        answer = json.loads(self.rfile.readline(_LONGEST_GREETING).decode("utf-8"))
        theirs = str(answer["nonce"])
        if not proves(str(answer["proof"]), key, "worker", mine, theirs):
            say(self.wfile, {"refused": True})
            raise ValueError("another key")
        say(self.wfile, {"proof": proof(key, "server", mine, theirs), "lease": lease})
        return str(answer.get("task") or "")[:100]
