"""Begin with the checkpoints of an earlier job, on the volume where the tasks of both keep them.

All tasks share the folder, so the first one copies, whole or not at all, and the others wait for it.
"""

import os
import shutil

from .failure import Failure
from .files import remove_tree
from .tasks import all_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from .watch import Watch

_PERIOD = 0.5  # seconds between two looks for what another task copies


def bring(spec: "Dict[str, Any]", watch: "Watch") -> None:
    """Have what is in the folder ``spec["earlier"]`` in ``spec["checkpoints"]``, once for all attempts.

    Raises:
        Failure: ``data``: they cannot be copied; or the verdict of the watch.
    """
    source, target = spec["earlier"], spec["checkpoints"]
    role, index = all_tasks(spec)[0]
    is_first = (role["name"], index) == (spec["role"], spec["index"])
    while not os.path.isdir(target):
        watch.check()
        if is_first:
            _copy(source, target)
        else:
            watch.sleep(_PERIOD)


def _copy(source: str, target: str) -> None:
    draft = target + ".part"
    try:
        remove_tree(draft)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copytree(source, draft, symlinks=True)
        os.rename(draft, target)
    except OSError as error:  # copytree's own Error is one too
        why = error.strerror or str(error)
        raise Failure("data", "The checkpoints of the earlier job could not be copied: %s." % why) from error
