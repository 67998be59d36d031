"""The calibration of Gaussian noise against the papers' formulas at 50 digits, and against enumeration."""

from __future__ import annotations

import itertools
import math
import os
import random

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from vectors.gaussian_spec import continuous_delta, digits, discrete_delta

from dpnoise import DiscreteGaussian, Gaussian

TOLERANCE = 1e-12

EPSILONS = [1e-9, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-18, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.02, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 2**-30]
PAIRS = list(itertools.product(EPSILONS, DELTAS))
PAIRS += [(10 ** random.Random(i).uniform(-7, 2.5), 10 ** random.Random(-i).uniform(-15, 0)) for i in range(1, 41)]


def is_least_sigma(epsilon: float, delta: float, sigma: float) -> tuple[bool, bool]:
    """Give whether sigma suffices, and whether 1e-12 less, relatively, does not."""
    with mpmath.workdps(digits(delta)):
        enough = continuous_delta(epsilon, mpmath.mpf(sigma)) <= delta
        less = continuous_delta(epsilon, mpmath.mpf(sigma) * (1 - mpmath.mpf(TOLERANCE))) <= delta
    return bool(enough), not less


def test_there_are_two_hundred_pairs() -> None:
    assert len(set(PAIRS)) >= 200


@pytest.mark.parametrize("epsilon", [*EPSILONS, None])
def test_the_analytic_sigma_is_the_least_one(epsilon: float | None) -> None:
    for one, delta in PAIRS:
        if one == epsilon or (epsilon is None and one not in EPSILONS):
            sigma = Gaussian(epsilon=one, delta=delta).scale
            assert is_least_sigma(one, delta, sigma) == (True, True), (one, delta)
            # Positive controls: a sigma that is 0.1 % too small, and one that is 0.1 % too large.
            assert is_least_sigma(one, delta, sigma * 0.999) == (False, True)
            assert is_least_sigma(one, delta, sigma * 1.001) == (True, False)


@pytest.mark.parametrize("granularity", [2.0**-36, 2.0**-20, 2.0**-9])
def test_a_coarser_grid_costs_no_privacy(granularity: float) -> None:
    epsilon, delta = 0.7, 1e-6
    sigma = Gaussian(epsilon=epsilon, delta=delta, granularity=granularity).scale
    assert is_least_sigma(epsilon, delta, sigma)[0]
    with mpmath.workdps(60):
        # The noise is an integer number of steps: the exact delta of that.
        assert discrete_delta(epsilon, mpmath.mpf(sigma) / granularity, int(1 / granularity)) <= delta
    assert sigma <= Gaussian(epsilon=epsilon, delta=delta).scale * (1 + granularity)


def test_the_classical_sigma_is_that_of_the_formula() -> None:
    pairs = [(0.1, 1e-5), (0.99, 1e-9), (1e-3, 0.1), (0.5, 1e-300), (0.5, 5e-324)]
    pairs += [(math.nextafter(2 * math.log(2.5), 0), delta) for delta in (*DELTAS, 0.7905, 0.7906)]
    for epsilon, delta in pairs:
        sigma = Gaussian(epsilon=epsilon, delta=delta, method="classical").scale
        with mpmath.workdps(50):
            exact = mpmath.sqrt(2 * mpmath.log(mpmath.mpf(1.25) / mpmath.mpf(delta))) / epsilon
            assert 0 <= sigma / exact - 1 < TOLERANCE
        assert is_least_sigma(epsilon, delta, sigma)[0]
    # Positive control: far beyond the largest epsilon the formula does not suffice.
    assert not is_least_sigma(20, 1e-6, math.sqrt(2 * math.log(1.25e6)) / 20)[0]


def random_triples(count: int) -> list[tuple[float, float, int]]:
    generator = random.Random(5)
    triples = []
    while len(triples) < count:
        shift = generator.choice([1, 1, 2, 3, 10, 1000, 10**6, 2**31])
        sigma = shift * 10 ** generator.uniform(-0.7, 2.5)
        triples.append((10 ** generator.uniform(-5, 1.3), sigma, shift))
    return triples


@pytest.mark.parametrize("part", range(4))
def test_the_delta_of_the_discrete_gaussian_is_exact(part: int) -> None:
    for epsilon, sigma, shift in random_triples(200 if "DPNOISE_TEST_SAMPLES" in os.environ else 80)[part::4]:
        mechanism = DiscreteGaussian(rho=shift**2 / (2 * sigma**2), sensitivity=shift)
        delta = mechanism.delta_for(epsilon)
        with mpmath.workdps(80):
            exact = discrete_delta(epsilon, mpmath.mpf(mechanism.scale), shift)
            wrong = discrete_delta(epsilon, mpmath.mpf(mechanism.scale) * mpmath.mpf("0.999"), shift)
        if exact > 1e-300:
            assert exact <= delta <= exact * (1 + TOLERANCE), (epsilon, sigma, shift)
            # Positive control: the delta of a sigma that is 0.1 % smaller.
            assert abs(wrong / delta - 1) > TOLERANCE or delta > 1 - 1e-9
        else:
            assert delta < 1e-299


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 50, 1000])
def test_the_discrete_sigma_is_the_least_one(sensitivity: int) -> None:
    for epsilon, delta in itertools.product((0.01, 0.3, 1.0, 4.0, 20.0), (1e-12, 1e-6, 1e-3, 0.3)):
        sigma = DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity).scale
        with mpmath.workdps(80):
            assert discrete_delta(epsilon, mpmath.mpf(sigma), sensitivity) <= delta
            assert discrete_delta(epsilon, mpmath.mpf(sigma) * (1 - mpmath.mpf(TOLERANCE)), sensitivity) > delta


@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_nearly_no_noise_hides_nothing_and_much_nearly_all(
    kind: type[Gaussian | DiscreteGaussian],
) -> None:
    assert kind(rho=1e6).delta_for(1.0) == 1.0
    for rho, count in ((1e-6, 1), (1e-6, 2), (1e-24, 1)):
        assert kind(rho=rho).delta_for(10.0, count) == 5e-324, "not 0: no epsilon suffices alone"


@pytest.mark.parametrize("sensitivity", [1, 7, 10**6])
def test_epsilon_and_delta_belong_together(sensitivity: int) -> None:
    for rho in (1e-3, 0.1, 0.5, 3.0):
        for mechanism in (
            Gaussian(rho=rho, sensitivity=sensitivity),
            DiscreteGaussian(rho=rho, sensitivity=sensitivity),
        ):
            for delta in (1e-12, 1e-6, 0.01):
                epsilon = mechanism.epsilon_for(delta)
                if epsilon > 0:
                    assert mechanism.delta_for(epsilon) <= delta * (1 + 1e-15)
                    assert mechanism.delta_for(epsilon * (1 - TOLERANCE)) > delta


def pmf(sigma: float, reach: int) -> NDArray[np.float64]:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    return weights / math.fsum(weights)


def shifts(square: int, count: int, largest: int = 9) -> list[tuple[int, ...]]:
    """All vectors of `count` whole numbers whose squares sum to at most `square`, but for signs and order."""
    if count == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(largest, math.isqrt(square)) + 1)
        for rest in shifts(square - first**2, count - 1, first)
    ]


def enumerated_delta(epsilon: float, sigma: float, shift: tuple[int, ...]) -> float:
    """The privacy loss depends on <shift, Y> alone, whose distribution is a convolution."""
    reach = int(12 * sigma) + 5
    distribution = np.ones(1)
    for step in filter(None, shift):
        stretched = np.zeros(2 * reach * step + 1)
        stretched[::step] = pmf(sigma, reach)
        distribution = np.convolve(distribution, stretched)
    products = np.arange(distribution.size) - distribution.size // 2
    loss = (2 * products + sum(step**2 for step in shift)) / (2 * sigma**2)
    return math.fsum(distribution * np.maximum(-np.expm1(epsilon - loss), 0))


@pytest.mark.parametrize(("square", "count"), [(2, 2), (3, 3), (4, 4), (9, 3), (12, 4)])
def test_no_shift_of_a_vector_exceeds_the_bound(square: int, count: int) -> None:
    sensitivity = math.sqrt(square)
    for rho, epsilon in itertools.product((0.02, 0.2, 1.0, 3.0), (0.1, 1.0, 5.0)):
        mechanism = DiscreteGaussian(rho=rho, sensitivity=sensitivity)
        worst = max(enumerated_delta(epsilon, mechanism.scale, shift) for shift in shifts(square, count))
        bound = mechanism.delta_for(epsilon, count)
        assert worst <= bound + 1e-14
        # Positive control: what it would be if the sensitivity were that of one element.
        single = DiscreteGaussian(rho=rho / square, sensitivity=1)
        assert single.scale == pytest.approx(mechanism.scale)
        assert worst > single.delta_for(epsilon, count) or worst < 1e-14


@pytest.mark.parametrize(
    ("sigma", "distance", "count"), [(3.0, 2.5, 5), (50.0, 30.0, 1000), (1.0625, 100.0, 1000), (0.9, 100.0, 1000)]
)
def test_the_bound_for_vectors_is_the_smaller_of_two(sigma: float, distance: float, count: int) -> None:
    """Both as in calibration.md. The second one needs a sigma above 1, and is then smaller but for few values."""
    mechanism = DiscreteGaussian(rho=distance**2 / (2 * sigma**2), sensitivity=distance)
    with mpmath.workdps(60):
        exact = mpmath.mpf(mechanism.scale)
        v, ratio, theta = 1 / (24 * exact**2), exact / distance, 4 * mpmath.exp(-19 * exact**2)
        bounds = [(min(count, distance**2) * v, 12 * v * min(mpmath.sqrt(count) * distance, distance**2))]
        if exact > 1:
            reach = mpmath.sqrt(mpmath.mpf("0.6932") * (2 * count + 4 * 1154)) + 1 / ratio
            bounds.append((count * v, count * v + reach**2 * v + count * theta))
        factor, loss = min(bounds, key=lambda bound: bound[1])
        epsilon = float(loss + (1 / (2 * ratio) + mpmath.sqrt(2 * factor) + 3) / ratio)
        expected = mpmath.exp(factor) * continuous_delta(epsilon - loss, ratio)
    assert mechanism.delta_for(epsilon, count) == pytest.approx(float(expected), rel=TOLERANCE, abs=0)


@pytest.mark.parametrize(("square", "count"), [(2, 2), (3, 3), (9, 3)])
def test_arrays_of_counts_are_as_private_as_said(square: int, count: int) -> None:
    sensitivity = math.sqrt(square)
    for epsilon, delta in itertools.product((0.3, 1.0, 4.0), (1e-6, 1e-2)):
        mechanism = DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        assert mechanism.delta_for(epsilon, count) <= delta * (1 + 1e-15)
        assert mechanism.delta_for(epsilon, 10**6) <= delta * (1 + 1e-15)
        # With rho, epsilon is for any number of values; that of a single one would not do.
        concentrated = DiscreteGaussian(rho=epsilon / 4, delta=delta, sensitivity=sensitivity)
        assert concentrated.delta_for(concentrated.cost.epsilon, 10**6) <= delta * (1 + 1e-15)
        assert concentrated.delta_for(concentrated.epsilon_for(delta), 10**6) > delta


def test_the_enumeration_agrees_with_the_theorem() -> None:
    for epsilon, sigma, shift in ((0.5, 2.0, 1), (1.0, 5.0, 3), (3.0, 0.8, 2)):
        exact = float(discrete_delta(epsilon, mpmath.mpf(sigma), shift))
        assert enumerated_delta(epsilon, sigma, (shift,)) == pytest.approx(exact, rel=1e-9)
