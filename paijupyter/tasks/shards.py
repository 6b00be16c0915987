"""Which part of the data is this process's."""

import itertools
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
    ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
    ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_CURRENT_TASK_ROLE_TASK_COUNT"),
)


def shard(items: "Iterable[Any]", rank: "Optional[int]" = None, world: "Optional[int]" = None) -> "List[Any]":
    """Return every ``world``-th item from the ``rank``-th on: this process's part, in the given order.

    The parts of all ranks are disjoint, together they are all items, and their sizes differ by one at most.
    All processes must see the same items in the same order: sort what ``os.listdir`` or ``glob`` returns.

    Args:
        items: a list, a range, lines of a file, …; no set, which has another order in every process.
        rank: this process, from 0; by default found in the environment, with ``world``.
        world: how many processes there are.

    Raises:
        TypeError: the items have no order, or are one string.
        ValueError: the rank is not below the world.
    """
    if isinstance(items, (set, frozenset)):
        raise TypeError("A set has another order in every process: use shard(sorted(items)).")
    if isinstance(items, (str, bytes)):
        raise TypeError("shard needs a list of items, not one string.")
    if (rank is None) != (world is None):
        raise ValueError("shard needs both rank and world, or neither.")
    if rank is None or world is None:
        rank, world = rank_and_world()
    if not 0 <= rank < world:
        raise ValueError("Rank %d is not one of %d processes (from 0)." % (rank, world))
    return list(itertools.islice(items, rank, None, world))


def rank_and_world() -> "Tuple[int, int]":
    """Return this process's number and how many there are, as the environment says.

    The first that is there: what mpirun or torchrun tells a process, the variables of the launchers, the
    task's index within its role. Outside of a job: 0 and 1.

    Raises:
        ValueError: a variable is no number.
    """
    for names in _RANKS:
        if all(os.environ.get(name) for name in names):
            try:
                return int(os.environ[names[0]]), int(os.environ[names[1]])
            except ValueError:
                raise ValueError("The variables %s and %s are not numbers." % names) from None
        if names[0] == "RANK" and os.environ.get("TF_CONFIG"):
            found = _tensorflow_rank(json.loads(os.environ["TF_CONFIG"]))
            if found:
                return found
    return 0, 1


def _tensorflow_rank(config: "Dict[str, Any]") -> "Optional[Tuple[int, int]]":
    """Count as TensorFlow does: the chief, then the workers; None for a task that does not train."""
    cluster, task = config.get("cluster") or {}, config.get("task") or {}
    kinds = ("chief", "master", "worker")
    trainers = [(kind, index) for kind in kinds for index, _ in enumerate(cluster.get(kind) or ())]
    me = (task.get("type"), task.get("index"))
    return (trainers.index(me), len(trainers)) if me in trainers else None
