"""Rendezvous conventions: what each framework wants to find in the environment of a distributed run.

A launcher is a module here with ``variables(spec, role) -> dict``. Add one, and its row in the docs.
"""

from importlib import import_module

from ..failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Spec = Dict[str, Any]

LAUNCHERS = ("plain", "torchrun", "tensorflow", "paddle", "jax")


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return the rendezvous variables of this task, by the launcher that its role asks for.

    Raises:
        Failure: ``launcher`` if there is no such launcher.
    """
    name = role.get("launcher") or "plain"
    if name == "plain":
        return {}
    if name not in LAUNCHERS:
        known = ", ".join(LAUNCHERS)
        raise Failure("launcher", "The launcher `%s` is not known in the task. It knows: %s." % (name, known))
    found: "Dict[str, str]" = import_module("." + name, __name__).variables(spec, role)
    return found
