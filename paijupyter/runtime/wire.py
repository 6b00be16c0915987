"""Talk between the tasks of a job: JSON lines over a connection, each signed with what only they know.

Who is connected to says a random word first, who connects answers with one of its own; from both and the
job's key comes the key of the connection. A line is its signature, a space and an object; the signature
covers who speaks and the number of the line, so that none can be repeated, reordered or sent back.
"""

import hmac
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any, Dict, List, Optional

LONGEST = 1 << 16  # bytes of a line
_CHUNK = 1 << 16
_WORD = 16  # bytes of a random word
_SIGNATURE = 32  # hexadecimal digits of a signature


class Broken(Exception):
    """The connection has ended, or somebody speaks on it who does not belong to the job."""


class Channel:
    """One connection; nothing here waits.

    Args:
        connection: connected.
        key: what only the tasks know.
        answers: whether the other side has connected to this one.
    """

    def __init__(self, connection: "socket", key: bytes, answers: bool) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._key = key
        self._answers = answers
        self._session: "Optional[bytes]" = None
        self._word = os.urandom(_WORD).hex()
        self._read = b""
        self._unsent = b""
        self._waiting: "List[Dict[str, Any]]" = []
        self._sent = self._heard = 0
        if answers:
            self._unsent = json.dumps({"word": self._word}).encode("ascii") + b"\n"

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._connection.fileno()

    @property
    def is_writing(self) -> bool:
        """Say whether something waits until the other side takes it."""
        return bool(self._unsent)

    def send(self, message: "Dict[str, Any]") -> None:
        """Send a message as soon as that is possible.

        Raises:
            Broken: the other side is gone.
        """
        if self._session is None:
            self._waiting = [message]  # messages tell all of a state, so the last one is enough
        else:
            self._sign(message)
        self.flush()

    def flush(self) -> None:
        """Write what can be written.

        Raises:
            Broken: the other side is gone.
        """
        try:
            while self._unsent:
                sent = self._connection.send(self._unsent)
                self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass
        except OSError as error:
            raise Broken(str(error)) from error

    def receive(self) -> "List[Dict[str, Any]]":
        """Return the messages that have come.

        Raises:
            Broken: the other side is gone, or is none of ours.
        """
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError as error:
            raise Broken(str(error)) from error
        if not data:
            raise Broken("the connection was closed")
        *lines, self._read = (self._read + data).split(b"\n")
        if len(self._read) > LONGEST:
            raise Broken("a line is too long")
        found = [self._understand(line) for line in lines]
        return [message for message in found if message]

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _understand(self, line: bytes) -> "Optional[Dict[str, Any]]":
        try:
            if self._session is None and not self._answers:
                self._agree(str(json.loads(line.decode("ascii"))["word"]), self._word)
                return None
            signature, _, text = line.partition(b" ")
            message = json.loads(text.decode("ascii"))
            if self._session is None:
                self._agree(self._word, str(message["word"]))
        except (ValueError, KeyError, TypeError) as error:
            raise Broken("a line makes no sense") from error
        if not hmac.compare_digest(signature, self._signature(not self._answers, self._heard, text)):
            raise Broken("a line is not signed by a task of this job")
        self._heard += 1
        return message if isinstance(message, dict) else None

    def _agree(self, theirs: str, mine: str) -> None:
        """Make the key of this connection; then what has waited for it is sent."""
        self._session = hmac.new(self._key, (theirs + mine).encode("ascii", "replace"), "sha256").digest()
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._sign(message)

    def _sign(self, message: "Dict[str, Any]") -> None:
        told = dict(message) if self._answers or self._sent else dict(message, word=self._word)
        text = json.dumps(told).encode("ascii")
        self._unsent += self._signature(self._answers, self._sent, text) + b" " + text + b"\n"
        self._sent += 1

    def _signature(self, answers: bool, number: int, text: bytes) -> bytes:
        head = b"%s %d " % (b"board" if answers else b"task", number)
        digest = hmac.new(self._session or b"", head + text, "sha256").hexdigest()
        return digest[:_SIGNATURE].encode("ascii")


def derived(key: bytes, purpose: str) -> bytes:
    """Return a key for one purpose, from which the job's key cannot be found."""
    return hmac.new(key, purpose.encode("ascii"), "sha256").digest()
