"""Reports and intervals against their distributions, with a false-alarm rate fixed beforehand.

Each check is also run on a planted fault, which it must catch.
"""

import numpy as np
import pytest
from scipy.stats import binom

from dpnoise import local

FALSE_ALARM = 1e-11
"""The probability that a check fails though all is well; a test has a few of them."""

N = 1_000_000

REPEATS = 2000
TRUE = np.array([2000, 1000, 1000, 500, 300, 200, 0, 0])


def fits(ones: np.ndarray, n: int, probabilities: np.ndarray) -> bool:
    """Whether independent binomial counts lie between exact quantiles that they all keep to but with FALSE_ALARM."""
    tail = FALSE_ALARM / (2 * len(ones))
    return bool(np.all((binom.ppf(tail, n, probabilities) <= ones) & (ones <= binom.isf(tail, n, probabilities))))


def column_counts(protocol: local.Protocol, value: int, threads: int | None) -> np.ndarray:
    """In how many of N reports on ``value`` each bit is set, counted by NumPy."""
    ones = np.zeros(protocol.k, int)
    for _ in range(10):
        reports = protocol.perturb(np.full(N // 10, value), threads=threads)
        ones += np.unpackbits(reports, axis=1, bitorder="little", count=protocol.k).sum(axis=0, dtype=int)
    return ones


PROTOCOLS = [
    local.OptimizedUnaryEncoding(k=15, epsilon=1.0),
    local.SymmetricUnaryEncoding(k=10, epsilon=4.0),
    local.UnaryEncoding(k=9, p=0.75, q=0.25),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("threads", [1, None])
def test_every_bit_has_its_probability(protocol, threads):
    for value in (0, protocol.k - 1):
        expected = np.where(np.arange(protocol.k) == value, protocol.p, protocol.q)
        assert fits(column_counts(protocol, value, threads), N, expected)


def test_a_wrong_probability_is_caught():
    honest = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
    expected = np.where(np.arange(15) == 0, honest.p, honest.q)
    too_little_noise = local.UnaryEncoding(k=15, p=honest.p, q=0.98 * honest.q)
    assert not fits(column_counts(too_little_noise, 0, None), N, expected)
    of_another_value = column_counts(honest, 1, None)
    assert not fits(of_another_value, N, expected)


def test_randomised_response_has_its_probability():
    for protocol in (local.RandomizedResponse.coin_flips(), local.RandomizedResponse(epsilon=0.2)):
        for answer, probability in ((True, protocol.p), (False, protocol.q)):
            yes = protocol.perturb(np.full(N, answer)).sum()
            assert fits(np.array([yes]), N, np.array([probability]))


DIRECT = [
    local.GeneralizedRandomizedResponse(k=15, epsilon=1.0),
    local.GeneralizedRandomizedResponse(k=300, epsilon=4.0),
]


def value_counts(protocol: local.Protocol, value: int, threads: int | None) -> np.ndarray:
    """How many of N reports on ``value`` are each value, counted by NumPy."""
    reports = protocol.perturb(np.full(N, value), threads=threads)
    return np.bincount(reports.astype(int) @ 256 ** np.arange(protocol.report_bytes), minlength=protocol.k)


@pytest.mark.parametrize("protocol", DIRECT, ids=repr)
@pytest.mark.parametrize("threads", [1, None])
def test_every_value_has_its_probability(protocol, threads):
    for value in (0, protocol.k - 1):
        expected = np.where(np.arange(protocol.k) == value, protocol.p, protocol.q)
        counts = value_counts(protocol, value, threads)
        assert counts.sum() == N
        # Each is binomial; the bound of `fits` holds for dependent counts as well.
        assert fits(counts, N, expected)


def test_a_wrong_direct_report_is_caught():
    protocol = DIRECT[0]
    expected = np.where(np.arange(15) == 0, protocol.p, protocol.q)
    too_private = local.GeneralizedRandomizedResponse(k=15, epsilon=0.9)
    assert not fits(value_counts(too_private, 0, None), N, expected)
    assert not fits(value_counts(protocol, 1, None), N, expected)
    biased = value_counts(protocol, 0, None)
    moved = biased[5] // 20
    biased[5], biased[6] = biased[5] - moved, biased[6] + moved
    assert not fits(biased, N, expected)


def test_direct_reports_are_independent():
    """Neighbouring reports are both the sender's value as often as p says."""
    protocol = DIRECT[0]
    kept = protocol.perturb(np.zeros(N, int), threads=1)[:, 0] == 0
    for lag in (1, 2, 1024):
        both = np.array([np.count_nonzero(kept[:-lag:2] & kept[lag::2])])
        assert fits(both, len(kept[:-lag:2]), np.array([protocol.p**2]))


def test_direct_estimates_have_their_variance():
    protocol = local.GeneralizedRandomizedResponse(k=len(TRUE), epsilon=1.0)
    values = np.repeat(np.arange(len(TRUE)), TRUE)
    n = len(values)
    counts = np.array(
        [protocol.estimate(protocol.perturb(values, threads=1), threads=1).counts for _ in range(REPEATS)]
    )
    variances = np.array([protocol.variance(n, f) for f in TRUE / n])
    assert (np.abs(counts.mean(axis=0) - TRUE) < 6.8 * np.sqrt(variances / REPEATS)).all()
    # The sum of squares of nearly normal errors: 6.8 of its standard deviations.
    ratios = ((counts - TRUE) ** 2).mean(axis=0) / variances
    assert (np.abs(ratios - 1) < 6.8 * np.sqrt(2 / REPEATS)).all()
    # Positive control: the variance of a protocol with less noise.
    less = local.GeneralizedRandomizedResponse(k=len(TRUE), epsilon=1.3)
    ratios = ((counts - TRUE) ** 2).mean(axis=0) / [less.variance(n, f) for f in TRUE / n]
    assert (ratios - 1 > 6.8 * np.sqrt(2 / REPEATS)).all()


def test_bits_of_a_report_are_independent():
    """Pairs of neighbouring bits, within a byte, across bytes and across rows, are both set as often as p and q say."""
    protocol = local.UnaryEncoding(k=16, p=0.75, q=0.25)
    reports = protocol.perturb(np.zeros(N, int))
    bits = np.unpackbits(reports, axis=1, bitorder="little").astype(bool)
    pairs = [(bits[:, 3], bits[:, 4]), (bits[:, 7], bits[:, 8]), (bits[:-1, 15], bits[1:, 1])]
    for first, second in pairs:
        both = np.array([np.count_nonzero(first & second)])
        assert fits(both, len(first), np.array([0.25**2]))


def coverage(level: float, simultaneous: bool) -> tuple[float, float]:
    """How often an interval holds its true count, and how often all intervals of one estimate do."""
    protocol = local.OptimizedUnaryEncoding(k=len(TRUE), epsilon=1.0)
    values = np.repeat(np.arange(len(TRUE)), TRUE)
    held = np.empty((REPEATS, len(TRUE)), bool)
    for row in held:
        accumulator = protocol.accumulator()
        accumulator.add(protocol.perturb(values, threads=1), threads=1)
        estimate = accumulator.estimate(level=level, simultaneous=simultaneous)
        row[:] = (estimate.lower <= TRUE) & (estimate.upper >= TRUE)
    return float(held.mean()), float(held.all(axis=1).mean())


def holds(share: float, trials: int, level: float) -> bool:
    """Whether a share of successes is that of a probability within 0.003 of ``level``, for the normal approximation."""
    tail = FALSE_ALARM / 2
    low, high = binom.ppf(tail, trials, level - 0.003), binom.isf(tail, trials, min(level + 0.003, 1.0))
    return bool(low <= round(share * trials) <= high)


def test_intervals_hold_as_often_as_they_say():
    single, _ = coverage(0.95, simultaneous=False)
    assert holds(single, REPEATS * len(TRUE), 0.95)
    _, together = coverage(0.95, simultaneous=True)
    assert holds(together, REPEATS, (1 - 0.05 / len(TRUE)) ** len(TRUE))


def test_intervals_that_promise_too_much_are_caught():
    single, together = coverage(0.90, simultaneous=False)
    assert not holds(single, REPEATS * len(TRUE), 0.95)
    assert not holds(together, REPEATS, 0.95)


@pytest.mark.parametrize(
    "kind",
    [
        local.SymmetricUnaryEncoding,
        local.GeneralizedRandomizedResponse,
        local.LocalHashing,
        local.HadamardResponse,
        local.ProjectiveGeometryResponse,
        local.SubsetSelection,
    ],
)
def test_estimates_are_unbiased(kind):
    protocol = kind(k=len(TRUE), epsilon=1.0)
    values = np.repeat(np.arange(len(TRUE)), TRUE)
    total = protocol.accumulator()
    for _ in range(200):
        total.add(protocol.perturb(values))
    estimate = total.estimate()
    # 6.8 standard errors: the two-sided normal tail is below 1e-11, for each of eight counts.
    assert (np.abs(estimate.counts - 200 * TRUE) < 6.8 * estimate.standard_errors).all()
