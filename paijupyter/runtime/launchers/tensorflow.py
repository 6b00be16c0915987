"""TensorFlow: ``TF_CONFIG`` with the cluster's addresses by task type."""

import json

from .group import Group, is_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    Spec = Dict[str, Any]

_TYPES = ("chief", "master", "worker", "ps", "evaluator")


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return ``TF_CONFIG``; an evaluator is told the cluster and is no member of it, as TensorFlow wants."""
    group = Group(spec, role)
    cluster: "Dict[str, List[str]]" = {}
    index = 0
    for pair in group.servers + group.workers:
        kind = _type(pair[0])
        addresses = cluster.setdefault(kind, [])
        if pair[0]["name"] == role["name"] and pair[1] == spec["index"]:
            index = len(addresses)
        addresses.append(group.endpoint(pair))
    cluster.pop("evaluator", None)
    task = {"type": _type(role), "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task}, sort_keys=True)}


def _type(role: "Spec") -> str:
    """Return TensorFlow's word for a role: its own name if TensorFlow knows it."""
    name = str(role["name"]).lower()
    if name in _TYPES:
        return name
    return "ps" if is_server(role) else "worker"
