"""The audit of whole runs with correlated noise, on the worst example, and of faults in them.

Faults that lose next to no privacy are not seen here. Rounding half to even is caught by the exact differences of
neighbours in tests/vectors, and a lost history there, too, and by the covariance in tests/statistical.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from vectors.correlated_noise_spec import BITS, Rounding, fresh_noise, half_to_even, half_up, noise, shifts

from dpnoise import audit, samplers
from dpnoise.hazmat import SeededRng
from dpnoise.sgd import (
    BandedToeplitz,
    CorrelatedGradient,
    CyclicPoisson,
    MinSeparation,
    SingleEpoch,
    epsilon_spent,
    poisson_sample,
)

Participation = SingleEpoch | MinSeparation | CyclicPoisson
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

N = 100_000
LEVEL = 1 - 1e-9
DELTA = 0.01
ROW = 2**14  # a number of the example's gradient, in steps of the grid
CLAIM = epsilon_spent(noise_multiplier=1.0, sample_rate=1.0, steps=1, delta=DELTA)


def changes(numerators: Sequence[int], pattern: Sequence[int], steps: int) -> list[int]:
    """Give what an example in these steps adds to what z is added to, in units."""
    return shifts(numerators, [ROW * (t in pattern) for t in range(steps)])


def size(numerators: Sequence[int], pattern: Sequence[int], steps: int) -> float:
    return math.sqrt(sum(change**2 for change in changes(numerators, pattern, steps)))


def lower_bound(mechanism: Callable[[Flags], Floats]) -> float:
    """Audit a mechanism that tells of many runs whether the example is there."""
    report = audit.epsilon_lower_bound(mechanism, False, True, n=N, delta=DELTA, level=LEVEL, vectorized=True)
    return report.epsilon


# --- the mechanism itself ------------------------------------------------------------------------------------------

STEPS = 8
OTHERS = np.array([[-64], [32], [16]]) * 2.0**-16


class Attack:
    """Runs with the worst example or without it, as the likelihood ratios that an attacker computes from them.

    The attacker knows all other examples and the steps in which this one may take part. Each coordinate of a run is a
    run of its own: the 65,536 numbers of a row are 2**-8 each, or 0 in the runs without the example, which makes a norm
    of 1; and the noise of each is 2**-8 of what hides the whole row.
    """

    def __init__(
        self,
        coefficients: Sequence[float],
        participation: Participation,
        events: list[list[int]],
        rng: SeededRng | None = None,
    ) -> None:
        strategy = BandedToeplitz(coefficients, steps=STEPS)
        self.mechanism = CorrelatedGradient(
            strategy=strategy,
            clip_norm=1.0,
            noise_multiplier=2.0**-8,
            expected_batch_size=1.0,
            participation=participation,
        )
        self.rate, self.events, self.rng = participation.sample_rate, events, rng
        self.variance = (strategy.sensitivity(participation) * ROW * 2**BITS) ** 2
        self.changes = [changes(strategy._numerators, event, STEPS) for event in events]
        self.claim = epsilon_spent(
            noise_multiplier=1.0, sample_rate=self.rate, steps=participation.events(STEPS), delta=DELTA
        )

    def __call__(self, present: Flags) -> Floats:
        others = np.repeat(OTHERS, present.size, axis=1)
        batches = [others] * STEPS
        for event in self.events:
            row = np.zeros((1, present.size))
            row[0, poisson_sample(present.size, self.rate, rng=self.rng)] = 2.0**-8
            for t in event:
                batches[t] = np.vstack([others, row * present])
        units = (self.mechanism.release(batches, rng=self.rng) - others.sum(axis=0)) * 2.0 ** (22 + BITS)
        z = np.array(fresh_noise(self.mechanism.strategy._numerators, units.astype(np.int64)))
        losses = ((np.array(v) @ z - sum(one**2 for one in v) / 2) / self.variance for v in self.changes)
        ratios: Floats = sum(np.log1p(self.rate * np.expm1(loss)) for loss in losses)
        return ratios


ATTACKS = {
    "independent": ([1.0], SingleEpoch(), [[3]]),
    "single epoch": ([1.0, 0.75, 0.5], SingleEpoch(), [[0]]),
    "separated": ([1.0, 0.75, 0.5], MinSeparation(3), [[0, 3, 6]]),
    "overlapping": ([1.0, 0.75, 0.5, 0.5, 0.5], MinSeparation(2, max_participations=3), [[0, 2, 4]]),
    "cyclic": ([1.0, 0.75, 0.5, 0.5], CyclicPoisson(4, sample_rate=0.5), [[0], [4]]),
    "cyclic, all": ([1.0, 0.75], CyclicPoisson(2, sample_rate=1.0), [[0], [2], [4], [6]]),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_run_loses_no_more_than_it_claims(name: str) -> None:
    attack = Attack(*ATTACKS[name])
    assert 0.5 * attack.claim < lower_bound(attack) <= attack.claim, "and the experiment has some power"


MISUSED = {
    "a band wider than the separation": ([1.0] * 4, MinSeparation(4), [[0, 1, 2, 3]]),
    "one participation too many": ([1.0, 0.5], MinSeparation(2, max_participations=1), [[0, 2]]),
    "coins that are tossed once": ([1.0, 0.5], CyclicPoisson(2, sample_rate=0.125), [[0, 2, 4, 6]]),
}


@pytest.mark.parametrize("name", MISUSED)
def test_participations_that_are_not_accounted_for_are_found(name: str) -> None:
    """From the same noise every time: the power is not a matter of luck."""
    attack = Attack(*MISUSED[name], rng=SeededRng(1))
    assert lower_bound(attack) > 1.1 * attack.claim


# --- planted faults, in the specification --------------------------------------------------------------------------


class Fault:
    """Runs of numbers with the noise for a sensitivity of ``accounted``, and an example in the steps of ``pattern``."""

    def __init__(
        self,
        numerators: Sequence[int],
        pattern: Sequence[int],
        steps: int,
        *,
        accounted: float,
        rounding: Rounding = half_up,
        resumed: int = 0,
    ) -> None:
        self.numerators, self.steps, self.rounding, self.resumed = numerators, steps, rounding, resumed
        self.sigma, self.rng = accounted, SeededRng(1)
        self.row = np.array([[ROW << BITS] if t in pattern else [0] for t in range(steps)])
        self.change = np.array(changes(numerators, pattern, steps), np.float64) / accounted

    def __call__(self, present: Flags) -> Floats:
        """Release as many runs as there are flags."""
        z = samplers.discrete_gaussian(self.sigma, size=(self.steps, len(present)), rng=self.rng)
        parts = [z[: self.resumed], z[self.resumed :]]  # a history of zeros begins the second part
        x = np.array([w for part in parts for w in noise(self.numerators, part, self.rounding)]) + self.row * present
        seen: Floats = self.change @ np.array(fresh_noise(self.numerators, x, self.rounding))
        return seen


ONE = 2**BITS
COMB = [ONE, 0, 0, 0] * 3 + [ONE]
BOX = [ONE] * 4
BOX_SIZE = size(BOX, range(4), 7)


def test_coefficients_that_increase_are_found() -> None:
    """Past the check of the constructor: what the formula takes for the worst pattern is not."""
    formula = size(COMB, range(4), 28)
    assert lower_bound(Fault(COMB, range(0, 16, 4), 28, accounted=formula)) > 1.1 * CLAIM


HARMLESS = {
    "no fault": Fault(BOX, range(4), 7, accounted=BOX_SIZE),
    "half to even": Fault(BOX, range(4), 7, accounted=BOX_SIZE, rounding=half_to_even),
    "a history that is lost": Fault(BOX, range(4), 7, accounted=BOX_SIZE, resumed=4),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_faults_that_lose_no_privacy_are_not_found(name: str) -> None:
    assert 0.3 * CLAIM < lower_bound(HARMLESS[name]) <= CLAIM
