"""The check of ``extras.paijupyter``, with the model's findings in our words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paijupyter.protocol.findings import Findings, did_you_mean, dotted
from paijupyter.protocol.references import member, roles_of
from paijupyter.protocol.shapes import kind_of
from paijupyter.protocol.values import pointer

_PATH = "/extras/paijupyter"
_KEY = "[key]"


def check_extras(found: Findings) -> None:
    """Check our own part of a document against its model, and its roles against the document's."""
    extras = member(found.document.data, "extras")
    if not isinstance(extras, dict) or "paijupyter" not in extras:
        return
    # pydantic takes a moment to load; documents of others never need it.
    from paijupyter.protocol.models import PaiJupyterExtras, RoleExtras, extras_errors

    names = {
        "": [field.alias or name for name, field in PaiJupyterExtras.model_fields.items()],
        "roles": [field.alias or name for name, field in RoleExtras.model_fields.items()],
    }
    from paijupyter.protocol.data_check import check_data

    check_data(found, member(extras, "paijupyter", "data"), found.document.data.get("secrets"))
    for place, kind, value, context in extras_errors(extras["paijupyter"]):
        path = _PATH
        for key in place:
            path = path if key == _KEY else pointer(path, key)
        if kind == "extra_forbidden":
            hint = did_you_mean(place[-1], names.get("roles" if place[0] == "roles" else "", ()))
            found.error("unknown-key", path, f"`{dotted(path)}` is not a known key.", hint)
        elif _KEY in place:
            found.error(
                "name", path, f"`{dotted(path)}` is not a usable name.", "Use letters, digits and `_`."
            )
        else:
            words = _WORDS.get(kind, _unusable)
            found.error("extras", path, f"`{dotted(path)}` {words(value, context)}.")
    _env(found, f"{_PATH}/env", member(extras, "paijupyter", "env"))
    roles = [name for _, name, _ in roles_of(found.document.data)]
    ours = member(extras, "paijupyter", "roles")
    for name in ours if isinstance(ours, dict) else ():
        _env(found, pointer(f"{_PATH}/roles", name) + "/env", member(ours, name, "env"))
        if name not in roles:
            path = pointer(f"{_PATH}/roles", name)
            found.warning(
                "unknown-role", path, f"`{dotted(path)}` is no role of this job.", did_you_mean(name, roles)
            )


def _env(found: Findings, path: str, env: Any) -> None:
    for name in env if isinstance(env, dict) else ():
        if name.startswith("PAI_"):
            where = pointer(path, name)
            message = f"`{dotted(where)}` hides a variable that every task gets."
            found.warning("reserved-name", where, message, "Names that start with `PAI_` are taken.")


def _unusable(value: Any, context: dict[str, Any]) -> str:
    return f"cannot be {kind_of(value)}"


_WORDS: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    "missing": lambda value, context: "is missing",
    "string_type": lambda value, context: f"must be a text; it is {kind_of(value)}",
    "int_type": lambda value, context: f"must be a whole number; it is {kind_of(value)}",
    "bool_type": lambda value, context: f"must be true or false; it is {kind_of(value)}",
    "list_type": lambda value, context: f"must be a list; it is {kind_of(value)}",
    "dict_type": lambda value, context: f"must be a mapping; it is {kind_of(value)}",
    "model_type": lambda value, context: f"must be a mapping; it is {kind_of(value)}",
    "model_attributes_type": lambda value, context: f"must be a mapping; it is {kind_of(value)}",
    "literal_error": lambda value, context: f"must be {context.get('expected', 'something else')}",
    "greater_than_equal": lambda value, context: f"must be at least {context.get('ge')}",
    "string_pattern_mismatch": lambda value, context: "has not the form of such a value",
}
