"""Staircases and noise in shares: privacy by enumeration, with SciPy's probabilities and planted faults."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpnoise
from dpnoise import DiscreteLaplace, NegativeBinomialShares, ParameterError, Skellam, Staircase, hazmat

Law = NDArray[np.float64]
EPSILON_DELTA = [(1.0, 1e-6, 1), (0.1, 1e-6, 1), (1.0, 1e-6, 10), (5.0, 1e-6, 3), (1.0, 0.01, 1), (0.5, 1e-9, 2)]


def delta(law: Law, epsilon: float, change: int) -> float:
    """Sum what is positive of P(y) - e^epsilon P(y - change)."""
    return float(np.maximum(0, law[change:] - math.exp(epsilon) * law[:-change]).sum())


def skellam(mu: float) -> Law:
    return stats.skellam.pmf(np.arange(-3000, 3001), mu, mu)


def shares(scale: float, parts: float) -> Law:
    """Convolve what so many shares, as a fraction of all parties, have on either side."""
    pmf = stats.nbinom.pmf(np.arange(int(60 * scale) + 60), parts, -math.expm1(-1 / scale))
    return np.convolve(pmf, pmf[::-1])


@pytest.mark.parametrize(("epsilon", "target", "sensitivity"), EPSILON_DELTA)
def test_the_delta_of_skellam_noise(epsilon: float, target: float, sensitivity: int) -> None:
    mechanism = Skellam(epsilon=epsilon, delta=target, sensitivity=sensitivity, parties=7)
    assert (mechanism.epsilon, mechanism.delta) == (epsilon, target)
    found = mechanism.delta_for(epsilon)
    assert 0.99 * target < found <= target
    assert found == pytest.approx(delta(skellam(mechanism.mu), epsilon, sensitivity), rel=1e-8)
    assert mechanism.delta_for(epsilon / 2) == pytest.approx(
        delta(skellam(mechanism.mu), epsilon / 2, sensitivity), rel=1e-8
    )
    assert mechanism.epsilon_for(target) == pytest.approx(epsilon, rel=1e-2)
    assert mechanism.epsilon_for(found) <= epsilon * (1 + 1e-9)
    # Planted faults: a mu a thousandth smaller, or the variance in its place.
    assert delta(skellam(0.999 * mechanism.mu), epsilon, sensitivity) > found * (1 + 1e-6)
    assert delta(skellam(mechanism.mu / 2), epsilon, sensitivity) > 1.5 * found
    # Smaller changes are no worse.
    assert all(delta(skellam(mechanism.mu), epsilon, change) <= found for change in range(1, sensitivity))


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.2, 1), (1.0, 5), (3.0, 2)])
@pytest.mark.parametrize(("parties", "colluding"), [(2, 1), (10, 1), (1000, 1), (1000, 300)])
def test_what_colluding_parties_leave(epsilon: float, sensitivity: int, parties: int, colluding: int) -> None:
    mechanism = NegativeBinomialShares(epsilon=epsilon, sensitivity=sensitivity, parties=parties)
    left = shares(sensitivity / epsilon, 1 - colluding / parties)
    expected = max(delta(left, epsilon, change) for change in range(1, sensitivity + 1))
    assert mechanism.delta_for(epsilon, colluding) == pytest.approx(expected, rel=1e-8)
    # Planted fault: one more party of a thousand.
    other = shares(sensitivity / epsilon, 1 - (colluding + 0.001 * parties) / parties)
    assert delta(other, epsilon, sensitivity) > expected * (1 + 1e-6)
    assert mechanism.epsilon_for(expected * (1 + 1e-6), colluding) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.95, 0.999])
def test_the_errors_are_quantiles(level: float) -> None:
    mechanism = Skellam(epsilon=1.0, delta=1e-6)
    t, law = int(mechanism.error(level)), skellam(mechanism.mu)
    inside = [law[3000 - t + i : 3001 + t - i].sum() for i in (0, 1)]
    assert inside[0] >= level - 1e-12
    assert t == 0 or inside[1] < level + 1e-12


@pytest.mark.parametrize("colluding", [1, 5, 9])
def test_what_colluding_parties_leave_of_skellam_noise(colluding: int) -> None:
    mechanism = Skellam(epsilon=1.0, delta=1e-6, parties=10)
    expected = delta(skellam(mechanism.mu * (10 - colluding) / 10), 1.0, 1)
    assert mechanism.delta_for(1.0, colluding) == pytest.approx(expected, rel=1e-8)
    assert mechanism.delta_for(1.0, colluding) > 2 * mechanism.delta_for(1.0)
    assert mechanism.epsilon_for(expected * (1 + 1e-6), colluding) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("make", [partial(Skellam, delta=1e-6), NegativeBinomialShares])
def test_releases_add_up_modulo_2_to_the_64(make: Any) -> None:
    """A party at the end of int64 adds its noise like any other; saturation would keep half of it."""
    mechanism = make(epsilon=0.5, parties=3)
    for value in (2**63 - 1, -(2**63)):
        at_end = mechanism.release(np.full(2000, value), rng=hazmat.SeededRng(5))
        noise = mechanism.release(np.zeros(2000, np.int64), rng=hazmat.SeededRng(5))
        assert np.array_equal(at_end - np.int64(value), noise)
        assert len(set(np.sign(noise))) == 3


def test_huge_epsilons_have_a_delta() -> None:
    """It falls as epsilon grows, however large: no precision is lost where another probability is hardly known."""
    mechanisms = (Skellam(epsilon=1.0, delta=1e-6), NegativeBinomialShares(epsilon=0.05, parties=10))
    for mechanism, colluding in zip(mechanisms, (0, 1), strict=True):
        deltas = [mechanism.delta_for(epsilon, colluding) for epsilon in (0.5, 2.0, 700.0, 2e4, 1e12, 1e300)]
        assert deltas == sorted(deltas, reverse=True)
        assert deltas[-1] < 1e-300
    for epsilon in (1e4, 3e4, 1e5, 1e19, 1e300):
        assert Skellam(epsilon=epsilon, delta=0.1).mu < 1e-9
    # The inner width is 1 for these: two, four and 32 entries of the second page have nearly all of it in equal parts.
    for sensitivity in (2, 4, 5, 64):
        assert Staircase(epsilon=1e6, sensitivity=sensitivity).release(7) == 7


def test_all_shares_together_are_pure() -> None:
    mechanism = NegativeBinomialShares(epsilon=0.7, sensitivity=3, parties=10)
    assert mechanism.delta_for(0.7) == 0.0
    assert mechanism.delta_for(0.69) > 0.0
    assert mechanism.cost == DiscreteLaplace(epsilon=0.7, sensitivity=3).cost
    assert delta(shares(3 / 0.7, 1.0), 0.7, 3) < 1e-12
    for level in (0.5, 0.95, 0.999):
        assert mechanism.error(level) == DiscreteLaplace(epsilon=0.7, sensitivity=3).error(level)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1), (1.0, 20), (4.0, 50), (8.0, 20)])
def test_staircase_noise_is_private_and_its_error_bound_holds(epsilon: float, sensitivity: int) -> None:
    mechanism = Staircase(epsilon=epsilon, sensitivity=sensitivity)
    noise = np.array([mechanism.release(0) for _ in range(2000)])
    bound = mechanism.error(0.999)
    # More than 40 of 2,000 beyond it have a probability below 1e-30.
    assert np.sum(np.abs(noise) > bound) <= 40
    assert mechanism.scale == pytest.approx(sensitivity / epsilon)
    assert (mechanism.epsilon, mechanism.delta) == (epsilon, 0.0)
    if sensitivity > 1 and epsilon >= 4:
        assert mechanism.error(0.5) < DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity).error(0.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        Staircase(epsilon=2.0, sensitivity=9),
        Skellam(epsilon=1.0, delta=1e-6, sensitivity=2, parties=3),
        NegativeBinomialShares(epsilon=0.5, sensitivity=2, parties=5),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_each_releases_as_mechanisms_do(mechanism: Any) -> None:
    release = mechanism.release(41, rng=hazmat.SeededRng(3))
    assert release == mechanism.release(np.array([41]), rng=hazmat.SeededRng(3))[0]
    assert type(release) is int
    low, high = mechanism.confidence_interval(release)
    assert (high - low) / 2 == mechanism.error()
    if isinstance(mechanism, NegativeBinomialShares):
        assert mechanism.release([1, 2, 3]).shape == (3,)
    else:
        with pytest.raises(
            ParameterError, match=r"^x must be one integer for a sensitivity above 1 .*, got 2 of them$"
        ):
            mechanism.release([1, 2])
    assert type(mechanism)(**mechanism._values()) == mechanism


def test_one_change_by_one_is_private_in_an_array() -> None:
    for mechanism in (Staircase(epsilon=2.0), Skellam(epsilon=1.0, delta=1e-6)):
        assert mechanism.release(np.zeros(1000, np.int64)).std() > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Staircase(epsilon=0.0), "epsilon must be positive and finite, got 0"),
        (
            lambda: Staircase(epsilon=1.0, sensitivity=89),
            "sensitivity must be from 1 to .*, which is 88 for epsilon = 1",
        ),
        (lambda: Staircase(epsilon=1.0, sensitivity=0), "sensitivity must be a positive integer"),
        (lambda: Skellam(epsilon=1.0, delta=0.0), "delta must be between 0 and 1"),
        (lambda: Skellam(epsilon=1e-4, delta=1e-9), "epsilon must be such that mu is at most 90000"),
        (lambda: Skellam(epsilon=1.0, delta=1e-6, sensitivity=200), "epsilon must be such that mu is at most 90000"),
        (
            lambda: Skellam(epsilon=1.0, delta=1e-6, sensitivity=4097),
            "sensitivity must be an integer from 1 to 4096, got",
        ),
        (
            lambda: Skellam(epsilon=1.0, delta=1e-6, parties=2).delta_for(1.0, 2),
            "colluding must be below the number of",
        ),
        (
            lambda: NegativeBinomialShares(epsilon=9.0, sensitivity=101, parties=3).delta_for(1.0, 1),
            "sensitivity must be at most 100 for what colluding parties leave, got 101",
        ),
        (lambda: Skellam(epsilon=1.0, delta=1e-6, parties=0), r"parties must be from 1 to 2\*\*32, got 0"),
        (lambda: NegativeBinomialShares(epsilon=1.0, parties=2**33), r"parties must be from 1 to 2\*\*32, got"),
        (
            lambda: NegativeBinomialShares(epsilon=0.01, parties=2),
            "epsilon must be such that sensitivity/epsilon is at",
        ),
        (
            lambda: NegativeBinomialShares(epsilon=1.0, parties=3).delta_for(1.0, 3),
            "colluding must be below the number",
        ),
        (lambda: NegativeBinomialShares(epsilon=1.0, parties=3).delta_for(1.0, -1), "colluding must be"),
        (lambda: NegativeBinomialShares(epsilon=1.0, parties=3).delta_for(-0.1), "epsilon must be zero or more"),
    ],
)
def test_bad_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=f"^{message}"):
        make()


def test_parties_are_whole() -> None:
    for parties in (2.0, True, "3"):
        with pytest.raises(TypeError, match=r"^parties must be an int, got"):
            dpnoise.NegativeBinomialShares(epsilon=1.0, parties=parties)  # type: ignore[arg-type]
