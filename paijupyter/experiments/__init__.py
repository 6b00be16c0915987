"""Templates, lists of experiments, and what a template makes of each. Pure: nothing is read or run here.

A template is a job document or a ``batch/v1`` Job manifest with numbered or named placeholders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.experiments.listing import Experiment as Experiment
    from paijupyter.experiments.listing import Listing as Listing
    from paijupyter.experiments.listing import read_listing as read_listing
    from paijupyter.experiments.selection import select as select
    from paijupyter.experiments.selection import spans as spans
    from paijupyter.experiments.sweep import Filled as Filled
    from paijupyter.experiments.sweep import Sweep as Sweep
    from paijupyter.experiments.sweep import fill as fill

_HOMES = {
    "Experiment": "listing",
    "Filled": "sweep",
    "Listing": "listing",
    "Sweep": "sweep",
    "fill": "sweep",
    "read_listing": "listing",
    "select": "selection",
    "spans": "selection",
}

__all__ = ["Experiment", "Filled", "Listing", "Sweep", "fill", "read_listing", "select", "spans"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
