"""Predict who earns more than 50,000 dollars, by logistic regression in JAX: DP-SGD of optax with secure noise.

Run it with ``python examples/dp_sgd_adult_optax.py``; it needs the extra ``accounting`` of dpnoise. It does what
``dp_sgd_adult.py`` among the examples of dpnoise does with NumPy.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpnoise import datasets, sgd
from dpnoise_jax.optax import dpsgd

EPSILON = 1.0
DELTA = 1e-6
STEPS = 1000
SAMPLE_RATE = 0.05
# How many people are in a batch is private, and a compiled step takes batches of one shape: they are filled up with
# nobody. That a sample of so few people does not fit has a probability below 1e-70.
ROWS = 2048
EXPECTED_BATCH_SIZE = 1300
CLIP_NORM = 1.0
LEARNING_RATE = 2.0


def loss(parameters: dict[str, jax.Array], features: jax.Array, is_high: jax.Array, is_somebody: jax.Array) -> Any:
    """Give the logistic loss of one person, and none of nobody."""
    score = features @ parameters["weights"] + parameters["bias"]
    return is_somebody * optax.sigmoid_binary_cross_entropy(score, is_high)


def accuracy(parameters: dict[str, Any], features: np.ndarray, is_high: np.ndarray) -> float:
    """Give the share of people of whom the right thing is predicted."""
    return float(np.mean((features @ parameters["weights"] + parameters["bias"] > 0) == is_high))


def padded_batch(features: np.ndarray, is_high: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
    """Draw who is in a batch, and fill it up to so many rows."""
    batch = sgd.poisson_sample(len(features), SAMPLE_RATE)
    is_somebody = np.arange(rows) < len(batch)
    indices = np.pad(batch, (0, rows - len(batch)))
    return features[indices], is_high[indices], is_somebody.astype(np.float32)


def train(optimizer: Any, features: np.ndarray, is_high: np.ndarray, steps: int) -> dict[str, Any]:
    """Give the average of the parameters over the second half of the steps, which costs nothing more."""

    @jax.jit
    def step(parameters: Any, state: Any, average: Any, share: float, batch: Any) -> tuple[Any, Any, Any]:
        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0, 0))(parameters, *batch)
        updates, state = optimizer.update(gradients, state)
        parameters = optax.apply_updates(parameters, updates)
        return parameters, state, jax.tree.map(lambda sum, x: sum + share * x, average, parameters)

    parameters = average = {"weights": jnp.zeros(features.shape[1]), "bias": jnp.zeros(())}
    state = optimizer.init(parameters)
    for number in range(steps):
        share = 1 / (steps - steps // 2) if number >= steps // 2 else 0.0
        batch = padded_batch(features, is_high, ROWS)
        parameters, state, average = step(parameters, state, average, share, batch)
    return jax.tree.map(np.asarray, average)


def train_privately(features: np.ndarray, is_high: np.ndarray, steps: int, noise_multiplier: float) -> dict[str, Any]:
    """Train with DP-SGD. The noisy sum is divided by the number of rows, for which the learning rate makes up."""
    rate = LEARNING_RATE * ROWS / EXPECTED_BATCH_SIZE
    return train(
        dpsgd(rate, l2_norm_clip=CLIP_NORM, noise_multiplier=noise_multiplier),
        features.astype(np.float32),
        is_high.astype(np.float32),
        steps,
    )


def train_without_privacy(features: np.ndarray, is_high: np.ndarray, steps: int) -> dict[str, Any]:
    """Train in the same way with the plain sum of the gradients."""
    rate = LEARNING_RATE / EXPECTED_BATCH_SIZE
    plain_sum = optax.stateless(lambda updates, _: jax.tree.map(lambda rows: rows.sum(0), updates))
    return train(
        optax.chain(plain_sum, optax.sgd(rate)), features.astype(np.float32), is_high.astype(np.float32), steps
    )


def main() -> None:
    """Train on four fifths of the people, and print how well the others are predicted."""
    features, is_high, _ = datasets.adult_incomes()
    is_test = np.arange(len(features)) % 5 == 0
    train_set, test_set = (features[~is_test], is_high[~is_test]), (features[is_test], is_high[is_test])

    plan = {"delta": DELTA, "sample_rate": SAMPLE_RATE, "steps": STEPS}
    noise_multiplier = sgd.noise_multiplier_for(epsilon=EPSILON, **plan)
    spent = sgd.epsilon_spent(noise_multiplier=noise_multiplier, **plan)
    private = accuracy(train_privately(*train_set, STEPS, noise_multiplier), *test_set)
    open_data = accuracy(train_without_privacy(*train_set, STEPS), *test_set)

    print(
        f"{len(train_set[0])} people, {STEPS} steps of {SAMPLE_RATE:.0%} of them, "
        f"noise multiplier {noise_multiplier:.3f}"
    )
    print(f"accuracy with DP-SGD      {private:.4f}   epsilon {spent:.4f}, delta {DELTA:g}")
    print(f"accuracy without privacy  {open_data:.4f}")
    print(f"accuracy of always no     {np.mean(~test_set[1].astype(bool)):.4f}")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
