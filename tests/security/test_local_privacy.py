"""What local differential privacy promises, checked exactly: fractions, enumerated randomness, no way round."""

import itertools
import json
import math
import multiprocessing
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from dpnoise import ParameterError, local
from dpnoise.hazmat import ScriptedRng

EPSILONS = [2.0**-20, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 32.0]


def report_probability(protocol: local.Protocol, value: int | None, report: tuple[int, ...]) -> Fraction:
    """Straight from the definition, with the exact probabilities of the specification; None is a row without a bit."""
    p, q = Fraction(protocol.p), Fraction(protocol.q)
    probability = Fraction(1)
    for position, bit in enumerate(report):
        one = (value == 1) if isinstance(protocol, local.RandomizedResponse) else (value == position)
        set_probability = p if one else q
        probability *= set_probability if bit else 1 - set_probability
    return probability


def worst_case(protocol: local.Protocol) -> Fraction:
    """The largest likelihood ratio over all pairs of values and all reports."""
    bits = 1 if isinstance(protocol, local.RandomizedResponse) else protocol.k
    ratio = Fraction(1)
    for report in itertools.product((0, 1), repeat=bits):
        likelihoods = [report_probability(protocol, value, report) for value in range(protocol.k)]
        ratio = max(ratio, max(likelihoods) / min(likelihoods))
    return ratio


def within(ratio: Fraction, epsilon: float) -> bool:
    """Whether ``ratio <= exp(epsilon)``, with 60 digits: far more than any two doubles are apart."""
    with mpmath.workdps(60):
        return bool(mpmath.mpf(ratio.numerator) / ratio.denominator <= mpmath.exp(mpmath.mpf(epsilon)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_case_is_within_epsilon(epsilon):
    for protocol in (
        local.OptimizedUnaryEncoding(k=3, epsilon=epsilon),
        local.SymmetricUnaryEncoding(k=3, epsilon=epsilon),
        local.RandomizedResponse(epsilon=epsilon),
    ):
        ratio = worst_case(protocol)
        assert within(ratio, protocol.epsilon)
        assert protocol.epsilon <= protocol.requested_epsilon == epsilon
        assert not within(ratio, 0.999 * epsilon), "and not needlessly private"


def direct_probability(protocol: local.Protocol, value: int, report: int) -> Fraction:
    """Straight from the definition, with the exact probability of the specification."""
    specification = json.loads(protocol.to_json())
    keep = Fraction(specification["keep"], 2 ** specification["planes"])
    return (1 - keep) / protocol.k + (keep if value == report else 0)


def direct_worst_case(protocol: local.Protocol) -> Fraction:
    """The largest likelihood ratio over all pairs of values and all reports."""
    table = [
        [direct_probability(protocol, value, report) for report in range(protocol.k)] for value in range(protocol.k)
    ]
    assert all(sum(row) == 1 for row in table)
    return max(max(column) / min(column) for column in zip(*table, strict=True))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 5, 16])
def test_the_worst_case_of_direct_reports_is_within_epsilon(k, epsilon):
    protocol = local.GeneralizedRandomizedResponse(k=k, epsilon=epsilon)
    ratio = direct_worst_case(protocol)
    assert within(ratio, protocol.epsilon)
    assert protocol.epsilon <= protocol.requested_epsilon == epsilon
    assert not within(ratio, 0.999 * epsilon), "and not needlessly private"
    assert not within(ratio, math.nextafter(protocol.epsilon, 0.0)), "announced as closely as a double can"


def test_a_direct_report_draws_what_is_proved():
    """Every coin once, and every index word once: exact shares, from Python to the loop."""
    protocol = local.GeneralizedRandomizedResponse(k=4, epsilon=1.0)  # no index word is rejected for a power of two
    specification = json.loads(protocol.to_json())
    assert specification["planes"] <= 16
    words = np.arange(1 << 16, dtype="<u2").reshape(-1, 1024)
    other = np.full_like(words, 0xFFFF)  # as a coin: replace; as an index word: the last value
    for value in range(3):
        values = np.full(1 << 16, value)
        coins = protocol.perturb(values, rng=ScriptedRng(np.hstack([words, other]).tobytes()))
        assert Fraction(int(np.sum(coins == value)), 1 << 16) == Fraction(
            specification["keep"], 2 ** specification["planes"]
        )
        assert np.isin(coins, [value, 3]).all()
        indices = protocol.perturb(values, rng=ScriptedRng(np.hstack([other, words]).tobytes()))
        assert np.bincount(indices.ravel()).tolist() == [1 << 14] * 4


def test_given_probabilities_are_within_their_epsilon():
    for p, q in ((0.75, 0.25), (0.5, 0.2689414), (0.9, 0.05), (0.31, 0.3)):
        protocol = local.UnaryEncoding(k=3, p=p, q=q)
        assert within(worst_case(protocol), protocol.epsilon)
        assert protocol.p <= p
        assert protocol.q >= q


def test_spending_twice_is_caught():
    """The positive control: a unary client that flips with the whole epsilon in each bit, as pure-LDP's once did."""
    honest = local.RandomizedResponse(epsilon=1.0)
    twice = local.UnaryEncoding(k=3, p=honest.p, q=honest.q)
    assert not within(worst_case(twice), 1.0)
    assert within(worst_case(twice), 2.0)


def distribution(protocol: local.UnaryEncoding, value: int | None) -> dict[int, int]:
    """How often each report comes when every random word is used once: two bits of a row, two planes of digits."""
    encoded = np.zeros((1, 1), np.uint8) if value is None else protocol.encode(value)
    # Row r has bits 8r and 8r + 1 of a tile; of 64 rows, the first 16 get the 16 combinations of four digits.
    planes = np.zeros((2, 64), np.uint8)
    for row, digits in enumerate(itertools.product((0, 1), repeat=4)):
        planes[0, row] = digits[0] | digits[1] << 1
        planes[1, row] = digits[2] | digits[3] << 1
    reports = protocol.perturb_encoded(np.repeat(encoded, 16, axis=0), rng=ScriptedRng(planes.tobytes()))
    if value is not None:
        assert np.array_equal(reports, protocol.perturb(np.full(16, value), rng=ScriptedRng(planes.tobytes())))
    found, times = np.unique(reports, return_counts=True)
    return dict(zip(found.tolist(), times.tolist(), strict=True))


def test_the_code_draws_the_distribution_that_is_proved():
    """From Python, through the binding, to the kernel: all randomness enumerated, the result exact."""
    protocol = local.UnaryEncoding(k=2, p=0.75, q=0.25)
    for value in (0, 1, None):
        expected = {
            first | second << 1: 16 * report_probability(protocol, value, (first, second))
            for first, second in itertools.product((0, 1), repeat=2)
        }
        assert distribution(protocol, value) == expected
    of_0, of_1, of_none = (distribution(protocol, value) for value in (0, 1, None))
    ratio = max(Fraction(of_0[r], of_1[r]) for r in range(4))
    assert within(ratio, protocol.epsilon)
    ratio = max(max(of_0[r], of_none[r]) / Fraction(min(of_0[r], of_none[r])) for r in range(4))
    assert ratio == Fraction(protocol.p) / Fraction(protocol.q) == 3


def test_randomised_response_draws_what_is_proved():
    protocol = local.RandomizedResponse.coin_flips()
    planes = np.zeros((2, 64), np.uint8)
    planes[0, 0], planes[1, 0] = 0b1010, 0b1100  # the words 0, 1, 2, 3
    for answer, yes in ((True, [1, 1, 1, 0]), (False, [1, 0, 0, 0])):
        reports = protocol.perturb(np.full(4, answer), rng=ScriptedRng(planes.tobytes()))
        assert reports.tolist() == yes


def test_every_report_is_possible_for_every_value():
    protocol = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
    seen = [set(protocol.perturb(np.full(20_000, value)).ravel().tolist()) for value in range(4)]
    assert all(reports == set(range(16)) for reports in seen)


def test_a_row_with_more_bits_does_not_get_through():
    """A row with all bits set against one with none would be told apart with k times the epsilon of a bit."""
    protocol = local.OptimizedUnaryEncoding(k=16, epsilon=1.0)
    for row in ([0xFF, 0xFF], [1, 1], [3, 0]):
        with pytest.raises(ParameterError, match="at most one"):
            protocol.perturb_encoded(np.array([row], np.uint8))


def test_messages_do_not_show_data():
    secret = 987_654
    of_values = [family for family in local.FAMILIES.values() if hasattr(family.protocol, "domain")]
    for protocol in [family.example() for family in of_values if not family.keeps_memo]:
        for values in (
            [secret],
            [secret, None],
            [float(secret)],
            [str(secret)],
            [[secret]],
            secret,
            [secret, [secret]],
        ):
            with pytest.raises((TypeError, ValueError)) as caught:
                protocol.perturb(values)
            assert not re.search(str(secret), str(caught.value))


def _reports(queue: multiprocessing.Queue) -> None:
    queue.put(local.OptimizedUnaryEncoding(k=1000, epsilon=1.0).perturb([1]).tobytes())


def test_forked_processes_and_calls_never_repeat_a_report():
    """125 random bytes each; state inherited by a fork would make them equal."""
    protocol = local.OptimizedUnaryEncoding(k=1000, epsilon=1.0)
    found = [protocol.perturb([1]).tobytes() for _ in range(20)]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_reports, args=(queue,)) for _ in range(4)]
    for child in children:
        child.start()
    found += [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert len(set(found)) == 24


def test_threads_never_repeat_a_part():
    reports = local.OptimizedUnaryEncoding(k=1000, epsilon=1.0).perturb(np.zeros(20_000, int), threads=4)
    assert len(np.unique(reports, axis=0)) == 20_000


WATCHED = """
import sys
import numpy as np
from dpnoise import local
protocol = local.OptimizedUnaryEncoding(k=128, epsilon=0.1)
values = np.arange(200_000) % 128
out = np.memmap(sys.argv[1], np.uint8, "r+", shape=(200_000, 16))
protocol.perturb(values, out=out, threads=1)
print("ready", flush=True)
while True:
    protocol.perturb(values, out=out, threads=1)
"""


def one_hot_rows(matrix: np.ndarray) -> int:
    return int(np.sum(np.unpackbits(matrix, axis=1).sum(axis=1) == 1))


def test_out_never_holds_what_is_not_randomised(tmp_path: Path) -> None:
    # Someone else may see the memory of `out`: at this epsilon a row of 128 bits has half of them set.
    path = tmp_path / "out"
    path.write_bytes(bytes(200_000 * 16))
    with subprocess.Popen([sys.executable, "-c", WATCHED, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = np.memmap(path, np.uint8, "r", shape=(200_000, 16))
        snapshots = [one_hot_rows(seen) for _ in range(60)]
        writer.kill()
    assert max(snapshots) == 0
    # Positive control: the encoding itself would be seen.
    assert one_hot_rows(local.OptimizedUnaryEncoding(k=128, epsilon=0.1).encode(np.arange(100))) == 100
