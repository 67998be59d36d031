"""Predict who earns more than 50,000 dollars, by logistic regression with DP-SGD and without privacy.

Run it with ``python examples/dp_sgd_adult.py``; it needs the extra ``accounting``.
"""

import numpy as np

from dpnoise import datasets, sgd

EPSILON = 1.0
DELTA = 1e-6
STEPS = 1000
SAMPLE_RATE = 0.05
EXPECTED_BATCH_SIZE = 1300  # a public constant: how many people there are, and are in a batch, is private
CLIP_NORM = 1.0
LEARNING_RATE = 2.0


def example_gradients(weights: np.ndarray, features: np.ndarray, is_high: np.ndarray) -> np.ndarray:
    """Give the gradient of the logistic loss of each person, a row each."""
    residuals = 1 / (1 + np.exp(-features @ weights)) - is_high
    return residuals[:, np.newaxis] * features


def accuracy(weights: np.ndarray, features: np.ndarray, is_high: np.ndarray) -> float:
    """Give the share of people of whom the right thing is predicted."""
    return float(np.mean((features @ weights > 0) == is_high))


def train_privately(features: np.ndarray, is_high: np.ndarray, steps: int, noise_multiplier: float) -> np.ndarray:
    """Give the average of the weights over the second half of the steps, which costs nothing more."""
    noisy = sgd.NoisyGradient(
        clip_norm=CLIP_NORM, noise_multiplier=noise_multiplier, expected_batch_size=EXPECTED_BATCH_SIZE
    )
    weights, average = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for step in range(steps):
        batch = sgd.poisson_sample(len(features), SAMPLE_RATE)
        weights -= LEARNING_RATE * noisy.release(example_gradients(weights, features[batch], is_high[batch]))
        if step >= steps // 2:
            average += weights / (steps - steps // 2)
    return average


def train_without_privacy(features: np.ndarray, is_high: np.ndarray, steps: int) -> np.ndarray:
    """Give the weights after as many steps with all data."""
    weights = np.zeros(features.shape[1])
    for _ in range(steps):
        weights -= LEARNING_RATE * example_gradients(weights, features, is_high).mean(axis=0)
    return weights


def main() -> None:
    """Train on four fifths of the people, and print how well the others are predicted."""
    features, is_high, _ = datasets.adult_incomes()
    features = np.column_stack([np.ones(len(features)), features])
    is_test = np.arange(len(features)) % 5 == 0
    train, test = (features[~is_test], is_high[~is_test]), (features[is_test], is_high[is_test])

    plan = {"delta": DELTA, "sample_rate": SAMPLE_RATE, "steps": STEPS}
    noise_multiplier = sgd.noise_multiplier_for(epsilon=EPSILON, **plan)
    spent = sgd.epsilon_spent(noise_multiplier=noise_multiplier, **plan)
    private = accuracy(train_privately(*train, STEPS, noise_multiplier), *test)
    open_data = accuracy(train_without_privacy(*train, STEPS), *test)
    nobody = accuracy(-np.eye(1, features.shape[1])[0], *test)

    print(
        f"{len(train[0])} people, {STEPS} steps of {SAMPLE_RATE:.0%} of them, noise multiplier {noise_multiplier:.3f}"
    )
    print(f"accuracy with DP-SGD      {private:.4f}   epsilon {spent:.4f}, delta {DELTA:g}")
    print(f"accuracy without privacy  {open_data:.4f}")
    print(f"accuracy of always no     {nobody:.4f}")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
