"""Numbers among the settings of a profile."""

from __future__ import annotations

from paijupyter.backends.base import Profile
from paijupyter.errors import PaiJupyterError


def number(profile: Profile, name: str, default: float) -> float:
    """Return a setting that is a number from 0 on.

    Raises:
        PaiJupyterError: ``bad-setting`` if it is none.
    """
    value = profile.settings.get(name)
    if value is None:
        return float(default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise PaiJupyterError(
            "bad-setting",
            f"Setting `{name}` of profile `{profile.name}` is `{value}`, but must be a number.",
            "Correct it in profiles.yaml.",
        )
    return float(value)


def choice(profile: Profile, name: str, choices: tuple[str, ...]) -> str:
    """Return a setting that is one of some words; the first is the default.

    Raises:
        PaiJupyterError: ``bad-setting`` if it is none of them.
    """
    value = profile.settings.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise PaiJupyterError(
            "bad-setting",
            f"Setting `{name}` of profile `{profile.name}` is `{value}`, which it cannot be.",
            f"It can be one of {', '.join(choices)}: correct it in profiles.yaml.",
        )
    return str(value)
