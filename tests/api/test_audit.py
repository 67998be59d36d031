"""The audit: any kind of outcome, reports in three forms, every refusal named."""

from __future__ import annotations

import io
import itertools
import json
import math
import random
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, is_dataclass
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpnoise import Laplace, ParameterError, audit, local, mechanisms, queries, stability
from dpnoise.audit import attacks
from dpnoise.audit._cases import CASES
from dpnoise.audit._clopper_pearson import lower_bound, nearest_pair, upper_bound
from dpnoise.audit._outcomes import outcomes_of
from dpnoise.audit._statistics import lowest_set_bit

ALARMS = [0.025, 1e-6, 1e-12]
FEW = 5000
SURE = 1 - 1e-10


# --- the bounds of Clopper and Pearson -----------------------------------------------------------------------------


def exact_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(X >= k) for a binomial X."""
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("alarm", ALARMS)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_bounds_are_safe_in_exact_arithmetic(n: int, alarm: float) -> None:
    for k in range(n + 1):
        lower, upper = Fraction(lower_bound(k, n, alarm)), Fraction(upper_bound(k, n, alarm))
        assert exact_tail(k, n, lower) <= Fraction(alarm) or k == 0
        assert exact_tail(n - k, n, 1 - upper) <= Fraction(alarm) or k == n
        # And not far from the best ones: further inward the alarm is exceeded.
        assert k == 0 or exact_tail(k, n, lower * Fraction(103, 100)) > alarm
        assert k == n or exact_tail(n - k, n, 1 - upper * Fraction(99, 100)) > alarm


@pytest.mark.parametrize("alarm", ALARMS)
@pytest.mark.parametrize("n", [100, 10_000, 500_000, 10**8])
def test_bounds_are_those_of_scipy_or_a_little_wider(n: int, alarm: float) -> None:
    for k in {0, 1, 2, 10, n // 1000, n // 3, n - n // 10, n - 1, n}:
        lower = stats.beta.ppf(alarm, k, n - k + 1) if k else 0.0
        upper = stats.beta.isf(alarm, k + 1, n - k) if k < n else 1.0
        # Robbins' bounds cost most, 0.5 % of the tail, where only one hit is counted.
        assert lower * 0.995 <= lower_bound(k, n, alarm) <= lower * (1 + 1e-8)
        assert upper * (1 - 1e-8) <= upper_bound(k, n, alarm) <= upper * 1.008


def wrong_bounds(delta: float, alarm: float) -> Fraction:
    """Enumerate ten trials: how often a pair has a larger quotient than the true one, and one above 1, at most."""
    n, shares = 10, [Fraction(i, 16) for i in (1, 3, 5, 8, 11, 13, 15)]
    chance = {p: [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)] for p in shares}

    def quotient(p: float | Fraction, q: float | Fraction) -> Fraction:
        return max(Fraction(1), (Fraction(p) - Fraction(delta)) / Fraction(q))

    counts = list(itertools.product(range(n + 1), repeat=2))
    found = {(k, other): quotient(*nearest_pair(k, other, n, delta, alarm)) for k, other in counts}
    return max(
        sum(chance[p][k] * chance[q][other] for k, other in counts if found[k, other] > quotient(p, q))
        for p, q in itertools.product(shares, repeat=2)
    )


@pytest.mark.parametrize("alarm", [0.05, 1e-3])
def test_a_pair_is_beyond_the_true_one_as_seldom_as_promised(alarm: float) -> None:
    assert wrong_bounds(0.0, alarm) <= Fraction(alarm)
    assert wrong_bounds(0.1, alarm) <= Fraction(alarm)
    # Pairs would be excluded whose product of tails is at most alarm, were it not for Fisher's logarithm.
    assert wrong_bounds(0.0, alarm * (1 - math.log(alarm))) > Fraction(alarm)


@pytest.mark.parametrize("hits", [(10_000, 3000), (500, 100), (900_000, 400_000)])
def test_a_pair_is_nearer_to_the_counts_than_a_bound_for_each(hits: tuple[int, int]) -> None:
    n, alarm, delta = 1_000_000, 1e-3, 1e-6
    p, q = nearest_pair(*hits, n, delta, alarm)
    separate = (lower_bound(hits[0], n, alarm / 2) - delta) / upper_bound(hits[1], n, alarm / 2)
    best = (hits[0] / n - delta) / (hits[1] / n)
    # In standard deviations of the logarithm of the quotient, of which a test that knew the direction would take 3.09.
    deviation = math.sqrt(sum(1 / k - 1 / n for k in hits))
    assert 3.09 < math.log(best / ((p - delta) / q)) / deviation < 3.65
    assert math.log(best / separate) / deviation > 4


# --- outcomes of any kind ------------------------------------------------------------------------------------------


def coin(p: float) -> bool:
    return random.random() < p


KINDS: dict[str, Callable[[bool], Any]] = {
    "bool": lambda answer: answer,
    "int": lambda answer: int(answer),
    "huge int": lambda answer: 10**400 + answer,
    "float": lambda answer: 0.1 if answer else -0.1,
    "NumPy scalar": lambda answer: np.float32(answer),
    "text": lambda answer: "yes" if answer else "no",
    "None or a number": lambda answer: None if answer else 3.5,
    "array": lambda answer: np.array([[0, 1], [int(answer), 7]]),
    "array or nothing": lambda answer: np.zeros(2) if answer else np.zeros(0),
    "tuple of texts": lambda answer: ("below",) * 2 + ("above",) * answer,
    "nested and ragged": lambda answer: [1, (2.0, "x")] + [[answer, None]] * 2,
    "NaN or infinity": lambda answer: math.nan if answer else math.inf,
    "mapping": lambda answer: {"a": 1.5, "b": answer} if answer else {"b": answer},
    "set": lambda answer: {1, 2} if answer else {2},
    "bytes": lambda answer: b"\x01" if answer else b"\x00",
    "fraction": lambda answer: Fraction(1 + answer, 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_outcome(kind: str) -> None:
    dress = KINDS[kind]
    # 3/4 against 1/4: an epsilon of log 3.
    report = audit.epsilon_lower_bound(lambda x: dress(coin(0.75 if x else 0.25)), True, False, n=FEW, level=SURE)
    assert 0.7 < report.epsilon < math.log(3)
    assert {report.hits, report.hits_prime} != {0}
    assert report.example is not None


def test_vectorized_mechanisms_give_arrays_or_sequences() -> None:
    def answers(x: np.ndarray) -> np.ndarray:
        return np.random.default_rng().random(x.shape) < np.where(x, 0.75, 0.25)

    for mechanism in (answers, lambda x: [str(answer) for answer in answers(x)]):
        report = audit.epsilon_lower_bound(mechanism, True, False, n=90_000, vectorized=True, level=SURE)
        assert 1.0 < report.epsilon < math.log(3)


def test_calls_are_as_promised() -> None:
    seen: list[tuple[int, ...]] = []

    def release(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return np.random.default_rng().random(len(x))

    audit.epsilon_lower_bound(release, [1.0, 2.0], [1.0, 3.0], n=300_001, vectorized=True)
    assert max(shape[0] for shape in seen) == 65_536
    assert sum(shape[0] for shape in seen) == 2 * 300_001
    assert {shape[1:] for shape in seen} == {(2,)}
    calls: list[int] = []
    audit.epsilon_lower_bound(lambda x: calls.append(x) or len(calls) % 7, 1, 2, n=101)
    assert (calls.count(1), calls.count(2)) == (101, 101)


def test_own_objects_are_mechanisms() -> None:
    assert 0.5 < audit.epsilon_lower_bound(Laplace(epsilon=1.0), 0.0, 1.0, n=FEW).epsilon < 1.2
    protocol = local.OptimizedUnaryEncoding(k=5, epsilon=1.0)
    assert 0.5 < audit.epsilon_lower_bound(protocol, 0, 1, n=FEW).epsilon < 1.2


@pytest.mark.parametrize("numbers", [[3, 4, -8, 0], [0.75, 1.0, -(2.0**-1074), 0.0, math.inf, 2.0**1000]])
def test_the_lowest_set_bit(numbers: list[float]) -> None:
    def exponent(number: float) -> int:
        if not math.isfinite(number) or number == 0:
            return 1024
        exact = Fraction(number)
        twos = abs(exact.numerator) & -abs(exact.numerator)
        return twos.bit_length() - exact.denominator.bit_length()

    assert lowest_set_bit(np.array(numbers)).tolist() == [exponent(number) for number in numbers]


def test_equal_outcomes_have_equal_codes() -> None:
    one, two = outcomes_of([1.5, None, 2.5]), outcomes_of([2.5, 1.5])
    assert one.codes[0] == two.codes[1]
    assert one.codes[2] == two.codes[0]
    assert one.patterns[0] == one.patterns[2] != one.patterns[1]
    rows = outcomes_of(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])).codes
    assert rows[0] == rows[2] != rows[1]


# --- what a bound means --------------------------------------------------------------------------------------------


def test_nothing_is_shown_of_a_mechanism_that_ignores_its_input() -> None:
    for ignorant in (lambda x: coin(0.5), lambda x: None, lambda x: (), lambda x: np.zeros(0), lambda x: math.nan):
        report = audit.epsilon_lower_bound(ignorant, 0, 1, n=FEW, level=SURE)
        assert report.epsilon == 0.0


def test_delta_is_taken_off() -> None:
    # With a probability of 1/10 the input is published.
    def leaky(x: int) -> int | None:
        return x if coin(0.1) else None

    shown = [
        audit.epsilon_lower_bound(leaky, 0, 1, n=20_000, delta=delta, level=SURE).epsilon for delta in (0.0, 0.05, 0.2)
    ]
    assert shown[0] > shown[1] > 1.0
    assert shown[2] == 0.0


def test_the_bound_holds_as_often_as_promised() -> None:
    # The event of randomised response is exact, so that only chance exceeds the bound: each probability is wrong in a
    # quarter of all audits at most, one of the two in half of them.
    protocol, audits = local.RandomizedResponse.coin_flips(), 200
    exceeded = sum(
        audit.epsilon_lower_bound(protocol, False, True, n=1000, level=0.5).epsilon > protocol.epsilon
        for _ in range(audits)
    )
    assert exceeded <= stats.binom.isf(1e-9, audits, 0.5)
    # Control: half of the claim is exceeded nearly always.
    assert audit.epsilon_lower_bound(protocol, False, True, n=1000, level=0.5).epsilon > protocol.epsilon / 2


# --- faults that take a million releases to find ---------------------------------------------------------------------


def rounded(noise: np.ndarray) -> np.ndarray:
    """Round to a grid, so that low-order bits say nothing."""
    return np.rint(noise * 2.0**40) / 2.0**40


def laplace_noise(rng: np.random.RandomState, x: np.ndarray) -> np.ndarray:
    return x + rounded(rng.laplace(0, 1, x.shape))


def gaussian_noise(share: float) -> Callable[[np.random.RandomState, np.ndarray], np.ndarray]:
    scale = share * mechanisms.Gaussian(epsilon=1.0, delta=1e-3).scale
    return lambda rng, x: x + rounded(rng.normal(0, scale, x.shape))


def sometimes_raw(rng: np.random.RandomState, x: np.ndarray) -> np.ndarray:
    return np.where(rng.random_sample(x.shape) < 1e-4, x, laplace_noise(rng, x))


def randomized_response(rng: np.random.RandomState, x: np.ndarray) -> np.ndarray:
    return np.where(rng.random_sample(x.shape) < math.e / (1 + math.e), x, 1 - x)


def is_refuted(release: Callable[[np.random.RandomState, np.ndarray], np.ndarray], delta: float, seed: int) -> bool:
    rng = np.random.RandomState(seed)  # whose numbers are the same with every version of NumPy
    return audit.check(
        lambda x: release(rng, x), 0.0, 1.0, n=10**6, epsilon=1.0, delta=delta, level=0.999, vectorized=True
    ).refuted


SLIGHT_FAULTS = {
    "a sigma that is 10 % too small": (gaussian_noise(0.9), 1e-3),
    "the raw value, with a probability of 1e-4": (sometimes_raw, 0.0),
}
RIGHT = {
    "Gaussian": (gaussian_noise(1.0), 1e-3),
    "Laplace": (laplace_noise, 0.0),
    "randomised response": (randomized_response, 0.0),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))])
@pytest.mark.parametrize("fault", SLIGHT_FAULTS)
def test_slight_faults_are_found(fault: str, seed: int) -> None:
    assert is_refuted(*SLIGHT_FAULTS[fault], seed)


@pytest.mark.long
@pytest.mark.parametrize("right", RIGHT)
def test_right_mechanisms_are_not_refuted(right: str) -> None:
    assert [seed for seed in range(10) if is_refuted(*RIGHT[right], seed)] == []


# --- reports -------------------------------------------------------------------------------------------------------


def reports() -> list[Any]:
    mechanism = Laplace(epsilon=0.5)
    return [
        audit.epsilon_lower_bound(mechanism, 0.0, 1.0, n=FEW),
        audit.epsilon_lower_bound(lambda x: "$a_b$", 0.0, 1.0, n=FEW),
        audit.check(mechanism, 0.0, 1.0, n=FEW),
        audit.self_audit(n=200),
        audit.one_run([True, False], [1.0, 0.0], guesses=2),
        attacks.low_order_bits(mechanism, n=FEW),
        attacks.precision(mechanism, n=FEW),
        attacks.timing(mechanism, n=200),
    ]


def test_reports_are_text_json_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    for i, report in enumerate(reports()):
        record = json.loads(report.to_json())
        assert record.pop("report") == type(report).__name__
        assert record.keys() == set(report.__dataclass_fields__)
        assert "object at" not in str(report)
        path = tmp_path / f"{i}.svg"
        report.plot(path)
        assert path.read_bytes().startswith(b"<?xml")
        with pytest.raises(ParameterError, match=r"path must end in one of .png, .svg, .pdf, got '.*bmp'"):
            report.plot(tmp_path / "chart.bmp")
        with pytest.raises(FrozenInstanceError):
            report.n = 1


def test_the_text_of_a_report() -> None:
    report = audit.check(lambda x: ("low", "high")[x], 0, 1, epsilon=1.0, n=1000)
    assert report.refuted
    shown = math.floor(1e4 * report.bound.epsilon) / 1e4
    assert str(report) == (
        "the claim of epsilon = 1 is REFUTED\n"
        f"epsilon is at least {shown:.4f} at delta = 0, with a confidence of 95 %\n"
        "event: the log-likelihood ratio of single outcomes >= 5.52545, for example 'low'\n"
        "it occurred 750 times for x and 0 times for x_prime, of 750 releases each"
    )
    assert (report.bound.likelier_under, report.bound.trials) == ("x", 750)
    assert (sum(report.bound.counts), sum(report.bound.counts_prime)) == (750, 750)
    # Of (p, q) with p^750 (1 - q)^750 > c, (1, 1 - c^(1/750)) has the smallest quotient.
    c = 0.001693554509
    assert c * (1 - math.log(c)) == pytest.approx(0.0125, rel=1e-6)
    assert report.bound.epsilon == pytest.approx(-math.log1p(-(c ** (1 / 750))), abs=0.01)


# --- the cases of the self-audit -------------------------------------------------------------------------------------


def test_every_mechanism_is_audited() -> None:
    named = [getattr(module, name) for module in (mechanisms, local, queries) for name in module.__all__]
    made = [
        thing
        for thing in named
        if isinstance(thing, type) and "epsilon" in signature(thing).parameters and not is_dataclass(thing)  # a result
    ]
    assert {mechanisms.Laplace, local.CountMeanSketch, queries.Quantile} <= set(made)
    made.remove(local.FrequencyProtocol)  # of protocols, and no protocol
    # What a client with a memo reports is not independent of what it reported before.
    without_memo = {
        thing.__name__ for thing in made if "memo" not in signature(getattr(thing, "perturb", thing)).parameters
    }
    # The bootstrap takes millions of subsets for a release: its test is audited on votes, in tests/statistical.
    stable = {name for name in stability.__all__ if "epsilon" in signature(getattr(stability, name)).parameters}
    assert {"StableValue", "ProposeTestRelease", "StableBootstrap"} <= stable
    assert without_memo | (stable - {"StableBootstrap"}) <= {case.name.partition(" ")[0] for case in CASES}


# --- time, by a clock that the test drives -------------------------------------------------------------------------


class Clock:
    """Time passes when somebody says so."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def timed(cost: Callable[[float], float]) -> attacks.Timing:
    clock = Clock()

    def release(x: float) -> float:
        noise = random.gauss(0, 10)
        clock.now += 1000 + int(cost(abs(noise)))
        return x + noise

    return attacks.timing(release, x=5.0, n=3000, clock=clock)


def test_time_that_grows_with_the_noise_is_noticed() -> None:
    for cost in (lambda noise: 10 * noise, lambda noise: random.expovariate(0.01) + 5 * noise):
        report = timed(cost)
        assert report.suspicious
        assert report.welch_t > 4.5
        assert report.spearman_z > 4.5
        assert report.mean_large > report.mean_small
        assert report.times[-1] > report.times[0]


def test_time_that_does_not_is_not() -> None:
    constant = timed(lambda noise: 0)
    assert not constant.suspicious
    assert (constant.welch_t, constant.spearman) == (0.0, 0.0)


def test_the_figures_of_the_timing_attack() -> None:
    clock, noise, times = Clock(), random.sample(range(10_000), 500), random.choices(range(40), k=500)
    pairs = iter(zip(noise, times, strict=True))

    def release(x: float) -> float:
        released, elapsed = next(pairs)
        clock.now += elapsed
        return x + released

    report = attacks.timing(release, n=500, clock=clock)
    kept = np.array(times) <= np.quantile(times, 0.99)
    t, size = np.array(times)[kept], np.array(noise)[kept]
    large = size > np.median(size)
    welch = stats.ttest_ind(t[large], t[~large], equal_var=False).statistic
    assert report.welch_t == pytest.approx(welch, rel=0.01)  # n or n - 1 in the variances
    assert report.spearman == pytest.approx(stats.spearmanr(t, size).statistic, abs=1e-12)


def test_an_outcome_without_a_noise_is_refused() -> None:
    with pytest.raises(TypeError, match=r"mechanism must return a number, got list"):
        attacks.timing(lambda x: [x], n=100)


# --- what is optional ------------------------------------------------------------------------------------------------


def test_nothing_but_numpy_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("rich", "matplotlib", "scipy"):
        monkeypatch.setitem(sys.modules, package, None)
    assert audit.epsilon_lower_bound(lambda x: x, 0, 1, n=1000).epsilon > 4


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="the extra `cli` is not installed")
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    audit.epsilon_lower_bound(lambda x: x, 0, 1, n=1000)
    assert "auditing" in terminal.getvalue()
    assert "2000/2000" in terminal.getvalue()


# --- refusals ------------------------------------------------------------------------------------------------------


def never(x: Any) -> Any:
    raise AssertionError("nothing may be released")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 99}, r"n must be an integer from 100 to .*, got 99"),
        ({"n": 1000.5}, "n must be an int, got float"),
        ({"level": 1.0}, "level must be between 0 and 1, exclusive, got 1.0"),
        ({"level": "high"}, "level must be a number, got str"),
        ({"delta": 1.0}, "delta must be from 0 up to, but not including, 1, got 1.0"),
        ({"delta": -0.1}, "delta must be from 0 up to, but not including, 1, got -0.1"),
        ({"mechanism": 3}, "mechanism must be callable, or have a method release or perturb, got int"),
    ],
)
def test_bad_parameters(changed: dict[str, Any], message: str) -> None:
    arguments = {"mechanism": never, "x": 0, "x_prime": 1, "n": 1000, **changed}
    with pytest.raises((ParameterError, TypeError), match=message):
        audit.epsilon_lower_bound(**arguments)


def test_bad_outcomes() -> None:
    with pytest.raises(TypeError, match=r"mechanism must return numbers, texts, None, or arrays.*unhashable"):
        audit.epsilon_lower_bound(lambda x: bytearray(b"a"), 0, 1, n=1000)
    with pytest.raises(ParameterError, match=r"one outcome for each of the 125 rows .* got 3 of them"):
        audit.epsilon_lower_bound(lambda x: x[:3], 0, 1, n=1000, vectorized=True)
    with pytest.raises(ParameterError, match=r"one outcome for each of the 125 rows .* got float"):
        audit.epsilon_lower_bound(lambda x: 1.0, 0, 1, n=1000, vectorized=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit.check(never, 0, 1, n=1000), "epsilon must be given for the claim"),
        (lambda: audit.check(never, 0, 1, epsilon=-1.0, n=1000), "epsilon must be zero or more and finite, got -1.0"),
        (lambda: attacks.low_order_bits(never), "epsilon must be given"),
        (lambda: attacks.low_order_bits(never, epsilon=1.0, scale=0.0), "scale must be positive and finite, got 0.0"),
        (lambda: attacks.precision(never, epsilon=1.0, sensitivity=-1), "sensitivity must be positive and finite"),
        (lambda: attacks.precision(never, epsilon=1.0, magnitudes=["a"]), "every magnitude must be a number, got str"),  # type: ignore[list-item]
        (lambda: attacks.precision(never, epsilon=1.0, magnitudes=[]), "magnitudes must have at least one number"),
        (lambda: attacks.precision(never, epsilon=1.0, level=2), "level must be between 0 and 1"),
        (lambda: attacks.timing(never, n=3), "n must be an integer from 100"),
        (lambda: attacks.timing(5), "mechanism must be callable, or have a method release, got int"),
        (lambda: audit.self_audit(epsilon=-1.0), "epsilon must be"),
        (lambda: audit.self_audit(n=1), "n must be an integer from 100"),
        (lambda: audit.self_audit(level=0.0), "level must be between 0 and 1"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ParameterError, TypeError), match=message):
        call()
