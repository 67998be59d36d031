"""Strategies of correlated noise: their sensitivity, their errors, and the best of them."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError
from dpnoise.sgd import BandedToeplitz, CyclicPoisson, MinSeparation, SingleEpoch
from dpnoise.sgd._strategy import _loss, optimal_coefficients

ONE = 2**12
GIVEN: list[list[float]] = [[1], [1, 1], [1, 0.5, 0.375], [1, 1, 1, 0.25], [1, 0.75, 0.75, 0.1], [1, 2**-12, 2**-12]]


def matrix(strategy: BandedToeplitz) -> np.ndarray:
    """C in units of 2**-12."""
    column = [*strategy._numerators, *[0] * (strategy.steps - strategy.bands)]
    return np.array([[column[i - j] if i >= j else 0 for j in range(strategy.steps)] for i in range(strategy.steps)])


def exact_sums(strategy: BandedToeplitz) -> list[Fraction]:
    """The solution of C x = 1 in fractions: the first column of the product of ones and the inverse."""
    found: list[Fraction] = []
    for t in range(strategy.steps):
        earlier = (Fraction(m, ONE) * found[t - j] for j, m in enumerate(strategy._numerators) if 0 < j <= t)
        found.append(1 - sum(earlier))
    return found


def is_root_rounded_up(root: float, square: Fraction) -> bool:
    return Fraction(math.nextafter(root, 0.0)) ** 2 < square <= Fraction(root) ** 2


# --- the sensitivity ----------------------------------------------------------------------------------------------

STEPS = 9
PATTERNS = np.array(list(itertools.product([0, 1], repeat=STEPS)))
COUNTS = PATTERNS.sum(axis=1)
DISTANCES = np.array([min(np.diff(np.flatnonzero(pattern)), default=STEPS) for pattern in PATTERNS])


def largest_change(columns: np.ndarray, separation: int, count: int) -> int:
    """The largest squared norm of a sum of columns, over all patterns."""
    allowed = PATTERNS[np.less_equal(COUNTS, count) & np.greater_equal(DISTANCES, separation)]
    return int(((allowed @ columns.T) ** 2).sum(axis=1).max())


def coarse_strategies() -> Iterator[BandedToeplitz]:
    for tail in itertools.combinations_with_replacement([1.0, 0.75, 0.5, 0.0], 4):
        yield BandedToeplitz([1.0, *tail], steps=STEPS)


def test_the_sensitivity_is_the_largest_of_all_patterns() -> None:
    for strategy, separation in itertools.product(coarse_strategies(), range(1, STEPS + 1)):
        columns = matrix(strategy)
        for count in (1, 2, 3, STEPS, None):
            participation = MinSeparation(separation, max_participations=count)
            square = Fraction(largest_change(columns, separation, count or STEPS), ONE**2)
            assert is_root_rounded_up(strategy.sensitivity(participation), square)


def test_coefficients_that_increase_would_have_a_worse_pattern() -> None:
    columns = np.eye(STEPS, dtype=int) + np.eye(STEPS, k=-2, dtype=int)  # 1, 0, 1
    assert (columns[:, [0, 1]].sum(axis=1) ** 2).sum() == 4
    assert largest_change(columns, 1, 2) == 6


def test_no_signs_and_no_gradients_exceed_the_sensitivity() -> None:
    generator = np.random.default_rng(1)
    for strategy in (BandedToeplitz(given, steps=7) for given in GIVEN):
        columns = matrix(strategy) / ONE
        for count in (2, 7):
            bound = strategy.sensitivity(MinSeparation(1, max_participations=count)) * (1 + 1e-12)
            signs = np.array([s for s in itertools.product([-1, 0, 1], repeat=7) if np.count_nonzero(s) <= count])
            assert np.linalg.norm(signs @ columns.T, axis=1).max() <= bound
            rows = generator.normal(size=(200, 7, 3))
            rows /= np.linalg.norm(rows, axis=2, keepdims=True)
            rows[generator.random((200, 7)).argsort(axis=1) >= count] = 0
            assert np.linalg.norm(columns @ rows, axis=(1, 2)).max() <= bound


@pytest.mark.parametrize("given", GIVEN)
def test_one_participation_has_the_norm_of_the_coefficients(given: list[float]) -> None:
    strategy = BandedToeplitz(given, steps=100)
    square = Fraction(sum(m * m for m in strategy._numerators), ONE**2)
    single = strategy.sensitivity(SingleEpoch())
    assert is_root_rounded_up(single, square)
    assert strategy.sensitivity(MinSeparation(1, max_participations=1)) == single
    assert strategy.sensitivity(MinSeparation(2**53)) == single
    assert strategy.sensitivity(CyclicPoisson(strategy.bands, sample_rate=0.5)) == single
    apart = strategy.sensitivity(MinSeparation(10))  # ten, of which none is cut off at the end
    assert is_root_rounded_up(apart, 10 * square)


@pytest.mark.parametrize(
    ("given", "steps", "separation", "square"),
    [([1, 0.5, 0.375], 100, 7, 20.71875), ([1, 0.5, 0.25, 0.125], 10, 3, 5.734375)],
)
def test_a_last_participation_is_cut_off_at_the_end(
    given: list[float], steps: int, separation: int, square: float
) -> None:
    """Squares of jax_privacy 2.0.0, toeplitz.minsep_sensitivity_squared."""
    strategy = BandedToeplitz(given, steps=steps)
    assert is_root_rounded_up(strategy.sensitivity(MinSeparation(separation)), Fraction(square))


def test_sums_of_squares_beyond_64_bits() -> None:
    """All participate in all steps, and all coefficients are 1: step t has changed by t + 1."""
    n = 2**17
    strategy = BandedToeplitz(np.ones(n), steps=n)
    square = Fraction(n * (n + 1) * (2 * n + 1), 6)
    assert square * ONE**2 > 2**64
    assert is_root_rounded_up(strategy.sensitivity(MinSeparation(1)), square)


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [*GIVEN, np.linspace(1, 0.01, 30), 0.99 ** np.arange(30)])
def test_errors_and_the_gain_against_fractions(given: Any) -> None:
    strategy = BandedToeplitz(given, steps=60)
    sums = exact_sums(strategy)
    assert all(0 <= x <= 1 for x in sums)
    tolerance = Fraction(strategy.steps * strategy.bands, 2**53)
    for found, exact in zip(strategy._sums(), sums, strict=True):
        assert abs(Fraction(float(found)) - exact) <= tolerance * exact
    squares = list(itertools.accumulate(x * x for x in sums))
    np.testing.assert_allclose(strategy.errors() ** 2, np.array(squares, float), rtol=1e-12)
    norm = sum((x - y) ** 2 for x, y in itertools.pairwise([0, *sums]))
    assert norm <= Fraction(strategy._gain()) ** 2 <= norm * (1 + Fraction(1, 10**9))


def test_the_gain_of_many_steps() -> None:
    """The inverse of 1 + x is the sum of (-x)**t: its norm is the root of the number of steps."""
    assert math.sqrt(10_000) <= BandedToeplitz([1, 1], steps=10_000)._gain() <= math.sqrt(10_000) * (1 + 1e-7)
    assert 1 <= BandedToeplitz([1], steps=2**20)._gain() <= 1 + 1e-5


def test_errors_of_independent_noise_and_of_none_that_lasts() -> None:
    np.testing.assert_array_equal(BandedToeplitz([1], steps=50).errors(), np.sqrt(np.arange(1, 51)))
    np.testing.assert_array_equal(BandedToeplitz(np.ones(50), steps=50).errors(), np.ones(50))


def test_summaries_of_errors_have_the_sensitivity() -> None:
    strategy, participation = BandedToeplitz([1, 0.5, 0.375], steps=100), MinSeparation(20)
    norm = strategy.sensitivity(participation)
    squares = strategy.errors() ** 2
    assert strategy.root_mean_squared_error(participation) == pytest.approx(norm * math.sqrt(squares.mean()))
    assert strategy.max_error(participation) == pytest.approx(norm * math.sqrt(squares.max()))


# --- the best -----------------------------------------------------------------------------------------------------

# Errors times the sensitivity for one participation of jax_privacy 2.0.0 with JAX 0.10.2 in float64:
# toeplitz.optimize_banded_toeplitz with reduction_fn jnp.mean and jnp.max, errors by toeplitz.per_query_error.
BEST = [
    (100, 8, "mean", 3.1253260205936084),
    (1000, 16, "mean", 6.278161934263987),
    (2000, 64, "mean", 5.125208054981705),
    (100, 8, "max", 4.096277596233357),
    (1000, 16, "max", 8.533551132960092),
    (2000, 64, "max", 6.695238087240942),
]


def weights(steps: int, error: Any) -> np.ndarray:
    return np.arange(steps, 0, -1) / steps if error == "mean" else np.ones(steps)


@pytest.mark.parametrize(("steps", "bands", "error", "expected"), BEST)
def test_the_optimum_is_that_of_jax_privacy(steps: int, bands: int, error: Any, expected: float) -> None:
    exact = _loss(optimal_coefficients(bands, weights(steps, error)), weights(steps, error))[0]
    assert math.sqrt(exact) == pytest.approx(expected, rel=1e-9)
    strategy = BandedToeplitz.optimal(steps=steps, bands=bands, error=error)
    assert (strategy.steps, strategy.bands) == (steps, bands)
    rounded = strategy.root_mean_squared_error if error == "mean" else strategy.max_error
    assert expected * (1 - 1e-9) <= rounded(MinSeparation(bands, max_participations=1)) <= expected * (1 + 1e-6)


def test_the_first_steps_of_the_optimizer_do_not_leave_it_astray() -> None:
    """Where many steps have few bands, the inverse of a matrix on the way must not explode."""
    best = BandedToeplitz.optimal(steps=10_000, bands=32)
    assert best.root_mean_squared_error(SingleEpoch()) == pytest.approx(13.242731052907606, rel=1e-6)


def test_as_many_bands_as_steps_have_the_binomial_coefficients() -> None:
    """The best for the largest error, by Fichtenberger, Henzinger and Upadhyay (2023)."""
    best = BandedToeplitz.optimal(steps=40, bands=40, error="max")
    np.testing.assert_allclose(best.coefficients, [math.comb(2 * j, j) / 4**j for j in range(40)], rtol=0, atol=2**-13)


@pytest.mark.parametrize("error", ["mean", "max"])
def test_neighbours_of_the_optimum_are_not_better(error: Any) -> None:
    for steps, bands in [(2, 2), (3, 2), (7, 3), (50, 5), (333, 2)]:
        best = optimal_coefficients(bands, weights(steps, error))
        assert best[0] == 1
        assert np.all(np.diff(best) < 0)
        least, slopes = _loss(best, weights(steps, error))
        for j in range(1, bands):
            for change in (-1e-4, 1e-4):
                other = best + change * (np.arange(bands) == j)
                assert _loss(other, weights(steps, error))[0] > least
        np.testing.assert_allclose(slopes, 0, atol=1e-4 * least)


def test_derivatives_are_differences() -> None:
    given = np.array([1.0, 0.6, 0.5, 0.2])
    slopes = _loss(given, weights(30, "mean"))[1]
    for j, slope in enumerate(slopes):
        change = 1e-5 * (np.arange(4) == j)
        above, below = (_loss(given + sign * change, weights(30, "mean"))[0] for sign in (1, -1))
        assert (above - below) / 2e-5 == pytest.approx(slope, rel=1e-6)


def test_one_band_is_independent_noise() -> None:
    assert BandedToeplitz.optimal(steps=10, bands=1) == BandedToeplitz([1], steps=10)
    assert BandedToeplitz.optimal(steps=1, bands=1, error="max") == BandedToeplitz([1], steps=1)


def test_only_the_optimum_needs_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy", "scipy.optimize", "scipy.signal"):
        monkeypatch.setitem(sys.modules, name, None)
    strategy = BandedToeplitz([1, 0.5], steps=10)
    assert strategy.max_error(SingleEpoch()) * strategy._gain() > 0
    with pytest.raises(ImportError, match=r'^this needs scipy\.optimize: pip install "dp-accounting>='):
        BandedToeplitz.optimal(steps=10, bands=2)


# --- parameters ---------------------------------------------------------------------------------------------------


def test_coefficients_are_rounded_to_multiples() -> None:
    strategy = BandedToeplitz([1, 0.3, 2.5 / ONE, 1.5 / ONE, 0.5 / ONE, 0], steps=4)
    assert strategy._numerators == (4096, 1229, 2, 2)  # half to even
    assert strategy.bands == 4
    np.testing.assert_array_equal(strategy.coefficients, np.array([4096, 1229, 2, 2]) / ONE)
    assert strategy.coefficients.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        strategy.coefficients[0] = 2.0
    assert BandedToeplitz(np.array([1, 1], np.int8), steps=np.int64(2)) == BandedToeplitz((1.0, 1.0), steps=2)


def test_strategies_are_values() -> None:
    strategy = BandedToeplitz([1, 0.5], steps=10)
    same = BandedToeplitz([1, 0.5, 2**-14], steps=10)
    assert same == strategy
    assert hash(same) == hash(strategy)
    assert strategy not in (BandedToeplitz([1, 0.5], steps=11), BandedToeplitz([1, 0.25], steps=10), "other")
    assert repr(strategy) == "BandedToeplitz([1.0, 0.5], steps=10)"
    assert repr(BandedToeplitz(np.ones(9), steps=9)).endswith("([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ...], steps=9)")
    for one in (strategy, SingleEpoch(), MinSeparation(5), CyclicPoisson(5, sample_rate=0.25)):
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):  # noqa: S301
            assert other == one
            assert hash(other) == hash(one)


def test_participations_say_what_a_run_costs() -> None:
    for participation in (SingleEpoch(), MinSeparation(7), MinSeparation(1, max_participations=3)):
        assert (participation.sample_rate, participation.events(100)) == (1.0, 1)
    cyclic = CyclicPoisson(7, sample_rate=Fraction(1, 3))
    assert Fraction(cyclic.sample_rate) >= Fraction(1, 3)  # a bound on the cost, rounded up
    assert [cyclic.events(steps) for steps in (1, 6, 7, 8, 100)] == [1, 1, 1, 2, 15]
    assert MinSeparation(3) != MinSeparation(3, max_participations=2)
    assert repr(MinSeparation(3)) == "MinSeparation(separation=3, max_participations=None)"


TWO = BandedToeplitz([1, 0.5], steps=10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BandedToeplitz([], steps=5), ParameterError, r"coefficients must be of shape \(bands,\).*\(0,\)"),
        (lambda: BandedToeplitz(1.0, steps=5), ParameterError, r"coefficients must be of shape \(bands,\).*\(\)"),
        (lambda: BandedToeplitz([[1.0]], steps=5), ParameterError, r"coefficients must be of shape.*\(1, 1\)"),
        (lambda: BandedToeplitz([0.5, 0.2], steps=5), ParameterError, "coefficients must start with 1, got 0.5"),
        (lambda: BandedToeplitz([math.nan], steps=5), ParameterError, "coefficients must start with 1, got nan"),
        (lambda: BandedToeplitz([1 + 2**-52], steps=5), ParameterError, "coefficients must start with 1, got 1.0000"),
        (lambda: BandedToeplitz([math.inf], steps=5), ParameterError, "coefficients must start with 1, got inf"),
        (lambda: BandedToeplitz([1, 0.2, 0.3], steps=5), ParameterError, "not increase, got 0.3 after 0.2 at index 2"),
        (lambda: BandedToeplitz([1, math.inf], steps=5), ParameterError, "not increase, got inf after 1.0 at index 1"),
        (lambda: BandedToeplitz([1, math.nan, 0], steps=5), ParameterError, "got nan after 1.0 at index 1"),
        (lambda: BandedToeplitz([1, 0.5, -1e-9], steps=5), ParameterError, "must be from 0 to 1, got -1e-09"),
        (lambda: BandedToeplitz([1, -math.inf], steps=5), ParameterError, "must be from 0 to 1, got -inf"),
        (lambda: BandedToeplitz([1, 1, 1], steps=2), ParameterError, "coefficients must be at most steps=2 numbers"),
        (lambda: BandedToeplitz(["1"], steps=2), TypeError, "coefficients must be real numbers"),
        (lambda: BandedToeplitz([1j], steps=2), TypeError, "coefficients must be real numbers"),
        (lambda: BandedToeplitz(None, steps=2), TypeError, "coefficients must be real numbers"),
        (lambda: BandedToeplitz([1], steps=0), ParameterError, "steps must be an integer from 1 to 1048576, got 0"),
        (lambda: BandedToeplitz([1], steps=2**20 + 1), ParameterError, "steps must be an integer from 1 to 1048576"),
        (lambda: BandedToeplitz([1], steps=2.0), TypeError, "steps must be an int, got float"),
        (
            lambda: BandedToeplitz([1], 5),
            TypeError,
            "takes coefficients by position and the others by name",
        ),
        (lambda: BandedToeplitz.optimal(steps=0, bands=1), ParameterError, "steps must be an integer from 1"),
        (lambda: BandedToeplitz.optimal(steps=5, bands=0), ParameterError, "bands must be an integer from 1 to 5"),
        (lambda: BandedToeplitz.optimal(steps=5, bands=6), ParameterError, "bands must be an integer from 1 to 5"),
        (lambda: BandedToeplitz.optimal(steps=5, bands=True), TypeError, "bands must be an int, got bool"),
        (lambda: BandedToeplitz.optimal(steps=5, bands=2, error="l2"), ParameterError, 'error must be "mean" or "max"'),
        (lambda: TWO.sensitivity(5), TypeError, "participation must be a SingleEpoch, .*, got int"),
        (lambda: TWO.max_error(SingleEpoch), TypeError, "participation must be a SingleEpoch, .*, got type"),
        (lambda: TWO.sensitivity(CyclicPoisson(1, sample_rate=1.0)), ParameterError, "strategy must have .*, 1, got 2"),
        (lambda: MinSeparation(0), ParameterError, "separation must be an integer from 1 to 9007199254740992, got 0"),
        (lambda: MinSeparation(1.0), TypeError, "separation must be an int, got float"),
        (
            lambda: MinSeparation(1, 2),
            TypeError,
            "takes separation by position and the others by name",
        ),
        (lambda: MinSeparation(1, max_participations=0), ParameterError, "max_participations must be .* from 1 to"),
        (lambda: MinSeparation(1, max_participations="2"), TypeError, "max_participations must be an int, got str"),
        (lambda: CyclicPoisson(0, sample_rate=0.5), ParameterError, "cycle must be an integer from 1 to"),
        (lambda: CyclicPoisson(True, sample_rate=0.5), TypeError, "cycle must be an int, got bool"),
        (lambda: CyclicPoisson(2, sample_rate=0), ParameterError, "sample_rate must be above 0 and at most 1, got 0.0"),
        (lambda: CyclicPoisson(2, sample_rate=1 + Fraction(1, 2**60)), ParameterError, "sample_rate must be above 0"),
        (lambda: CyclicPoisson(2, sample_rate=math.nan), ParameterError, "sample_rate must be .*, got nan"),
        (lambda: CyclicPoisson(2, sample_rate=Decimal("0.5")), TypeError, "sample_rate must be a number, got Decimal"),
        (lambda: CyclicPoisson(2, sample_rate=0.5).events(0), ParameterError, "steps must be an integer from 1"),
        (lambda: SingleEpoch().events(0), ParameterError, "steps must be an integer from 1"),
        (lambda: MinSeparation(3).events(5.0), TypeError, "steps must be an int, got float"),
    ],
)
def test_bad_parameters(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
