"""The release of a scale, in certified arithmetic and over all small data: private, and with the printed threshold not.

The printed threshold of both tests is 1 + ln(1 / delta), whatever epsilon is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from mpmath import iv, mpi
from numpy.typing import NDArray

from dpnoise import stability
from dpnoise._native import StabilityTest
from dpnoise.stability._scale import _log

Data = tuple[float, ...]
Threshold = Callable[[float, float], int]


def ours(epsilon: float, delta: float) -> int:
    """What the sum of a distance and noise must exceed."""
    return 1 + StabilityTest(epsilon / 4, delta / 2).threshold


def printed(epsilon: float, delta: float) -> int:
    """The noise is whole, so that only the integer below the threshold counts."""
    return math.floor(1 + math.log(1 / delta))


# --- the worst pair, certified ---------------------------------------------------------------------------------------

# Of four values the range is that of the first and the third. One value less or more makes it 1 or 2^500, and with the
# same one back it is as before: the distance of both is 1.
NARROW, WIDE = (0.0, 0.0, 1.0, 1.0), (-(2.0**500), 0.0, 1.0, 1.0)


def test_the_worst_pair_is_one() -> None:
    for way in (1, 2):
        assert stability.iqr_distance(NARROW, way) == stability.iqr_distance(WIDE, way) == 1
    assert sum(x != y for x, y in zip(NARROW, WIDE, strict=True)) == 1


def tail(t: int, epsilon: float) -> mpi:
    """An interval that holds P(N > t), for t >= -1 and discrete Laplace noise of scale 1 / epsilon."""
    r = iv.exp(-iv.mpf(epsilon))
    return r ** (t + 1) / (1 + r)


def released(threshold: int, epsilon: float) -> mpi:
    """The probability that something is released of data whose distances are 1."""
    passed = tail(threshold - 1, epsilon / 4)
    return passed + (1 - passed) * passed


def least_delta(threshold: int, epsilon: float) -> float:
    """A lower bound of the delta that the release needs, by the event that 2^250 or more is released.

    The noise is at least 2^250 or at most 2^-250 with probabilities of at most `far` each; it is rounded to a grid.
    """
    far = tail(248, epsilon / 4)
    gap = released(threshold, epsilon) * ((1 - far) - iv.exp(iv.mpf(epsilon)) * far)
    return float(gap.a)


@pytest.mark.parametrize("epsilon", [0.25, 1.0])  # at 1 the book's parameter, a quarter of the total, is 0.25
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_the_printed_threshold_needs_a_larger_delta(epsilon: float, delta: float) -> None:
    iv.prec = 200
    needed, enough = least_delta(printed(epsilon, delta), epsilon), released(ours(epsilon, delta), epsilon)
    print(f"epsilon {epsilon}, delta {delta}: printed {needed:.3g}, ours at most {float(enough.b):.4g}")
    assert needed > 10 * delta
    # Whatever is released, the rest has the same probability under both: so this is a bound for all events.
    assert enough.b <= delta
    assert least_delta(ours(epsilon, delta), epsilon) <= delta


# --- all neighbours of small data ------------------------------------------------------------------------------------


def small_data(n: int) -> Iterator[Data]:
    yield from itertools.combinations_with_replacement((0.0, 1.0, 1.3, 2.9, 2.0**60), n)


def neighbours(x: Data) -> set[Data]:
    values = set(itertools.chain.from_iterable(small_data(1)))
    return {tuple(sorted((*x[:i], value, *x[i + 1 :]))) for i in range(len(x)) for value in values}


STEPS = 2  # to a power of the base: a coarse grid
REACH = 800  # steps; what is beyond is taken together


def law(x: Data, threshold: int, epsilon: float, base: float) -> NDArray[np.float64]:
    """The probabilities of no release, of 0, and of each power of the base on the grid."""
    r = math.exp(-epsilon / 4)
    above = [threshold - stability.iqr_distance(x, way, base=base) for way in (1, 2)]
    failed = math.prod(1 - r ** (t + 1) / (1 + r) if t >= -1 else r**-t / (1 + r) for t in above)
    n = len(x)
    iqr = x[math.ceil(3 * n / 4) - 1] - x[math.ceil(n / 4) - 1]
    noisy = np.zeros(2 * REACH + 1)
    if iqr > 0:
        center, q = round(_log(iqr, base) * STEPS), r ** (1 / STEPS)
        noisy = q ** np.abs(np.arange(-REACH, REACH + 1) - center) * (1 - q) / (1 + q)
        noisy[0], noisy[-1] = (q ** (REACH + side * center) / (1 + q) for side in (1, -1))
        assert abs(noisy.sum() - 1) < 1e-12
    return np.concatenate([[failed, (1 - failed) * (iqr == 0)], (1 - failed) * noisy])


def worst_delta(threshold: Threshold, n: int, epsilon: float, delta: float, claim: float, base: float = 2.0) -> float:
    """The smallest delta that the release of n values keeps together with the epsilon claimed."""
    laws = {x: law(x, threshold(epsilon, delta), epsilon, base) for x in small_data(n)}
    gaps = (laws[x] - math.exp(claim) * laws[other] for x in laws for other in neighbours(x))
    return max(float(np.maximum(gap, 0).sum()) for gap in gaps)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_no_small_data_break_the_promise(n: int, epsilon: float) -> None:
    delta = 0.01
    # The theorem is about half of the epsilon that is claimed.
    assert worst_delta(ours, n, epsilon, delta, claim=epsilon / 2) <= delta
    assert worst_delta(ours, n, epsilon, delta, claim=epsilon / 2.2) > 0
    if epsilon < 4:  # the printed threshold is for scales of about 1
        assert worst_delta(printed, n, epsilon, delta, claim=epsilon) > 5 * delta


@pytest.mark.parametrize("base", [1.25, 3.0])
def test_nor_with_another_base(base: float) -> None:
    epsilon, delta = 1.0, 0.01
    assert worst_delta(ours, 4, epsilon, delta, claim=epsilon / 2, base=base) <= delta
    assert worst_delta(ours, 4, epsilon, delta, claim=epsilon / 2.2, base=base) > 0
    assert worst_delta(printed, 4, epsilon, delta, claim=epsilon, base=base) > 5 * delta
