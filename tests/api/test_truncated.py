"""Mechanisms with bounded noise: their deltas against enumerations of all outputs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from dpnoise import ParameterError, TruncatedDiscreteGaussian, TruncatedDiscreteLaplace, hazmat, keyed, samplers

Density = Callable[[int], mpmath.mpf]

# No rounding at 50 digits makes a difference of two equal numbers larger than this.
ZERO = mpmath.mpf(10) ** -45


def probabilities(density: Density, radius: int) -> dict[int, mpmath.mpf]:
    weights = {n: density(n) for n in range(-radius, radius + 1)}
    total = mpmath.fsum(weights.values())
    return {n: weight / total for n, weight in weights.items()}


def laplace(scale: mpmath.mpf) -> Density:
    return lambda n: mpmath.exp(-abs(n) / scale)


def gaussian(sigma: float) -> Density:
    return lambda n: mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * mpmath.mpf(sigma) ** 2))


def delta(p: dict[int, mpmath.mpf], epsilon: float, shifts: tuple[int, ...]) -> mpmath.mpf:
    """Sum P(y) - e^epsilon P'(y) over all outputs y of values that are 0, or that differ by the shifts."""
    factor, losses = mpmath.exp(mpmath.mpf(epsilon)), []
    for noise in itertools.product(p, repeat=len(shifts)):
        one = mpmath.fprod(p[n] for n in noise)
        other = mpmath.fprod(p.get(n + shift, mpmath.mpf(0)) for n, shift in zip(noise, shifts, strict=True))
        losses.append(one - factor * other)
    return mpmath.fsum(loss for loss in losses if loss > ZERO)


LAPLACE = [(1.0, 1, 14), (0.5, 3, 9), (2.0, 5, 5), (0.25, 2, 30), (3.0, 7, 40)]


@pytest.mark.parametrize(("epsilon", "sensitivity", "radius"), LAPLACE)
def test_the_delta_of_laplace_noise_is_that_of_the_enumeration(epsilon: float, sensitivity: int, radius: int) -> None:
    with mpmath.workdps(50):
        p = probabilities(laplace(sensitivity / mpmath.mpf(epsilon)), radius)
        exact = delta(p, epsilon, (sensitivity,))
        found = TruncatedDiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, radius=radius).delta
        assert 0 <= found / exact - 1 < 1e-15
        assert all(delta(p, epsilon, (shift,)) <= exact for shift in range(-sensitivity, sensitivity))
        # The faults that are found: untruncated probabilities, or an edge that is one step off.
        for wrong in (2 * p[radius], sum(p[radius - k] for k in range(sensitivity + 1))):
            assert abs(wrong / exact - 1) > 1e-6 or sensitivity == 2


@pytest.mark.parametrize(("epsilon", "sigma", "shift", "radius"), [
    (1.0, 4.25, 1, 23), (0.5, 3.0, 2, 4), (0.01, 10.0, 7, 30), (2.0, 8.0, 12, 30), (30.0, 1.0, 3, 6),
    (0.001, 40.0, 1, 41),
])  # fmt: skip
def test_the_delta_of_gaussian_noise_is_that_of_the_enumeration(
    epsilon: float, sigma: float, shift: int, radius: int
) -> None:
    with mpmath.workdps(50):
        p = probabilities(gaussian(sigma), radius)
        exact = delta(p, epsilon, (shift,))
        made = TruncatedDiscreteGaussian(epsilon=100.0, scale=sigma, radius=radius, sensitivity=shift)
        assert 0 <= made.delta_for(epsilon) / exact - 1 < 1e-15
        assert all(delta(p, epsilon, (less,)) <= exact for less in range(-shift, shift))


def test_several_values_together() -> None:
    with mpmath.workdps(50):
        for sensitivity, radius in ((2, 5), (3, 6)):
            bounded = TruncatedDiscreteLaplace(epsilon=1.0, sensitivity=sensitivity, radius=radius)
            p = probabilities(laplace(mpmath.mpf(sensitivity)), radius)
            for first in range(sensitivity + 1):
                for second in (first - sensitivity, sensitivity - first):
                    assert delta(p, 1.0, (first, second)) <= bounded.delta
        for sensitivity, shifts in ((1.5, [(1, 1)]), (2.0, [(2, 0), (1, 1)]), (3.0, [(3, 0), (2, 2), (1, -2)])):
            made = TruncatedDiscreteGaussian(epsilon=1.0, delta=0.01, sensitivity=sensitivity)
            by_radius = TruncatedDiscreteGaussian(
                epsilon=1.0, scale=made.scale, radius=made.radius_for(2), sensitivity=sensitivity
            )
            p = probabilities(gaussian(made.scale), made.radius_for(2))
            for pair in shifts:
                exact = delta(p, 1.0, pair)
                assert exact <= made.delta_for(1.0, 2) <= 0.01
                assert exact <= by_radius.delta
            # The probability that one value alone leaves the range is no bound for two.
            assert delta(p, 1.0, (1, 1)) > delta(p, 1.0, (1, 0))


@pytest.mark.parametrize("sensitivity", [1, 4])
def test_the_radius_is_the_smallest(sensitivity: int) -> None:
    made = TruncatedDiscreteLaplace(epsilon=0.7, delta=1e-9, sensitivity=sensitivity)
    assert made.delta <= 1e-9
    less = TruncatedDiscreteLaplace(epsilon=0.7, radius=made.radius - 1, sensitivity=sensitivity)
    assert less.delta > 1e-9
    by_delta = TruncatedDiscreteGaussian(epsilon=0.7, delta=1e-9, sensitivity=sensitivity)
    assert by_delta.delta_for(0.7) <= 1e-9
    given = {"epsilon": 0.7, "scale": by_delta.scale, "sensitivity": sensitivity}
    assert TruncatedDiscreteGaussian(radius=by_delta.radius - 1, **given).delta_for(0.7) > 1e-9
    # Where any radius suffices: the scale, rounded up, or the sensitivity.
    assert TruncatedDiscreteGaussian(epsilon=0.01, delta=0.5).radius == 1
    assert TruncatedDiscreteGaussian(epsilon=0.01, delta=0.9, sensitivity=50).radius == 50


def test_the_largest_sensitivity_has_a_radius() -> None:
    # Half of the tail of noise of scale 2**40 is on one side.
    radius = TruncatedDiscreteLaplace(epsilon=2.0**21, delta=1e-300, sensitivity=2**61).radius
    assert radius - 2**61 == pytest.approx(2**40 * (300 * math.log(10) - math.log(2)), rel=1e-6)


def test_noise_of_one_sign() -> None:
    for mechanism in (
        TruncatedDiscreteLaplace(epsilon=1.0, delta=1e-3),
        TruncatedDiscreteGaussian(epsilon=1.0, delta=1e-3),
    ):
        released = mechanism.release(np.zeros(200_000, np.int64)) + mechanism.radius
        # Each value of the range has a probability above 1e-4.
        assert (released.min(), released.max()) == (0, 2 * mechanism.radius)


def test_errors_are_quantiles() -> None:
    with mpmath.workdps(50):
        for mechanism, density in (
            (TruncatedDiscreteLaplace(epsilon=0.5, radius=5), laplace(mpmath.mpf(2))),
            (TruncatedDiscreteGaussian(epsilon=1.0, scale=3.0, radius=7), gaussian(3.0)),
        ):
            p = probabilities(density, mechanism.radius)
            for t in range(mechanism.radius):
                within = float(sum(p[n] for n in range(-t, t + 1)))
                assert mechanism.error(within - 1e-9) == t
                assert mechanism.error(within + 1e-9) == t + 1
            assert mechanism.error(1 - 1e-16) == mechanism.radius


def test_other_values_are_equal_mechanisms() -> None:
    assert TruncatedDiscreteLaplace(epsilon=1.0, delta=1e-6) == TruncatedDiscreteLaplace(epsilon=1.0, radius=14)
    assert TruncatedDiscreteLaplace(epsilon=1.0, radius=14) != TruncatedDiscreteLaplace(epsilon=1.0, radius=15)
    for given in ("delta=1e-06, sensitivity=1.0", "sensitivity=1.0, scale=4.5, radius=25"):
        shown = f"TruncatedDiscreteGaussian(epsilon=1.0, {given})"
        assert repr(eval(shown)) == shown  # noqa: S307


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: TruncatedDiscreteLaplace(epsilon=1.0), "radius must be given, got None: give delta, or radius"),
    (
        lambda: TruncatedDiscreteLaplace(epsilon=1.0, delta=0.1, radius=5),
        "radius must be None when delta is given, got 5 and delta=0.1",
    ),
    (
        lambda: TruncatedDiscreteLaplace(epsilon=0.5, sensitivity=2, radius=3),
        "radius must be from 4 (sensitivity, or sensitivity/epsilon rounded up) to 2**62, got 3",
    ),
    (lambda: TruncatedDiscreteLaplace(epsilon=0.5, radius=-3), "radius must be a positive integer up to 2**62, got -3"),
    (lambda: TruncatedDiscreteLaplace(epsilon=1.0, delta=1.0), "delta must be"),
    (
        lambda: TruncatedDiscreteLaplace(epsilon=1e30, delta=0.1, sensitivity=2**62),
        "sensitivity must be a positive integer up to 2**61",
    ),
    (
        lambda: TruncatedDiscreteGaussian(epsilon=1.0, scale=2.0),
        "radius must be given, got None: give delta, or scale and radius",
    ),
    (
        lambda: TruncatedDiscreteGaussian(epsilon=1.0, delta=0.1, scale=2.0),
        "scale must be None when delta is given, got 2.0 and delta=0.1",
    ),
    (lambda: TruncatedDiscreteGaussian(epsilon=1.0, scale=0, radius=2), "scale must be from 2**-20 to 2**40, got 0.0"),
    (
        lambda: TruncatedDiscreteGaussian(epsilon=1.0, scale=2.0, radius=1),
        "radius must be from 2 (the scale, rounded up) to 2**62, got 1",
    ),
    (
        lambda: TruncatedDiscreteGaussian(epsilon=1.0, scale=2.0, radius=3, sensitivity=4.0),
        "radius must be at least the sensitivity, which is 4.0, got 3",
    ),
    (lambda: samplers.discrete_laplace(3, radius=2), "radius must be from 3 (the scale, rounded up) to 2**62, got 2"),
    (lambda: samplers.geometric(0.5, radius=0), "radius must be from 1 (the scale, rounded up) to 2**62, got 0"),
])  # fmt: skip
def test_bad_parameters_are_named(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ParameterError, match="^" + re.escape(problem)):
        make()


@pytest.mark.parametrize("radius", [2.0, "3", True, (1, 2)])
def test_a_radius_is_an_integer(radius: Any) -> None:
    with pytest.raises(TypeError, match="radius must be an int, got"):
        samplers.discrete_gaussian(1, radius=radius)
    with pytest.raises(TypeError, match="radius must be an int, got"):
        TruncatedDiscreteLaplace(epsilon=1.0, radius=radius)


def test_keyed_noise_has_a_radius() -> None:
    key = keyed.NoiseKey.generate()
    ticket = key.ticket(0)
    noise = key.draw(ticket, "discrete_gaussian", 10, size=5000, radius=12)
    assert np.abs(noise).max() == 12
    again = hazmat.regenerate(key, ticket, "discrete_gaussian", 10, size=100, start=4050, radius=12)
    assert np.array_equal(noise[4050:4150], again)
    assert not np.array_equal(hazmat.regenerate(key, ticket, "discrete_gaussian", 10, size=100, radius=13), noise[:100])
    with pytest.raises(ParameterError, match="radius must be None for 'laplace', got 3"):
        key.draw(key.ticket(0), "laplace", 1.0, size=3, radius=3)
