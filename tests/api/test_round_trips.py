"""What finds an epsilon takes every delta that its sibling returns, and the other way round, to both ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from dpnoise import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    NegativeBinomialShares,
    ParameterError,
    Skellam,
)
from dpnoise.accounting import Accountant, PrivacyCost, compose_advanced, zcdp_delta, zcdp_epsilon, zcdp_rho

pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")

Find = Callable[[float], float]

SMALLEST, LARGEST = math.ulp(0.0), 1 - 2.0**-53
EPSILONS = (0.0, SMALLEST, 0.5, 2.0, 1e300, math.inf)
DELTAS = (0.0, SMALLEST, 1e-9, 0.5, LARGEST, 1.0)


def of_mechanism(mechanism: Gaussian | DiscreteGaussian | Skellam | NegativeBinomialShares, *given: int) -> list[Find]:
    return [lambda delta: mechanism.epsilon_for(delta, *given), lambda epsilon: mechanism.delta_for(epsilon, *given)]


def of_accountant(method: str, *composed: Laplace | Gaussian | PrivacyCost) -> list[Find]:
    accountant = Accountant(method=method)  # type: ignore[arg-type]
    for mechanism in composed:
        accountant.compose(mechanism, 2)
    return [accountant.epsilon, accountant.delta]


def of_rho(rho: float, method: str) -> list[Find]:
    return [
        lambda delta: zcdp_epsilon(rho, delta=delta, method=method),  # type: ignore[arg-type]
        lambda epsilon: zcdp_delta(rho, epsilon=epsilon, method=method),  # type: ignore[arg-type]
    ]


def of_composition(cost: PrivacyCost) -> list[Find]:
    return [
        lambda delta: compose_advanced(cost, 2, delta=delta).epsilon,
        lambda epsilon: compose_advanced(cost, 2, epsilon=epsilon).delta,
    ]


SIBLINGS: dict[str, Callable[[], list[Find]]] = {
    "Gaussian": lambda: of_mechanism(Gaussian(epsilon=0.5, delta=1e-6)),
    "Gaussian-rho": lambda: of_mechanism(Gaussian(rho=1e6)),
    "Gaussian-values": lambda: of_mechanism(Gaussian(rho=0.1), 10),
    "DiscreteGaussian": lambda: of_mechanism(DiscreteGaussian(epsilon=0.5, delta=1e-6)),
    "DiscreteGaussian-even": lambda: of_mechanism(DiscreteGaussian(epsilon=0.5, delta=1e-6, sensitivity=2)),
    "DiscreteGaussian-values": lambda: of_mechanism(DiscreteGaussian(rho=0.1, sensitivity=2.5), 10),
    "Skellam": lambda: of_mechanism(Skellam(epsilon=1.0, delta=1e-6, parties=3)),
    "Skellam-colluding": lambda: of_mechanism(Skellam(epsilon=1.0, delta=1e-6, parties=3), 1),
    "NegativeBinomialShares": lambda: of_mechanism(NegativeBinomialShares(epsilon=1.0, parties=3)),
    **{
        f"Accountant-{method}-{name}": partial(of_accountant, method, *composed)
        for method in ("pld", "rdp")
        for name, composed in {
            "nothing": (),
            "Laplace": (Laplace(epsilon=1.0),),
            "Gaussian": (Gaussian(epsilon=0.5, delta=1e-6),),
            "cost": (PrivacyCost(1.0, 0.1),),
        }.items()
    },
    **{
        f"zCDP-{method}-{rho:g}": partial(of_rho, rho, method)
        for method in ("tight", "simple")
        for rho in (0.0, SMALLEST, 0.1, 1e6)
    },
    "compose_advanced": lambda: of_composition(PrivacyCost(0.1)),
    "compose_advanced-delta": lambda: of_composition(PrivacyCost(0.1, 1e-3)),
    "compose_advanced-zero": lambda: of_composition(PrivacyCost(0.0)),
}


def found(find: Find, given: float) -> float | None:
    """What is found; None where the given number is refused, which the messages of other tests are about."""
    try:
        return find(given)
    except ParameterError:
        return None


@pytest.mark.parametrize("name", SIBLINGS)
def test_siblings_take_what_each_other_returns(name: str) -> None:
    epsilon_for, delta_for = SIBLINGS[name]()
    for delta in DELTAS:
        if (epsilon := found(epsilon_for, delta)) is not None:
            again = delta_for(epsilon)
            # Infinity says that no epsilon suffices.
            assert 0 <= again <= max(delta * (1 + 1e-9), 2 * SMALLEST) or epsilon == math.inf, delta
    for epsilon in EPSILONS:
        if (delta := found(delta_for, epsilon)) is not None:
            again = epsilon_for(delta)
            # Infinity says that rounding decides, as for such deltas by "pld".
            assert 0 <= again <= epsilon * (1 + 1e-9) + 1e-11 or (again == math.inf and 0 < delta < 1e-12), epsilon


def test_the_ends_are_what_they_say() -> None:
    for mechanism in (Gaussian(rho=0.1), DiscreteGaussian(rho=0.1), Skellam(epsilon=1.0, delta=1e-6)):
        assert mechanism.epsilon_for(1.0) == mechanism.epsilon_for(0.5) == 0.0
        assert mechanism.delta_for(0.0) == mechanism.delta_for(-0.0) == mechanism.delta_for(SMALLEST) < 0.5
    pure = NegativeBinomialShares(epsilon=1.0, parties=3)
    assert pure.epsilon_for(0.0) == 1.0
    assert Accountant().compose(PrivacyCost(1.0, 0.1)).delta(math.inf) == 0.1
    assert Accountant(method="rdp").compose(Gaussian(rho=0.1)).delta(1e300) == SMALLEST  # not 0, which none achieves
    for method in ("tight", "simple"):
        assert zcdp_delta(0.1, epsilon=1e300, method=method) == SMALLEST
    assert zcdp_rho(epsilon=zcdp_epsilon(0.1, delta=0.5), delta=0.5) >= 0.1


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda: Gaussian(rho=0.1).epsilon_for(0.0), "delta must be above 0 and at most 1, got 0.0"),
        (lambda: Gaussian(rho=0.1).epsilon_for(1.5), "delta must be above 0 and at most 1, got 1.5"),
        (lambda: Gaussian(rho=0.1).epsilon_for(math.nan), "delta must be above 0 and at most 1, got NaN"),
        (lambda: Gaussian(rho=0.1).delta_for(-1.0), "epsilon must be zero or more and finite, got -1.0"),
        (lambda: Gaussian(rho=0.1).delta_for(math.inf), "epsilon must be zero or more and finite, got inf"),
        (lambda: NegativeBinomialShares(epsilon=1.0, parties=3).epsilon_for(0.0, 1), "delta must be above 0 and at"),
        (lambda: Accountant().delta(math.nan), "epsilon must be zero or more, got nan"),
    ],
)
def test_what_no_sibling_returns_is_refused(find: Callable[[], float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        find()
