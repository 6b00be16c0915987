"""The parameter server: holds the weights, adds what workers push, hands out what they pull.

It never ends by itself; the job ends with its workers. Only a worker that knows the job's secret is let in.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.connection import Connection, Listener

from digits_training.model import Weights, initial_weights
from digits_training.wire import send_at_once


def serve(hidden: int) -> None:
    """Serve all workers of the job on the port that the job gave to this task."""
    server = _Server(initial_weights(hidden), int(os.environ["PAI_TASK_ROLE_TASK_COUNT_worker"]))
    host = os.environ["PAI_HOST_IP_ps_0"]
    port = int(os.environ["PAI_PORT_LIST_ps_0_ps"])
    with Listener((host, port), backlog=16, authkey=os.environ["TRAINING_KEY"].encode()) as listener:
        print(f"serving {sum(w.size for w in server.weights.values())} weights on port {port}", flush=True)
        while True:
            connection = send_at_once(listener.accept())
            threading.Thread(target=server.answer, args=(connection,), daemon=True).start()


class _Server:
    def __init__(self, weights: Weights, workers: int) -> None:
        self.weights = weights
        self.updates = 0
        self._lock = threading.Lock()
        self._everyone = threading.Barrier(workers)

    def answer(self, connection: Connection) -> None:
        """Answer one worker until it leaves."""
        with connection:
            while True:
                try:
                    verb, content = connection.recv()
                except EOFError:
                    return
                if verb == "push":
                    self._add(content)
                elif verb == "meet":  # returns once every worker has come this far
                    self._everyone.wait()
                with self._lock:
                    connection.send(self.weights)

    def _add(self, step: Weights) -> None:
        with self._lock:
            self.weights = {name: value + step[name] for name, value in self.weights.items()}
            self.updates += 1
