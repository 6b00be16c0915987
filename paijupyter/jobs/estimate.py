"""What a job would cost and when it would start, as far as its profile and its last run tell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paijupyter.backends.base import Profile
from paijupyter.errors import Problem
from paijupyter.jobs.common_settings import price_of, problems_of, start_estimate_of

_HOUR = 3600.0


def estimate(
    profile: Profile,
    gpus: int,
    time_limit: object,
    starts: str,
    former: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return what can be said before a job runs; None if there is nothing.

    Args:
        profile: where it would run; of settings that cannot be used nothing is said.
        gpus: how many GPUs it asks for.
        time_limit: its time limit in seconds, if it has one.
        starts: what the backend says about its start.
        former: the view of the last job of its name that succeeded there.

    Returns:
        ``{gpu, gpuHours, like, perHour, cost, atMost, currency, startsInSeconds}``, each None if unknown.
    """
    usable = not problems_of(profile)
    price = price_of(profile) if usable and gpus else None
    waits = start_estimate_of(profile) if usable and starts != "now" else None
    if not gpus and waits is None:
        return None
    hours = _hours(former) if former and gpus else None
    limit = time_limit if isinstance(time_limit, (int, float)) and time_limit > 0 else None
    hourly = price.per_gpu_hour * gpus if price else None
    return {
        "gpu": gpus,
        "gpuHours": None if hours is None else round(hours * gpus, 3),
        "like": former["name"] if former and hours is not None else None,
        "perHour": hourly,
        "cost": None if hourly is None or hours is None else round(hourly * hours, 2),
        "atMost": None if hourly is None or limit is None else round(hourly * limit / _HOUR, 2),
        "currency": price.currency if price else "",
        "startsInSeconds": waits,
    }


def setting_problems(profile: Profile) -> list[Problem]:
    """Return a warning for each setting of a profile that cannot be used; its jobs run all the same."""
    name = f"Profile `{profile.name}`"
    return [
        Problem("warning", "profile-setting", f"{name}: {said}", hint=f"See: profile edit {profile.name}.")
        for said in problems_of(profile)
    ]


def _hours(view: Mapping[str, Any]) -> float | None:
    """How long a job ran."""
    started, ended = view.get("startedAt"), view.get("endedAt")
    if not started or not ended:
        return None
    moments = [datetime.fromisoformat(str(each).replace("Z", "+00:00")) for each in (started, ended)]
    return max((moments[1] - moments[0]).total_seconds(), 0.0) / _HOUR
