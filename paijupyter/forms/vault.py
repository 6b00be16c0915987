"""Values of secrets between being typed and being sent: in this process's memory, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable


class Vault:
    """Keeps values by the name of their secret; it shows names only.

    >>> vault = Vault()
    >>> vault.put("TOKEN", "swordfish")
    >>> vault, "TOKEN" in vault
    (<Vault TOKEN>, True)
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Vault {', '.join(self._values)}>"

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getstate__(self) -> object:
        """Refuse to be pickled: a saved session must not hold a value."""
        raise TypeError("a vault cannot be pickled")

    def put(self, name: str, value: str) -> None:
        """Keep a value."""
        self._values[name] = value

    def get(self, name: str) -> str:
        """Return a value.

        Raises:
            KeyError: there is none.
        """
        return self._values[name]

    def rename(self, name: str, new: str) -> None:
        """Keep a value by another name."""
        if name in self._values:
            self._values[new] = self._values.pop(name)

    def forget(self, names: Iterable[str] | None = None) -> None:
        """Drop the values of some names, or all."""
        for name in list(self._values) if names is None else names:
            self._values.pop(name, None)
