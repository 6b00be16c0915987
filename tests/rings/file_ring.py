"""Keyrings that work without a desktop, in processes of their own too: entries lie in the file TEST_RING."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class Ring(KeyringBackend):  # type: ignore[misc,unused-ignore]
    """A keyring as a desktop has one."""

    priority = 1  # type: ignore[assignment,unused-ignore]
    name = "ring of the test"

    def get_password(self, service: str, username: str) -> str | None:
        """Return the value of an entry."""
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep an entry."""
        self._write({**self._read(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        """Drop an entry."""
        kept = self._read()
        del kept[f"{service}/{username}"]
        self._write(kept)

    def _read(self) -> dict[str, str]:
        file = Path(os.environ["TEST_RING"])
        return json.loads(file.read_text()) if file.exists() else {}

    def _write(self, entries: dict[str, str]) -> None:
        Path(os.environ["TEST_RING"]).write_text(json.dumps(entries))


class PlaintextKeyring(Ring):
    """Named as one that keeps values as they are, which is none for us."""


class Failing(Ring):
    """Fails, and says the value while it does."""

    def get_password(self, service: str, username: str) -> str | None:
        """Fail."""
        raise RuntimeError(os.environ["TEST_RING_SAYS"])
