"""The design's own shape: one script that submits itself elsewhere and trains here, on real Paddle."""

import runpy

from paijupyter.paddle import PaddleJob, dist_train


def make_trainer():
    def train():
        runpy.run_path("paddle_collective.py")

    return train


dist_train(trainer=make_trainer, paddle_job=PaddleJob(job_name="line", trainers=2, pservers=0))
