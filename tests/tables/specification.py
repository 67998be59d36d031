"""Persons with several rows in exact fractions: what is kept of a small table, and the law of the answer.

It is written from the theorems and shares no code with the implementation. Probabilities are fractions and ints: the
noise is such that each step of it, and each unit of a score, multiplies a probability by a power of 2. So exp(epsilon)
is a power of 2, and all inequalities are exact. Epsilon is in bits: exp(epsilon) = 2**bits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from vectors.selection_spec import Node, Quantiles


class Row(NamedTuple):
    """A row of a table: None is a missing person or value, and a key that is missing or not asked for."""

    person: str | None
    group: str | None
    value: int | None
    """The place of a value in the list of those of a query, so that queries share their tables."""


Table = tuple[Row, ...]
Persons = tuple[tuple[tuple[str, int], ...], ...]  # groups and values of the rows of each person, all in order
Kept = tuple[tuple[Any, ...], ...]  # the values of the rows kept in each group, in order
Chosen = Mapping[frozenset[int], Fraction]  # the law of the places of the rows that are kept
Law = Mapping[Any, Fraction]
T = TypeVar("T", bound=Hashable)


def mixed(parts: Iterable[tuple[T, Fraction]]) -> dict[T, Fraction]:
    law: defaultdict[T, Fraction] = defaultdict(Fraction)
    for outcome, weight in parts:
        law[outcome] += weight
    return dict(law)


Below = Callable[[int], int]


def runs(procedure: Callable[[Below], T]) -> Iterator[tuple[T, list[tuple[int, int]]]]:
    """All results of a procedure that draws whole numbers below given ones, with what was drawn below what.

    All numbers below one are drawn with the same probability.
    """
    waiting: list[list[int]] = [[]]
    while waiting:
        fixed = waiting.pop()
        drawn: list[tuple[int, int]] = []

        def below(limit: int, fixed: list[int] = fixed, drawn: list[tuple[int, int]] = drawn) -> int:
            drawn.append((fixed[len(drawn)] if len(drawn) < len(fixed) else 0, limit))
            return drawn[-1][0]

        yield procedure(below), drawn
        # Where 0 was drawn without being told so, the others come later.
        numbers = [number for number, _ in drawn]
        for place in range(len(fixed), len(drawn)):
            waiting += [[*numbers[:place], other] for other in range(1, drawn[place][1])]


def outcomes(procedure: Callable[[Below], T]) -> dict[T, Fraction]:
    """The law of what a procedure returns."""
    return mixed((result, 1 / Fraction(math.prod(limit for _, limit in drawn))) for result, drawn in runs(procedure))


# --- what is kept ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """At most so many rows of a person: in all, in each group and in so many groups."""

    rows: int
    rows_per_group: int | None = None
    groups: int | None = None

    @property
    def corner(self) -> list[int]:
        """The rows in each group of which the sum and the sum of squares are the largest (theorem 2)."""
        each = min(self.rows_per_group or self.rows, self.rows)
        groups = self.rows if self.groups is None else self.groups
        full = min(groups, self.rows // each)
        return [each] * full + [min(self.rows - full * each, each)] * (full < groups)

    @property
    def total(self) -> int:
        return sum(self.corner)

    @property
    def squares(self) -> int:
        return sum(rows**2 for rows in self.corner)

    def of_person(self, groups: Sequence[str | None]) -> Chosen:
        """The law of the rows of a person that are kept, for the group of each row: step by step, all sets alike."""
        cells = [[place for place, group in enumerate(groups) if group == cell] for cell in dict.fromkeys(groups)]
        in_cells = mixed(
            (rows, p * q)
            for chosen, p in subsets(range(len(cells)), self.groups).items()
            for rows, q in together(subsets(cells[cell], self.rows_per_group) for cell in chosen).items()
        )
        return mixed((kept, p * q) for rows, p in in_cells.items() for kept, q in subsets(rows, self.rows).items())


def subsets(places: Iterable[int], most: int | None) -> Chosen:
    """The law of at most so many of these: all sets of the largest number that is allowed are alike."""
    places = sorted(places)
    every = list(itertools.combinations(places, len(places) if most is None else min(most, len(places))))
    return {frozenset(one): Fraction(1, len(every)) for one in every}


def together(laws: Iterable[Chosen]) -> Chosen:
    """The law of the union of independent sets."""
    return mixed(
        (frozenset().union(*(chosen for chosen, _ in parts)), math.prod(p for _, p in parts))
        for parts in itertools.product(*(law.items() for law in laws))
    )


def chosen_rows(table: Table, bound: Bound) -> Chosen:
    """The law of the places of the rows that are kept: each person has a choice of their own."""
    persons = dict.fromkeys(row.person for row in table if row.person is not None)
    every = [[place for place, row in enumerate(table) if row.person == person] for person in persons]
    return together(
        {
            frozenset(places[i] for i in chosen): p
            for chosen, p in bound.of_person([table[i].group for i in places]).items()
        }
        for places in every
    )


def sampled(codes: Sequence[Hashable | None], most: int | None, below: Below) -> list[bool]:
    """Selection sampling: is each row kept, of those that have a code? One number is drawn for every row."""
    if most is None:
        return [code is not None for code in codes]
    left = Counter(codes)
    keep = {code: min(most, rows) for code, rows in left.items()}
    kept = []
    for code in codes:
        drawn = below(1 if code is None else left[code])
        kept.append(code is not None and drawn < keep[code])
        left[code] -= 1
        keep[code] -= kept[-1]
    return kept


def by_selection_sampling(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    """The rows that are kept of persons: first groups of each, then rows in each group, and rows of these."""
    cells: list[Any] = [None if row.person is None else row[:2] for row in table]
    different = list(dict.fromkeys(cells))
    kept = sampled([cell and cell[0] for cell in different], bound.groups, below)
    is_kept = dict(zip(different, kept, strict=True))
    in_cells = sampled([cell if is_kept[cell] else None for cell in cells], bound.rows_per_group, below)
    persons = [row.person if kept else None for row, kept in zip(table, in_cells, strict=True)]
    return frozenset(place for place, kept in enumerate(sampled(persons, bound.rows, below)) if kept)


def kept_rows(
    table: Table, bound: Bound, keys: Sequence[str | None], missing_person: str, below: Below
) -> frozenset[int]:
    """The rows that a release is about: missing values and rows of no group are left out before the choice."""
    present = [row.value is not None and row.group in keys for row in table]
    coded = tuple(row if is_in else row._replace(person=None) for row, is_in in zip(table, present, strict=True))
    alone = [is_in and row.person is None for row, is_in in zip(table, present, strict=True)]
    own = {place for place, is_alone in enumerate(alone) if is_alone and missing_person == "own"}
    return by_selection_sampling(coded, bound, below) | own


def persons_of(table: Table, keys: Sequence[str], missing_person: str = "drop") -> Persons:
    """The rows that take part in the choice, by person: the order of rows and the names of persons do not matter."""
    persons: defaultdict[Any, list[Any]] = defaultdict(list)
    for place, row in enumerate(table):
        is_present = row.value is not None and row.group in keys
        if is_present and (row.person is not None or missing_person == "own"):
            persons[place if row.person is None else row.person].append(row[1:])
    return tuple(sorted(tuple(sorted(rows)) for rows in persons.values()))


@cache
def kept_of(bound: Bound, keys: tuple[str, ...], persons: Persons) -> Law:
    """The law of the values that are kept in each group."""
    table = tuple(Row(f"{person}", *row) for person, rows in enumerate(persons) for row in rows)
    return by_group(keys, table, chosen_rows(table, bound))


def by_group(keys: Sequence[str], table: Table, chosen: Chosen) -> Law:
    def values(places: Iterable[int]) -> Kept:
        rows = sorted(table[place][1:] for place in places)
        return tuple(tuple(value for group, value in rows if group == key) for key in keys)

    return mixed((values(places), p) for places, p in chosen.items())


# --- what is released ------------------------------------------------------------------------------------------------


class Query:
    """A query of the values that are kept in each group."""

    values: tuple[Any, ...]
    """Those that tables are made of."""
    bits: int
    """Epsilon of a row, in bits."""

    def seen(self, kept: Kept) -> Hashable:
        """What the answer depends on."""
        raise NotImplementedError

    def answers(self, every: Sequence[Any]) -> Callable[[Any], NDArray[Any]]:
        """The probabilities of all answers for each of what is seen of two tables, times one factor."""
        raise NotImplementedError

    def excess(self, one: Law, other: Law, bits: int) -> Fraction:
        """By how much an answer is more probable than 2**bits times what it is for the other table, at most.

        The laws are those of what is seen. The sign alone counts, but for `Keys`: if the claim of pure privacy holds it
        is not positive, and it is 0 if no smaller claim holds.
        """
        return Fraction(int(np.max(self.differences(one, other, bits)[0])))

    def differences(self, one: Law, other: Law, bits: int) -> tuple[NDArray[Any], int]:
        """By how much each answer is more probable, times a factor that is returned, too."""
        answers = self.answers([*one, *other])
        # With a common denominator all weights are ints.
        whole = math.lcm(*(weight.denominator for law in (one, other) for weight in law.values()))
        p, q = (sum(int(weight * whole) * answers(seen) for seen, weight in law.items()) for law in (one, other))
        return p - q * 2**bits, whole


class Additive(Query):
    """Whole numbers of each group, with discrete Laplace noise that halves a probability for each step.

    The answers of two tables are compared from the smallest to the largest of their numbers. Beyond, a further step of
    an answer halves its probability whatever the numbers are: the ratio of the two tables is that at the end.
    """

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        """The numbers of a group."""
        raise NotImplementedError

    def seen(self, kept: Kept) -> Hashable:
        return tuple(itertools.chain(*map(self.statistics, kept)))

    def answers(self, every: Sequence[tuple[int, ...]]) -> Callable[[tuple[int, ...]], NDArray[np.int64]]:
        windows = [range(min(numbers), max(numbers) + 1) for numbers in zip(*every, strict=True)]
        assert sum(map(len, windows)) <= 40  # a factor below 2**24 does not overflow

        def of(numbers: tuple[int, ...]) -> NDArray[np.int64]:
            each = [self.noisy(window, number) for window, number in zip(windows, numbers, strict=True)]
            return functools.reduce(np.multiply.outer, each)

        return of

    @staticmethod
    @cache
    def noisy(window: range, number: int) -> NDArray[np.int64]:
        """The probabilities of answers, times a factor that makes them ints."""
        return 1 << len(window) - 1 - np.abs(np.array(window) - number)


class Count(Additive):
    bits = 1

    def __init__(self, values: tuple[int, ...] = (5, 8)) -> None:
        self.values = values

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return (len(values),)


class Sum(Additive):
    """Bounds are -1 and 2: the epsilon of a row is two steps."""

    values = (-1, 2)
    bits = 2

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return (sum(values),)


class Mean(Additive):
    """The sum of distances from the middle of the bounds -1 and 1, and the number of rows."""

    values = (-1, 1)
    bits = 2

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return sum(values), len(values)


class Variance(Mean):
    """The same, and the sum of the squares less the middle of their range, in units of half of it."""

    values = (0, 1)
    bits = 3

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return *super().statistics(values), sum(2 * value**2 - 1 for value in values)


class Histogram(Additive):
    """Two bins or labels, 0 and 1; rows of other values are in none."""

    bits = 1

    def __init__(self, values: tuple[int, ...] = (0, 1, 7)) -> None:
        self.values = values

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return values.count(0), values.count(1)


class OfRanks(Query):
    """A quantile, or several, among 0, 1 and 2: a unit of a score halves the weight of a candidate."""

    def __init__(self, *ranks: Fraction, bits: int, values: tuple[int, ...] = (0, 1, 2)) -> None:
        self.ranks, self.bits, self.values = ranks, bits, values

    def seen(self, kept: Kept) -> Hashable:
        return kept

    def answers(self, every: Sequence[Kept]) -> Callable[[Kept], NDArray[np.object_]]:
        return self._of_groups

    @cache  # noqa: B019 - there are few
    def _of_groups(self, kept: Kept) -> NDArray[np.object_]:
        law, whole = self._laws
        return functools.reduce(
            np.multiply.outer, [np.array([int(p * whole) for p in law[each]], object) for each in kept]
        )

    @functools.cached_property
    def _laws(self) -> tuple[dict[tuple[Any, ...], list[Fraction]], int]:
        """The probabilities of all answers for up to four values, and a common denominator."""
        spec = Quantiles(self.ranks, (0, 2), 0)
        every = [each for n in range(5) for each in itertools.combinations_with_replacement(self.values, n)]
        found = {values: spec.law(_chosen, values, Fraction(self.bits)) for values in every}
        answers = sorted(found[()])
        laws = {values: [law.get(answer, Fraction(0)) for answer in answers] for values, law in found.items()}
        return laws, math.lcm(*(p.denominator for law in laws.values() for p in law))


def _chosen(rank: Fraction, span: tuple[int, int], bits: Any, values: Sequence[int | None]) -> dict[int, Fraction]:
    """The law of one quantile, by the definition of its score."""
    node = Node(rank, span)
    units = Fraction(bits) / 2 / max(rank.numerator, rank.denominator - rank.numerator)
    assert units.denominator == 1
    weights = {place: Fraction(2) ** (units * node.score(values, place)) for place in range(span[0], span[1] + 1)}
    return {place: weight / sum(weights.values()) for place, weight in weights.items()}


class Keys(Query):
    """The keys that occur, each with its noisy number of rows if that is the threshold or more.

    A step of the noise multiplies a probability by r.
    """

    values = ("a", "b", "c")

    def __init__(self, threshold: int, r: Fraction) -> None:
        self.threshold, self.r = threshold, r
        self.bits = (r.denominator - 1).bit_length()

    def seen(self, kept: Kept) -> Hashable:
        """The number of rows of each key that gets noise."""
        return tuple(sorted(Counter(kept[0]).items()))

    def answers(self, every: Sequence[tuple[tuple[Any, int], ...]]) -> Callable[[Any], NDArray[np.object_]]:
        """From the largest number of rows on, a further step of an answer has the same factor for both tables.

        These answers are taken together.
        """
        keys = tuple(sorted({key for seen in every for key, _ in seen}))
        return functools.partial(
            self._of_keys, keys, max([self.threshold, *(rows for seen in every for _, rows in seen)])
        )

    @cache  # noqa: B019 - there are few
    def _of_keys(self, keys: tuple[Any, ...], top: int, seen: tuple[tuple[Any, int], ...]) -> NDArray[np.object_]:
        laws = [self._law(dict(seen).get(key), top) for key in keys]
        return functools.reduce(np.multiply.outer, laws, np.array([1], object))

    def _law(self, rows: int | None, top: int) -> NDArray[np.object_]:
        """The probabilities of no answer and of those from the threshold on; without rows there is no answer."""
        answers = range(self.threshold, top + 1)
        at_least = [Fraction(0) if rows is None else self.tail(answer - rows) for answer in answers]
        law = [1 - at_least[0], *(p - q for p, q in itertools.pairwise(at_least)), at_least[-1]]
        return np.array(law, object)

    def excess(self, one: Law, other: Law, bits: int) -> Fraction:
        """The distance of the laws of answers: the least delta."""
        differences, whole = self.differences(one, other, bits)
        return sum(np.maximum(differences, 0).flat, Fraction(0)) / whole

    def reaches(self, rows: int) -> Fraction:
        """The probability that the noisy number of rows is the threshold or more, t(v)."""
        return self.tail(self.threshold - rows)

    def tail(self, noise: int) -> Fraction:
        """The probability that the noise is this or more."""
        return self.r**noise / (1 + self.r) if noise > 0 else 1 - self.r ** (1 - noise) / (1 + self.r)

    def delta(self, rows: int) -> Fraction:
        """What theorem 3 says."""
        return max(self.reaches(rows), 1 - (1 - self.reaches(1)) ** rows)


# --- tables and their neighbours -------------------------------------------------------------------------------------


def tables(
    rows: int, persons: Sequence[str | None], groups: Sequence[str | None], values: int, *, ordered: bool = False
) -> Iterator[Table]:
    """All tables of up to so many rows and so many values: in all orders; or in one, and up to the names of persons."""
    kinds = [Row(*kind) for kind in itertools.product(persons, groups, [*range(values), None])]
    for count in range(rows + 1):
        if ordered:
            yield from itertools.product(kinds, repeat=count)
            continue
        for table in itertools.combinations_with_replacement(kinds, count):
            found = list(dict.fromkeys(row.person for row in table if row.person is not None))
            if found == list(persons[: len(found)]):
                yield table


def without_a_person(table: Table) -> Iterator[Table]:
    """The table without the rows of a person, for each person, and without a row of no person, for each of these."""
    for person in {row.person for row in table} - {None}:
        yield tuple(row for row in table if row.person != person)
    for place, row in enumerate(table):
        if row.person is None:
            yield table[:place] + table[place + 1 :]


def neighbours(read: Callable[[Table], T], every: Iterable[Table]) -> set[tuple[T, T]]:
    """What is read of two tables that differ by a person."""
    read = cache(read)
    return {(read(table), read(smaller)) for table in every for smaller in without_a_person(table)}


def worst_excess(query: Query, law: Callable[[T], Law], pairs: Iterable[tuple[T, T]], bits: int) -> Fraction:
    """The worst over all neighbours, in both directions."""

    def seen(read: T) -> frozenset[tuple[Hashable, Fraction]]:
        kept = ((tuple(tuple(query.values[i] for i in each) for each in one), p) for one, p in law(read).items())
        return frozenset(mixed((query.seen(one), p) for one, p in kept).items())

    seen = cache(seen)
    laws = {pair for one, other in pairs for pair in itertools.permutations((seen(one), seen(other)))}
    return max(query.excess(dict(one), dict(other), bits) for one, other in laws)
