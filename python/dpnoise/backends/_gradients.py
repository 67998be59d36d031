"""Clipped gradients of whole models, by the parameters of a step: shared by the backends of training frameworks.

Each function makes the `dpnoise.sgd.NoisyGradient` of its parameters, for sums that are not divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpnoise._parameters import Rng, root
from dpnoise.sgd import NoisyGradient


def mechanism(clip_norm: float, noise_multiplier: float) -> NoisyGradient:
    return NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1.0)


# The mechanism keeps its noise tables, which take longer to compute than the noise of a small model, and steps repeat.
_kept_mechanism = lru_cache(maxsize=256, typed=True)(mechanism)


def clipped_sum(
    gradients: Sequence[NDArray[Any]], *, clip_norm: float, threads: int | None = None
) -> NDArray[np.int64]:
    """Clip gradients and add them up, as `NoisyGradient.clipped_sum` does."""
    return mechanism(clip_norm, 1.0).clipped_sum(gradients, threads=threads)


def noisy(
    sums: NDArray[np.int64],
    *,
    clip_norm: float,
    noise_multiplier: float,
    dtype: DTypeLike = np.float32,
    threads: int | None = None,
    rng: Rng = None,
) -> NDArray[Any]:
    """Add noise to the results of `clipped_sum`, as `NoisyGradient.add_noise` does."""
    return _kept_mechanism(clip_norm, noise_multiplier).add_noise(sums, dtype=dtype, threads=threads, rng=rng)


def multipliers(clip_norms: Sequence[float], widths: Sequence[int], noise_multiplier: float) -> list[float]:
    """Return the noise multiplier of each part of a gradient whose parts are clipped to separate norms.

    All parts get noise of the same standard deviation: ``noise_multiplier`` times the joint sensitivity, which is the
    root of the sum of the squares of the parts' sensitivities; rounded up.

    Parameters
    ----------
    clip_norms, widths : sequence
        The norm of each part, and its number of coordinates.
    noise_multiplier : float
        The multiplier of the whole gradient.
    """
    squares = [
        Fraction(mechanism(norm, noise_multiplier).sensitivity(width)) ** 2
        for norm, width in zip(clip_norms, widths, strict=True)
    ]
    found = [root(Fraction(noise_multiplier) ** 2 * sum(squares) / square) for square in squares]
    for norm, multiplier in zip(clip_norms, found, strict=True):
        mechanism(norm, multiplier)
    return found
