"""The numbers of set bits of reports: the law, honest batches, crafted ones, and what cannot be noticed."""

import itertools
import re

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dpnoise import DoubtfulInputWarning, ParameterError, local
from dpnoise.local._unary_encoding import chi_squared_tail, distribution

FALSE_ALARM = 1e-11
"""The probability that a statistical check fails though all is well; a test has up to four of them."""

PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
WIDE = local.OptimizedUnaryEncoding(k=128, epsilon=1.0)
N = 100_000


def ones(reports: np.ndarray) -> np.ndarray:
    return np.unpackbits(reports, axis=1).sum(axis=1, dtype=int)


def packed(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, axis=1, bitorder="little")


def maximal_gain(protocol: local.UnaryEncoding, n: int, targets: int = 1) -> np.ndarray:
    """The attack of Cao, Jia and Gong: the target bits, and as many others as make the number of set bits usual."""
    bits = np.zeros((n, protocol.k), bool)
    bits[:, :targets] = True
    padding = int(protocol.p + (protocol.k - 1) * protocol.q) - targets
    order = np.random.default_rng().random((n, protocol.k - targets)).argsort(axis=1)
    bits[:, targets:] = order < padding
    return packed(bits)


def single_bit(protocol: local.UnaryEncoding, n: int) -> np.ndarray:
    """The same attack without disguise."""
    return protocol.encode(np.zeros(n, int))


def attacked(protocol: local.UnaryEncoding, crafted: np.ndarray, n: int = N) -> np.ndarray:
    honest = protocol.perturb(np.random.default_rng().integers(0, protocol.k, n - len(crafted)))
    return np.concatenate([honest, crafted])


@pytest.mark.parametrize(("k", "p", "q"), [(2, 0.75, 0.25), (3, 0.5, 1e-9), (9, 0.999, 0.9), (13, 0.5, 0.27)])
def test_the_distribution(k, p, q):
    law = np.zeros(k + 1)
    for bits in itertools.product((0, 1), repeat=k):
        chances = [(p if i == 0 else q) if bit else (1 - p if i == 0 else 1 - q) for i, bit in enumerate(bits)]
        law[sum(bits)] += np.prod(chances)
    np.testing.assert_allclose(distribution(k, p, q), law, rtol=1e-12)


@pytest.mark.parametrize(("k", "p", "q"), [(128, 0.5, 0.27), (4096, 0.75, 0.25), (2**20, 0.5, 0.001)])
def test_the_distribution_of_many_bits(k, p, q):
    x = np.arange(k + 1)
    law = (1 - p) * binom.pmf(x, k - 1, q) + p * binom.pmf(x - 1, k - 1, q)
    np.testing.assert_allclose(distribution(k, p, q), law, rtol=1e-8, atol=1e-30)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 11, 500, 2001])
def test_the_chi_squared_tail(freedom):
    for x in (1e-9, 0.5, freedom, freedom + 6 * freedom**0.5, 3 * freedom + 50):
        with mpmath.workdps(50):
            exact = mpmath.gammainc(mpmath.mpf(freedom) / 2, mpmath.mpf(x) / 2, regularized=True)
        assert chi_squared_tail(x, freedom) == pytest.approx(float(exact), rel=1e-10)
    assert chi_squared_tail(0.0, freedom) == 1.0


@pytest.mark.parametrize("protocol", [PROTOCOL, WIDE, local.SymmetricUnaryEncoding(k=9, epsilon=4.0)], ids=repr)
def test_what_is_counted(protocol):
    reports = protocol.perturb(np.arange(10_000) % protocol.k)
    check = protocol.check_popcounts(reports)
    np.testing.assert_array_equal(check.observed, np.bincount(ones(reports), minlength=protocol.k + 1))
    assert (check.n, check.rejected) == (10_000, 0)
    assert check.expected.sum() == pytest.approx(10_000, rel=1e-12)
    mean = protocol.p + (protocol.k - 1) * protocol.q - check.share_without_bit * (protocol.p - protocol.q)
    assert check.expected @ np.arange(protocol.k + 1) == pytest.approx(10_000 * mean, rel=1e-12)
    for array in (check.observed, check.expected):
        assert not array.flags.writeable


def test_honest_reports_pass_whatever_the_values():
    for values in (np.zeros(N, int), np.full(N, 14), np.arange(N) % 15):
        assert PROTOCOL.check_popcounts(PROTOCOL.perturb(values)).p_value > FALSE_ALARM
    reports = local.UnaryEncoding(k=1000, p=0.4, q=0.123)
    assert reports.check_popcounts(reports.perturb(np.arange(N) % 1000)).p_value > FALSE_ALARM


def without_bits(protocol: local.UnaryEncoding, share: float, n: int = N) -> np.ndarray:
    """Reports of rows of which this share has no bit."""
    rows = protocol.encode(np.zeros(n, int))
    rows[: round(share * n)] = 0
    return protocol.perturb_encoded(rows)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("protocol", [PROTOCOL, WIDE], ids=repr)
def test_rows_without_a_bit_are_honest(protocol, share):
    check = protocol.check_popcounts(without_bits(protocol, share))
    assert check.p_value > FALSE_ALARM
    # The mean number of set bits alone would tell the share with this standard error or a smaller one.
    error = (protocol.k / 4 / N) ** 0.5 / (protocol.p - protocol.q)
    assert abs(check.share_without_bit - share) < 7 * error


@pytest.mark.parametrize(("attack", "share"), [(maximal_gain, 0.018), (single_bit, 0.0077)])
def test_crafted_reports_among_rows_without_a_bit_are_caught(attack, share):
    crafted = attack(PROTOCOL, round(share * N))
    caught = [
        PROTOCOL.check_popcounts(np.concatenate([without_bits(PROTOCOL, 0.1, N - len(crafted)), crafted])).p_value
        for _ in range(10)
    ]
    assert sum(p_value < 1e-6 for p_value in caught) >= 7


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("protocol", [PROTOCOL, WIDE], ids=repr)
def test_false_alarms_are_as_rare_as_the_p_value_says(protocol, share):
    batches, n, level = 2000, 1000, 0.01
    reports = np.random.default_rng().permutation(without_bits(protocol, share, batches * n)).reshape(batches, n, -1)
    alarms = sum(protocol.check_popcounts(batch).p_value <= level for batch in reports)
    # The chi-squared approximation is right within a tenth at this level.
    low, high = binom.ppf(FALSE_ALARM / 2, batches, 0.9 * level), binom.isf(FALSE_ALARM / 2, batches, 1.1 * level)
    assert low <= alarms <= high


# Which share of N reports is caught at a p-value of 1e-6, in nineteen of twenty collections: docs/guide/local_dp.md.
@pytest.mark.parametrize(
    ("protocol", "attack", "share"),
    [
        (PROTOCOL, maximal_gain, 0.014),
        (PROTOCOL, single_bit, 0.0057),
        (WIDE, maximal_gain, 0.0088),
        (WIDE, single_bit, 0.00063),
    ],
)
def test_crafted_reports_are_caught(protocol, attack, share):
    def caught(times: float) -> int:
        crafted = attack(protocol, round(times * share * N))
        return sum(protocol.check_popcounts(attacked(protocol, crafted)).p_value < 1e-6 for _ in range(10))

    # At 1.3 times that share a miss, and at 0.2 times a catch, was seen in at most 2 of 20,000 collections; so four of
    # ten are below the false-alarm rate.
    assert caught(1.3) >= 7
    assert caught(0.2) <= 3


def test_the_excess_shows_where_the_crafted_reports_are():
    check = WIDE.check_popcounts(attacked(WIDE, maximal_gain(WIDE, 3000)))
    assert np.argmax(check.observed - check.expected) == int(WIDE.p + 127 * WIDE.q)


def test_single_reports_that_are_suspicious_by_themselves():
    check = WIDE.check_popcounts(attacked(WIDE, np.concatenate([single_bit(WIDE, 2), packed(np.ones((3, 128), bool))])))
    law = check.expected
    assert law[: check.lowest].sum() <= 5e-4 < law[: check.lowest + 1].sum()
    assert law[check.highest + 1 :].sum() <= 5e-4 < law[check.highest :].sum()
    assert check.observed[: check.lowest].sum() >= 2
    assert check.observed[check.highest + 1 :].sum() >= 3
    assert check.p_value > FALSE_ALARM  # five of so many are no deviation of the whole


def test_what_it_cannot_notice():
    """False values, randomised by the protocol, and target bits among a number of bits drawn from the right law."""
    lies = PROTOCOL.perturb(np.zeros(N, int))
    assert PROTOCOL.check_popcounts(lies).p_value > FALSE_ALARM
    assert PROTOCOL.estimate(lies).counts[0] > 0.9 * N
    popcounts = np.random.default_rng().choice(16, N, p=distribution(15, PROTOCOL.p, PROTOCOL.q))
    crafted = packed(np.arange(15) < popcounts[:, np.newaxis])
    assert PROTOCOL.check_popcounts(crafted).p_value > FALSE_ALARM
    with pytest.warns(DoubtfulInputWarning, match="some counts are far larger or smaller"):
        assert PROTOCOL.estimate(crafted).counts[0] > 2 * N, "more people than there are"


def test_malformed_reports_are_left_out():
    reports = PROTOCOL.perturb(np.zeros(1000, int))
    reports[:7, 1] |= 0x80
    check = PROTOCOL.check_popcounts(reports)
    assert (check.n, check.rejected) == (993, 7)
    np.testing.assert_array_equal(check.observed, np.bincount(ones(reports[7:]), minlength=16))


def test_arrow_data():
    pa = pytest.importorskip("pyarrow")
    reports = PROTOCOL.perturb(np.zeros(1000, int))
    column = pa.array([bytes(row) for row in reports] + [None, b"too long"])
    check = PROTOCOL.check_popcounts(column)
    assert (check.n, check.rejected) == (1000, 2)
    np.testing.assert_array_equal(check.observed, PROTOCOL.check_popcounts(reports).observed)


def test_many_blocks():
    protocol = local.OptimizedUnaryEncoding(k=2**16, epsilon=3.0)
    reports = np.tile(protocol.perturb(np.zeros(50, int)), (50, 1))  # more than one block of 16 MiB
    np.testing.assert_array_equal(
        protocol.check_popcounts(reports).observed, np.bincount(ones(reports), minlength=2**16 + 1)
    )


@pytest.mark.parametrize("n", [0, 1, 40])
def test_too_few_reports_say_nothing(n):
    check = PROTOCOL.check_popcounts(single_bit(PROTOCOL, n))
    assert (check.p_value, check.degrees_of_freedom, check.n) == (1.0, 0, n)


def test_reports_that_cannot_be_checked():
    with pytest.raises(ParameterError, match=re.escape("reports must have shape (n, 2), got (3, 3)")):
        PROTOCOL.check_popcounts(np.zeros((3, 3), np.uint8))
    with pytest.raises(TypeError, match="reports must be a NumPy array of dtype uint8"):
        PROTOCOL.check_popcounts(np.zeros((3, 2)))
