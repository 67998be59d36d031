"""DP-SGD of optax with exact, secure noise: the transformations of ``optax.contrib`` of the same names.

Each makes a gradient transformation with the input of optax's, a tree of gradients with a row for each example, and the
output of optax's. Gradients are clipped, added up and given noise on the CPU by `dpnoise.sgd.NoisyGradient`.

Neighbours differ by one example, added or removed, where a row of zeros stands for no example: the number of rows of a
batch is public here and for the host, which divides by it. `dpnoise.sgd.epsilon_spent` computes the cost of steps.

Under ``jax.jit`` a step is a call with a side effect, which JAX runs once each time the step is reached, with
fresh noise. ``jax.grad`` refuses it, and ``jax.checkpoint`` refuses it or keeps its result. ``jax.vmap`` makes a
release, with noise of its own, for each member if it maps the gradients, and is refused if it does not.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

# Imported by name, since a program may put the function below under this name.
from optax.contrib import differentially_private_aggregate as _host_aggregate

from dpnoise import ParameterError
from dpnoise.extend import generator_for_tests
from dpnoise.hazmat import Rng
from dpnoise.sgd import NoisyGradient
from dpnoise_jax._step import Step, array_of, number

__all__ = ["differentially_private_aggregate", "dpsgd"]


def differentially_private_aggregate(
    l2_norm_clip: ArrayLike, noise_multiplier: ArrayLike, key: Any = None, *, seed: Any = None
) -> Any:
    """Clip the gradient of each example to a norm, and return the mean over the rows with noise.

    Parameters
    ----------
    l2_norm_clip : float
        The largest L2 norm of a clipped gradient, over the whole tree, from 2**-80 to 2**80: a gradient above it is
        scaled down to it.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    key : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. By default each step draws a fresh key from the operating system.
        A key of JAX raises a ValueError: anybody who knows it can subtract the noise, and a program that passes the
        same key twice expects the same noise twice.
    seed : generator of `dpnoise.hazmat`, optional
        The older name of ``key``, which optax has, too: at most one of them is given.

    Returns
    -------
    optax.GradientTransformation
        Its ``update`` takes a tree of real arrays, of shapes (rows, ...), and gives a tree of arrays without the first
        axis, of the host's dtypes. It has no state. A row with a NaN or an infinity counts as zeros. A batch without
        rows makes a step of noise alone, as one row of zeros does; the host divides by zero.

    Raises
    ------
    ValueError
        When there is a key; and where the host raises it, also by ``update``.
    NotImplementedError
        By ``update``, under ``jax.shard_map`` and ``jax.pmap``, where each device would draw noise of its own; and
        under ``jax.vmap`` for gradients that all members share, as they would the noise.

    Notes
    -----
    A step on all data is 1/(2 noise_multiplier**2)-zCDP. The sensitivity is ``l2_norm_clip`` and half a step of the
    grid for the rounding of each parameter of the model, so the noise is larger than the host's by less than one part
    in 10**6 for 10**6 parameters.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), "Deep learning with differential privacy",
    algorithm 1.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from dpnoise_jax.optax import differentially_private_aggregate
    >>> aggregate = differentially_private_aggregate(l2_norm_clip=1.0, noise_multiplier=1.1)
    >>> gradients = {"weights": jnp.ones((64, 3)), "bias": jnp.zeros(64)}  # of 64 examples
    >>> noisy, state = aggregate.update(gradients, aggregate.init(None))
    >>> noisy["weights"].shape
    (3,)
    """
    rng = generator_for_tests(seed=seed, key=key)
    host = _host_aggregate(l2_norm_clip, noise_multiplier, key=0)
    state = host.init(None)
    clip_norm, multiplier = number(l2_norm_clip, "l2_norm_clip"), number(noise_multiplier, "noise_multiplier")
    try:
        _mechanism(clip_norm, multiplier)
    except ParameterError as error:
        raise ParameterError(str(error).replace("clip_norm", "l2_norm_clip")) from None

    def update(updates: Any, unchanged: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        released, _ = jax.eval_shape(host.update, updates, state)
        leaves, dtype = _leaves(updates)
        shape = jax.ShapeDtypeStruct((sum(leaf.size for leaf in jax.tree.leaves(released)),), dtype)
        (mean,) = _noisy_mean([shape], leaves, rng=rng, clip_norm=clip_norm, noise_multiplier=multiplier)
        return _tree(mean, released), unchanged

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def dpsgd(
    learning_rate: Any,
    l2_norm_clip: ArrayLike,
    noise_multiplier: ArrayLike,
    seed: Any = None,
    momentum: Any = None,
    nesterov: bool = False,
) -> Any:
    """Make the optimizer DP-SGD: `differentially_private_aggregate`, momentum and a learning rate.

    Parameters
    ----------
    learning_rate : float or callable
        The factor of each step; or a schedule, which returns the factor for the number of the step.
    l2_norm_clip : float
        The largest L2 norm of a clipped gradient, over the whole tree, from 2**-80 to 2**80: a gradient above it is
        scaled down to it.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    seed : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system. Another seed raises a ValueError.
    momentum : float, optional
        The decay rate of the trace of earlier steps, which is added to a step. By default there is no trace.
    nesterov : bool, default False
        Whether the trace is Nesterov's momentum. Without ``momentum`` it has no effect.

    Returns
    -------
    optax.GradientTransformation
        Its ``update`` takes a tree of real arrays, of shapes (rows, ...), and a state, and gives the step to add to the
        parameters, a tree of arrays without the first axis, of the host's dtypes, and the next state. A row with a NaN
        or an infinity counts as zeros. A batch without rows makes a step of noise alone, as one row of zeros does.

    Raises
    ------
    ValueError
        When there is a seed; and where the host raises it, also by ``update``.
    NotImplementedError
        By ``update``, under ``jax.shard_map`` and ``jax.pmap``, where each device would draw noise of its own; and
        under ``jax.vmap`` for gradients that all members share, as they would the noise.

    Notes
    -----
    A step costs as much as a step of `differentially_private_aggregate`: the rest is post-processing.
    """
    return optax.chain(
        differentially_private_aggregate(l2_norm_clip, noise_multiplier, seed=seed),
        optax.identity() if momentum is None else optax.trace(decay=momentum, nesterov=nesterov),
        optax.scale_by_learning_rate(learning_rate),
    )


def _mechanism(clip_norm: float, noise_multiplier: float) -> NoisyGradient:
    return NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1.0)


# It keeps its noise tables, which take longer to compute than the noise of a small model, and steps repeat.
_kept_mechanism: Final = lru_cache(maxsize=256, typed=True)(_mechanism)


def _write_noisy_mean(
    leaves: list[NDArray[Any]], means: list[NDArray[Any]], *, clip_norm: float, noise_multiplier: float, rng: Rng = None
) -> None:
    (mean,) = means
    mechanism = _kept_mechanism(clip_norm, noise_multiplier)
    total = mechanism.add_noise(mechanism.clipped_sum(leaves), dtype=mean.dtype, rng=rng)
    np.divide(total, max(1, len(leaves[0])), out=mean)


_noisy_mean: Final = Step("dpnoise_noisy_mean", _write_noisy_mean)


def _leaves(updates: Any) -> tuple[list[Any], Any]:
    """Return the arrays in the smallest dtype that holds all of them and can be clipped, and that dtype."""
    leaves = jax.tree.leaves(updates)
    dtype = jnp.result_type(np.float32, *leaves)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"updates must be real numbers of at most 64 bits, got dtype {dtype}")
    if not any(math.prod(leaf.shape[1:]) for leaf in leaves):
        raise ParameterError("updates must have one or more parameters for each example, got none")
    return [array_of(leaf, dtype) for leaf in leaves], dtype


def _tree(flat: Any, released: Any) -> Any:
    leaves, structure = jax.tree.flatten(released)
    ends = itertools.accumulate(leaf.size for leaf in leaves)
    parts = [flat[end - leaf.size : end] for leaf, end in zip(leaves, ends, strict=True)]
    return structure.unflatten(
        [jnp.asarray(part, leaf.dtype).reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    )
