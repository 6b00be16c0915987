"""All that a task says: masked on its way into the log."""

from .logfile import Log
from .mask import Mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List


class Transcript:
    """The log behind a mask. Text of tools and of ours goes through the mask like the user's output."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._values: "List[bytes]" = []
        self._mask = Mask(())
        self._line = b""
        self._tool_lines: "List[str]" = []

    def hide(self, values: "Iterable[bytes]") -> None:
        """Hide these secret values from now on."""
        self._values = list(values)
        self._mask = Mask(self._values)

    def output(self, data: bytes) -> None:
        """Take output of the user's command."""
        self.log.append(self._mask.feed(data))

    def tool_output(self, data: bytes) -> None:
        """Take output of a tool of ours, such as pip; whole lines of it become notes."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            text = self.clean(line.decode("utf-8", "replace").rstrip())
            self._tool_lines = [*self._tool_lines[-9:], text] if text else self._tool_lines
            self.log.note(text)

    def tool_lines(self, count: int) -> "List[str]":
        """End the tool's last line and return the last lines that were not empty."""
        if self._line:
            self.tool_output(b"\n")
        return self._tool_lines[-count:]

    def note(self, text: str) -> None:
        """Say something ourselves."""
        self.log.note(self.clean(text))

    def clean(self, text: str) -> str:
        """Return the text with secrets hidden."""
        mask = Mask(self._values) if self._values else self._mask
        data = text.encode("utf-8", "surrogateescape")
        return (mask.feed(data) + mask.finish()).decode("utf-8", "replace")

    def flush(self) -> None:
        """Write what is held back: the stream has ended."""
        self.log.append(self._mask.finish())
