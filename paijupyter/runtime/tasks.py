"""The tasks of a job, as a spec lists them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

    Spec = Dict[str, Any]

_EVERY_TASK_HAS = ("ssh", "http")


def key(role: "Spec", index: int) -> str:
    """Return a task's name on every screen: ``<role>-<index>``, the role's name as written."""
    return "%s-%d" % (role["name"], index)


def all_tasks(spec: "Spec") -> "List[Tuple[Spec, int]]":
    """Return every task as (role, index), in document order."""
    return [(role, index) for role in spec["roles"] for index in range(role["instances"])]


def port_labels(spec: "Spec", role: "Spec", index: int) -> "List[str]":
    """Return the labels of a task's ports: the user's in document order, then ssh, then http."""
    given = (spec.get("ports") or {}).get(key(role, index)) or {}
    user = [label for label in (role.get("ports") or {}) if label in given]
    more = [label for label in given if label not in user and label not in _EVERY_TASK_HAS]
    last = [label for label in _EVERY_TASK_HAS if label in given and label not in user]
    return user + more + last
