"""Parameters and environment variables as options have them: ``lr=0.01``, ``OMP_NUM_THREADS=2``."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from paijupyter.errors import UsageProblem

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAFE_INTEGER = 2**53


def parse_parameter(text: str) -> tuple[str, Any]:
    """Return name and typed value of ``name=value``.

    The value is a JSON number, ``true``, ``false``, ``null``, list, object or quoted string; anything else
    is a text as it stands. A whole number that JavaScript could not hold exactly stays a text too, so that
    it reaches the command digit by digit.

    Raises:
        UsageProblem: if there is no ``=``, or the name cannot be referenced.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        raise UsageProblem(f"Parameter `{_short(text)}` has no value.", "Write it as name=value.")
    if not _PARAMETER.fullmatch(name):
        raise UsageProblem(
            f"Parameter name `{_short(name)}` must be letters, digits, `_` or `-` and start with a letter.",
            "A command refers to it as <% $parameters.name %>.",
        )
    return name, typed_value(value)


def typed_value(text: str) -> Any:
    """Return the JSON value a text is, or the text itself."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return value if _is_exact(value) else text


def parse_env(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=value``.

    Raises:
        UsageProblem: if there is no ``=``, or it is no name of an environment variable.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        # What stands there may be a value that was meant to stay private: it is not repeated.
        raise UsageProblem("Environment variables are written as NAME=value.", "This one has no `=`.")
    check_env_name(name)
    if "\0" in value:
        raise UsageProblem(f"Environment variable `{name}` cannot have a NUL character in its value.")
    return name, value


def check_env_name(name: str) -> None:
    """Refuse what cannot name an environment variable.

    Raises:
        UsageProblem: naming it.
    """
    if not ENVIRONMENT_NAME.fullmatch(name):
        raise UsageProblem(
            f"Environment variable name `{_short(name)}` must be letters, digits and `_`, no digit first."
        )


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _is_exact(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return abs(value) <= _SAFE_INTEGER
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_is_exact(item) for item in value.values())
    return all(_is_exact(item) for item in value) if isinstance(value, list) else True


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
