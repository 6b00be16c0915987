"""JAX: the three arguments of ``jax.distributed.initialize``."""

from .group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Spec = Dict[str, Any]


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return the coordinator's address, the number of processes and this one's id, also with ``JAX_``."""
    group = Group(spec, role)
    members = group.workers + group.servers
    found = {
        "COORDINATOR_ADDRESS": group.endpoint(members[0]),
        "NUM_PROCESSES": str(len(members)),
        "PROCESS_ID": str(group.rank(members)),
    }
    found.update({"JAX_" + name: value for name, value in found.items()})
    return found
