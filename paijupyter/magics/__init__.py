"""``%paijob`` and ``%%paijob``. Loading costs next to nothing: a verb imports what it needs on first use."""

from __future__ import annotations

from typing import Any

__all__ = ["register"]


def register(ipython: Any) -> None:
    """Register the magic and its completion with an IPython shell (``%load_ext paijupyter``)."""
    from paijupyter.magics.magic import PaiMagics, matcher_for

    if "paijob" in ipython.magics_manager.magics["line"]:
        return  # Loaded before; a second matcher would offer everything twice.
    ipython.register_magics(PaiMagics)
    completer = getattr(ipython, "Completer", None)
    if completer is not None:
        completer.custom_matchers.append(matcher_for(ipython))
