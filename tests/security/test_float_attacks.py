"""The two attacks on floating-point noise: they fail on ours, and succeed on NumPy's, which is their control.

An attack looks at a release and says which of two neighbouring values it thinks was released. Its verdict is a function
of an epsilon-private release, so P(says "zero" of 0) <= e^epsilon P(says "zero" of 1): more is a proof of a leak.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import Laplace, samplers

Floats = NDArray[np.float64]
Release = Callable[[Floats], Floats]

EPSILON = 0.1
SCALE = 1 / EPSILON
SIGMA = 10.0
N = 100_000
ALARM = 1e-9


def numpy_laplace(x: Floats) -> Floats:
    return x + np.random.default_rng().laplace(0.0, SCALE, x.size)


def numpy_normal(x: Floats) -> Floats:
    return x + np.random.default_rng().normal(0.0, SIGMA, x.size)


def laplace_mechanism(x: Floats) -> Floats:
    return Laplace(epsilon=EPSILON).release(x)  # type: ignore[no-any-return]


# 0 and 1 lie on the default grids, so that the sum is one rounding of the exact one.
def laplace_sampler(x: Floats) -> Floats:
    return x + samplers.laplace(SCALE, x.size)


def gaussian_sampler(x: Floats) -> Floats:
    return x + samplers.gaussian(SIGMA, x.size)


def is_log_of_uniform(y: Floats) -> NDArray[np.bool_]:
    """Mironov (2012): whether y can be NumPy's noise itself, +-SCALE log(k 2^-52). From 0 every release is."""
    nearest = np.rint(np.exp(-np.abs(y) / SCALE) * 2.0**52)
    found = np.zeros(y.size, bool)
    log = np.frompyfunc(math.log, 1, 1)
    for step in range(-4, 5):
        uniform = np.clip(nearest + step, 1, 2.0**52) * 2.0**-52
        found |= SCALE * log(uniform).astype(np.float64) == -np.abs(y)
    return found


def is_finer_than_one(y: Floats) -> NDArray[np.bool_]:
    """Haney, Desfontaines, Hartman, Shrestha and Hay (2022): near 0 a sum with 1 is a multiple of 2^-53."""
    return (np.abs(y) < 0.5) & (np.remainder(y, 2.0**-53) != 0)


def epsilon_shown(attack: Callable[[Floats], NDArray[np.bool_]], release: Release) -> float:
    """Give a lower bound of the privacy loss, wrong with a probability of at most ALARM (Clopper and Pearson)."""
    zeros, ones = (int(attack(release(np.full(N, x))).sum()) for x in (0.0, 1.0))
    least = stats.beta.ppf(ALARM / 2, zeros, N - zeros + 1) if zeros else 0.0
    most = stats.beta.isf(ALARM / 2, ones + 1, N - ones) if ones < N else 1.0
    return math.log(least / most) if least else -math.inf


@pytest.mark.parametrize("release", [laplace_mechanism, laplace_sampler, gaussian_sampler])
@pytest.mark.parametrize("attack", [is_log_of_uniform, is_finer_than_one])
def test_an_attack_shows_no_more_than_epsilon(attack: Callable[[Floats], NDArray[np.bool_]], release: Release) -> None:
    # For the Gaussian at this sigma 0.1 is only the typical loss, but no more than twice that goes with 10^5 releases.
    assert epsilon_shown(attack, release) <= EPSILON


@pytest.mark.parametrize(
    ("attack", "release", "shown"),
    [
        (is_log_of_uniform, numpy_laplace, 0.5),
        (is_finer_than_one, numpy_laplace, 3.0),
        (is_finer_than_one, numpy_normal, 3.0),
    ],
)
def test_the_attack_works(attack: Callable[[Floats], NDArray[np.bool_]], release: Release, shown: float) -> None:
    assert epsilon_shown(attack, release) > shown
