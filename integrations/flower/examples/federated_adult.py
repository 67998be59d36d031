"""Predict who earns more than 50,000 dollars, by logistic regression of 100 clients of Flower, with central privacy.

It needs also the extra ``accounting`` of dpnoise. The clients
run in this process. Each has some 208 people, and each is protected with all of its people. With ``--long`` the models
are trained for ten splits of the people, also with Flower's own wrapper.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import strategy as flower
from flwr.supercore.task_identity import TaskIdentity

import dpnoise_flower as exact
from dpnoise import datasets, sgd

CLIENTS = 100
ROUNDS = 10
DELTA = 1e-5
CLIPPING_NORM = 0.5
LOCAL_STEPS = 10
LEARNING_RATE = 0.5

Split = tuple[list[tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray]]


class Clients:
    """A grid of Flower whose clients are functions of this process."""

    def __init__(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.parts = parts

    def get_node_ids(self) -> Iterable[int]:
        """Give a number for each client."""
        return range(len(self.parts))

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> Iterable[Message]:
        """Let each client train the model that it is sent."""
        return [self.train(message) for message in messages]

    def train(self, message: Message) -> Message:
        """Take steps of gradient descent on the data of a client. All clients have the same weight."""
        features, is_high = self.parts[message.metadata.dst_node_id]
        weights = message.content["arrays"]["weights"].numpy()
        for _ in range(LOCAL_STEPS):
            residuals = 1 / (1 + np.exp(-features @ weights)) - is_high
            weights = weights - LEARNING_RATE * residuals @ features / len(features)
        arrays, metrics = ArrayRecord({"weights": Array(weights)}), MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def split(seed: int) -> Split:
    """Deal four fifths of the people to the clients, and keep the others for a test."""
    features, is_high, _ = datasets.adult_incomes()
    features = np.column_stack([np.ones(len(features)), features]).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(features))
    test, *parts = np.split(order, np.linspace(len(order) // 5, len(order), CLIENTS + 1).astype(int)[:-1])
    return [(features[part], is_high[part].astype(np.float32)) for part in parts], (features[test], is_high[test])


def train(strategy: Any, people: Split, rounds: int) -> float:
    """Give the accuracy on the others, of the model after so many rounds."""
    parts, (features, is_high) = people
    start = ArrayRecord({"weights": Array(np.zeros(features.shape[1], np.float32))})
    arrays = strategy.start(Clients(parts), start, num_rounds=rounds).arrays
    return float(np.mean((features @ arrays["weights"].numpy() > 0) == is_high))


def plain() -> Any:
    """Make the strategy without privacy: all clients train in each round, and none evaluates."""
    return flower.FedAvg(fraction_evaluate=0.0)


def private(library: Any, noise_multiplier: float) -> Any:
    """Make the strategy with central privacy, of Flower or of dpnoise: only the module differs."""
    return library.DifferentialPrivacyServerSideFixedClipping(plain(), noise_multiplier, CLIPPING_NORM, CLIENTS)


def main(*options: str) -> None:
    """Train with and without privacy, and print how well the others are predicted."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    # Flower sets these in the process of a ServerApp.
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    libraries = {"dpnoise": exact, "Flower": flower} if "--long" in options else {"dpnoise": exact}
    makers: dict[str, Callable[[], Any]] = {"without privacy": plain}
    for epsilon in (8.0, 1.0):
        # All clients train in each round: no sampling makes it cheaper. PLDs need 7 % less noise, and take seconds.
        noise_multiplier = sgd.noise_multiplier_for(
            epsilon=epsilon, delta=DELTA, sample_rate=1.0, steps=ROUNDS, method="rdp"
        )
        for name, library in libraries.items():
            makers[f"{name}, epsilon {epsilon:g}"] = partial(private, library, noise_multiplier)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for seed in range(10 if "--long" in options else 1):
        people = split(seed)
        for name, make in makers.items():
            strategy, begin = make(), time.perf_counter()
            accuracy = train(strategy, people, ROUNDS)
            found[name].append((accuracy, (time.perf_counter() - begin) / ROUNDS))
    print(f"{CLIENTS} clients, {ROUNDS} rounds, delta {DELTA:g}")
    for name, results in found.items():
        accuracies, seconds = np.transpose(results)
        print(
            f"{name:20} accuracy {accuracies.mean():.3f}, {accuracies.min():.3f} to {accuracies.max():.3f}, "
            f"{1000 * seconds.min():.1f} ms a round"
        )
    print(f"always no            accuracy {np.mean(~people[1][1].astype(bool)):.3f}")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main(*sys.argv[1:])
