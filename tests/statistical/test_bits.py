"""The bits of a geometric variable, an oracle that shares nothing with how the samplers work.

If P(x) is proportional to exp(-x / b), x = 0, 1, 2, ..., then the binary digits of x are independent and digit i is 1
with probability 1 / (1 + exp(2**i / b)) (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006; Balcer and Vadhan
2018). The magnitude of a discrete Laplace variable that is not 0, less 1, is such an x, and its sign one more
independent digit, of probability 1/2.

Counts of single digits, and of pairs that are both 1, then have binomial distributions. A correct sampler is rejected
with a probability of 1e-11 by each check, and a planted fault is missed with less than 1e-15.
"""

from __future__ import annotations

import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import samplers

ALARM = 1e-11
N = int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000))
CONTROL = 2_000_000
SCALES = [0.1, Fraction(1, 3), 1, 2.5, 10, 1000, 10**6, 2**40]

Samples = NDArray[np.int64]
Signs = NDArray[np.bool_] | None


def digit_probabilities(scale: float | Fraction) -> list[float]:
    """P(digit i is 1), for all digits of the values below 64 scales: a larger one has a probability of exp(-64)."""
    exact = Fraction(scale)
    with mpmath.workdps(50):
        digits = range(max(1, int(64 * exact).bit_length()))
        return [float(1 / (1 + mpmath.exp(mpmath.mpf(2**i * exact.denominator) / exact.numerator))) for i in digits]


def counts(samples: Samples, digits: int, positive: Signs) -> NDArray[np.int64]:
    """Count, for every pair of digits, the samples in which both are 1."""
    total = np.zeros((digits + (positive is not None),) * 2, np.int64)
    for start in range(0, samples.size, 2**18):
        part = slice(start, start + 2**18)
        ones = [samples[part] >> i & 1 for i in range(digits)] + ([] if positive is None else [positive[part]])
        matrix = np.array(ones, np.float32)
        total += (matrix @ matrix.T).astype(np.int64)  # exact: below 2**24
    return total


def p_values(samples: Samples, scale: float | Fraction, positive: Signs = None) -> tuple[float, float]:
    """Return the smallest p-value of the single digits and that of the pairs, each times the number of tests."""
    probabilities = digit_probabilities(scale)
    observed = counts(samples, len(probabilities), positive)
    assert samples.max() < 2 ** len(probabilities)
    each = np.array(probabilities if positive is None else [*probabilities, 0.5])
    both = np.outer(each, each)
    np.fill_diagonal(both, each)
    law = stats.binom(samples.size, both)
    tests = np.minimum(2 * np.minimum(law.cdf(observed), law.sf(observed - 1)), 1)
    pairs = tests[np.tril_indices(each.size, -1)]
    return each.size * float(np.diag(tests).min()), pairs.size * float(pairs.min(initial=1))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_digits_of_geometric_samples(scale: float | Fraction) -> None:
    single, pairs = p_values(samplers.geometric(scale, size=N), scale)
    assert single > ALARM
    assert pairs > ALARM


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_digits_of_discrete_laplace_samples(scale: float | Fraction) -> None:
    samples = samplers.discrete_laplace(scale, size=N)
    beyond_zero = samples[samples != 0]
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(Fraction(scale).denominator) / Fraction(scale).numerator)
        zero = float((1 - q) / (1 + q))
    assert stats.binomtest(N - beyond_zero.size, N, zero).pvalue > ALARM
    single, pairs = p_values(np.abs(beyond_zero) - 1, scale, beyond_zero > 0)
    assert single > ALARM
    assert pairs > ALARM


@pytest.mark.parametrize("scale", SCALES[1:-1], ids=str)
def test_a_wrong_scale_is_found(scale: float | Fraction) -> None:
    assert p_values(samplers.geometric(Fraction(scale) * Fraction(102, 100), size=CONTROL), scale)[0] < ALARM


def test_digits_that_depend_on_each_other_are_found() -> None:
    # One digit copies another of about the same probability: only the pairs can tell.
    samples = samplers.geometric(2**20, size=CONTROL)
    copied = np.where(np.random.default_rng().random(CONTROL) < 0.02, samples & ~1 | samples >> 1 & 1, samples)
    single, pairs = p_values(copied, 2**20)
    assert single > ALARM
    assert pairs < ALARM


def test_a_sign_that_depends_on_the_magnitude_is_found() -> None:
    samples = samplers.geometric(100, size=CONTROL)
    coins = np.random.default_rng().random(CONTROL) < np.where(samples >> 3 & 1, 0.51, 0.49)
    assert p_values(samples, 100, coins)[1] < ALARM


@pytest.mark.parametrize("stuck", [0, 10, 38])
def test_a_digit_that_is_slightly_off_is_found(stuck: int) -> None:
    samples = samplers.geometric(2**40, size=CONTROL)
    faulty = np.where(np.random.default_rng().random(CONTROL) < 0.0125, samples & ~(1 << stuck), samples)
    assert p_values(faulty, 2**40)[0] < ALARM
