"""Inside a task: what of ``paijupyter.paddle`` a script needs there. Its job was submitted long ago."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class PaddleJob:
    """Takes what a script says of its job, for nobody to read."""

    def __init__(self, **fields: "Any") -> None:
        self.__dict__.update(fields)


def in_the_cloud() -> bool:
    """Say whether this process is a task of a job: ``RUNNING_ON_CLOUD`` is set, and not to ``NO``."""
    return os.environ.get("RUNNING_ON_CLOUD", "").strip().upper() not in ("", "NO", "0", "FALSE")


def train(trainer: "Callable[[], Any]") -> "Any":
    """Run a trainer: the design passes a function that returns the one that trains; it may train itself."""
    result = trainer()
    return result() if callable(result) else result


def dist_train(trainer: "Callable[[], Any]", paddle_job: "Any" = None) -> "Any":
    """Train: this is the job."""
    return train(trainer)
