"""A million people from end to end: who takes part, and what is released.

Correct code is rejected with a probability below 1e-9 in all.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from dpnoise import local

PEOPLE = 10**6
ALARM = 1e-12
PROTOCOL = local.SampleAndThreshold(epsilon=1.0, delta=1e-8, threshold=20)


def collected(rate: float) -> tuple[dict[str, int], local.ThresholdEstimate]:
    """Let people with a rate of their own take part, and release what they report, counted in parts."""
    counts = np.minimum(PEOPLE // 10, (PEOPLE / 8 / np.arange(1, 2000)).astype(int)).tolist()
    truth = {f"text {i}": count for i, count in enumerate(counts)}
    truth |= {f"rare {i}": 1 for i in range(PEOPLE - sum(counts))}
    people = [text for text, count in truth.items() for _ in range(count)]
    devices = local.SampleAndThreshold(epsilon=1.0, threshold=20, sample_rate=rate)
    total = PROTOCOL.accumulator()
    for start in range(0, PEOPLE, 2**18):
        part = PROTOCOL.accumulator()
        part.add(devices.sample(people[start : start + 2**18]))
        total.merge(part)
    return truth, PROTOCOL.release(total, level=0.99)


def p_value(truth: dict[str, int], released: local.ThresholdEstimate) -> float:
    """The smallest p-value of the counts of the texts that are released surely, times the number of tests."""
    surely = {text: count for text, count in truth.items() if count >= PROTOCOL.visible_from(1 - 1e-15)}
    found = dict(zip(released.values, released.reports.tolist(), strict=True))
    observed = np.array([found.get(text, 0) for text in surely])
    law = stats.binom(np.array(list(surely.values())), PROTOCOL.sample_rate)
    return float(2 * len(surely) * np.minimum(law.cdf(observed), law.sf(observed - 1)).min())


def test_a_million_people() -> None:
    truth, released = collected(PROTOCOL.sample_rate)
    assert p_value(truth, released) > ALARM
    assert released.reports.min() >= 20
    assert all(truth[text] >= 20 for text in released.values)
    # Of about 440 texts that are released surely, as many intervals hold as they should.
    counts = np.array([truth[text] for text in released.values])
    surely = counts >= PROTOCOL.visible_from(1 - 1e-15)
    covered = (released.lower <= counts) & (counts <= released.upper)
    assert surely.sum() > 300
    assert stats.binom.cdf(covered[surely].sum(), surely.sum(), 0.98) > ALARM


def test_another_rate_is_noticed() -> None:
    """The positive control: it is missed with a probability below 1e-12."""
    assert p_value(*collected(1.1 * PROTOCOL.sample_rate)) < ALARM
