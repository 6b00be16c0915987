"""How far a snapshot is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Progress = Callable[[int, int], None]


class Meter:
    """Counts bytes and tells a callback; what has to be done can turn out to be more on the way."""

    def __init__(self, tell: Progress | None) -> None:
        self._tell = tell
        self._done = 0
        self._total = 0

    def expect(self, size: int) -> None:
        """Add to what has to be done."""
        self._total += size

    def advance(self, size: int) -> None:
        """Add to what is done."""
        self._done = min(self._done + size, self._total)
        if self._tell:
            self._tell(self._done, self._total)

    def finish(self) -> None:
        """Say that all is done."""
        self._done = self._total
        if self._tell:
            self._tell(self._done, self._total)

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks, counting them as done once they were taken."""
        for chunk in chunks:
            yield chunk
            self.advance(len(chunk))
