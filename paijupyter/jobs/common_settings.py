"""Settings that a profile of any kind may have: what runs at a job's end, prices, waiting, object stores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Profile
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol import parse_duration

COMMON_SETTINGS: Mapping[str, str] = {
    "onEnd": "what runs when a job has ended: {command: …} or {url: …}, with timeout (30s) and retries (2)",
    "pricePerGpuHour": "what a GPU costs in an hour; plans say what a job would cost",
    "currency": "the currency of the price",
    "startEstimate": "how long a job usually waits here (20m); plans say so",
    "stores": "object stores by scheme: {s3: {endpoint_url: …, secret: keyring:NAME}}; options are those of "
    "their fsspec driver",
}
_SECONDS = (1.0, 600.0)
_MOST_RETRIES = 10
_HOOK = {"command", "url", "headers", "timeout", "retries"}


@dataclass(frozen=True, slots=True)
class Hook:
    """What runs when a job has ended, with the job's view as JSON.

    Attributes:
        command: for bash, or words; "" for none. It gets the view on its standard input.
        url: where the view is posted, or a reference ``keyring:NAME`` to it; "" for none.
        headers: of the request; a value may be a reference.
        timeout: seconds for one try.
        retries: further tries after one that failed.
    """

    command: str | tuple[str, ...] = ""
    url: str = ""
    headers: Mapping[str, str] | None = None
    timeout: float = 30.0
    retries: int = 2


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU costs in an hour."""

    per_gpu_hour: float
    currency: str


def hook_of(profile: Profile) -> Hook | None:
    """Return the exit hook of a profile.

    Raises:
        ValueError: it cannot be used; the text says why.
    """
    found = profile.settings.get("onEnd")
    if found is None:
        return None
    if not isinstance(found, Mapping) or ("command" in found) == ("url" in found):
        raise ValueError("`onEnd` needs either a `command` or a `url`")
    unknown = sorted(set(found) - _HOOK)
    if unknown:
        raise ValueError(f"`onEnd` has `{unknown[0]}`, which is not known")
    retries = found.get("retries", 2)
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= _MOST_RETRIES:
        raise ValueError(f"`onEnd.retries` must be a number from 0 to {_MOST_RETRIES}")
    seconds = _seconds(found.get("timeout", 30), "onEnd.timeout")
    if not _SECONDS[0] <= seconds <= _SECONDS[1]:
        raise ValueError("`onEnd.timeout` must be from 1 s to 10 min")
    if "command" in found:
        return Hook(command=_command(found["command"]), timeout=seconds, retries=retries)
    return Hook(url=_url(found["url"]), headers=_headers(found), timeout=seconds, retries=retries)


def price_of(profile: Profile) -> Price | None:
    """Return the price of a profile's GPUs.

    Raises:
        ValueError: it cannot be used; the text says why.
    """
    price, currency = profile.settings.get("pricePerGpuHour"), profile.settings.get("currency", "")
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
        raise ValueError("`pricePerGpuHour` must be a number, 0 or more")
    if not isinstance(currency, str) or len(currency) > 8:
        raise ValueError("`currency` must be a short text, for example EUR")
    return Price(float(price), currency)


def start_estimate_of(profile: Profile) -> float | None:
    """Return how many seconds a job of a profile usually waits.

    Raises:
        ValueError: it cannot be used; the text says why.
    """
    found = profile.settings.get("startEstimate")
    return None if found is None else _seconds(found, "startEstimate")


def stores_of(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the options of object stores by the scheme of their URIs.

    Raises:
        ValueError: they cannot be used; the text says why.
    """
    found = profile.settings.get("stores") or {}
    if not isinstance(found, Mapping) or not all(isinstance(each, Mapping) for each in found.values()):
        raise ValueError("`stores` must be options by scheme, for example {s3: {endpoint_url: …}}")
    for scheme, options in found.items():
        reference = options.get("secret", "keyring:")
        if not isinstance(reference, str) or not reference.startswith("keyring:"):
            raise ValueError(f"`stores.{scheme}.secret` must be keyring:NAME")
        if "key" in options:
            raise ValueError(f"`stores.{scheme}.key` is a credential: say `secret: keyring:NAME` instead")
    return {str(scheme): dict(options) for scheme, options in found.items()}


def problems_of(profile: Profile) -> list[str]:
    """Return a sentence for each of these settings that cannot be used."""
    checks: tuple[Callable[[Profile], object], ...] = (hook_of, price_of, start_estimate_of, stores_of)
    found = []
    for check in checks:
        try:
            check(profile)
        except ValueError as error:
            found.append(f"Setting {error}.")
    return found


def _command(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError("`onEnd.command` must be a text or a list of words")


def _url(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://", "keyring:")):
        raise ValueError("`onEnd.url` must begin with http://, https:// or keyring:")
    return value


def _headers(found: Mapping[str, Any]) -> dict[str, str]:
    headers = found.get("headers") or {}
    if not isinstance(headers, Mapping) or not all(isinstance(each, str) for each in headers.values()):
        raise ValueError("`onEnd.headers` must be texts by name")
    return {str(name): value for name, value in headers.items()}


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    if isinstance(value, str):
        try:
            return float(parse_duration(value))
        except PaiJupyterError:
            pass
    raise ValueError(f"`{name}` must be a duration, for example 30s")
