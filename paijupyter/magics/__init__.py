"""``%paijob`` and ``%%paijob``. Loading costs next to nothing: a verb imports what it needs on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.magics.runner import Runner

__all__ = ["register", "runner_of"]


def register(ipython: Any) -> None:
    """Register the magic and its completion with an IPython shell (``%load_ext paijupyter``)."""
    from paijupyter.magics.magic import PaiMagics, matcher_for

    if "paijob" in ipython.magics_manager.magics["line"]:
        return  # Loaded before; a second matcher would offer everything twice.
    ipython.register_magics(PaiMagics)
    completer = getattr(ipython, "Completer", None)
    if completer is not None:
        completer.custom_matchers.append(matcher_for(ipython))


def runner_of(ipython: Any) -> Runner:
    """Return what submits for a shell, with the magic registered."""
    register(ipython)
    runner: Runner = ipython.magics_manager.registry["PaiMagics"].runner
    return runner
