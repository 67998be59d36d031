"""Sample and threshold: its delta against enumeration, its collector, and every input that cannot be used."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from refusals import refuses

from dpnoise import ParameterError, local
from dpnoise.accounting import Accountant, BudgetExceeded, Ledger, PrivacyCost, group_privacy
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.samplers import bernoulli
from dpnoise.sensitivity import Relation

Law = dict[Any, Fraction]


def make(rate: Fraction | float, threshold: int, epsilon: float, relation: Relation = "add/remove") -> Any:
    return local.SampleAndThreshold(epsilon=epsilon, threshold=threshold, sample_rate=float(rate), relation=relation)


def exponential(epsilon: float) -> Fraction:
    """A fraction above exp(epsilon), by less than a share of 1e-55: a delta for it is too small by as little."""
    with mpmath.workdps(60):
        man, exp = mpmath.exp(mpmath.mpf(epsilon)).man_exp
        return (Fraction(int(man)) * Fraction(2) ** int(exp)) * (1 + Fraction(1, 10**56))


def delta_between(p: Law, q: Law, grown: Fraction) -> Fraction:
    return sum((max(p[x] - grown * q.get(x, 0), 0) for x in p), Fraction(0))


# --- Enumeration of all data sets of a few people ----------------------------------------------------------------


@cache
def released(people: tuple[str, ...], rate: Fraction, threshold: int) -> Law:
    """The law of a release, by enumeration of all coins."""
    law: Law = {}
    for coins in itertools.product((False, True), repeat=len(people)):
        counts = Counter(itertools.compress(people, coins))
        output = frozenset((value, count) for value, count in counts.items() if count >= threshold)
        chance = rate ** sum(coins) * (1 - rate) ** (len(people) - sum(coins))
        law[output] = law.get(output, Fraction(0)) + chance
    return law


def neighbours(most: int, values: str, relation: Relation) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """All pairs in one order; a release depends on the numbers of people only."""
    sets = [people for n in range(most) for people in itertools.combinations_with_replacement(values, n)]
    if relation == "add/remove":
        return [(people, tuple(sorted((*people, one)))) for people in sets for one in values]
    pairs = itertools.combinations(values, 2)
    return [tuple(tuple(sorted((*people, one))) for one in pair) for pair in pairs for people in sets]  # type: ignore[misc]


def worst(most: int, values: str, rate: Fraction, threshold: int, grown: Fraction, relation: Relation) -> Fraction:
    """The largest delta of all data sets of at most so many people and their neighbours, in both orders."""
    laws = [(released(a, rate, threshold), released(b, rate, threshold)) for a, b in neighbours(most, values, relation)]
    return max(max(delta_between(p, q, grown), delta_between(q, p, grown)) for p, q in laws)


RATES = [Fraction(1, 8), Fraction(1, 2), Fraction(29, 32)]


@pytest.mark.parametrize(("values", "most"), [("ab", 8), ("abc", 5)])
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_delta_is_never_below_enumeration(values: str, most: int, rate: Fraction, threshold: int) -> None:
    for epsilon in (0.01, 0.3, 1.0, 3.0):
        grown = exponential(epsilon)
        exact = worst(most, values, rate, threshold, grown, "add/remove")
        protocol = make(rate, threshold, epsilon)
        assert protocol.delta >= exact
        # The worst number of people is beyond the enumeration only for the larger thresholds.
        if (threshold - 1) / (1 - (1 - rate) / grown) <= most:
            assert protocol.delta == pytest.approx(float(exact), rel=1e-14)
            # Positive controls: a coin that is true a little more often, and a value of one report less.
            if epsilon == 1.0:
                assert worst(most, values, rate * Fraction(1001, 1000), threshold, grown, "add/remove") > protocol.delta
                if threshold > 1:
                    assert worst(most, values, rate, threshold - 1, grown, "add/remove") > protocol.delta
        if grown * (1 - rate) >= 1:
            replaced = worst(most, values, rate, threshold, grown, "substitute")
            assert make(rate, threshold, epsilon, "substitute").delta >= replaced >= 0.99 * exact


def test_the_bound_for_replaced_people_is_not_the_delta_of_added_ones() -> None:
    """The positive control: what add/remove claims does not hold for a person who is replaced."""
    replaced = worst(7, "ab", Fraction(1, 4), 2, exponential(0.3), "substitute")
    assert make(0.25, 2, 0.3).delta < replaced < make(0.25, 2, 0.3, "substitute").delta


# --- Any number of people ----------------------------------------------------------------------------------------


def binomial(n: int, rate: Fraction, threshold: int) -> Law:
    """The law of one count; 0 is for all below the threshold."""
    law: Law = {0: Fraction(0)}
    for x in range(n + 1):
        chance = math.comb(n, x) * rate**x * (1 - rate) ** (n - x)
        law[x if x >= threshold else 0] = law.get(x if x >= threshold else 0, Fraction(0)) + chance
    return law


def by_number(rate: Fraction, threshold: int, grown: Fraction, most: int) -> list[Fraction]:
    """The delta of N + 1 against N people, in the worse order, for all N below ``most``."""
    laws = [binomial(n, rate, threshold) for n in range(most + 1)]
    pairs = itertools.pairwise(laws)
    return [max(delta_between(more, less, grown), delta_between(less, more, grown)) for less, more in pairs]


@pytest.mark.parametrize(
    ("rate", "threshold", "epsilon", "most"),
    [
        (Fraction(1, 8), 4, 0.4, 40),
        (Fraction(1, 2), 7, 0.5, 40),
        (Fraction(1, 4), 5, 0.2, 60),
        (Fraction(29, 32), 11, math.log(1.0082166666666668), 60),  # where one person less is the worse order
        (Fraction(63, 64), 20, 2.0, 40),
        (Fraction(1, 16), 3, 1e-6, 60),
    ],
)
def test_the_worst_number_of_people_is_found(rate: Fraction, threshold: int, epsilon: float, most: int) -> None:
    deltas = by_number(rate, threshold, exponential(epsilon), most)
    found = make(rate, threshold, epsilon).delta
    assert found == pytest.approx(float(max(deltas)), rel=1e-14)
    assert found >= max(deltas)
    place = deltas.index(max(deltas))
    assert deltas[: place + 1] == sorted(deltas[: place + 1])
    assert deltas[place:] == sorted(deltas[place:], reverse=True)
    # Positive control: a search that stops before is below.
    assert max(deltas[:place]) < Fraction(found) < Fraction(1)


def chances(n: int, rate: float, threshold: int, most: int) -> NDArray[np.float64]:
    """The same in floating point, with room for counts up to ``most``."""
    law = [math.comb(n, x) * rate**x * (1 - rate) ** (n - x) for x in range(n + 1)]
    released = law[threshold:]
    return np.array([sum(law[:threshold]), *released, *[0.0] * (most + 1 - threshold - len(released))])


def delta_of_replacement(rate: float, threshold: int, epsilon: float, one: int, other: int) -> float:
    """The delta if a person goes from a value that others have to a value that ``one`` have."""
    gains = [chances(n, rate, threshold, one + 1) for n in (one + 1, one)]
    loses = [chances(n, rate, threshold, other + 1) for n in (other, other + 1)]
    return float(np.maximum(np.outer(gains[0], loses[0]) - math.exp(epsilon) * np.outer(gains[1], loses[1]), 0).sum())


REPLACED = [
    # epsilon, rate, and for the thresholds 2, 8, 20 and 40 what the proof page says, at the worst numbers of others
    (0.3, 0.05, {2: (1.11, 3, 3), 8: (2.51, 23, 69), 20: (12.1, 64, 290), 40: (159, 132, 694)}),
    (0.3, 0.1, {2: (1.22, 3, 3), 8: (4.49, 21, 49), 20: (51.9, 58, 176), 40: (2761, 120, 403)}),
    (0.3, 0.2, {2: (1.31, 2, 1), 8: (7.91, 18, 31), 20: (148, 49, 99), 40: (13859, 101, 215)}),
    (1.0, 0.05, {2: (1.00, 1, 39), 8: (1.27, 10, 27), 20: (2.09, 29, 202), 40: (5.73, 59, 415)}),
    (1.0, 0.1, {2: (1.00, 1, 41), 8: (1.54, 10, 27), 20: (4.15, 28, 121), 40: (22.4, 58, 312)}),
    (1.0, 0.2, {2: (1.00, 1, 63), 8: (2.63, 9, 15), 20: (15.1, 26, 64), 40: (236, 55, 174)}),
]


@pytest.mark.parametrize(("epsilon", "rate", "cells"), REPLACED)
def test_how_far_the_bound_for_replaced_people_is_above_the_truth(
    epsilon: float, rate: float, cells: dict[int, tuple[float, int, int]]
) -> None:
    page = (Path(__file__).parents[2] / "docs/proofs/sample_and_threshold.md").read_text(encoding="utf-8")
    ratios = [str(ratio) if ratio >= 10 else f"{ratio:.2f}" for ratio, *_ in cells.values()]
    assert f"| {epsilon:g}, {rate:g} | {' | '.join(ratios)} |" in page
    for threshold, (ratio, one, other) in cells.items():
        truth = delta_of_replacement(rate, threshold, epsilon, one, other)
        claim = make(rate, threshold, epsilon, "substitute").delta
        assert claim / truth == pytest.approx(ratio, rel=5e-3)
        for more, further in itertools.product((-1, 0, 1), repeat=2):
            beside = delta_of_replacement(rate, threshold, epsilon, one + more, other + further)
            assert beside <= truth * (1 + 1e-9)


@pytest.mark.parametrize(
    ("threshold", "one", "other", "claimed", "expected"),
    [(2, 2, 1, 0.06851, 0.05217), (3, 5, 6, 0.04321, 0.02285), (8, 18, 31, 0.01378, 0.001742)],
)
def test_exact_deltas_of_replacement(threshold: int, one: int, other: int, claimed: float, expected: float) -> None:
    """In fractions, at a rate of 0.2 and an epsilon of 0.3; the worst numbers of others, of all up to 40."""
    rate, grown = Fraction(0.2), exponential(0.3)
    gains = [binomial(n, rate, threshold) for n in (one + 1, one)]
    loses = [binomial(n, rate, threshold) for n in (other, other + 1)]
    p, q = ({(x, y): a[x] * b[y] for x in a for y in b} for a, b in zip(gains, loses, strict=True))
    exact = delta_between(p, q, grown)
    assert float(exact) == pytest.approx(expected, rel=5e-4)
    found = make(rate, threshold, 0.3, "substitute").delta
    assert found == pytest.approx(claimed, rel=5e-4)
    assert found > exact
    numbers = itertools.product(range(threshold - 1, 41), repeat=2)
    largest = max(delta_of_replacement(0.2, threshold, 0.3, *some) for some in numbers)
    assert largest == pytest.approx(float(exact), rel=1e-9)


def test_what_the_bound_for_replaced_people_costs() -> None:
    """The rates of the proof page; the worst numbers of others are those of 0.2498."""
    found = local.SampleAndThreshold(epsilon=1.0, delta=1e-8, threshold=20, relation="substitute")
    assert found.sample_rate == pytest.approx(0.2100, abs=5e-5)
    numbers = list(itertools.product(range(22, 31), range(55, 75)))
    small, large = (max(delta_of_replacement(rate, 20, 1.0, *some) for some in numbers) for rate in (0.2497, 0.2499))
    assert small < 1e-8 < large


@pytest.mark.parametrize(
    ("rate", "threshold", "epsilon", "expected"),
    [
        (0.105, 20, 1.0, 6.47994e-15),
        (0.3, 10, 1.0, 9.09712e-5),
        (0.1, 5, 0.5, 1.79249e-4),
        (0.5, 20, 1.0, 1.08297e-4),
        (0.25, 20, 0.5, 3.90056e-6),
        (0.6, 40, 0.5, 7.76384e-4),
    ],
)
def test_known_values(rate: float, threshold: int, epsilon: float, expected: float) -> None:
    assert make(rate, threshold, epsilon).delta == pytest.approx(expected, rel=1e-5)


def waiting(rate: float, threshold: int, epsilon: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The delta of one person more and of one less, from 80 digits of the probabilities of waiting times."""
    g, grown = mpmath.mpf(rate), mpmath.exp(mpmath.mpf(epsilon))

    terms = [mpmath.mpf(0), g**threshold]
    for j in range(threshold, threshold + 3000):
        terms.append(terms[-1] * j * (1 - g) / (j + 1 - threshold))
    more = sum(max(b - grown * a, 0) for a, b in itertools.pairwise(terms))
    less = sum(max(a - grown * b, 0) for a, b in itertools.pairwise(terms))
    return more, less


@pytest.mark.parametrize("rate", [0.01, 0.105, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("threshold", [2, 20, 150])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 6.0])
def test_delta_is_certified_from_above(rate: float, threshold: int, epsilon: float) -> None:
    with mpmath.workdps(80):
        exact = max(waiting(rate, threshold, epsilon))
        found = mpmath.mpf(make(rate, threshold, epsilon).delta)
        assert exact <= found
        assert found <= exact * (1 + mpmath.mpf(10) ** -15) or found == 5e-324


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("threshold", [5, 20, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.1661, 0.4, 0.9])
def test_it_is_below_the_closed_form(epsilon: float, threshold: int, alpha: float) -> None:
    """Bharadwaj and Cormode (2022)."""
    closed = math.exp(-threshold * (math.log(1 / alpha) - 1 / (1 + alpha)))
    rate = alpha * -math.expm1(-epsilon)
    assert make(rate, threshold, epsilon).delta < closed
    if closed < 1e-3:
        found = local.SampleAndThreshold(epsilon=epsilon, delta=closed, threshold=threshold)
        assert found.sample_rate > 1.2 * rate


def test_the_figures_of_the_documentation() -> None:
    closed = math.exp(-20 * (-math.log(0.105 / -math.expm1(-1)) - 1 / (1 + 0.105 / -math.expm1(-1))))
    assert closed == pytest.approx(7.2e-9, rel=0.01)
    found = local.SampleAndThreshold(epsilon=1.0, delta=1e-8, threshold=20)
    assert found.sample_rate == pytest.approx(0.2514, abs=5e-5)
    assert found.sample_rate / 0.105 == pytest.approx(2.4, abs=0.01)


# --- Parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize(("epsilon", "delta", "threshold"), [(1.0, 1e-8, 20), (0.1, 1e-6, 300), (4.0, 1e-12, 8)])
def test_the_third_parameter_is_the_best(relation: Relation, epsilon: float, delta: float, threshold: int) -> None:
    found = local.SampleAndThreshold(epsilon=epsilon, delta=delta, threshold=threshold, relation=relation)
    assert 0.999 * delta < found.delta <= delta
    assert make(found.sample_rate * (1 + 1e-11), threshold, epsilon, relation).delta > delta
    same = local.SampleAndThreshold(epsilon=epsilon, delta=delta, sample_rate=found.sample_rate, relation=relation)
    assert same == found
    assert make(found.sample_rate, threshold - 1, epsilon, relation).delta > delta
    assert found.cost == PrivacyCost(epsilon, found.delta, relation)
    assert group_privacy(found.cost, 3).epsilon == pytest.approx(3 * epsilon)


@pytest.mark.parametrize("epsilon", [1e-10, 1e-9, 2.358986698508953e-9])
def test_the_largest_rate_of_substitution_needs_more_than_64_bits(epsilon: float) -> None:
    found = local.SampleAndThreshold(epsilon=epsilon, delta=0.1, threshold=1, relation="substitute")
    assert 1 - 2.0**-39 < found.sample_rate / -math.expm1(-epsilon) <= 1


@pytest.mark.parametrize("rate", [2.0**-30, 2.0**-20, 1e-3])
def test_delta_falls_where_the_worst_number_of_people_is_beyond_all_bounds(rate: float) -> None:
    """One person less is told best by (threshold - 1) / (1 - e^epsilon (1 - rate)) people."""
    edge = -math.log1p(-rate)
    deltas = [make(rate, 3, x).delta for x in (0.999 * edge, math.nextafter(edge, 0), edge, math.nextafter(edge, 1))]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] < 1.001 * deltas[-1]


def test_thresholds_near_the_largest_are_found() -> None:
    """With so large an epsilon the worst case is that all of `threshold` people take part."""
    found = local.SampleAndThreshold(epsilon=20.0, delta=1e-200, sample_rate=0.99)
    assert found.threshold == math.ceil(math.log(1e-200) / math.log(0.99)) > 2**15


def test_an_object_is_its_parameters() -> None:
    protocol = local.SampleAndThreshold(epsilon=1, delta=1e-8, threshold=20)
    same = pickle.loads(pickle.dumps(protocol))  # noqa: S301
    assert eval(repr(protocol), vars(local).copy()) == protocol == same  # noqa: S307
    assert len({protocol, same}) == 1
    assert protocol != make(protocol.sample_rate, 20, 1.0, "substitute")
    assert protocol != "sample and threshold"
    assert make(Fraction(1, 3), 20, 1.0).sample_rate <= Fraction(1, 3)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 1 - 1e-9])
@pytest.mark.parametrize(("rate", "threshold"), [(0.25, 1), (0.25, 20), (2.0**-10, 3), (0.999, 50)])
def test_values_are_visible_from_the_least_number_of_people(rate: float, threshold: int, level: float) -> None:
    found = make(rate, threshold, 3.0).visible_from(level)

    def seen(people: int) -> Fraction:
        return 1 - sum(
            (
                math.comb(people, x) * Fraction(rate) ** x * (1 - Fraction(rate)) ** (people - x)
                for x in range(threshold)
            ),
            Fraction(0),
        )

    margin = Fraction(1, 10**12)
    assert seen(found) >= Fraction(level) - margin
    assert seen(found - 1) < Fraction(level) + margin


# --- Clients and collector ----------------------------------------------------------------------------------------

PROTOCOL = local.SampleAndThreshold(epsilon=1.0, threshold=3, sample_rate=0.25)


def counted(protocol: local.SampleAndThreshold, reports: Any) -> local.ThresholdAccumulator:
    accumulator = protocol.accumulator()
    accumulator.add(reports)
    return accumulator


def test_values_of_all_people_are_sampled_before_they_are_released() -> None:
    """Whoever takes it for a mechanism like the others releases no more than the sample."""
    values = ["tea"] * 400 + ["mate"] * 40
    sample = PROTOCOL.sample(values, rng=SeededRng(3))
    released = PROTOCOL.release(values, rng=SeededRng(3))
    assert dict(zip(released.values, released.reports.tolist(), strict=True)) == Counter(sample)
    assert released.reports[0] < 200
    with pytest.raises(ParameterError, match="level must be between 0 and 1"):
        PROTOCOL.release(values, level=2.0, rng=ScriptedRng(b""))


def test_who_takes_part_is_an_exact_coin() -> None:
    values = [f"value {i}" for i in range(1000)]
    coins = bernoulli(0.25, size=1000, rng=SeededRng(1))
    assert PROTOCOL.sample(values, rng=SeededRng(1)) == [v for v, coin in zip(values, coins, strict=True) if coin]
    assert 0 < len(PROTOCOL.sample(values)) < 1000
    assert PROTOCOL.sample([]) == []


@pytest.mark.parametrize("container", [list, np.array, pa.array], ids=["list", "array", "Arrow"])
def test_columns_of_any_library_are_sampled_and_counted(container: Callable[[list[str]], Any]) -> None:
    everybody = local.SampleAndThreshold(epsilon=32.0, threshold=3, sample_rate=1 - 2.0**-53)
    reports = everybody.sample(container(["tea"] * 5 + ["mate"] * 3 + ["xyzzy"] * 2))
    estimate = everybody.release(counted(everybody, container(reports)))
    assert estimate.values == ["tea", "mate"]
    assert estimate.reports.tolist() == [5, 3]
    assert estimate.to_pandas()["value"].tolist() == ["tea", "mate"]


def test_missing_values_do_not_take_part() -> None:
    everybody = local.SampleAndThreshold(epsilon=32.0, threshold=1, sample_rate=1 - 2.0**-53)
    assert everybody.sample(["tea", None, float("nan"), "mate"]) == ["tea", "mate"]
    assert everybody.release(counted(everybody, ["tea", None])).reports.tolist() == [1]


def test_counts_become_estimates() -> None:
    estimate = PROTOCOL.release(counted(PROTOCOL, ["b"] * 12 + ["a"] * 12 + ["c"] * 48 + ["rare"] * 2), level=0.9)
    assert estimate.values == ["c", "a", "b"]  # the order says nothing about the order of arrival
    assert estimate.counts.tolist() == [192.0, 48.0, 48.0]
    assert estimate.standard_errors.tolist() == [24.0, 12.0, 12.0]
    assert estimate.upper[0] == pytest.approx(192 + 1.6448536 * 24)
    assert estimate.lower[1] == pytest.approx(48 - 1.6448536 * 12)
    assert estimate.visible_from == PROTOCOL.visible_from(0.9)
    wider = PROTOCOL.release(counted(PROTOCOL, ["c"] * 48 + ["a"] * 12), level=0.9, simultaneous=True)
    assert wider.upper[0] > estimate.upper[0]
    assert not estimate.reports.flags.writeable
    assert "standard_error" in repr(estimate)
    assert "<table>" in estimate._repr_html_()
    assert len(PROTOCOL.release([]).values) == 0
    assert "value" in repr(PROTOCOL.release([]))


def test_accumulators_merge_and_go_to_other_processes() -> None:
    total = PROTOCOL.accumulator()
    for part in (["tea", "mate"], ["tea"], [], ["tea", "xyzzy"]):
        one = PROTOCOL.accumulator()
        one.add(part)
        total.merge(pickle.loads(pickle.dumps(one)))  # noqa: S301
    assert PROTOCOL.release(total).values == ["tea"]
    assert PROTOCOL.release(total).reports.tolist() == [3]


def test_reports_are_released_once() -> None:
    """The difference of two counts of the same reports would show those that came between."""
    total, late = counted(PROTOCOL, ["tea"] * 20), counted(PROTOCOL, ["tea"])
    first = PROTOCOL.release(total)
    assert PROTOCOL.release(total).reports.tolist() == first.reports.tolist(), "the same counts again say nothing"
    for again in (total, pickle.loads(pickle.dumps(total))):  # noqa: S301
        refuses(ParameterError, "and this one has been released: reports", again.add, ["tea"])
        refuses(ParameterError, "and this one has been released: reports", again.merge, late)
        refuses(ParameterError, "and this one has been released: reports", late.merge, again)
    assert PROTOCOL.release(total).reports.tolist() == [20]
    refuses(ParameterError, "other must be another accumulator, got the same one", late.merge, late)
    assert late._counts == {"tea": 1}


def test_reports_are_merged_once() -> None:
    part, total = counted(PROTOCOL, ["tea"] * 5), PROTOCOL.accumulator()
    total.merge(part)
    for call, value in ((total.merge, part), (part.add, ["tea"]), (part.merge, total), (PROTOCOL.release, part)):
        refuses(ParameterError, "this one has been merged into another one: reports", call, value)
    assert PROTOCOL.release(total).reports.tolist() == [5]


@pytest.mark.parametrize("library", [pa.array, lambda x: pd.array(x, "Int64"), lambda x: pl.Series(x, dtype=pl.Int64)])
def test_a_missing_row_changes_no_value(library: Callable[[list[Any]], Any]) -> None:
    """Integers beside a missing value would be floats, and other ones."""
    everybody = local.SampleAndThreshold(epsilon=32.0, threshold=3, sample_rate=1 - 2.0**-53)
    for missing in ([], [None]):
        assert everybody.release(library([2**53 + 1] * 5 + missing)).values == [2**53 + 1]
        assert everybody.sample(library([2**53 + 1] * 5 + missing)) == [2**53 + 1] * 5


@pytest.mark.parametrize("seed", range(20))
def test_what_is_refused_does_not_depend_on_the_sample(seed: int) -> None:
    with pytest.raises(TypeError, match="values must be of texts"):
        PROTOCOL.release(["tea"] * 9 + [1], rng=SeededRng(seed))


def test_a_ledger_and_an_accountant_take_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "collection.db", epsilon=1.5, delta=0.5)
    assert ledger.release(PROTOCOL, counted(PROTOCOL, ["tea"] * 5)).values == ["tea"]
    refuses(TypeError, "values must be of texts", ledger.release, PROTOCOL, ["tea", 1])
    assert ledger.remaining.epsilon == 0.5
    assert ledger.remaining.delta == pytest.approx(0.5 - PROTOCOL.delta)
    refuses(BudgetExceeded, "epsilon", ledger.release, PROTOCOL, ["tea"] * 5)
    accountant = Accountant()
    accountant.compose(PROTOCOL, count=2)
    assert 1.0 < accountant.epsilon(delta=3 * PROTOCOL.delta) <= 2.0


def test_rare_values_and_the_number_of_reports_are_not_shown() -> None:
    accumulator = PROTOCOL.accumulator()
    accumulator.add(["tea"] * 777 + ["xyzzy"] * 2)
    estimate = PROTOCOL.release(accumulator)
    shown = [repr(accumulator), str(accumulator), repr(estimate), estimate._repr_html_(), str(estimate.to_arrow())]
    for text in (*shown, pickle.dumps(estimate).decode("latin-1")):
        assert "xyzzy" not in text
        assert "779" not in text
    with pytest.raises(TypeError) as refused:
        counted(PROTOCOL, ["xyzzy"]).add([17, 18])
    assert str(refused.value) == "reports must be texts, as those before, got numbers"


# --- Bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 1e-8}, "two of delta, threshold, sample_rate must be given, got delta"),
        ({}, "two of delta, threshold, sample_rate must be given, got none"),
        (
            {"delta": 1e-8, "threshold": 20, "sample_rate": 0.1},
            "two of delta, threshold, sample_rate must be given, got delta and threshold and sample_rate",
        ),
        ({"delta": 0.0, "threshold": 20}, "delta must be between 0 and 1"),
        ({"delta": 1.0, "sample_rate": 0.1}, "delta must be between 0 and 1"),
        ({"delta": 1e-8, "threshold": 0}, "threshold must be an integer from 1 to 65536, got 0"),
        ({"sample_rate": 0.1, "threshold": 65537}, "threshold must be an integer from 1 to 65536, got 65537"),
        ({"sample_rate": 1.0, "threshold": 20}, "sample_rate must be at least 2**-40 and below 1, got 1.0"),
        ({"sample_rate": 0.0, "delta": 1e-8}, "sample_rate must be at least 2**-40 and below 1, got 0.0"),
        ({"sample_rate": math.nan, "delta": 1e-8}, "sample_rate must be at least 2**-40 and below 1, got NaN"),
        ({"epsilon": 0.0, "delta": 1e-8, "threshold": 20}, "epsilon must be above 0 and at most 32, got 0.0"),
        ({"epsilon": 33, "sample_rate": 0.1, "threshold": 20}, "epsilon must be above 0 and at most 32, got 33.0"),
        (
            {"epsilon": 0.5, "sample_rate": 0.5, "threshold": 20, "relation": "substitute"},
            "epsilon must be at least ln(1 / (1 - sample_rate)) = 0.693147, got 0.5",
        ),
        (
            {"delta": 1e-13, "threshold": 1},
            "delta must be such that a sample_rate of at least 2**-40 suffices (threshold is 1), got 1e-13",
        ),
        (
            {"epsilon": 1e-6, "delta": 1e-9, "sample_rate": 0.5},
            "sample_rate must be such that a threshold of at most 65536 suffices (epsilon is 1e-6, delta is 1e-9), got",
        ),
        (
            {"delta": 1e-8, "threshold": 20, "relation": "replace"},
            'relation must be "add/remove" or "substitute", got',
        ),
    ],
)
def test_impossible_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    refuses(ParameterError, message, local.SampleAndThreshold, **{"epsilon": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 1, "delta": 0.1, "threshold": 2.0}, "threshold must be an int, got float"),
        ({"epsilon": 1, "delta": "0.1", "threshold": 2}, "delta must be a number, got str"),
        ({"epsilon": 1, "sample_rate": True, "threshold": 2}, "sample_rate must be a number, got bool"),
        ({"eps": 1}, "takes no eps=, use epsilon="),
    ],
)
def test_parameters_of_wrong_types_are_refused(arguments: dict[str, Any], message: str) -> None:
    refuses(TypeError, message, local.SampleAndThreshold, **arguments)


def test_values_and_accumulators_of_wrong_types_are_refused() -> None:
    accumulator = PROTOCOL.accumulator()
    refuses(TypeError, "values must be a", PROTOCOL.sample, "tea")
    refuses(
        TypeError, "reports must be of texts, of numbers or of booleans, got int and str", accumulator.add, ["a", 1]
    )
    refuses(TypeError, "protocol must be a SampleAndThreshold, got int", local.ThresholdAccumulator, 3)
    refuses(TypeError, "other must be a ThresholdAccumulator, got list", accumulator.merge, ["tea"])
    other = make(0.125, 3, 1.0).accumulator()
    refuses(ParameterError, "other must be an accumulator of SampleAndThreshold(", accumulator.merge, other)
    refuses(ParameterError, "collected must be of SampleAndThreshold(", PROTOCOL.release, other)
    refuses(ParameterError, "level must be between 0 and 1", PROTOCOL.release, accumulator, level=1.0)
    refuses(TypeError, "simultaneous must be a bool, got int", PROTOCOL.release, accumulator, simultaneous=1)
    refuses(ParameterError, "level must be between 0 and 1", PROTOCOL.visible_from, 0.0)
