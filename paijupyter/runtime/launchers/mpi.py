"""MPI: a host file that ``mpirun`` finds by itself.

``mpirun`` runs in the first task (``PAI_MPI_RANK`` 0) and starts its processes on the hosts of all tasks, in
the order of their ranks, by ssh where they are other machines; ssh between tasks is the image's affair. On
the local backend all tasks have one address, so every process is a child of the first task.
"""

import os

from .group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    Spec = Dict[str, Any]


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return where the host file is, in the words of Open MPI up to 4, Open MPI 5, and MPICH and its kin."""
    group = Group(spec, role)
    path = _path(spec)
    return {
        "PAI_MPI_HOSTFILE": path,
        "PAI_MPI_RANK": str(group.rank(group.workers + group.servers)),
        "PAI_MPI_SIZE": str(len(_slots(group))),
        "OMPI_MCA_orte_default_hostfile": path,
        "PRTE_MCA_prte_default_hostfile": path,
        "HYDRA_HOST_FILE": path,
        # A container's user is root more often than not, and mpirun would refuse to start.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def files(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return the host file: one line per process, which all of them read alike."""
    return {_path(spec): "".join(host + "\n" for host in _slots(Group(spec, role)))}


def _path(spec: "Spec") -> str:
    return os.path.join(spec["private"], "hostfile")


def _slots(group: Group) -> "List[str]":
    """Return a task's host once per GPU, at least once."""
    found: "List[str]" = []
    for role, index in group.workers + group.servers:
        gpus = int((role.get("resources") or {}).get("gpu") or 0)
        found += [group.host((role, index))] * max(1, gpus)
    return found
