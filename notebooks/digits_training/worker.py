"""A worker: reads its share of the images, pulls weights, pushes steps; the first one keeps the score."""

from __future__ import annotations

import json
import os
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path

import numpy as np

from digits_training.model import accuracy, data, loss_and_gradients
from digits_training.wire import send_at_once


def train(epochs: int, learning_rate: float, batch: int = 32) -> None:
    """Train on this worker's share, report each epoch, and save the model as ``model.npz``."""
    index = int(os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"])
    workers = int(os.environ["PAI_TASK_ROLE_TASK_COUNT_worker"])
    images, test_images, labels, test_labels = data()
    images, labels = images[index::workers], labels[index::workers]
    print(f"worker {index} of {workers}: {len(labels)} images", flush=True)

    order = np.random.default_rng(index)
    with _connect() as server:
        weights = _ask(server, "pull")
        for epoch in range(1, epochs + 1):
            losses = []
            for rows in np.array_split(order.permutation(len(labels)), len(labels) // batch):
                loss, gradients = loss_and_gradients(weights, images[rows], labels[rows])
                losses.append(loss)
                step = {name: -learning_rate / workers * gradient for name, gradient in gradients.items()}
                weights = _ask(server, "push", step)
            weights = _ask(server, "meet")
            if index == 0:
                score = accuracy(weights, test_images, test_labels)
                _report(epoch, epochs, float(np.mean(losses)), score)
        if index == 0:
            path = Path(os.environ["PAI_OUTPUT_DIR"]) / "model.npz"
            np.savez(path, **weights)
            print(f"saved {path.name}, {path.stat().st_size} bytes", flush=True)


def _connect() -> Connection:
    """Connect to the parameter server; it may need a moment to import and listen."""
    address = (os.environ["PAI_HOST_IP_ps_0"], int(os.environ["PAI_PORT_LIST_ps_0_ps"]))
    deadline = time.monotonic() + 60
    while True:
        try:
            return send_at_once(Client(address, authkey=os.environ["TRAINING_KEY"].encode()))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _ask(server: Connection, verb: str, content: object = None) -> dict[str, np.ndarray]:
    server.send((verb, content))
    return server.recv()


def _report(epoch: int, epochs: int, loss: float, score: float) -> None:
    print(f"epoch {epoch}/{epochs}  loss {loss:.3f}  accuracy {score:.3f}", flush=True)
    row = {"epoch": epoch, "epochs": epochs, "loss": round(loss, 4), "accuracy": round(score, 4)}
    with open(os.environ["PAI_METRICS_FILE"], "a") as file:
        file.write(json.dumps(row) + "\n")
