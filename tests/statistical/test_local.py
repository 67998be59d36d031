"""Bias, variance and intervals of the estimates of every protocol, over many collections.

Each report supports its sender's value with probability p and any other with q, independently of other reports. So how
often a value is supported is the sum of two binomial variables. From that follow, for so many people, the distributions
of a mean of estimates (normal) and of a sum of squared errors (chi-squared), and exactly that of the number of
intervals that hold (binomial). A correct protocol is rejected with a probability of 1e-9 by each check, and each is
also run on a planted fault, which it must find. ``pytest -rP`` shows the figures.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal, stats

from dpnoise import local

pytestmark = pytest.mark.long

ALARM = 1e-9
REPETITIONS = 1000
COPIES = 2
PEOPLE = max(2000, int(os.environ.get("DPNOISE_TEST_SAMPLES", 2_000_000)) // (5 * REPETITIONS))
SHARES = np.array([0.4, 0.2, 0.2, 0.1, 0.06, 0.04, 0.0, 0.0])
LEVEL = 0.95

# With the protocol of the same reports but another epsilon: a fault. A smaller one would be missed too often where
# estimates have most noise; these are with a probability below 1e-40.
PROTOCOLS = {
    protocol: other
    for protocol, other in [
        (local.RandomizedResponse(epsilon=1.0), local.RandomizedResponse(epsilon=1.1)),
        (local.RandomizedResponse.coin_flips(), local.RandomizedResponse(epsilon=1.2)),
        *(
            (kind(k=8, epsilon=epsilon, **options), kind(k=8, epsilon=other, **options))
            for epsilon, other in ((0.5, 0.6), (2.0, 2.2))
            for kind, options in [
                (local.GeneralizedRandomizedResponse, {}),
                (local.SymmetricUnaryEncoding, {}),
                (local.OptimizedUnaryEncoding, {}),
                (local.LocalHashing, {"g": 3}),
                (local.HadamardResponse, {}),
                (local.ProjectiveGeometryResponse, {"prime": 3}),
                (local.SubsetSelection, {"omega": 2}),
                (local.ThresholdHistogramEncoding, {}),
                (local.SummationHistogramEncoding, {}),
            ]
        ),
        (local.UnaryEncoding(k=8, p=0.75, q=0.25), local.UnaryEncoding(k=8, p=0.75, q=0.24)),
        *(
            (
                kind(k=8, epsilon_permanent=3.0, epsilon_first=1.5, **options),
                kind(k=8, epsilon_permanent=3.0, epsilon_first=1.7, **options),
            )
            for kind, options in [
                (local.LongitudinalUnaryEncoding, {"permanent": "optimized"}),
                (local.LongitudinalUnaryEncoding, {"permanent": "symmetric"}),
                (local.LOLOHA, {"g": 2}),
                (local.LOLOHA, {"g": 5}),
            ]
        ),
        (local.DBitFlip(k=8, d=3, epsilon=2.0), local.DBitFlip(k=8, d=3, epsilon=2.2)),
        (local.DBitFlip(k=8, d=1, epsilon=1.0), local.DBitFlip(k=8, d=1, epsilon=1.3)),
    ]
}

Truth = NDArray[np.int64]


@dataclass
class Collections:
    """The estimated counts of all collections, and which of their intervals hold the true ones."""

    counts: NDArray[np.float64]
    held: NDArray[np.bool_]


def truth_of(protocol: local.Protocol) -> Truth:
    shares = SHARES if protocol.k == SHARES.size else np.array([0.8, 0.2])
    return COPIES * np.floor(shares * PEOPLE / COPIES).astype(np.int64)  # for copies that have the same value


def reports(sender: local.Protocol, values: NDArray[Any]) -> NDArray[np.uint8]:
    """Reports of people who have never been asked before."""
    if isinstance(sender, local.LongitudinalProtocol):
        return sender.perturb(values, local.ClientMemo.generate(len(values)), question="colour")
    return sender.perturb(values)


def collections(protocol: local.Protocol, sender: local.Protocol, copies: int = 1) -> Collections:
    """Collect reports that ``sender`` made, each of them ``copies`` times."""
    truth = truth_of(protocol)
    values = np.repeat(np.arange(protocol.k), truth // copies)
    if isinstance(sender, local.RandomizedResponse):
        values = values.astype(bool)
    counts = np.empty((REPETITIONS, protocol.k))
    held = np.empty(counts.shape, bool)
    for row in range(len(counts)):
        accumulator = protocol.accumulator()
        accumulator.add(np.repeat(reports(sender, values), copies, axis=0))
        estimate = accumulator.estimate(level=LEVEL)
        counts[row] = estimate.counts
        held[row] = (estimate.lower <= truth) & (truth <= estimate.upper)
    return Collections(counts, held)


honest = functools.cache(lambda protocol: collections(protocol, protocol))


def limit(protocol: local.Protocol) -> float:
    """The z-score that none of the k values exceeds but with the probability of a false alarm."""
    return float(stats.norm.isf(ALARM / (2 * protocol.k)))


def variances(protocol: local.Protocol) -> NDArray[np.float64]:
    truth = truth_of(protocol)
    return np.array([protocol.variance(int(truth.sum()), share) for share in truth / truth.sum()])


def bias(protocol: local.Protocol, found: Collections) -> NDArray[np.float64]:
    """The z-scores of the mean errors."""
    errors = found.counts.mean(axis=0) - truth_of(protocol)
    return errors / np.sqrt(variances(protocol) / len(found.counts))


def dispersion(protocol: local.Protocol, found: Collections) -> NDArray[np.float64]:
    """The z-scores of the mean squared errors."""
    squares = ((found.counts - truth_of(protocol)) ** 2).sum(axis=0) / variances(protocol)
    chi2 = stats.chi2(len(found.counts))
    # Of the smaller tail, because the larger has no digits left.
    return np.where(squares > len(found.counts), stats.norm.isf(chi2.sf(squares)), stats.norm.ppf(chi2.cdf(squares)))


def coverage(protocol: local.Protocol) -> NDArray[np.float64]:
    """The probabilities that an interval holds the true count, summed up over all that can be observed."""
    truth = truth_of(protocol)
    if isinstance(protocol, local.SummationHistogramEncoding):
        return np.full(truth.size, LEVEL)  # of sums of thousands of numbers with noise, whose variance is known
    p, q = protocol.p, protocol.q
    n = int(truth.sum())
    supports = np.arange(n + 1)
    counts = (supports - n * q) / (p - q)
    frequencies = np.clip(counts / n, 0, 1)
    errors = np.sqrt(n * (q * (1 - q) / (p - q) ** 2 + frequencies * (1 - p - q) / (p - q)))
    margins = stats.norm.isf((1 - LEVEL) / 2) * errors
    chances = []
    for own in truth.tolist():
        law = signal.fftconvolve(
            stats.binom.pmf(np.arange(own + 1), own, p), stats.binom.pmf(np.arange(n - own + 1), n - own, q)
        )
        chances.append(law[np.abs(counts - own) <= margins].sum())
    return np.array(chances)


def keeps_its_promise(protocol: local.Protocol, found: Collections) -> bool:
    times, tail = found.held.sum(axis=0), ALARM / (2 * protocol.k)
    law = stats.binom(len(found.held), coverage(protocol))
    return bool(np.all((law.ppf(tail) <= times) & (times <= law.isf(tail))))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_estimates_are_unbiased(protocol: local.Protocol) -> None:
    z = bias(protocol, honest(protocol))
    print(f"{protocol!r}: z-scores of the mean errors from {z.min():.2f} to {z.max():.2f}")
    assert np.abs(z).max() < limit(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_the_variance_is_that_of_theory(protocol: local.Protocol) -> None:
    z = dispersion(protocol, honest(protocol))
    print(f"{protocol!r}: z-scores of the mean squared errors from {z.min():.2f} to {z.max():.2f}")
    assert np.abs(z).max() < limit(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_intervals_hold_as_often_as_they_say(protocol: local.Protocol) -> None:
    found = honest(protocol)
    shares, expected = found.held.mean(axis=0), coverage(protocol)
    print(
        f"{protocol!r}: {shares.min():.3f} to {shares.max():.3f} hold, of {expected.min():.4f} to {expected.max():.4f}"
    )
    assert np.abs(expected - LEVEL).max() < 0.01
    assert keeps_its_promise(protocol, found)


@pytest.mark.parametrize(("protocol", "other"), PROTOCOLS.items(), ids=repr)
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_reports_of_another_epsilon_are_found(protocol: local.Protocol, other: local.Protocol) -> None:
    assert other.report_bytes == protocol.report_bytes
    assert np.abs(bias(protocol, collections(protocol, other))).max() > limit(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_reports_that_depend_on_each_other_are_found(protocol: local.Protocol) -> None:
    """Every report is sent twice: the mean stays, the variance is twice as large, and 83 % of the intervals hold."""
    found = collections(protocol, protocol, copies=COPIES)
    assert dispersion(protocol, found).max() > limit(protocol)
    assert not keeps_its_promise(protocol, found)
