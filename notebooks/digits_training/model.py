"""The data and the model: 8 × 8 images of digits, one hidden layer, softmax, in plain numpy."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Weights = dict[str, np.ndarray]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images (n, 64), test images, training labels (n,) and test labels.

    The data ships inside scikit-learn, and the split is fixed: every task sees the same one.
    """
    digits = load_digits()
    return tuple(
        train_test_split(
            digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
        )
    )


def initial_weights(hidden: int) -> Weights:
    """Return small random weights for 64 inputs, ``hidden`` units and 10 digits."""
    rng = np.random.default_rng(0)
    return {
        "w1": rng.normal(0, 0.2, (64, hidden)),
        "b1": np.zeros(hidden),
        "w2": rng.normal(0, 0.2, (hidden, 10)),
        "b2": np.zeros(10),
    }


def probabilities(weights: Weights, images: np.ndarray) -> np.ndarray:
    """Return the probability of each digit for each image, shape (n, 10)."""
    return _forward(weights, images)[1]


def accuracy(weights: Weights, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images whose most probable digit is the right one."""
    return float((probabilities(weights, images).argmax(1) == labels).mean())


def loss_and_gradients(weights: Weights, images: np.ndarray, labels: np.ndarray) -> tuple[float, Weights]:
    """Return the mean cross-entropy of a batch and its gradient for each weight."""
    hidden, probs = _forward(weights, images)
    count = len(labels)
    loss = float(-np.log(probs[np.arange(count), labels] + 1e-12).mean())
    delta = probs.copy()
    delta[np.arange(count), labels] -= 1
    delta /= count
    back = (delta @ weights["w2"].T) * (1 - hidden**2)
    return loss, {"w1": images.T @ back, "b1": back.sum(0), "w2": hidden.T @ delta, "b2": delta.sum(0)}


def _forward(weights: Weights, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.tanh(images @ weights["w1"] + weights["b1"])
    scores = hidden @ weights["w2"] + weights["b2"]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, scores / scores.sum(1, keepdims=True)
