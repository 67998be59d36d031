"""Bounds are rounded up and promises down, whatever kind of number was given: compared with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import PrivacyCost, accounting, sensitivity, stability

BOUNDS = [(0, 3), (0.0, 1.0), (-(2.0**-60), 1.0), (0.1, 0.3), (-1e300, 1e-300), (5e-324, 1.0), (-0.7, 1e16)]
ROWS = [1, 2, 3, 7, 10, 1000, 2**53 + 1]


def exceeds_least(found: float, exact: Fraction) -> bool:
    """Whether a float is the smallest one that is at least an exact number."""
    return Fraction(found) >= exact and Fraction(math.nextafter(found, -math.inf)) < exact


def test_sensitivities_are_rounded_up() -> None:
    for lower, upper in BOUNDS:
        length = Fraction(upper) - Fraction(lower)
        assert exceeds_least(sensitivity.sum((lower, upper), "substitute"), length)
        for n in ROWS:
            assert exceeds_least(sensitivity.mean((lower, upper), n), length / n)
            if upper < 1e100 and lower > -1e100 and n > 1:
                assert exceeds_least(sensitivity.variance((lower, upper), n), length**2 * (n - 1) / n**2)
    for q in (0.1, 0.3, 0.5, 0.9, 1e-9, 2.0**-60):
        assert exceeds_least(sensitivity.quantile_score(q), max(Fraction(q), 1 - Fraction(q)))
    assert sensitivity.mean((0, 3), 1) == 3.0
    third: Any = THIRD
    for given in (THIRD, LARGE, np.int64(LARGE)):
        for relation in ("add/remove", "substitute"):
            assert exceeds_least(sensitivity.sum((0, given), relation), exact_value(given))
        assert exceeds_least(sensitivity.mean((0, given), 1), exact_value(given))
    assert exceeds_least(sensitivity.variance((0, third), 2), THIRD**2 / 4)
    assert exceeds_least(sensitivity.quantile_score(Fraction(3, 97)), Fraction(94, 97))
    wide = np.longdouble(1) + np.longdouble(2) ** -60  # where NumPy has a type that is wider than a double
    assert exceeds_least(sensitivity.sum((0, wide), "substitute"), Fraction(*wide.as_integer_ratio()))
    assert sensitivity.sum((-1.7e308, 1.7e308), "substitute") == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.1, 1e-9, 7.0, 1e-200])
def test_what_is_known_of_another_guarantee_is_rounded_up(epsilon: float) -> None:
    exact = Fraction(epsilon)
    for size in (1, 2, 3, 10, 12345):
        assert exceeds_least(accounting.group_privacy(PrivacyCost(epsilon), size).epsilon, exact * size)


THIRD, LARGE = Fraction(1, 3), 2**53 + 1
"""Numbers whose nearest doubles are below them."""


def exact_value(given: Any) -> Fraction:
    return given if isinstance(given, Fraction) else Fraction(int(given))


TENTH = Fraction(1, 10)
"""One whose nearest double is above it."""


# NumPy compares its integers with floats as floats.
@pytest.mark.parametrize("given", [THIRD, LARGE, np.int64(LARGE), np.uint64(LARGE)])
@pytest.mark.parametrize(
    "kind",
    [dpnoise.Laplace, dpnoise.Exponential, dpnoise.ReportNoisyMax],
)
def test_a_sensitivity_that_no_float_holds_is_rounded_up(kind: Any, given: Any) -> None:
    exact = exact_value(given)
    assert float(given) < exact, "the control"
    assert exceeds_least(kind(epsilon=1.0, sensitivity=given).sensitivity, exact)
    gaussian = dpnoise.Gaussian(rho=0.5, sensitivity=given)
    assert exceeds_least(gaussian.sensitivity, exact)
    assert exceeds_least(PrivacyCost(given).epsilon, exact)


def test_parameters_of_accounts_are_rounded_in_the_private_direction(memory_path: Path) -> None:
    below, above = math.nextafter(0.1, 0), math.nextafter(float(THIRD), 1)
    budget = accounting.Ledger(memory_path / "ledger", epsilon=THIRD, delta=TENTH).budget
    assert (budget.epsilon, budget.delta) == (THIRD, 0.1), "a ledger keeps fractions, and reads 0.1 as a tenth"
    large = accounting.Ledger(memory_path / "large", epsilon=np.int64(2**53 + 3)).budget.epsilon
    assert large == 2**53 + 2, "whose nearest float is 2**53 + 4"
    cost = PrivacyCost(1.0, 1e-5)
    assert accounting.amplify_by_poisson_sampling(cost, sample_rate=THIRD) == accounting.amplify_by_poisson_sampling(
        cost, sample_rate=above
    )
    assert accounting.zcdp_epsilon(THIRD, delta=TENTH) == accounting.zcdp_epsilon(above, delta=below)
    assert accounting.zcdp_delta(THIRD, epsilon=TENTH) == accounting.zcdp_delta(above, epsilon=below)
    assert accounting.zcdp_rho(epsilon=TENTH, delta=TENTH) == accounting.zcdp_rho(epsilon=below, delta=below)


def test_an_epsilon_that_no_float_holds_is_rounded_down() -> None:
    assert float(TENTH) > TENTH, "the control"
    below = math.nextafter(0.1, 0)
    assert dpnoise.Laplace(epsilon=TENTH).epsilon == below
    assert dpnoise.local.RandomizedResponse(epsilon=TENTH).epsilon <= below
    gaussian = dpnoise.Gaussian(epsilon=TENTH, delta=TENTH)
    assert (gaussian.epsilon, gaussian.delta) == (below, below)
    assert stability.StableValue(epsilon=TENTH, delta=TENTH).cost == PrivacyCost(below, below)
    assert PrivacyCost(TENTH).epsilon == 0.1, "what is spent is rounded up"


@pytest.mark.parametrize("near", [math.sqrt(3) ** 2, math.nextafter(5.0, 0), math.sqrt(2), 2.5, 1 + 2**-52])
def test_the_discrete_gaussian_never_rounds_its_sensitivity_down(near: float) -> None:
    """For a single integer, too, which moves by a whole number: that may be the next one up."""
    options = {"epsilon": 1.0, "delta": 1e-6}
    made = dpnoise.DiscreteGaussian(sensitivity=near, **options)
    continuous = dpnoise.Gaussian(**options).scale * near
    assert made.scale >= continuous * (1 - 1e-12)
    if near > 2.9 and math.ceil(near) - near < 1e-12:
        assert made.scale >= dpnoise.DiscreteGaussian(sensitivity=math.ceil(near), **options).scale
    assert made.delta_for(1.0) <= 1e-6
    assert dpnoise.DiscreteGaussian(rho=0.5, sensitivity=near).delta_for(1.0) >= dpnoise.Gaussian(
        rho=0.5, sensitivity=near
    ).delta_for(1.0) * (1 - 1e-9)


@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_truth_values_are_no_numbers(truth: Any) -> None:
    for make in (
        lambda: dpnoise.Laplace(epsilon=truth),
        lambda: dpnoise.DiscreteLaplace(epsilon=truth),
        lambda: dpnoise.Gaussian(rho=truth),
        lambda: dpnoise.local.OptimizedUnaryEncoding(k=4, epsilon=truth),
        lambda: PrivacyCost(truth),
        lambda: stability.StableValue(epsilon=truth, delta=0.1),
    ):
        with pytest.raises(TypeError, match=r"^(epsilon|rho) must be a number, got bool"):
            make()
