"""PyTorch: what ``init_process_group`` reads for one process per task, and what ``torchrun`` itself reads."""

from .group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Spec = Dict[str, Any]


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return ``MASTER_ADDR RANK …`` for ``python train.py`` and ``PET_…`` for ``torchrun train.py``."""
    group = Group(spec, role)
    members = group.workers + group.servers  # PyTorch knows no parameter servers: all are ranks
    rank = str(group.rank(members))
    size = str(len(members))
    address = group.host(members[0])
    port = group.port(members[0])
    gpus = int((role.get("resources") or {}).get("gpu") or 0)
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "PET_NNODES": size,
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": str(max(1, gpus)),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }
