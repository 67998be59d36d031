"""Folding into bounds, and Laplace noise between them."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from diffprivlib import mechanisms as host
from scipy import stats

from dpnoise import ParameterError
from dpnoise.hazmat import SeededRng
from dpnoise_diffprivlib._laplace import _Grid, _moves, scale_for
from dpnoise_diffprivlib._mechanism import fold, fold_integers

from .cases import make

INF, NAN = math.inf, math.nan


def folded(value, lower, upper):
    while not lower <= value <= upper:
        value = 2 * lower - value if value < lower else 2 * upper - value
    return value


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0, 1), (-1.5, 4), (0.5, 3), (-2, 2.5), (-0.5, 0.5), (0.5, INF), (3, INF), (-INF, 2), (-INF, INF), (5, 5)],
)
def test_folding(lower, upper):
    values = np.arange(-40, 41)
    assert fold_integers(values, lower, upper).tolist() == [
        lower if lower == upper else folded(int(value), lower, upper) for value in values
    ]
    expected = np.array([lower if lower == upper else folded(value / 8, lower, upper) for value in values])
    for scale in (2.0**-1071, 1.0, 2.0**1018):
        assert fold(scale * values / 8, scale * lower, scale * upper).tolist() == (scale * expected).tolist()


def test_folding_far_away():
    values = np.array([-(2**63), 2**63 - 1])
    assert fold_integers(values, 0, 9).tolist() == [folded(int(value) % 18, 0, 9) for value in values]
    assert (fold_integers(values, 0.5, INF) >= 1).all()
    assert make("GeometricFolded", epsilon=1e-9, lower=0, upper=1).randomise(0) in (0, 1)  # the host's recursion fails
    with pytest.raises(ParameterError, match="upper must be infinite or below"):
        make("GeometricFolded", upper=2**61)


def test_what_is_infinitely_far_is_folded_as_by_the_host():
    for lower, upper in ((-1, 9), (0, INF), (-INF, 0)):
        mechanism = make("LaplaceFolded", lower=lower, upper=upper)
        original = make("LaplaceFolded", host, lower=lower, upper=upper)
        for value in (INF, -INF):
            # Between two bounds the host's recursion does not end.
            expected = value if lower == -1 else original.randomise(value)
            assert mechanism.randomise(value) == expected
            assert mechanism.randomise_many([value, 0.0])[0] == expected


def loss(scale, sensitivity, last):
    """Enumerate the probabilities, and give the largest logarithm of a ratio between neighbours."""
    with mpmath.workdps(30):
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        rows = [[q ** abs(y - x) for y in range(last + 1)] for x in range(last + 1)]
        rows = [[weight / mpmath.fsum(row) for weight in row] for row in rows]
        neighbours = [(x, y) for x in range(last + 1) for y in range(last + 1) if abs(x - y) <= sensitivity]
        return max(mpmath.log(max(a / b for a, b in zip(rows[x], rows[y], strict=True))) for x, y in neighbours)


@pytest.mark.parametrize(("sensitivity", "last"), [(1, 3), (2, 10), (5, 10), (8, 10), (20, 10)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_loss_between_bounds_is_what_was_asked_for(epsilon, sensitivity, last):
    ignoring_bounds = min(sensitivity, last) / epsilon
    scale = scale_for(epsilon, sensitivity, last, ignoring_bounds)
    assert loss(scale, sensitivity, last) <= epsilon
    if sensitivity < last:  # from end to end the bounds add nothing
        assert loss(ignoring_bounds, sensitivity, last) > epsilon


@pytest.mark.parametrize("bounds", [(-1, 2), (0, INF), (-INF, 0), (0.1, 1e9), (1e12, 1e12 + 8)], ids=str)
def test_the_scale_between_bounds_is_the_hosts_or_a_little_more(bounds):
    lower, upper = bounds
    original = make("LaplaceBoundedDomain", host, lower=lower, upper=upper)
    expected = original._find_scale()
    grid = make("LaplaceBoundedDomain", lower=lower, upper=upper)._noise()
    assert expected <= grid.scale * grid.granularity <= expected * (1 + 1e-6)
    value = min(max(1.0, lower), upper)
    released = make("LaplaceBoundedDomain", lower=lower, upper=upper).randomise_many(np.full(100, value))
    assert ((released >= lower) & (released <= upper)).all()
    # Two of the releases near 1e12 are often the same double.
    assert np.unique(released).size > 50


@pytest.mark.parametrize("bounds", [(0, INF), (-3.5, INF), (-INF, 0)], ids=str)
def test_values_far_from_the_only_bound_stay_there(bounds):
    sign = 1 if bounds[1] == INF else -1
    mechanism = make("LaplaceBoundedDomain", lower=bounds[0], upper=bounds[1])
    for value in (1e3, 2.0**23, 1e9, 2.0**62, 1e300, np.finfo(float).max):
        released = mechanism.randomise_many(np.full(5, sign * value))
        # Noise of 250 scales comes once in 10^108 draws.
        assert released * sign == pytest.approx(np.full(5, value), rel=1e-15, abs=1000)
    assert mechanism.randomise(sign * INF) * sign > 1e308
    assert mechanism.randomise(-sign * INF) * sign < 1000


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((-INF, INF), "lower or upper must be finite"),
        ((0, 1e-12), "upper - lower"),
        ((0, 1e30), "upper - lower"),
        ((NAN, 1), "lower must be a number"),
        ((0, NAN), "upper must be a number"),
    ],
    ids=str,
)
def test_bounds_that_no_grid_serves_are_refused(bounds, message):
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match=message):
        make("LaplaceBoundedDomain", lower=bounds[0], upper=bounds[1])


@pytest.mark.parametrize(("place", "last"), [(0, 10), (4, 10), (10, 10), (2, None)])
def test_noise_between_bounds_has_its_distribution(place, last):
    n, scale = 100_000, 3.0
    released = place + _moves(np.full(n, place), _Grid(1.0, 0, last, scale), SeededRng(place))
    ends = np.arange((last or 120) + 1)
    assert set(released) <= set(ends)
    weights = np.exp(-np.abs(ends - place) / scale)
    common = n * weights / weights.sum() >= 50
    counts = np.bincount(released, minlength=ends.size)

    def p_value(weights):
        expected = n * weights / weights.sum()
        observed, expected = (np.append(x[common], x[~common].sum()) for x in (counts, expected))
        return stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue

    assert p_value(weights) > 1e-9
    # Zero with two signs, and what is outside moved to the bounds.
    twice = np.where(ends == place, 2.0, 1.0) * weights
    moved = weights + np.where(ends == 0, np.exp(-(place + 1) / scale) / (1 - np.exp(-1 / scale)), 0)
    assert max(p_value(twice), p_value(moved)) < 1e-9
