"""The worst likelihood ratios of several quantiles, over all short tables and all their neighbours, in exact fractions.

The specification is what the release is compared with, bit for bit, in tests/vectors.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
from vectors.selection_spec import Node, Place, Quantiles

R = Fraction(2, 3)  # exp(-1)
INFINITE = 10**9  # above all ratios that a test allows

Rows = tuple[Place, ...]
Law = Mapping[Any, Fraction]


class Ranks(NamedTuple):
    """Ranks, an epsilon with which all exponents are whole numbers, and the most rows of a table."""

    ranks: tuple[Fraction, ...]
    epsilon: int
    rows: int


THREE = Ranks((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 4, 4)
FOUR = Ranks((Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)), 18, 3)


@cache
def choose(q: Fraction, span: tuple[int, int], epsilon: Fraction, rows: Rows) -> Law:
    """The probability of each place, by the definition of its score."""
    spec = Node(q, span)
    steps = epsilon / 2 / max(q.numerator, q.denominator - q.numerator)
    weights = {place: R ** (-spec.score(rows, place) * steps) for place in range(span[0], span[1] + 1)}
    total = sum(weights.values())
    return {place: weight / total for place, weight in weights.items()}


def law_of_places(spec: Quantiles, rows: Rows, epsilon: int) -> Law:
    def present(q: Fraction, span: tuple[int, int], epsilon: Fraction, rows: Sequence[Place]) -> Law:
        return choose(q, span, epsilon, tuple(row for row in rows if row is not None))

    return spec.law(present, rows, Fraction(epsilon))


def law_of_answers(spec: Quantiles, values: tuple[int, ...], epsilon: int) -> Law:
    """The same where each row has one random bit."""
    found: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for fractions in itertools.product(range(2), repeat=len(values)):
        rows = tuple(sorted(map(spec.place, values, fractions)))
        for places, weight in law_of_places(spec, rows, epsilon).items():
            found[tuple(spec.answers(places))] += weight / 2 ** len(values)
    return found


def tables(rows: int, values: range) -> Iterator[tuple[int, ...]]:
    return itertools.chain(*(itertools.combinations_with_replacement(values, n) for n in range(rows + 1)))


def ratio(law: Law, other: Law) -> Fraction:
    """The largest, in both directions; INFINITE where only one of two probabilities is 0."""
    both = ((law.get(key, Fraction(0)), other.get(key, Fraction(0))) for key in {*law, *other})
    return max(max(p, q) / min(p, q) if p and q else Fraction(INFINITE) for p, q in both)


def worst_ratio(kind: type[Quantiles], case: Ranks, more: int = 1, bits: int = 0) -> Fraction:
    """Over all tables and the same with more rows."""
    spec, values = kind(case.ranks, (0, 1 if bits else 2), bits), range(2 if bits else 3)
    law = partial(law_of_answers if bits else law_of_places, spec, epsilon=case.epsilon)
    laws = {table: law(table) for table in tables(case.rows + more, values)}
    pairs = itertools.product(tables(case.rows, values), itertools.combinations_with_replacement(values, more))
    return max(ratio(laws[table], laws[tuple(sorted(table + added))]) for table, added in pairs)


class EveryLevelAtEpsilon(Quantiles):
    """A planted fault."""

    def share(self, left: Any, ranks: int) -> tuple[Any, Any]:
        return left, left


class MiddleWithoutRows(Quantiles):
    """A planted fault: nodes without rows answer the middle of their ends."""

    def chosen(self, choose: Any, rank: Any, outer: Any, span: Any, epsilon: Any, rows: Any) -> Any:
        if all(row is None for row in rows):
            return {sum(span) // 2: Fraction(1)}
        return super().chosen(choose, rank, outer, span, epsilon, rows)


class EndsOfRows(Quantiles):
    """A planted fault: the ends of a node are the smallest and the largest place of its rows."""

    def chosen(self, choose: Any, rank: Any, outer: Any, span: Any, epsilon: Any, rows: Any) -> Any:
        present = [row for row in rows if row is not None] or span
        return super().chosen(choose, rank, outer, (min(present), max(present)), epsilon, rows)


class TrueNumbers(Quantiles):
    """A planted fault: the rank among the rows of a node is found from the number of all rows and of those before."""

    table: Rows

    def chosen(self, choose: Any, rank: Any, outer: Any, span: Any, epsilon: Any, rows: Any) -> Any:
        n, before = len(self.table), sum(row < span[0] for row in self.table if row is not None)
        inside = sum(row is not None for row in rows)
        true = Fraction(rank * n - before, max(inside, 1))
        return super().chosen(choose, min(max(true, Fraction(1, 9)), Fraction(8, 9)), (0, 1), span, epsilon, rows)


@pytest.mark.parametrize("bits", [0, 1])
@pytest.mark.parametrize("case", [THREE, FOUR], ids=["three", "four"])
def test_the_worst_ratio_is_at_most_that_of_epsilon(case: Ranks, bits: int) -> None:
    for more in (1, 2):
        worst = worst_ratio(Quantiles, case, more, bits)
        assert isinstance(worst, Fraction)
        assert 1 < worst <= R ** (-case.epsilon * more)


@pytest.mark.parametrize("fault", [EveryLevelAtEpsilon, MiddleWithoutRows, EndsOfRows])
def test_faults_are_found(fault: type[Quantiles]) -> None:
    assert worst_ratio(fault, THREE) > R**-THREE.epsilon


@pytest.mark.parametrize("fault", [None, TrueNumbers])
def test_the_answers_on_one_side_do_not_depend_on_the_rows_of_the_other(fault: type[TrueNumbers] | None) -> None:
    laws: defaultdict[Any, set[Any]] = defaultdict(set)
    for table in tables(4, range(3)):
        spec = (fault or Quantiles)(THREE.ranks, (0, 2), 0)
        if isinstance(spec, TrueNumbers):
            spec.table = table
        below: defaultdict[int, defaultdict[int, Any]] = defaultdict(lambda: defaultdict(int))
        for (first, middle, _), weight in law_of_places(spec, table, THREE.epsilon).items():
            below[middle][first] += weight
        for middle, law in below.items():
            total = sum(law.values())
            rows = tuple(row for row in table if row < middle)
            laws[middle, rows].add(tuple((place, weight / total) for place, weight in sorted(law.items())))
    assert len(laws) > 10
    assert (max(map(len, laws.values())) == 1) == (fault is None)
