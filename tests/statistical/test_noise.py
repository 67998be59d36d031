"""The samples against the probabilities at 50 digits.

Each check rejects a correct sampler with a probability of 1e-11, the quantile of its exact or asymptotic law, so that
all checks of a test together do so with less than 1e-9; and is also run on planted faults that it must find, which it
misses with a probability below 1e-12.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import samplers

ALARM = 1e-11
# `make statistical` draws more.
N = int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000))
SCALES = [0.1, Fraction(1, 3), 1, 2.5, 10, 1000, 10**6, 2**40]

Samples = NDArray[np.int64]


def bins(scale: float | Fraction, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cut the integers into intervals with an expected count of 50 or more; give inner edges and probabilities."""
    with mpmath.workdps(50):
        exact = Fraction(scale)
        q = mpmath.exp(-mpmath.mpf(exact.denominator) / exact.numerator)
        smallest = mpmath.mpf(50) / n
        widest = mpmath.mpf(1) / 200

        def edge_with(tail: mpmath.mpf) -> int:
            # P(x >= a) = q^a / (1 + q) for a >= 1: the first a where that is at most the given tail.
            return max(1, int(mpmath.ceil(mpmath.log(tail * (1 + q)) / mpmath.log(q))))

        def tail_from(edge: int) -> mpmath.mpf:
            return q ** mpmath.mpf(edge) / (1 + q)

        # Steps of equal probability in the middle, then half of what is left at a time, as long as that is enough.
        edges = [edge_with((1 - widest) / 2)]
        tails = [tail_from(edges[0])]
        while (step := max(smallest, min(widest, tails[-1] / 2))) <= tails[-1] - smallest:
            following = edge_with(tails[-1] - step)
            if tail_from(following) < smallest:
                break
            edges.append(following)
            tails.append(tail_from(following))
        positive = [p - r for p, r in itertools.pairwise([*tails, 0])]
        # A value x is in the bin after the last edge e <= x; -x >= e is x < 1 - e.
        inner = [*(1 - e for e in reversed(edges)), *edges]
        probabilities = [*reversed(positive), 1 - 2 * sum(positive), *positive]
        return np.array(inner, np.int64), np.array([float(p) for p in probabilities])


def g_test(samples: Samples, scale: float | Fraction) -> float:
    """Return the p-value of the likelihood-ratio test."""
    edges, probabilities = bins(scale, samples.size)
    observed = np.bincount(np.searchsorted(edges, samples, side="right"), minlength=probabilities.size)
    expected = samples.size * probabilities
    seen = observed > 0
    g = 2 * float(np.sum(observed[seen] * np.log(observed[seen] / expected[seen])))
    return float(stats.chi2.sf(g, probabilities.size - 1))


def sign_test(samples: Samples) -> float:
    positive, negative = int(np.sum(samples > 0)), int(np.sum(samples < 0))
    return float(stats.binomtest(positive, positive + negative).pvalue) if positive + negative else 1.0


def low_bits_test(samples: Samples) -> float:
    """For a scale far above 64 the residues modulo 64 are uniform, up to a relative 1e-8."""
    return float(stats.chisquare(np.bincount(samples & 63, minlength=64)).pvalue)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_probabilities_add_up(scale: float | Fraction) -> None:
    edges, probabilities = bins(scale, N)
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert probabilities.size == edges.size + 1
    assert probabilities.min() * N > 49.99


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_distribution(scale: float | Fraction) -> None:
    samples = samplers.discrete_laplace(scale, size=N)
    assert g_test(samples, scale) > ALARM
    assert sign_test(samples) > ALARM
    if scale >= 10**6:
        assert low_bits_test(samples) > ALARM


@pytest.mark.parametrize("scale", [1e-3, 0.01])
def test_tiny_scales_give_nothing_but_zeros(scale: float) -> None:
    # Anything else has a probability below 2 exp(-100).
    for draw in (samplers.discrete_laplace, samplers.discrete_gaussian, samplers.geometric):
        assert not draw(scale, size=N).any()
    assert samplers.discrete_laplace(0.1, size=N).any()


def exact_g_test(samples: Samples, density: Callable[[int], mpmath.mpf], first: int, last: int) -> float:
    """G-test against a density at 50 digits, every value from ``first`` to ``last`` a bin and the rest in the ends."""
    with mpmath.workdps(50):
        weights = [density(x) for x in range(first, last + 1)]
        beyond = [mpmath.nsum(lambda k, a=end, d=sign: density(a + d * int(k)), [1, 20 * (last - first)])
                  for end, sign in ((first, -1), (last, 1))]  # fmt: skip
        weights[0] += beyond[0] if first < 0 else 0
        weights[-1] += beyond[1]
        total = sum(weights)
        expected = np.array([float(weight / total) for weight in weights]) * samples.size
    assert expected.min() >= 50
    observed = np.bincount(np.clip(samples, first, last) - first, minlength=last - first + 1)
    g = 2 * float(np.sum(observed * np.log(np.maximum(observed, 1) / expected)))
    return float(stats.chi2.sf(g, observed.size - 1))


def gaussian(sigma: float) -> Callable[[int], mpmath.mpf]:
    return lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))


def one_sided(scale: float) -> Callable[[int], mpmath.mpf]:
    return lambda x: mpmath.exp(-mpmath.mpf(x) / mpmath.mpf(scale))


@pytest.mark.parametrize(("sigma", "last"), [(0.3, 1), (1.0, 3), (4.0, 15), (25.0, 90)])
def test_the_discrete_gaussian(sigma: float, last: int) -> None:
    samples = samplers.discrete_gaussian(sigma, size=N)
    assert exact_g_test(samples, gaussian(sigma), -last, last) > ALARM
    assert sign_test(samples) > ALARM
    # Positive control: the continuous Gaussian, rounded; at a large sigma the two can not be told apart.
    if sigma <= 1:
        rounded = np.rint(np.random.default_rng().normal(0, sigma, N)).astype(np.int64)
        assert exact_g_test(rounded, gaussian(sigma), -last, last) < ALARM
    assert exact_g_test(samplers.discrete_gaussian(1.02 * sigma, size=N), gaussian(sigma), -last, last) < ALARM


@pytest.mark.parametrize("sigma", [1e3, 1e6, 2.0**40])
def test_large_discrete_gaussians_are_normal(sigma: float) -> None:
    # The two distribution functions differ by less than 1/sigma, which this n does not see.
    samples = samplers.discrete_gaussian(sigma, size=N)
    cells = np.floor(stats.norm.cdf((samples + np.random.default_rng().random(N) - 0.5) / sigma) * 500).astype(int)
    assert stats.chisquare(np.bincount(cells, minlength=500)).pvalue > ALARM
    wrong = np.floor(stats.norm.cdf(1.02 * samples / sigma) * 500).astype(int)
    assert stats.chisquare(np.bincount(wrong, minlength=500)).pvalue < ALARM


@pytest.mark.parametrize(("scale", "last"), [(0.2, 1), (1.0, 8), (4.0, 30), (30.0, 200)])
def test_the_geometric(scale: float, last: int) -> None:
    assert exact_g_test(samplers.geometric(scale, size=N), one_sided(scale), 0, last) > ALARM
    # At 0.2 nearly all are zeros, and 2 % would be missed with a probability of 5e-5.
    wrong = samplers.geometric((1.02 if scale >= 1 else 1.03) * scale, size=N)
    assert exact_g_test(wrong, one_sided(scale), 0, last) < ALARM


@pytest.mark.parametrize("radius", [3, 5, 9])
def test_truncated_noise(radius: int) -> None:
    for draw, density in (
        (samplers.discrete_laplace, lambda x: mpmath.exp(-abs(x) / mpmath.mpf(3))),
        (samplers.discrete_gaussian, gaussian(3)),
    ):
        cut = lambda x, density=density: density(x) if abs(x) <= radius else mpmath.mpf(0)  # noqa: E731
        samples = draw(3, size=N, radius=radius)
        assert np.abs(samples).max() == radius
        assert exact_g_test(samples, cut, -radius, radius) > ALARM
        # Positive control: what lies beyond is put on the edge.
        assert exact_g_test(np.clip(draw(3, size=N), -radius, radius), cut, -radius, radius) < ALARM


def skellam(mu: int) -> Callable[[int], mpmath.mpf]:
    return lambda x: mpmath.besseli(abs(x), 2 * mu)


def staircase(epsilon: int, width: int, inner: int) -> Callable[[int], mpmath.mpf]:
    return lambda x: mpmath.exp(-epsilon * ((abs(x) + width - inner) // width))


def share(scale: int, parties: int) -> Callable[[int], mpmath.mpf]:
    q, r = mpmath.exp(mpmath.mpf(-1) / scale), mpmath.mpf(1) / parties
    return lambda x: q ** abs(x) * mpmath.rf(r, abs(x)) / mpmath.factorial(abs(x)) * mpmath.hyp2f1(
        r, r + abs(x), abs(x) + 1, q * q
    )  # fmt: skip


@pytest.mark.parametrize(
    ("draw", "density", "last"),
    [
        (partial(samplers.skellam, 2), skellam(2), 6),
        (partial(samplers.skellam, 400), skellam(400), 60),
        (partial(samplers.staircase, 1, 5, 2), staircase(1, 5, 2), 40),
        (partial(samplers.staircase, 1, 60, 20), staircase(1, 60, 20), 200),
        (partial(samplers.negative_binomial_share, 3, 4), share(3, 4), 10),
    ],
    ids=["Skellam", "large Skellam", "staircase", "wide staircase", "share"],
)
def test_noise_of_tables(draw: Callable[..., Samples], density: Callable[[int], mpmath.mpf], last: int) -> None:
    samples = draw(size=N)
    assert exact_g_test(samples, density, -last, last) > ALARM
    # Positive control: one in fifty is drawn from a wider law.
    wrong = np.where(np.random.default_rng().random(N) < 0.02, 2 * samples, samples)
    assert exact_g_test(wrong, density, -last, last) < ALARM


@pytest.mark.parametrize("parties", [2, 10, 1000])
def test_shares_add_up_to_discrete_laplace(parties: int) -> None:
    sums, fewer = np.zeros(N // 10, np.int64), np.zeros(N // 10, np.int64)
    for party in range(parties):
        shares = samplers.negative_binomial_share(3, parties, size=sums.size)
        sums += shares
        fewer += shares if party < parties - max(1, parties // 10) else 0
    assert g_test(sums, 3) > ALARM
    # Positive control: a tenth of the parties are missing, or one.
    assert g_test(fewer, 3) < ALARM


@pytest.mark.parametrize(("scale", "granularity"), [(2.5, 0.25), (1e-9, 2.0**-50), (3e50, 2.0**150)])
def test_real_noise_is_integer_noise_on_the_grid(scale: float, granularity: float) -> None:
    steps = samplers.laplace(scale, size=N, granularity=granularity) / granularity
    assert g_test(steps.astype(np.int64), Fraction(scale) / Fraction(granularity)) > ALARM
    assert g_test(steps.astype(np.int64), Fraction(scale) / Fraction(granularity) * Fraction(102, 100)) < ALARM
    sigma = 4 * granularity
    steps = samplers.gaussian(sigma, size=N, granularity=granularity) / granularity
    assert exact_g_test(steps.astype(np.int64), gaussian(4.0), -15, 15) > ALARM


@pytest.mark.parametrize("p", [0.5, 0.3, 1 / 3, 0.001, 0.999])
def test_coins(p: float) -> None:
    coins = samplers.bernoulli(p, size=N)
    assert stats.binomtest(int(coins.sum()), N, p).pvalue > ALARM
    # Coins are tossed 512 at a time: those of one place must not differ from those of another.
    per_place = coins[: N - N % 512].reshape(-1, 512).sum(axis=0)
    law = stats.binom(N // 512, p)
    assert per_place.size * 2 * np.minimum(law.cdf(per_place), law.sf(per_place - 1)).min() > ALARM
    if 0.01 < p < 0.99:  # Four heads in a place are too few for a chi-squared law.
        assert stats.chisquare(per_place).pvalue > ALARM
    wrong = samplers.bernoulli(p * 0.7 if p < 0.9 else 1 - (1 - p) * 0.7, size=N)
    assert stats.binomtest(int(wrong.sum()), N, p).pvalue < ALARM


def test_successive_samples_are_uncorrelated() -> None:
    samples = samplers.discrete_laplace(100, size=N).astype(float)
    correlation = np.corrcoef(samples[1:], samples[:-1])[0, 1]
    assert abs(correlation) < stats.norm.isf(ALARM / 2) / np.sqrt(N)


def rounded(scale: float, n: int) -> Samples:
    return np.rint(np.random.default_rng().laplace(0, scale, n)).astype(np.int64)


def wrong_scale(scale: float, n: int) -> Samples:
    return samplers.discrete_laplace(1.02 * scale, size=n)


def short_tail(scale: float, n: int) -> Samples:
    samples = samplers.discrete_laplace(scale, size=n)
    return np.where(np.abs(samples) > 8 * scale, 0, samples)


def double_zero(scale: float, n: int) -> Samples:
    """Forget to reject the second zero: a coin for the sign of a magnitude that has zero once."""
    magnitude = np.random.default_rng().geometric(1 - np.exp(-1 / scale), n) - 1
    return magnitude * np.random.default_rng().choice([-1, 1], n)


@pytest.mark.parametrize(
    ("fault", "scale"),
    [
        (rounded, 1.0),
        (wrong_scale, 1.0),
        (wrong_scale, 10.0),
        (short_tail, 1.0),
        (short_tail, 10.0),
        (double_zero, 10.0),
    ],
)
def test_planted_faults_are_found(fault: Callable[[float, int], Samples], scale: float) -> None:
    assert g_test(fault(scale, N), scale) < ALARM


def test_a_biased_sign_is_found() -> None:
    samples = samplers.discrete_laplace(10, size=N)
    flip = (samples < 0) & (np.random.default_rng().random(N) < 0.02)
    assert sign_test(np.where(flip, -samples, samples)) < ALARM


def test_missing_low_bits_are_found() -> None:
    assert low_bits_test(samplers.discrete_laplace(2**30, size=N) & ~1) < ALARM
