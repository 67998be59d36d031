"""Classify digits by softmax regression, trained with independent and with correlated noise at the same epsilon.

Run it with ``python examples/correlated_noise.py``; it needs the extras ``accounting`` and ``examples``. It prints
Markdown, and ``--help`` says how to draw it.
"""

import argparse
import time
from collections.abc import Iterator
from typing import NamedTuple

import _curves
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from dpnoise import sgd

EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
EPOCHS = 10
BATCHES = 20  # in an epoch
STEPS = EPOCHS * BATCHES
EXPECTED_BATCH_SIZE = 72  # a public constant: how many examples there are, and are in a batch, is private
CLIP_NORM = 1.0
LEARNING_RATES = (2.0, 4.0, 8.0, 16.0)
CYCLE = 10

Participation = sgd.MinSeparation | sgd.CyclicPoisson


def optimal(bands: int) -> sgd.BandedToeplitz:
    """Give the strategy with the smallest mean squared error."""
    return sgd.BandedToeplitz.optimal(steps=STEPS, bands=bands)


# Noise with one band is independent, and a cycle of one group is Poisson subsampling from all examples: DP-SGD.
WAYS: dict[str, tuple[sgd.BandedToeplitz, Participation]] = {
    "independent, fixed batches": (optimal(1), sgd.MinSeparation(BATCHES)),
    "independent, Poisson samples": (optimal(1), sgd.CyclicPoisson(1, sample_rate=1 / BATCHES)),
    f"{BATCHES} bands, fixed batches": (optimal(BATCHES), sgd.MinSeparation(BATCHES)),
    f"{CYCLE} bands, cyclic Poisson": (optimal(CYCLE), sgd.CyclicPoisson(CYCLE, sample_rate=CYCLE / BATCHES)),
}


class Digits(NamedTuple):
    """Pictures of 8 by 8 pixels, scaled to norm 1, and the digits that they show."""

    pictures: NDArray[np.float64]
    digits: NDArray[np.int64]

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the logarithms of the probabilities of the ten digits."""
        scores = self.pictures @ weights.reshape(64, 10)
        scores -= scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def gradients(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the gradient of the loss of each example, a row each."""
        errors = np.exp(self.scores(weights)) - np.eye(10)[self.digits]
        return (self.pictures[:, :, np.newaxis] * errors[:, np.newaxis]).reshape(-1, 640)

    def loss(self, weights: NDArray[np.float64]) -> float:
        """Give the cross entropy."""
        return -float(np.mean(self.scores(weights)[np.arange(len(self.digits)), self.digits]))

    def accuracy(self, weights: NDArray[np.float64]) -> float:
        """Give the share of digits that are recognised."""
        return float(np.mean(self.scores(weights).argmax(axis=1) == self.digits))


class Result(NamedTuple):
    """What a run gives: of the last weights, and of the average of the second half of the steps."""

    accuracy: float
    loss: float
    of_average: float
    seconds: float


def batches(participation: Participation, examples: int) -> Iterator[NDArray[np.intp]]:
    """Give the batch of each step: a group, which each example chose by a coin of its own, or a sample from it."""
    groups = participation.cycle if isinstance(participation, sgd.CyclicPoisson) else BATCHES
    chosen = np.random.default_rng().integers(groups, size=examples)
    for step in range(STEPS):
        members = np.flatnonzero(chosen == step % groups)
        yield members[sgd.poisson_sample(len(members), participation.sample_rate)]


def train(train_set: Digits, test_set: Digits, way: str, noise_multiplier: float, learning_rate: float) -> Result:
    """Train once."""
    strategy, participation = WAYS[way]
    run = sgd.CorrelatedGradient(
        strategy=strategy,
        clip_norm=CLIP_NORM,
        noise_multiplier=noise_multiplier,
        expected_batch_size=EXPECTED_BATCH_SIZE,
        participation=participation,
    ).start()
    weights, average, seconds = np.zeros(640), np.zeros(640), 0.0
    for step, batch in enumerate(batches(participation, len(train_set.digits))):
        gradients = Digits(*(column[batch] for column in train_set)).gradients(weights)
        start = time.perf_counter()
        gradient = run.step(gradients)
        seconds += time.perf_counter() - start
        weights -= learning_rate * gradient
        if step >= STEPS // 2:
            average += weights / (STEPS - STEPS // 2)
    return Result(test_set.accuracy(weights), train_set.loss(weights), test_set.accuracy(average), seconds / STEPS)


def train_without_noise(train_set: Digits) -> NDArray[np.float64]:
    """Give the weights after as many steps with all examples."""
    weights = np.zeros(640)
    for _ in range(STEPS):
        weights -= max(LEARNING_RATES) * train_set.gradients(weights).mean(axis=0)
    return weights


def multiplier(participation: Participation, epsilon: float) -> float:
    """Give the noise multiplier of a run."""
    return sgd.noise_multiplier_for(
        epsilon=epsilon, delta=DELTA, sample_rate=participation.sample_rate, steps=participation.events(STEPS)
    )


def shown(values: NDArray[np.float64]) -> str:
    """Show the mean of some accuracies, with its standard error."""
    return f"{values.mean():.1%} ± {values.std(ddof=1) / len(values) ** 0.5:.1%}"


def draw(path: str, curves: dict[str, list[float]]) -> None:
    """Draw the errors of each way by epsilon, on logarithmic scales."""
    marks = (0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
    with _curves.picture(path, height=4.2) as axes:
        for index, (way, accuracies) in enumerate(curves.items()):
            style = "--" if way.startswith("independent") else "-"
            axes.plot(EPSILONS, 1 - np.array(accuracies), style, color=f"C{index}", marker="o", label=way)
        axes.set_xscale("log", base=2)
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.set_yscale("log")
        axes.set_yticks(marks, [f"{mark:.0%}" for mark in marks])
        axes.set_yticks([], minor=True)
        axes.grid(color="#dddddd", linewidth=0.8)
        axes.set(xlabel="epsilon", ylabel="digits not recognised")
        axes.legend(frameon=False)


def main() -> None:
    """Train on four fifths of the digits, and show how well the others are recognised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=2, help="how often each training is repeated, at least 2")
    parser.add_argument("--plot", help="where to write a picture")
    options = parser.parse_args()

    pictures, digits = load_digits(return_X_y=True)
    pictures /= np.linalg.norm(pictures, axis=1, keepdims=True)
    is_test = np.arange(len(digits)) % 5 == 0
    train_set, test_set = (Digits(pictures[part], digits[part]) for part in (~is_test, is_test))

    curves: dict[str, list[float]] = {way: [] for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    print("| ε | noise, batches | noise multiplier | error of sums | last weights | loss | averaged weights |")
    print("| --- " * 7 + "|")
    for epsilon in EPSILONS:
        for way, (strategy, participation) in WAYS.items():
            noise = multiplier(participation, epsilon)
            results = [
                [train(train_set, test_set, way, noise, rate) for _ in range(options.repetitions)]
                for rate in LEARNING_RATES
            ]
            accuracies, losses, averaged, times = np.moveaxis(np.array(results), 2, 0)
            last, average = (some[some.mean(axis=1).argmax()] for some in (accuracies, averaged))
            curves[way].append(float(average.mean()))
            seconds[way].append(float(times.min()))
            print(
                f"| {epsilon:g} | {way} | {noise:.2f} | {noise * strategy.root_mean_squared_error(participation):.1f} "
                f"| {shown(last)} | {losses.mean(axis=1).min():.2f} | {shown(average)} |"
            )
    print(f"without noise: {test_set.accuracy(train_without_noise(train_set)):.1%}")
    for way, times in seconds.items():
        print(f"{way}: {min(times) * 1e6:.0f} µs per step for clipping, sum and noise")
    if options.plot is not None:
        draw(options.plot, curves)


if __name__ == "__main__":
    main()
