"""Releases of stable answers: as frequent as the formula says, and what an audit shows of the worst neighbours.

A correct function fails each of these tests with a probability of at most 1e-9; every test has a planted fault.
"""

from __future__ import annotations

import math
import os
from typing import Any

import pytest
from scipy import stats

from dpnoise import audit, stability
from dpnoise._native import StabilityTest
from dpnoise.audit._cases import _proposal
from dpnoise.stability import _scale

pytestmark = pytest.mark.long

# `make statistical` releases so many; each is a call.
N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 20_000)), 100_000)
ALARM = 1e-9
EPSILON = 1.0
DELTA = 0.01


def tail(t: int, epsilon: float) -> float:
    """P(noise > t) for discrete Laplace noise of scale 1 / epsilon."""
    r = math.exp(-epsilon)
    return r ** (t + 1) / (1 + r) if t >= -1 else 1 - r**-t / (1 + r)


@pytest.mark.parametrize("epsilon", [0.1, EPSILON])
def test_a_stable_value_is_released_as_often_as_the_formula_says(epsilon: float) -> None:
    t = StabilityTest(epsilon, DELTA).threshold
    distances = [0, t // 2, t, t + 1, t + round(1 / epsilon)]
    share = ALARM / 2 / len(distances)  # on each side

    def deviates(count: int, p: float) -> bool:
        return bool(stats.binom.cdf(count, N, p) < share or stats.binom.sf(count - 1, N, p) < share)

    stable = stability.StableValue(epsilon=epsilon, delta=DELTA)
    released = {}
    for distance in distances:
        outcomes = (stable.release(("plum", distance)) for _ in range(N))
        released[distance] = sum(outcome == "plum" for outcome in outcomes)
    assert not any(deviates(released[distance], tail(t - distance, epsilon)) for distance in distances)
    # Planted faults: a threshold that is off by 1, at once or for the scale of 1 / epsilon.
    off = max(1, round(0.3 / epsilon))
    for planted in (t - off, t + off):
        assert any(deviates(released[distance], tail(planted - distance, epsilon)) for distance in distances)


# --- audits ----------------------------------------------------------------------------------------------------------


def zeros_and_ones(zeros: int, ones: int) -> list[float]:
    return zeros * [0.0] + ones * [1.0]


# The two that share an answer lose the most at the edge of passing; the two that do not, wherever their distance is 0.
# Beside them is the loss by the formula, rounded up.
STABLE = (("plum", 4), ("plum", 5))
UNSTABLE = (("plum", 0), ("cherry", 0))
VALUE = stability.StableValue(epsilon=EPSILON, delta=DELTA)
AUDITED: dict[str, tuple[Any, Any, Any, float]] = {
    "StableValue": (VALUE, *STABLE, 0.99),
    "ProposeTestRelease": (_proposal(epsilon=EPSILON, delta=DELTA), (0.0, 8), (1.0, 9), 0.97),
    "StableScale": (
        stability.StableScale(epsilon=EPSILON, delta=DELTA),
        zeros_and_ones(53, 43),
        zeros_and_ones(52, 44),
        0.47,  # half of epsilon is lost at most, and some of it is put down to delta
    ),
}


def audited(mechanism: Any, x: Any, x_prime: Any) -> audit.Check:
    found = audit.check(mechanism, x, x_prime, n=N, epsilon=EPSILON, delta=DELTA, level=1 - ALARM)
    print(found)
    return found


@pytest.mark.parametrize(("mechanism", "x", "x_prime", "loss"), AUDITED.values(), ids=AUDITED)
def test_claims_hold_for_the_worst_neighbours(mechanism: Any, x: Any, x_prime: Any, loss: float) -> None:
    found = audited(mechanism, x, x_prime)
    assert not found.refuted
    assert found.bound.epsilon < loss
    if N >= 100_000:  # enough to see most of it
        assert found.bound.epsilon > loss / 2


def test_unstable_answers_show_no_more_than_delta() -> None:
    assert not audited(VALUE, *UNSTABLE).refuted
    # Planted: a fixed distance passes far more often.
    assert audited(lambda x: VALUE.release((x[0], 3)), *UNSTABLE).refuted


# The range of the first is 1, of the second one 2^500, and one value less or more makes one of the other.
FAR_APART = ([0.0, 0.0, 1.0, 1.0], [-(2.0**500), 0.0, 1.0, 1.0])


@pytest.mark.filterwarnings("ignore:delta=")
def test_the_printed_threshold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = stability.StableScale(epsilon=EPSILON, delta=DELTA)

    def exponent(x: list[float]) -> float | None:
        released = scale.release(x)
        return None if released is None else math.log2(released)

    assert not audited(exponent, *FAR_APART).refuted
    printed = math.floor(math.log(1 / DELTA))
    as_printed = tail(printed, EPSILON / 4)
    assert StabilityTest(EPSILON / 4, as_printed * (1 + 1e-12)).threshold == printed
    monkeypatch.setattr(_scale, "half_of", lambda _: as_printed * (1 + 1e-12))
    scale = stability.StableScale(epsilon=EPSILON, delta=DELTA)
    assert audited(exponent, *FAR_APART).refuted
