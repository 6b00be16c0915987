"""How a job is going, in words: progress, metrics, what it uses, its ports; and what a plan expects of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paijupyter.client import words

_COUNTERS = ("epoch", "step", "iteration", "batch")
_BAR = 16
_BUILT_IN_PORTS = frozenset({"ssh", "http"})


def metrics(view: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return name, latest value and course of what a job measures; how far it is comes first."""
    found = view.get("metrics") or {}
    series = found.get("series") or {}
    last = found.get("last") or {}
    counters = {name: f"{name}s" for name in _COUNTERS if name in last}
    progress = view.get("progress")
    said = []
    if progress:
        counters.pop(progress["unit"], None)
        said.append(
            _progress(progress["unit"], progress["done"], progress["total"], progress.get("fraction"))
        )
    said += [_progress(name, last[name], last.get(total)) for name, total in counters.items()]
    left_out = {*counters, *counters.values(), *(_names(progress["unit"]) if progress else ())}
    for name, value in last.items():
        if name not in left_out:
            said.append((str(name), words.number(value), words.spark(series.get(name) or ())))
    return tuple(said)


def left(view: Mapping[str, Any]) -> str:
    """Say how long it may still run, to no more than one unit."""
    seconds = (view.get("progress") or {}).get("etaSeconds")
    if view["state"] != "running" or seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"~ {round(seconds / size)} {unit} left"
    return f"~ {round(seconds)} s left"


def rows(view: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what else is said of a job that runs: what it uses."""
    used = usage(view.get("usage") or {})
    if used:
        yield "uses", used


def usage(found: Mapping[str, Any]) -> str:
    """Say what a job, or a task, uses: ``1.4 CPU, 812 MiB, 2 GPU 87 % 30.1 GiB``."""
    if not found:
        return ""
    said = [f"{found['cpu']:.1f} CPU", words.memory(found["memoryMB"])]
    gpu = found.get("gpu")
    if gpu:
        parts = [f"{gpu['count']} GPU"]
        if gpu.get("busy") is not None:
            parts.append(f"{100 * gpu['busy']:.0f} %")
        if gpu.get("memoryMB") is not None:
            parts.append(words.memory(gpu["memoryMB"]))
        said.append(" ".join(parts))
    return ", ".join(said)


def ports(view: Mapping[str, Any], base: str = "") -> tuple[tuple[str, str], ...]:
    """Return name and address of the ports that somebody asked for; every task has the built-in ones.

    Args:
        view: a JobView.
        base: address or path of the Jupyter server that opens them; "" for this host's own address.
    """
    if view["state"] != "running":
        return ()
    found = []
    for task, labels in (view.get("ports") or {}).items():
        for label, numbers in labels.items():
            for place, number in enumerate(numbers if label not in _BUILT_IN_PORTS else ()):
                name = f"{label}.{place}" if place else label
                through = f"{base}paijupyter/v1/jobs/{view['id']}/ports/{task}/{name}/"
                found.append((f"{task} {name}", through if base else _own_address(view, task, number)))
    return tuple(found)


def _own_address(view: Mapping[str, Any], task: str, number: int) -> str:
    """Return where this host has a port, or the command that brings it here."""
    if view.get("kind") in (None, "local"):
        return f"http://127.0.0.1:{number}"
    return f"paijob forward {view['name']} {number} --task {task}"


def cost(found: Mapping[str, Any]) -> str:
    """Say what a plan's estimate costs."""
    currency = f" {found['currency']}" if found.get("currency") else ""
    said = []
    if found.get("perHour") is not None:
        said.append(f"{found['perHour']:.2f}{currency} an hour")
    if found.get("gpuHours") is not None:
        price = f"{found['cost']:.2f}{currency}, " if found.get("cost") is not None else ""
        said.append(f"about {price}{words.number(float(found['gpuHours']))} GPU-h as {found['like']} took")
    if found.get("atMost") is not None:
        said.append(f"at most {found['atMost']:.2f}{currency} within its time limit")
    return " · ".join(said)


def starts(plan: Mapping[str, Any]) -> str:
    """Say when a plan would start."""
    waits = (plan.get("estimate") or {}).get("startsInSeconds")
    said = [str(plan.get("starts") or ""), f"usually within {words.duration(waits)}" if waits else ""]
    return " · ".join(filter(None, said))


def _names(unit: str) -> tuple[str, ...]:
    many = f"{unit}s"
    return (unit, unit.capitalize(), many, f"max_{many}", f"num_{many}", f"total_{many}")


def _progress(name: str, done: object, total: object, fraction: float | None = None) -> tuple[str, str, str]:
    """Say how far a counter is (``epoch 7/20``); a counter only grows, so its course says nothing."""
    if not isinstance(done, (int, float)) or not isinstance(total, (int, float)) or not 0 <= done <= total:
        return name, words.number(done), ""
    if not total or (not done and fraction is None):
        return name, words.number(done), ""
    filled = round(_BAR * (done / total if fraction is None else fraction))
    return name, f"{words.number(done)}/{words.number(total)}", "▓" * filled + "░" * (_BAR - filled)
