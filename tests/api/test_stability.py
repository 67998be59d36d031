"""Releasing what is stable: the threshold, the release, and every input that cannot be used."""

import itertools
import math
import re

import mpmath
import numpy as np
import pytest

from dpnoise import ParameterError, PrivacyCost, RandomnessError, stability
from dpnoise._native import StabilityTest
from dpnoise.hazmat import ScriptedRng, SeededRng


def tail(t: int, epsilon: float) -> mpmath.mpf:
    """P(N > t) for t >= -1, summed up."""
    with mpmath.workdps(60):
        r = mpmath.exp(-mpmath.mpf(epsilon))
        return (1 - r) / (1 + r) * r ** (t + 1) / (1 - r)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.25, 1 / 3, 1.0, 5.0, 700.0])
def test_the_threshold_is_the_smallest_that_delta_allows(epsilon):
    for delta in (5e-324, 1e-300, 1e-9, 0.01, 0.3, 0.4999, 0.5, 0.99):
        t = StabilityTest(epsilon, delta).threshold
        assert tail(t, epsilon) <= delta
        assert t == 0 or tail(t - 1, epsilon) > delta


def test_a_threshold_at_the_edge_of_delta():
    """The doubles around a tail: delta just below it asks for one more."""
    for epsilon in (0.1, 1.0, 3.0):
        for t in (0, 1, 20):
            delta = float(tail(t, epsilon))
            above, below = (
                (delta, math.nextafter(delta, 0)) if delta >= tail(t, epsilon) else (math.nextafter(delta, 1), delta)
            )
            assert StabilityTest(epsilon, above).threshold == t
            assert StabilityTest(epsilon, below).threshold == t + 1


def test_a_release_is_the_value_or_nothing():
    value = object()
    stable = stability.StableValue(epsilon=1.0, delta=1e-6)
    assert stable.release((value, 10**9)) is value
    assert stable.release((value, -(10**9))) is None
    assert stable.release((value, 10**30)) is value
    assert stable.release((value, -(10**30))) is None
    assert stable.release((value, np.int64(10**9))) is value
    assert stable.attempt(("plum", 10**9)) == stability.Attempt("plum", None)
    assert stable.attempt(("plum", -(2**63))) == stability.Attempt(None, "the test of stability failed")
    assert stable.cost == PrivacyCost(1.0, 1e-6)


def test_releases_are_as_frequent_as_the_formula_says():
    """Also for a threshold that is off by 1, which must be noticed."""
    test, rng, n = StabilityTest(0.5, 0.05), SeededRng(1), 20_000

    def expected(distance: int) -> float:
        above = test.threshold - distance
        return float(tail(above, 0.5) if above >= 0 else 1 - tail(-above - 1, 0.5))

    def deviation(distance: int, p: float) -> float:
        return abs(passed[distance] - n * p) / math.sqrt(n * p * (1 - p))

    distances = range(-2, test.threshold + 4)
    passed = {distance: sum(test.passes(distance, rng) for _ in range(n)) for distance in distances}
    assert max(deviation(distance, expected(distance)) for distance in distances) < 6.5
    for off in (-1, 1):
        assert max(deviation(distance, expected(distance + off)) for distance in distances) > 20


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 40.0])
def test_far_data_have_an_answer_and_no_mechanism_has_one_much_closer(epsilon):
    """The two theorems of the proofs, by the formula of the tail."""
    for delta, beta in itertools.product((0.4, 1e-3, 1e-9, 1e-100), repeat=2):
        threshold, r = StabilityTest(epsilon, delta).threshold, math.exp(-epsilon)
        far = math.ceil((math.log(1 / delta) + math.log(1 / beta)) / epsilon)
        assert r ** (far - threshold) / (1 + r) < beta
        for distance in range(1, min(threshold, 1000), 7):
            edits = distance + 1  # to another answer
            released = r ** (threshold - distance + 1) / (1 + r)
            assert released <= delta * math.expm1(edits * epsilon) / math.expm1(epsilon) * (1 + 1e-9)
    # With half of the threshold an answer is more likely than the bound allows: that would not be private.
    assert r ** (threshold / 2) / (1 + r) > delta * math.expm1(2 * epsilon) / math.expm1(epsilon)


def test_bad_input_is_named_and_the_distance_is_not():
    def refuses(kind: type[Exception], message: str, distance: object, epsilon: object, delta: object) -> None:
        with pytest.raises(kind, match="^" + re.escape(message) + "$"):
            stability.StableValue(epsilon=epsilon, delta=delta).release(("plum", distance), rng=ScriptedRng(b""))

    refuses(ParameterError, "epsilon must be positive and finite, got 0.0", 3, 0.0, 1e-6)
    refuses(ParameterError, "epsilon must be positive and finite, got NaN", 3, float("nan"), 1e-6)
    refuses(ParameterError, "epsilon must be from 2**-40 to 2**40, got 1e-30", 3, 1e-30, 1e-6)
    refuses(TypeError, "epsilon must be a number, got str", 3, "1", 1e-6)
    refuses(ParameterError, "delta must be between 0 and 1, both excluded, got 0.0", 3, 1.0, 0.0)
    refuses(ParameterError, "delta must be between 0 and 1, both excluded, got 1.0", 3, 1.0, 1)
    refuses(TypeError, "distance must be an int, got float", 12345.0, 1.0, 1e-6)
    refuses(TypeError, "distance must be an int, got bool", True, 1.0, 1e-6)
    refuses(TypeError, "distance must be an int, got ndarray", np.array([12345]), 1.0, 1e-6)
    index = property(lambda self: {}["a secret"])
    refuses(TypeError, "distance must be an int, got Odd", type("Odd", (), {"__index__": index})(), 1.0, 1e-6)
    stable = stability.StableValue(epsilon=1.0, delta=1e-6)
    message = "^x must be a tuple of two: the value, and its distance to instability$"
    for x in ("plum", ("plum",), ["plum", 3], ("plum", 3, 3)):
        with pytest.raises(TypeError, match=message):
            stable.release(x, rng=ScriptedRng(b""))
    with pytest.raises(RandomnessError):
        stable.release(("plum", 3), rng=ScriptedRng(b""))
    with pytest.raises(TypeError, match="rng must be None"):
        stable.release(("plum", 3), rng=3)
