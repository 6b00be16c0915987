"""The Paddle way: one script that submits itself, after PaddlePaddle's design for submitting a job (2017).

>>> from paijupyter.paddle import PaddleJob, dist_train
>>> dist_train(trainer=make_trainer, paddle_job=PaddleJob(job_name="word2vec", trainers=4, pservers=0))

Outside a job it submits this script, or in a notebook this cell; inside the job it calls the trainer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from paijupyter.client import Job
    from paijupyter.protocol.paddle import PaddleJob as PaddleJob

__all__ = ["PaddleJob", "dist_train", "submit"]


def __getattr__(name: str) -> Any:
    if name != "PaddleJob":
        raise AttributeError(f"module 'paijupyter.paddle' has no attribute {name!r}")
    from paijupyter.protocol.paddle import PaddleJob

    return PaddleJob


def dist_train(trainer: Callable[[], Any], paddle_job: PaddleJob) -> Any:
    """Submit this script or cell as a job; inside that job, train.

    Args:
        trainer: returns the function that trains, or trains itself. It is called in the job only.
        paddle_job: what the job is.

    Returns:
        The job's handle; inside the job what the trainer returns.

    Raises:
        PaiJupyterError: it cannot be submitted.
    """
    from paijupyter.tasks.paddle import in_the_cloud, train

    return train(trainer) if in_the_cloud() else submit(paddle_job)


def submit(paddle_job: PaddleJob) -> Job:
    """Submit a job: its entry point, else this notebook cell, else this script.

    Raises:
        PaiJupyterError: it cannot be submitted.
    """
    from paijupyter.paddle import submission

    return submission.submit(paddle_job)
