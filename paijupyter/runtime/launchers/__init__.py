"""Rendezvous conventions: what each framework wants to find in the environment of a distributed run.

A launcher is a module here with ``variables(spec, role) -> dict`` and, if it needs files too,
``files(spec, role) -> dict`` of paths below the private folder. Add one, and its row in the docs.
"""

from importlib import import_module

from ..failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Spec = Dict[str, Any]

LAUNCHERS = ("plain", "torchrun", "tensorflow", "paddle", "jax", "mpi")


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


def files(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return the files that the launcher of a role needs: path to text. The launcher is a known one."""
    name = role.get("launcher") or "plain"
    make = None if name == "plain" else getattr(import_module("." + name, __name__), "files", None)
    found: "Dict[str, str]" = make(spec, role) if make else {}
    return found
