"""The release of a scale: the algorithm step by step, its frequency and its noise by formula, and every bad input."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpnoise import Laplace, ParameterError, PrivacyCost, RandomnessError, stability
from dpnoise._native import StabilityTest
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.stability import StableScale
from dpnoise.stability._powers import BASES, half_steps, interval, limit
from dpnoise.stability._scale import _log

REFUSAL = "the test of stability failed"

FAR = np.arange(20_000.0)
"""Its range is 10,000, hundreds of values away from another interval."""


@pytest.mark.filterwarnings("ignore:delta=")
def test_the_release_is_that_of_the_algorithm() -> None:
    """On data for which each of the tests passes now and then, and with an epsilon that has 53 bits."""
    epsilon, delta, x = 0.9, 0.01, np.arange(200.0) * 1.1
    test = StabilityTest(epsilon / 4, delta / 2)
    scale = StableScale(epsilon=epsilon, delta=delta)
    assert scale.cost == PrivacyCost(epsilon, delta, "substitute")
    outcomes = set()
    for seed in range(400):
        rng = SeededRng(seed)
        passed = [test.passes(stability.iqr_distance(x, way) - 1, rng) for way in (1, 2)]
        exponent = (
            Laplace(epsilon=epsilon / 4).release(float(np.log2(x[149] - x[49])), rng=rng) if any(passed) else None
        )
        expected = None if exponent is None else float(np.exp2(exponent))
        full = scale.attempt(x, rng=SeededRng(seed))
        assert full == stability.Attempt(expected, None if any(passed) else REFUSAL)
        assert scale.release(x, rng=SeededRng(seed)) == expected
        outcomes.add(tuple(passed))
    assert len(outcomes) == 4


def tail(t: int, epsilon: float) -> float:
    """P(N > t) for discrete Laplace noise of scale 1 / epsilon."""
    r = math.exp(-epsilon)
    return r ** (t + 1) / (1 + r) if t >= -1 else 1 - r**-t / (1 + r)


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize("n", [40, 80, 120])
def test_it_releases_as_often_as_the_formula_says(n: int) -> None:
    epsilon, delta, runs, x = 1.0, 0.05, 2000, np.arange(n) ** 2.0
    threshold = StabilityTest(epsilon / 4, delta / 2).threshold
    distances = [stability.iqr_distance(x, way) for way in (1, 2)]

    def deviation(least: int) -> float:
        p = 1 - math.prod(1 - tail(least - distance, epsilon / 4) for distance in distances)
        return abs(released - runs * p) / math.sqrt(runs * p * (1 - p))

    rng, scale = SeededRng(n), StableScale(epsilon=epsilon, delta=delta)
    released = sum(scale.release(x, rng=rng) is not None for _ in range(runs))
    assert deviation(1 + threshold) < 6.5
    assert min(deviation(threshold - 2), deviation(threshold + 4)) > 6.5


def test_the_noise_is_laplace_noise_in_the_exponent() -> None:
    epsilon, runs, rng = 3.0, 2000, SeededRng(7)
    scale = StableScale(epsilon=epsilon, delta=1e-6)
    exponents = [math.log2(scale.release(FAR, rng=rng) or 0.0) for _ in range(runs)]
    noise = np.sort(exponents) - math.log2(10_000)
    for scale, is_it in ((4 / epsilon, True), (2 / epsilon, False)):
        law = np.where(noise < 0, np.exp(noise / scale) / 2, 1 - np.exp(-noise / scale) / 2)
        distance = np.max(np.abs(law - (np.arange(runs) + 0.5) / runs))
        assert (distance < math.sqrt(math.log(2e9) / (2 * runs))) == is_it  # Massart's bound, at 1e-9


def test_a_release_tells_nothing_of_the_low_bits() -> None:
    step = Laplace(epsilon=0.25).granularity
    for x in (FAR, FAR * math.pi, FAR / 3):
        released = StableScale(epsilon=1.0, delta=1e-6).release(x)
        assert released is not None
        assert released == np.exp2(round(math.log2(released) / step) * step)


# --- logarithms ------------------------------------------------------------------------------------------------------


def ranges() -> Iterator[float]:
    """Around the ends of intervals, from the smallest double to the largest one, and some between."""
    for exponent in [-1074, -1073, -1072, -1023, -1022, -1021, -400, -3, -2, -1, 0, 1, 2, 3, 52, 53, 54, 400, 1023]:
        whole = math.ldexp(1.0, exponent)
        for near in (whole, whole * math.sqrt(2)):
            yield from (near, math.nextafter(near, 0), math.nextafter(near, math.inf), near * 1.2)
    yield math.inf


@pytest.mark.parametrize("error", [0.0, 1e-9])
@pytest.mark.parametrize("base", [2.0, 1.25, 7.5])  # with short powers
def test_logarithms_in_one_interval_differ_by_at_most_1(
    error: float, base: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the platform computes them badly."""
    # The doubles below the ends of intervals are odd, and the ends even.
    monkeypatch.setattr(np, "log2", lambda x: math.log2(x) + (error if np.float64(x).view(np.int64) % 2 else -error))
    pairs = 0
    for one, other in itertools.combinations_with_replacement([x for x in ranges() if x > 0], 2):
        for way in (1, 2):
            if interval(one, base, way) == interval(other, base, way):
                assert abs(Fraction(_log(one, base)) - Fraction(_log(other, base))) <= 1
                pairs += 1
        if one < math.inf:
            assert _log(one, base) == pytest.approx(math.log(one, base), abs=1e-7)
    assert pairs > 300


# Halves of the exponents: few where the powers have millions of digits.
SMALL_BASE, NEAR_LN = BASES[0], 1 + 1 / math.log(1000)


@pytest.mark.parametrize(
    ("base", "exponents"),
    [
        (2.0, range(-2148, 2048)),
        (4.0, range(-1074, 1024)),
        (2.25, [*range(-30, 31), -1850, -1837, 1750]),
        (math.pi, range(-1400, 1240, 40)),
        (NEAR_LN, [*range(-60, 61), -10900, 10400]),
        (BASES[1], range(-216, 206)),
        (SMALL_BASE, [*range(-40, 41), 2000]),
    ],
)
def test_limits_are_the_smallest_doubles_from_a_power_on(base: float, exponents: Iterable[int]) -> None:
    for h in exponents:
        square = Fraction(base) ** h
        found = limit(base, h)
        assert found == math.inf or Fraction(found) ** 2 >= square
        assert Fraction(math.nextafter(found, 0)) ** 2 < square
    assert (limit(base, 0), limit(base, 2)) == (1.0, base)
    # Exact powers are their own limits: a limit that were one double higher would be wrong.
    assert limit(4.0, 1) == 2.0
    assert limit(2.25, 1) == 1.5
    assert limit(1.1, 10**5) == math.inf
    assert limit(1.1, -(10**5)) == 5e-324


@pytest.mark.parametrize("base", [2.0, 1.25, BASES[1]])
def test_intervals_hold_their_range_and_meet_one_another(base: float) -> None:
    for x in (*(y for y in ranges() if 0 < y < math.inf), 0.3, 1.0, 1e6):
        h = half_steps(x, base)
        assert limit(base, h) <= x < limit(base, h + 1)
        for way in (1, 2):
            lower, upper = interval(x, base, way)
            assert upper is not None
            assert lower <= x < upper
            assert interval(lower, base, way) == interval(math.nextafter(upper, 0), base, way) == (lower, upper)
    for way in (1, 2):
        assert interval(0.0, base, way) == (0.0, 5e-324)
        assert interval(math.inf, base, way) == (math.inf, None)


def test_a_smaller_base_is_more_accurate_and_needs_more_values() -> None:
    runs, rng = 500, SeededRng(3)
    factors = {}
    for base in (2.0, 1.1):
        scale = StableScale(epsilon=3.0, delta=1e-6, base=base)
        found = [scale.release(FAR, rng=rng) for _ in range(runs)]
        logarithms = np.sort([math.log((value or math.nan) / 10_000, base) for value in found])
        law = np.where(logarithms < 0, np.exp(0.75 * logarithms) / 2, 1 - np.exp(-0.75 * logarithms) / 2)
        distance = np.max(np.abs(law - (np.arange(runs) + 0.5) / runs))
        assert distance < math.sqrt(math.log(2e9) / (2 * runs))  # Massart's bound, at 1e-9
        factors[base] = math.exp(np.median(np.abs(np.log(np.array(found, float) / 10_000))))
    assert factors[1.1] < 1.2 < 1.5 < factors[2.0]
    few = FAR[:2000]
    assert StableScale(epsilon=3.0, delta=1e-6).release(few) is not None
    assert StableScale(epsilon=3.0, delta=1e-6, base=1.02).release(few) is None
    assert StableScale(epsilon=3.0, delta=1e-6, base=1.5) != StableScale(epsilon=3.0, delta=1e-6)


def test_ranges_without_a_logarithm() -> None:
    assert _log(math.inf, 2.0) == 1024
    halves = np.repeat([-1.0, 1.0], 500)
    assert {StableScale(epsilon=1.0, delta=1e-6).release(np.repeat(7.0, 1000)) for _ in range(50)} == {0.0}
    for x, low, high in ((halves * 1.7e308, 1e300, 1.8e308), (halves * 5e-324, 5e-324, 1e-320)):
        released = [StableScale(epsilon=40.0, delta=1e-6).release(x) for _ in range(50)]
        assert all(value is not None and low <= value <= high for value in released)


def test_what_is_beyond_the_range_of_doubles_saturates() -> None:
    wide = StableScale(epsilon=4e-6, delta=1e-6)
    released = {wide._noisy(1.0, SeededRng(seed)) for seed in range(50)}
    assert released >= {5e-324, float(np.exp2(math.nextafter(1024, 0)))}
    assert all(0 < value < math.inf for value in released)


# --- input -----------------------------------------------------------------------------------------------------------


def test_columns_are_read_as_queries_read_them() -> None:
    for x in (range(1000), list(range(1000)), np.arange(1000, dtype=np.int16), np.arange(2000, dtype=np.float32)[::2]):
        released = StableScale(epsilon=100.0, delta=1e-6).release(x)
        assert released is not None
        assert 100 < released < 2500
    x = np.arange(1000.0)[::-1].copy()
    StableScale(epsilon=1.0, delta=1e-6).release(x)
    assert x.tolist() == list(range(999, -1, -1))


BAD: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (ParameterError, "epsilon must be from 4 * 2**-40 to 2**40, got 0.0", {"epsilon": 0.0}),
    (ParameterError, "epsilon must be from 4 * 2**-40 to 2**40, got -3", {"epsilon": -3}),
    (ParameterError, "epsilon must be from 4 * 2**-40 to 2**40, got nan", {"epsilon": math.nan}),
    (ParameterError, "epsilon must be from 4 * 2**-40 to 2**40, got 1e+300", {"epsilon": 1e300}),
    (TypeError, "epsilon must be a number, got str", {"epsilon": "1"}),
    (ParameterError, "delta must be from 2**-1021 up to, but not including, 1, got 0", {"delta": 0}),
    (ParameterError, "delta must be from 2**-1021 up to, but not including, 1, got 1.0", {"delta": 1.0}),
    (ParameterError, "delta must be from 2**-1021 up to, but not including, 1, got 5e-324", {"delta": 5e-324}),
    (ParameterError, "delta must be from 2**-1021 up to, but not including, 1, got nan", {"delta": math.nan}),
    (TypeError, "delta must be a number, got NoneType", {"delta": None}),
    (ParameterError, "base must be from 1 + 2**-6 to 2**10, got 1.0", {"base": 1.0}),
    (ParameterError, "base must be from 1 + 2**-6 to 2**10, got 1025", {"base": 1025}),
    (ParameterError, "base must be from 1 + 2**-6 to 2**10, got nan", {"base": math.nan}),
    (TypeError, "base must be a number, got str", {"base": "2"}),
    (ParameterError, "x must be two or more numbers, got 0", {"x": []}),
    (ParameterError, "x must be two or more numbers, got 1", {"x": [4.5]}),
    (ParameterError, "x must be finite: no NaN and no infinity", {"x": [1.0, math.nan, 2.0]}),
    (ParameterError, "x must be finite: no NaN and no infinity", {"x": [1.0, -math.inf, 2.0]}),
    (ParameterError, "x must be finite: no NaN and no infinity", {"x": [1.0, None, 2.0]}),
    (ParameterError, "x must have one dimension", {"x": [[1.0, 2.0], [3.0, 4.0]]}),
    (TypeError, "x must be of real numbers", {"x": ["12345", "67890"]}),
]


@pytest.mark.parametrize(("kind", "message", "bad"), BAD, ids=[f"{i}-{min(row[2])}" for i, row in enumerate(BAD)])
def test_bad_input_is_named_before_anything_is_drawn(kind: type[Exception], message: str, bad: dict[str, Any]) -> None:
    given = {"x": FAR, "epsilon": 1.0, "delta": 1e-6, **bad}
    x = given.pop("x")
    with pytest.raises(kind, match="^" + re.escape(message)) as caught:
        StableScale(**given).release(x, rng=ScriptedRng(b""))
    assert not any(value in str(caught.value) for value in ("4.5", "12345"))


def test_a_large_delta_is_warned_about_and_a_source_that_fails_is_an_error() -> None:
    with pytest.warns(UserWarning, match=r"delta=0\.5 is at least 1/n with n=5") as caught:
        StableScale(epsilon=1.0, delta=0.5).release(range(5))
    assert caught[0].filename == __file__
    with pytest.raises(RandomnessError):
        StableScale(epsilon=1.0, delta=1e-6).release(FAR, rng=ScriptedRng(b""))
