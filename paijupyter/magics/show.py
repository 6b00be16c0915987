"""Output of the magics: displays that can be updated, and text of logs."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Mapping
from html import escape
from typing import Any

from paijupyter.client.words import size

_WORTH_SAYING = 32_000_000  # Bytes; a smaller package is made before one could read of it.
_SECONDS_BETWEEN = 1.0


class Display:
    """One place below a cell whose content can be replaced, also after the cell has ended."""

    def __init__(self, shell: Any) -> None:
        self._publisher = shell.display_pub
        self._id = uuid.uuid4().hex
        self._there = False

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Show a MIME bundle, in place of what was shown before."""
        self._publisher.publish(
            data=dict(bundle), metadata={}, transient={"display_id": self._id}, update=self._there
        )
        self._there = True


def show(shell: Any, text: str, html: str = "") -> None:
    """Show text, and its form for notebooks where there is one."""
    data = {"text/plain": text, **({"text/html": html} if html else {})}
    shell.display_pub.publish(data=data, metadata={})


def write(text: str) -> None:
    """Write lines of a log where the cell prints."""
    sys.stdout.write(text)
    sys.stdout.flush()


class PackageProgress:
    """Says how far a large package or upload is, in the place where the card will be."""

    def __init__(self, display: Display, words: tuple[str, str] = ("packaging", "packaged")) -> None:
        self._display = display
        self._words = words
        self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Take note of bytes done and bytes in all."""
        now = time.monotonic()
        if total < _WORTH_SAYING or (done < total and now - self._said < _SECONDS_BETWEEN):
            return
        self._said = now
        doing, ended = self._words
        text = f"{doing}: {size(done)} of {size(total)}" if done < total else f"{ended} {size(total)}"
        self._display.show({"text/plain": text, "text/html": escape(text)})
