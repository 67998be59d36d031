"""People who are asked again and again: what stays permanent, how it is distributed, and what averaging
brings to light.

Each check rejects a correct protocol with a probability of 1e-9 at most, and is also run on a planted fault. ``pytest
-rP`` shows the figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import local

pytestmark = pytest.mark.long

ALARM = 1e-9
PEOPLE = 100_000
K = 6
ENCODING = local.LongitudinalUnaryEncoding(k=K, epsilon_permanent=2.0, epsilon_first=1.0)
SYMMETRIC = local.LongitudinalUnaryEncoding(k=K, epsilon_permanent=2.0, epsilon_first=1.0, permanent="symmetric")

Perturb = Callable[[NDArray[np.int64], local.ClientMemo], NDArray[np.uint8]]


def bits(reports: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.unpackbits(reports, axis=1, bitorder="little")[:, :K].astype(float)


def forgetful(protocol: local.LongitudinalProtocol) -> Perturb:
    """A client whose permanent round is drawn anew at every call: the fault of multi-freq-ldpy."""
    return lambda values, memo: protocol.perturb(values, local.ClientMemo.generate(len(memo)), question="colour")


def guesses(perturb: Perturb, values: NDArray[np.int64], times: int) -> NDArray[np.int64]:
    """Guess the values of people by averaging many reports of each."""
    memo = local.ClientMemo.generate(len(values))
    total = sum(bits(perturb(values, memo)) for _ in range(times))
    return np.argmax(total, axis=1)


def most_successful(protocol: local.LongitudinalProtocol) -> float:
    """How often anybody guesses right who sees what is permanent, all values being equally likely."""
    epsilon = protocol.epsilon
    return float(np.exp(epsilon) / (np.exp(epsilon) + K - 1))


@pytest.mark.parametrize("protocol", [ENCODING, SYMMETRIC], ids=repr)
def test_averaging_reveals_what_is_permanent_and_no_more(protocol: local.LongitudinalUnaryEncoding) -> None:
    people, times = 2000, 400
    values = np.arange(people) % K
    limit = stats.binom.isf(ALARM, people, most_successful(protocol)) / people
    ours = float((guesses(partial(protocol.perturb, question="colour"), values, times) == values).mean())
    theirs = float((guesses(forgetful(protocol), values, times) == values).mean())
    print(f"{protocol!r}: of {people} people {ours:.4f} are guessed, {theirs:.4f} without memory; limit {limit:.4f}")
    assert ours < limit
    assert theirs > 0.99, "the positive control: without memory averaging reveals the value"


def rows_of_people(protocol: local.LongitudinalProtocol) -> NDArray[np.bool_]:
    """The reports on value 0 of people who have never been asked before."""
    reports = protocol.perturb(np.zeros(PEOPLE, int), local.ClientMemo.generate(PEOPLE), question="colour")
    return bits(reports) > 0.5


def row_p_value(rows: NDArray[np.bool_], p: float, q: float) -> float:
    """Whether all 2**K rows are as often as independent bits make them: a likelihood-ratio test.

    Its law is chi-squared within 3 % at 1e-9; that of Pearson's is not where 38 of a row are expected.
    """
    chances = np.array([p] + [q] * (K - 1))
    rows_ = np.arange(2**K)[:, None] >> np.arange(K) & 1
    law = np.prod(np.where(rows_, chances, 1 - chances), axis=1)
    observed = np.bincount(rows @ (1 << np.arange(K)), minlength=2**K)
    return float(stats.power_divergence(observed, len(rows) * law, lambda_="log-likelihood").pvalue)


@pytest.mark.parametrize("protocol", [ENCODING, SYMMETRIC, local.DBitFlip(k=K, d=K, epsilon=2.0)], ids=repr)
def test_rows_over_people_have_the_law_of_the_protocol(protocol: local.LongitudinalProtocol) -> None:
    """What comes from a pseudo-random function is as good as drawn; and a slightly different law is noticed."""
    rows = rows_of_people(protocol)
    p_value = row_p_value(rows, protocol.p, protocol.q)
    print(f"{protocol!r}: p-value {p_value:.3g}")
    assert p_value > ALARM
    # Missed with a probability below 1e-30.
    assert row_p_value(rows, protocol.p - 0.04, protocol.q) < ALARM


def test_the_permanent_answers_of_a_person_to_different_values_are_independent() -> None:
    """Of each person, the dBitFlip reports on two values; the positive control is one value asked twice."""
    protocol = local.DBitFlip(k=K, d=K, epsilon=2.0)
    memo = local.ClientMemo.generate(PEOPLE)
    spec = json.loads(protocol.to_json())
    p, q = spec["p"] / 2 ** spec["planes"], spec["q"] / 2 ** spec["planes"]

    def z_scores(value: int, other: int) -> NDArray[np.float64]:
        """Of the products of deviations from the mean, bit by bit."""
        chances = [np.where(np.arange(K) == of, p, q) for of in (value, other)]
        rows = [bits(protocol.perturb(np.full(PEOPLE, of), memo, question="colour")) for of in (value, other)]
        product = np.prod([row - chance for row, chance in zip(rows, chances, strict=True)], axis=0)
        spread = np.prod([np.sqrt(chance * (1 - chance)) for chance in chances], axis=0)
        z: NDArray[np.float64] = product.sum(axis=0) / (spread * np.sqrt(PEOPLE))
        return z

    limit = stats.norm.isf(ALARM / (2 * K))
    assert np.abs(z_scores(0, 1)).max() < limit
    assert np.abs(z_scores(0, 0)).min() > limit


def test_samples_are_uniform() -> None:
    """Each pair of sampled values is as frequent as any other, as far as the bits that are 1 show it."""
    protocol = local.DBitFlip(k=K, d=2, epsilon=2.0)
    spec = json.loads(protocol.to_json())
    q = spec["q"] / 2 ** spec["planes"]
    pairs = [(i, j) for i in range(1, K) for j in range(1, i)]  # without the value itself
    chance = q * q / (K * (K - 1) / 2)

    def z_scores(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        both = np.array([(rows[:, i] & rows[:, j]).sum() for i, j in pairs])
        z: NDArray[np.float64] = (both - PEOPLE * chance) / np.sqrt(PEOPLE * chance * (1 - chance))
        return z

    rows = rows_of_people(protocol)
    z, limit = z_scores(rows), stats.norm.isf(ALARM / (2 * len(pairs)))
    print(f"z-scores of pairs from {z.min():.2f} to {z.max():.2f}")
    assert np.abs(z).max() < limit
    rows[:, 2] = rows[:, 1]  # the positive control: two values that are only sampled together
    assert np.abs(z_scores(rows)).max() > limit
