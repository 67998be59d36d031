"""Decoding RAPPOR: bias, intervals and false discoveries over a thousand collections.

A correct decoder is rejected with a probability of 1e-11 by each check, if errors are taken as normal; each check is
also run on a planted fault, which it must find. ``pytest -rP`` shows the figures.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnoise import local

pytestmark = pytest.mark.long

ALARM = 1e-11
# A mean error of 0.42 standard deviations of one count is found with a power of 1 - 1e-9.
REPETITIONS = 1000
LEVEL = 0.95
TRUTH = np.array([800, 400, 400, 200, 160])
TEXTS = ["plum", "pear", "quince", "fig", "apple"]
ABSENT = [f"absent {i}" for i in range(60)]
FLIPS = {"f": 0.05, "p": 0.1, "q": 0.9}
NOISY = {"f": 0.1, "p": 0.2, "q": 0.8}
SHAPES = {
    "few bits": {"num_bloombits": 32, "num_hashes": 2, "num_cohorts": 16, **FLIPS},
    "one hash": {"num_bloombits": 16, "num_hashes": 1, "num_cohorts": 32, **FLIPS},
    "more noise": {"num_bloombits": 64, "num_hashes": 2, "num_cohorts": 16, **NOISY},
}


@dataclass
class Collections:
    """Of all collections the counts, which intervals hold the true ones, and whether an absent text is significant."""

    counts: NDArray[np.float64]
    held: NDArray[np.bool_]
    false: NDArray[np.bool_]


def collections(name: str, repetitions: int = REPETITIONS, **sent: float) -> Collections:
    """Collect reports, made with other probabilities if some are given."""
    rappor = local.Rappor(**SHAPES[name])
    sender = local.Rappor(**{**SHAPES[name], **sent})
    texts = np.repeat(TEXTS, TRUTH).tolist()
    found = Collections(
        np.zeros((repetitions, TRUTH.size)), np.zeros((repetitions, TRUTH.size), bool), np.zeros(repetitions, bool)
    )
    for row in range(repetitions):
        reports = sender.perturb(texts, local.ClientMemo.generate(len(texts)), question="fruit", threads=1)
        estimate = rappor.estimate(reports, [*TEXTS, *ABSENT], level=LEVEL)
        for i, text in enumerate(estimate.candidates):
            if text in TEXTS:
                at = TEXTS.index(text)
                found.counts[row, at] = estimate.counts[i]
                found.held[row, at] = estimate.lower[i] <= TRUTH[at] <= estimate.upper[i]
            else:
                found.false[row] |= estimate.significant[i]
    return found


honest = functools.cache(collections)


def bias(found: Collections) -> NDArray[np.float64]:
    """The z-scores of the mean errors."""
    deviations = found.counts.std(axis=0, ddof=1) / np.sqrt(len(found.counts))
    return (found.counts.mean(axis=0) - TRUTH) / deviations


def intervals_hold(found: Collections) -> bool:
    """Whether as many intervals hold as should, if their probability is within 0.02 of the level."""
    times, tail = found.held.sum(axis=0), ALARM / (2 * TRUTH.size)
    least, most = (
        stats.binom(len(found.held), LEVEL - 0.02).ppf(tail),
        stats.binom(len(found.held), LEVEL + 0.02).isf(tail),
    )
    return bool(np.all((least <= times) & (times <= most)))


def discoveries_are_true(found: Collections) -> bool:
    """Whether absent texts are significant in no more collections than promised."""
    return bool(found.false.sum() <= stats.binom(len(found.false), 1.0 - LEVEL).isf(ALARM))


@pytest.mark.parametrize("name", SHAPES)
def test_counts_are_unbiased_and_intervals_hold(name: str) -> None:
    found = honest(name)
    z, shares = bias(found), found.held.mean(axis=0)
    print(f"{name}: z-scores of the mean errors from {z.min():.2f} to {z.max():.2f}")
    print(f"{name}: {shares.min():.3f} to {shares.max():.3f} of the intervals hold")
    assert np.abs(z).max() < stats.norm.isf(ALARM / (2 * TRUTH.size))
    assert intervals_hold(found)


@pytest.mark.parametrize("name", SHAPES)
def test_texts_that_nobody_has_are_rarely_significant(name: str) -> None:
    found = honest(name)
    print(f"{name}: an absent text is significant in {found.false.mean():.3f} of the collections")
    assert discoveries_are_true(found)


@pytest.mark.parametrize("name", SHAPES)
def test_another_permanent_round_is_found(name: str) -> None:
    """The planted fault: clients that flip less than the collector thinks."""
    found = collections(name, 150, f=0.4 * SHAPES[name]["f"])
    assert np.abs(bias(found)).max() > stats.norm.isf(ALARM / (2 * TRUTH.size))


def unlisted(num_cohorts: int, num_bloombits: int = 32) -> Collections:
    """Collect where most people have a text that is not listed; texts, and so Bloom filters, are others each time."""
    rappor = local.Rappor(num_bloombits=num_bloombits, num_hashes=2, num_cohorts=num_cohorts, **FLIPS)
    found = Collections(np.zeros((0, 4)), np.zeros((0, 4), bool), np.zeros(300, bool))
    for row in range(found.false.size):
        texts = [f"{row} {i}" for i in range(64)]
        reports = rappor.perturb(
            np.repeat(texts[:4], [2000, 600, 600, 300]), local.ClientMemo.generate(3500), question="fruit", threads=1
        )
        estimate = rappor.estimate(reports, texts[1:], level=LEVEL)
        absent = [text not in texts[:4] for text in estimate.candidates]
        found.false[row] = estimate.significant[absent].any()
    return found


def test_a_frequent_text_that_is_not_listed_makes_no_others_significant() -> None:
    found = unlisted(16)
    print(f"not listed: an absent text is significant in {found.false.mean():.3f} of the collections")
    assert discoveries_are_true(found)


def test_three_cohorts_are_too_few_for_texts_that_are_not_listed() -> None:
    """The positive control, and why the documentation asks for enough of them."""
    assert not discoveries_are_true(unlisted(3, num_bloombits=16))


def test_texts_that_somebody_has_are_found_as_significant() -> None:
    """The positive control of false discoveries: texts that count as absent, and are not."""
    rappor = local.Rappor(**SHAPES["few bits"])
    present = Collections(np.zeros((0, 5)), np.zeros((0, 5), bool), np.zeros(30, bool))
    for row in range(30):
        texts = TEXTS * 300 + ABSENT[:1] * 150
        reports = rappor.perturb(texts, local.ClientMemo.generate(len(texts)), question="fruit", threads=1)
        estimate = rappor.estimate(reports, [*TEXTS, *ABSENT], level=LEVEL)
        absent = [text in ABSENT for text in estimate.candidates]
        present.false[row] = estimate.significant[absent].any()
    assert not discoveries_are_true(present)


def test_intervals_of_too_small_errors_are_found() -> None:
    """The positive control of intervals: those of a collector who takes two fifths of the errors for none."""
    found = honest("few bits")
    width = stats.norm.isf((1 - LEVEL) / 2) * found.counts.std(axis=0)
    short = Collections(found.counts, np.abs(found.counts - TRUTH) < 0.6 * width, found.false)
    assert not intervals_hold(short)
