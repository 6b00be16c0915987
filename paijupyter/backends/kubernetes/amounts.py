"""Amounts as Kubernetes writes them (``500m``, ``8Gi``, ``1e3``), as numbers to compute with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([a-zA-Z]{0,2}))")
_SCALE = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    **{letter: 1000.0**power for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}
MEBIBYTE = 1024.0**2


def number(quantity: object) -> float:
    """Return a quantity as a number; 0 for what is none.

    >>> number("500m"), number("8Gi"), number("3")
    (0.5, 8589934592.0, 3.0)
    """
    return _number(str(quantity))


@lru_cache(maxsize=1024)  # nodes and pods are alike
def _number(quantity: str) -> float:
    match = _QUANTITY.fullmatch(quantity.strip())
    if match is None or (match[3] or "") not in _SCALE:
        return 0.0
    try:
        return float(match[1] + (match[2] or "")) * _SCALE[match[3] or ""]
    except ValueError:
        return 0.0


def in_words(resource: str, amount: float) -> str:
    """Return an amount of a resource for people: memory in GiB or MiB, others as they are."""
    if resource.rpartition(".")[2] in ("memory", "ephemeral-storage", "storage"):
        size, unit = (amount / 1024**3, "GiB") if amount >= 1024**3 else (amount / MEBIBYTE, "MiB")
        return f"{size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{amount:g}"


def total(each: Iterable[Mapping[str, str]]) -> dict[str, float]:
    """Return the sum of several amounts by resource."""
    found: dict[str, float] = {}
    for amounts in each:
        for resource, quantity in amounts.items():
            found[resource] = found.get(resource, 0.0) + number(quantity)
    return found
