"""The attacks of `dpnoise.audit` on floating-point noise: they fail on ours, and succeed on NumPy's, their control.

Each attack on a correct mechanism succeeds with a probability of at most 1e-9.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnoise import DiscreteLaplace, Gaussian, Laplace, samplers
from dpnoise.audit import attacks
from dpnoise.audit.attacks._precision import _MAGNITUDES, _neighbours

Floats = NDArray[np.float64]

EPSILON = 0.1
SCALE = 1 / EPSILON
SIGMA = 10.0
N = 100_000
SURE = 1 - 1e-9


def numpy_laplace(x: Floats) -> Floats:
    return x + np.random.default_rng().laplace(0.0, SCALE, x.size)


def numpy_laplace_around(x: Floats) -> Floats:
    return np.random.default_rng().laplace(x, SCALE)


def numpy_normal(x: Floats) -> Floats:
    return x + np.random.default_rng().normal(0.0, SIGMA, x.size)


def laplace_mechanism(x: Floats) -> Floats:
    return Laplace(epsilon=EPSILON).release(x)  # type: ignore[no-any-return]


def gaussian_mechanism(x: Floats) -> Floats:
    # All values differ, by 1, and the scale is SIGMA.
    return Gaussian(rho=x.size / (2 * SIGMA**2), sensitivity=x.size**0.5).release(x)  # type: ignore[no-any-return]


# Whole numbers lie on the default grids, so that the sum is one rounding of the exact one.
def laplace_sampler(x: Floats) -> Floats:
    return x + samplers.laplace(SCALE, size=x.size)


def gaussian_sampler(x: Floats) -> Floats:
    return x + samplers.gaussian(SIGMA, size=x.size)


# For the Gaussian at this sigma 0.1 is only the typical loss, but no more than twice that goes with 10^5 releases.
OURS = [laplace_mechanism, laplace_sampler, gaussian_mechanism, gaussian_sampler]


@pytest.mark.parametrize("release", OURS)
def test_low_order_bits_tell_nothing(release) -> None:
    report = attacks.low_order_bits(release, n=N, epsilon=EPSILON, scale=SCALE, level=SURE, vectorized=True)
    assert not report.refuted, report


@pytest.mark.parametrize("release", OURS)
def test_precision_tells_nothing(release) -> None:
    report = attacks.precision(release, n=N, epsilon=EPSILON, level=SURE, vectorized=True)
    assert not report.refuted, report


@pytest.mark.parametrize("sensitivity", [0.1, 1.0, 1e-9, 3e20])
def test_neither_does_so_in_any_unit(sensitivity: float) -> None:
    mechanism = Laplace(epsilon=EPSILON, sensitivity=sensitivity)
    for x in (0.0, 1000 * sensitivity):
        pair = x, x + sensitivity / 2
        report = attacks.low_order_bits(mechanism, *pair, n=N // 10, level=SURE)
        assert not report.refuted, report
    report = attacks.precision(mechanism, n=N // 10, level=SURE)
    assert not report.refuted, report
    # Neighbours are exact, and no further apart than the sensitivity.
    neighbours = [_neighbours(magnitude, sensitivity) for magnitude in _MAGNITUDES]
    assert all(0.5 * sensitivity < y - x <= sensitivity for x, y in neighbours)


def test_nor_do_integers() -> None:
    mechanism = DiscreteLaplace(epsilon=EPSILON, sensitivity=3)
    assert not attacks.low_order_bits(mechanism, 0, 3, n=N // 10, level=SURE).refuted
    assert not attacks.precision(mechanism, n=N // 10, level=SURE).refuted
    assert {type(x) for magnitude in _MAGNITUDES for x in _neighbours(magnitude, 3)} == {int}


@pytest.mark.parametrize("release", [numpy_laplace, numpy_laplace_around])
def test_numpy_gives_itself_away_by_what_it_can_reach(release) -> None:
    report = attacks.low_order_bits(release, n=N, epsilon=EPSILON, scale=SCALE, level=SURE, vectorized=True)
    assert report.refuted
    assert report.bound.epsilon > 6
    # Most releases alone tell which of two neighbours they came from, and not one of them errs.
    assert {report.bound.hits, report.bound.hits_prime} & {0}
    assert max(report.bound.hits, report.bound.hits_prime) > 0.5 * report.bound.trials


@pytest.mark.parametrize("release", [numpy_laplace, numpy_laplace_around, numpy_normal])
def test_numpy_gives_itself_away_by_its_precision(release) -> None:
    report = attacks.precision(release, n=N, epsilon=EPSILON, level=SURE, vectorized=True)
    assert report.refuted
    assert report.bound.epsilon > 2.5
    assert report.bound.level == SURE
    assert "the lowest set bit near " in report.bound.event
    # Without knowing how the noise is made.
    report = attacks.low_order_bits(release, n=N, epsilon=EPSILON, level=SURE, vectorized=True)
    assert report.refuted


def test_an_input_that_was_not_put_on_the_grid_is_found() -> None:
    # Exact noise on a grid, added to what does not lie on it: all low-order bits are the input's.
    report = attacks.low_order_bits(
        lambda x: x + samplers.laplace(SCALE, size=x.size), 0.0, 0.1, n=N, epsilon=EPSILON, level=SURE, vectorized=True
    )
    assert report.refuted
    assert report.bound.epsilon > 5
