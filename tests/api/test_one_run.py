"""Audits in one run: the theorem against all mechanisms, its coverage in fractions, and planted faults."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from dpnoise import ParameterError, audit, local, samplers, sgd

ODDS = 3  # of a right guess under a pure epsilon of log 3
EPSILON = math.log(ODDS)


def shown(right: int, guesses: int, canaries: int, delta: Any = 0.0, level: float = 0.95) -> float:
    """Return the bound of an audit with so many right guesses."""
    scores = np.arange(canaries)
    coins = scores >= canaries // 2
    guessed = np.r_[0 : guesses // 2, canaries - (guesses - guesses // 2) : canaries]
    coins[guessed[right:]] ^= True
    report = audit.one_run(coins, scores, guesses=guesses, delta=delta, level=level)
    assert (report.right, report.guesses, report.canaries) == (right, guesses, canaries)
    return report.epsilon


# --- the theorem -----------------------------------------------------------------------------------------------------


def slack(guesses: int) -> float:
    """Return what the theorem adds for each canary and delta: how often half of so many fair coins are heads."""
    half = guesses // 2
    return math.comb(2 * half, half) / 4**half


def most_likely(right: int, guesses: int, canaries: int, delta: float) -> float:
    """Maximise the probability of so many right guesses over all (log 3, delta)-private mechanisms that guess."""
    data = list(itertools.product((-1, 1), repeat=canaries))
    outcomes = [signs for signs in itertools.product((-1, 0, 1), repeat=canaries) if np.count_nonzero(signs) == guesses]
    hits = (np.array(data)[:, None] == np.array(outcomes)).sum(axis=2) >= right
    pairs = [(i, j) for i, x in enumerate(data) for j, y in enumerate(data) if np.not_equal(x, y).sum() == 1]
    # The variables are the probabilities of outcomes, and for each pair and outcome an excess; these add up to delta.
    each, few, many = sparse.identity(len(outcomes)), np.ones((1, len(outcomes))), len(pairs)
    differences = sparse.lil_matrix((many, len(data)))
    for row, (i, j) in enumerate(pairs):
        differences[row, i], differences[row, j] = 1, -ODDS
    within = sparse.bmat(
        [
            [sparse.kron(differences, each), -sparse.identity(many * len(outcomes))],
            [None, sparse.kron(sparse.identity(many), few)],
        ]
    )
    ones = sparse.hstack(
        [sparse.kron(sparse.identity(len(data)), few), sparse.csr_matrix((len(data), many * hits[0].size))]
    )
    objective = np.concatenate([hits.ravel() / -len(data), np.zeros(many * len(outcomes))])
    limits = np.concatenate([np.zeros(many * len(outcomes)), np.full(many, delta)])
    found = optimize.linprog(objective, within, limits, ones, np.ones(len(data)))
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("delta", [0.0, 0.001, 0.05])
def test_no_mechanism_does_better(delta: float) -> None:
    exceeds_without_canaries, exceeds_without_delta = False, False
    for canaries, guesses in itertools.combinations_with_replacement((4, 3, 2, 1), 2):
        for right in range(1, guesses + 1):
            most = most_likely(right, guesses, canaries, delta)
            independent = float(stats.binom.sf(right - 1, guesses, ODDS / (1 + ODDS)))
            assert independent - 1e-7 <= most <= independent + canaries * delta * slack(guesses) + 1e-7
            exceeds_without_canaries |= most > independent + delta * slack(guesses) + 1e-4
            exceeds_without_delta |= most > independent + 1e-4
    assert exceeds_without_canaries == exceeds_without_delta == (delta > 0)


def false_alarms(canaries: int, guesses: int, delta: Any, level: float, given: Any) -> list[Fraction]:
    """Enumerate how often a true claim is refuted: randomised response, and a coin that shows some canaries.

    All of them are shown, or all but one, and so on, each as often as delta permits. The audit is ``given`` a delta.
    """
    p, alarms = Fraction(ODDS, 1 + ODDS), []
    refutes = [shown(right, guesses, canaries, given, level) > EPSILON for right in range(guesses + 1)]

    def chance(known: int) -> Fraction:
        left = guesses - known
        chances = [math.comb(left, k) * p**k * (1 - p) ** (left - k) for k in range(left + 1)]
        return sum((chances[k] for k in range(left + 1) if refutes[known + k]), Fraction(0))

    for many in range(1, canaries + 1):
        coin = min(Fraction(1), canaries * Fraction(delta) / many)
        alarms.append((1 - coin) * chance(0) + coin * chance(min(many, guesses)))
    return alarms


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_bound_holds_as_often_as_promised(level: float) -> None:
    alarm, delta = 1 - Fraction(level), (1 - Fraction(level)) / 6

    def most(given: Fraction) -> Fraction:
        return max(max(false_alarms(30, guesses, delta, level, given)) for guesses in range(10, 31))

    assert alarm / 3 < most(delta) <= alarm
    # Controls: without the delta, and without the number of canaries, it does not.
    assert most(Fraction(0)) > alarm
    assert most(delta / 30) > alarm


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-4])
def test_it_is_the_bound_of_clopper_and_pearson_with_less_error(delta: float) -> None:
    for right, guesses in ((9, 10), (150, 200), (200, 200), (60_000, 100_000)):
        canaries = max(guesses, 1000)
        alarm = 0.05 - canaries * delta * slack(guesses)
        p = stats.beta.ppf(alarm, right, guesses - right + 1)
        epsilon = math.log(p / (1 - p))
        assert epsilon * 0.97 <= shown(right, guesses, canaries, delta) <= epsilon


def test_few_right_guesses_or_a_large_delta_show_nothing() -> None:
    assert shown(100, 200, 200) == shown(0, 10, 10) == shown(10, 10, 1000, delta=0.5) == 0.0


def test_the_best_of_many_numbers_of_guesses_is_no_audit() -> None:
    tried, canaries, p = range(20, 1001, 20), 1000, ODDS / (1 + ODDS)

    def refuted_by_best(level: float) -> float:
        """Enumerate the guesses, the surest first, and stop at the first refutation."""
        chances = np.zeros(canaries + 1)
        chances[0] = 1.0
        for r in range(1, canaries + 1):
            chances[1:] = chances[1:] * (1 - p) + chances[:-1] * p
            chances[0] *= 1 - p
            if r in tried:
                bounds = partial(shown, guesses=r, canaries=canaries, level=level)
                chances[bisect_right(range(r + 1), EPSILON, key=bounds) :] = 0.0
        return float(1 - chances.sum())

    assert 0.2 < refuted_by_best(0.95) < 0.25
    assert refuted_by_best(1 - 0.05 / len(tried)) < 0.05


# --- planted faults --------------------------------------------------------------------------------------------------

DELTA = 1e-5
CLAIM = sgd.epsilon_spent(noise_multiplier=2.0, sample_rate=1.0, steps=1, delta=DELTA)


def noisy(noise_multiplier: float, clip_norm: float = 1.0) -> sgd.NoisyGradient:
    return sgd.NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=100)


FAULTS: dict[str, Callable[[Any], Any]] = {
    "no noise": lambda gradients: np.minimum(gradients, 1.0).sum(axis=0),
    "a tenth of the noise": noisy(0.2).release,
    "no clipping": noisy(0.5, clip_norm=4.0).release,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_gross_faults_of_sgd_are_found(fault: str) -> None:
    assert audit.one_run_of_sgd(FAULTS[fault], clip_norm=1.0, delta=DELTA).epsilon > CLAIM


def test_sgd_without_a_fault_is_not_refuted() -> None:
    run: Any = {"sample_rate": 0.5, "steps": 2, "delta": 1e-12}
    report = audit.one_run_of_sgd(noisy(8.0), level=1 - 1e-9, **run)
    assert report.epsilon <= sgd.epsilon_spent(noise_multiplier=8.0, **run) < report.ceiling


def test_coins_that_the_scores_know_are_found() -> None:
    coins = samplers.bernoulli(0.5, size=1000)
    report = audit.one_run(coins, coins.astype(float), guesses=200, delta=DELTA)
    assert report.right == 200
    assert report.epsilon == report.ceiling > 4.1


def test_what_a_step_of_sgd_is_given() -> None:
    seen: list[np.ndarray] = []

    def step(gradients: np.ndarray) -> np.ndarray:
        seen.append(gradients)
        return gradients.sum(axis=0)

    report = audit.one_run_of_sgd(step, clip_norm=0.5, delta=DELTA, sample_rate=0.9, steps=40)
    assert (report.right, len(seen)) == (200, 40)
    present = {*np.concatenate([np.flatnonzero(batch.any(axis=0)) for batch in seen]).tolist()}
    assert 350 < len(present) < 650
    for batch in seen:
        assert np.array_equal(batch.max(axis=1), batch.sum(axis=1))
        assert np.all(batch.sum(axis=0)[[*present]] <= 2.0)
        assert 0.7 * len(present) < len(batch) < len(present)


# --- local reports, and what is refused ------------------------------------------------------------------------------


def test_reports_that_speak_for_neither_value_are_no_guesses() -> None:
    protocol = local.GeneralizedRandomizedResponse(k=10, epsilon=2.0)
    coins = samplers.bernoulli(0.5, size=20_000)
    reports = protocol.perturb(coins.astype(int))[:, 0]
    report = audit.one_run(coins, 1.0 * (reports == 1) - (reports == 0), guesses=None, level=1 - 1e-9)
    assert report.guesses == np.count_nonzero(reports <= 1)
    assert 1.5 < report.epsilon <= 2.0
    nothing = audit.one_run(coins, np.zeros(20_000), guesses=None)
    assert (nothing.guesses, nothing.epsilon, nothing.ceiling) == (0, 0.0, 0.0)


def test_the_text_shows_no_more_than_the_bound() -> None:
    report = audit.OneRun(0.99996, 0.0, 0.95, 1000, 200, 150, 4.18986)
    assert str(report).splitlines() == [
        "epsilon is at least 0.9999 at delta = 0, with a confidence of 95 %",
        "150 of 200 guesses about 1,000 canaries were right; 4.1898 is the most that so many guesses can show",
    ]


def never(gradients: Any) -> Any:
    raise AssertionError("nothing may be released")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"coins": [0, 1, 1]},
            r"coins must be booleans, one for each of at least one canary, got int64 of shape \(3,\)",
        ),
        ({"coins": np.zeros(0, bool)}, r"coins must be booleans, .* got bool of shape \(0,\)"),
        ({"scores": [1.0, 2.0]}, r"scores must have the shape of the coins, \(3,\), got \(2,\)"),
        ({"scores": [1.0, math.nan, 2.0]}, "scores must not be NaN"),
        ({"scores": ["a", "b", "c"]}, "scores must be real numbers"),
        ({"guesses": 4}, "guesses must be an integer from 1 to 3, got 4"),
        ({"guesses": 0.5}, "guesses must be an int, got float"),
        ({"guesses": None}, "guesses must be given for a positive delta, got None for 0.1"),
        ({"delta": 1.0}, "delta must be from 0 up to, but not including, 1, got 1.0"),
        ({"level": 1.0}, "level must be between 0 and 1, exclusive, got 1.0"),
    ],
)
def test_bad_parameters(changed: dict[str, Any], message: str) -> None:
    arguments = {"coins": [True, False, True], "scores": [1.0, 2.0, 3.0], "guesses": 2, "delta": 0.1, **changed}
    with pytest.raises((ParameterError, TypeError), match=message):
        audit.one_run(**arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mechanism": 3}, "mechanism must be callable, or have a method release, got int"),
        ({"mechanism": sgd.NoisyGradient}, "mechanism must be callable, or have a method release, got type"),
        ({"clip_norm": None}, "clip_norm must be given for a mechanism without an attribute clip_norm, got None"),
        ({"clip_norm": "1"}, "clip_norm must be a number, got str"),
        ({"clip_norm": -1.0}, "clip_norm must be positive and finite, got -1.0"),
        ({"sample_rate": 0.0}, "sample_rate must be above 0 and at most 1, got 0.0"),
        ({"steps": 0}, "steps must be an integer from 1"),
        ({"canaries": 10**6}, "canaries must be an integer from 1 to 16384, got 1000000"),
        ({"guesses": 2000}, "guesses must be an integer from 1 to 1000, got 2000"),
        ({"delta": -0.1}, "delta must be from 0 up to, but not including, 1, got -0.1"),
        ({"mechanism": lambda gradients: gradients}, r"mechanism must return 1000 numbers, got an array of shape"),
        ({"mechanism": lambda _: np.full(1000, math.nan)}, "mechanism must return numbers that add up .* got NaN"),
    ],
)
def test_bad_parameters_of_sgd(changed: dict[str, Any], message: str) -> None:
    arguments = {"mechanism": never, "clip_norm": 1.0, "delta": 0.1, **changed}
    with pytest.raises((ParameterError, TypeError), match=message):
        audit.one_run_of_sgd(**arguments)
