"""Trainers fit a line through a parameter server of our own, found by Paddle's variables of that mode.

PaddlePaddle's wheel has no parameter-server mode, so this is what proves TRAINING_ROLE, PADDLE_PORT,
PADDLE_PSERVERS_IP_PORT_LIST and the rest: the standard library with the same roles, places and steps.
"""

import json
import os
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pai_tasks import rank_and_world, shard

TRAINERS = int(os.environ["PADDLE_TRAINERS_NUM"])
SERVERS = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
STEPS = 60


class Parameter:
    """One weight: adds up the gradients of all trainers of a step, then moves."""

    def __init__(self) -> None:
        self.value = 0.0
        self.step = 0
        self._sum = 0.0
        self._came = 0
        self._moved = threading.Condition()

    def push(self, gradient: float) -> float:
        """Add a trainer's gradient; return the new weight once all have come."""
        with self._moved:
            step = self.step
            self._sum += gradient
            self._came += 1
            if self._came == TRAINERS:
                self.value -= 0.3 * self._sum / TRAINERS
                self._sum, self._came, self.step = 0.0, 0, step + 1
                self._moved.notify_all()
            self._moved.wait_for(lambda: self.step > step)
            return self.value


def serve() -> None:
    parameter = Parameter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            gradient = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(parameter.push(gradient)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    print(f"server {os.environ['PADDLE_PSERVER_ID']} at {os.environ['PADDLE_PORT']}", flush=True)
    ThreadingHTTPServer((os.environ["POD_IP"], int(os.environ["PADDLE_PORT"])), Handler).serve_forever()


def push(server: str, gradient: float) -> float:
    for _ in range(200):
        try:
            answer = urllib.request.urlopen(f"http://{server}/", json.dumps(gradient).encode(), timeout=30)
            return float(json.loads(answer.read()))
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            threading.Event().wait(0.05)  # the tasks start together; a server needs a moment more
    raise SystemExit(f"no parameter server at {server}")


def train() -> None:
    rank, world = rank_and_world()
    assert (rank, world) == (int(os.environ["PADDLE_TRAINER_ID"]), TRAINERS)
    mine = shard([-1 + index / 31.5 for index in range(64)])
    weights = [0.0, 0.0]
    for _ in range(STEPS):
        errors = [weights[0] * x + weights[1] - (3 * x + 1) for x in mine]
        loss = sum(error * error for error in errors) / len(mine)
        gradients = [
            2 * sum(error * x for error, x in zip(errors, mine, strict=True)) / len(mine),
            2 * sum(errors) / len(mine),
        ]
        weights = [push(server, gradient) for server, gradient in zip(SERVERS, gradients, strict=True)]
    print(f"pserver own rank {rank} of {world} loss {loss:.2e} weights {weights}")


if os.environ["TRAINING_ROLE"] == "PSERVER":
    serve()
else:
    train()
