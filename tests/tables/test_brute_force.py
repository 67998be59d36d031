"""Persons and groups over all small tables and all their neighbours, in exact fractions; and the faults that are found.

The specification has tables of up to four rows, three persons and rows of no person, two groups and rows of no group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
from tables import faults
from tables.specification import (
    Bound,
    Count,
    Histogram,
    Keys,
    Law,
    Mean,
    OfRanks,
    Persons,
    Query,
    Row,
    Sum,
    Table,
    Variance,
    by_selection_sampling,
    chosen_rows,
    kept_of,
    neighbours,
    outcomes,
    persons_of,
    tables,
    worst_excess,
)

PERSONS = ("a", "b", "c", None)
ONE, TWO, THREE = ("x",), ("x", "y"), ("x", "y", "z")
BOUNDS = [Bound(1), Bound(2)]
CORNERS = [Bound(2, 1), Bound(3, 1, 2), Bound(3, 2, 2), Bound(3, 2, 1), Bound(3, None, 1)]

median, third = OfRanks(Fraction(1, 2), bits=2), OfRanks(Fraction(1, 3), bits=4)
two = OfRanks(Fraction(1, 4), Fraction(1, 2), bits=4)
median_of_two, two_of_two = (OfRanks(*each.ranks, bits=each.bits, values=(0, 2)) for each in (median, two))
ADDITIVE = [Count(), Sum(), Mean(), Variance(), Histogram()]


@cache
def pairs_of(values: int, keys: tuple[str, ...], missing_person: str = "own") -> set[tuple[Persons, Persons]]:
    """With rows of no person as persons of their own, there are all the pairs that there are without these rows."""
    groups = keys if keys == ONE else (*keys, None)
    read = partial(persons_of, keys=keys, missing_person=missing_person)
    return neighbours(read, tables(4, PERSONS, groups, values))


def excess(query: Query, bound: Bound, keys: tuple[str, ...], bits: int) -> Fraction:
    """The worst excess for `bits` of epsilon."""
    return worst_excess(query, partial(kept_of, bound, keys), pairs_of(len(query.values), keys), bits)


# --- what is kept ----------------------------------------------------------------------------------------------------


@cache
def tables_of_persons(groups: str) -> list[Table]:
    """All tables of up to four rows of two persons, and of no person, with values that fall from row to row."""
    return [
        tuple(Row(person, group, 4 - place) for place, (person, group) in enumerate(rows))
        for count in range(5)
        for rows in itertools.product(itertools.product(("a", "b", None), groups), repeat=count)
    ]


def is_the_law(procedure: Any, bound: Bound) -> bool:
    every = tables_of_persons("xy" if bound.groups or bound.rows_per_group else "x")
    return all(outcomes(partial(procedure, table, bound)) == chosen_rows(table, bound) for table in every)


@pytest.mark.parametrize("bound", BOUNDS + CORNERS, ids=str)
def test_selection_sampling_keeps_all_sets_of_rows_with_one_probability(bound: Bound) -> None:
    assert is_the_law(by_selection_sampling, bound)


@pytest.mark.parametrize("fault", faults.BIASED)
def test_biased_choices_are_private_and_are_found(fault: Any) -> None:
    bound = Bound(2, 1, 1) if fault is faults.groups_by_their_rows else Bound(1)
    assert not is_the_law(fault, bound)
    pairs = neighbours(tuple, tables(3, ("a", "b"), TWO, 2, ordered=True))
    assert worst_excess(Sum(), faults.law_of(fault, bound, TWO), pairs, 2 * bound.total) <= 0


@pytest.mark.parametrize("rows", range(1, 5))
def test_the_most_rows_of_a_person_are_at_the_corner(rows: int) -> None:
    for each, groups in itertools.product([None, *range(1, 5)], repeat=2):
        bound = Bound(rows, each, groups)
        kept = [
            [sum(places[place] == group for place in chosen) for group in "wxyz"]
            for places in itertools.combinations_with_replacement("wxyz", 6)
            for chosen in bound.of_person(places)
        ]
        assert max(map(sum, kept)) == bound.total
        squares = max(sum(number**2 for number in numbers) for numbers in kept)
        assert squares == bound.squares
        # The control: a bound of all rows alone does not spread them.
        assert (squares == bound.total) == (bound.corner[0] == 1)


def test_rows_without_a_person_are_no_persons_or_their_own() -> None:
    for table in tables(3, PERSONS, (*TWO, None), 1):
        named = tuple(row for row in table if row.person is not None)
        assert persons_of(table, TWO) == persons_of(named, TWO) == persons_of(named, TWO, "own")
        own = tuple(row._replace(person=row.person or f"{place}") for place, row in enumerate(table))
        assert persons_of(table, TWO, "own") == persons_of(own, TWO)
    assert pairs_of(2, TWO, "drop") < pairs_of(2, TWO, "own")


# --- privacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("query", ADDITIVE, ids=lambda query: type(query).__name__)
def test_epsilon_of_noisy_numbers_is_exact(query: Query, bound: Bound) -> None:
    assert excess(query, bound, ONE, query.bits * bound.total) == 0


@pytest.mark.parametrize("bound", BOUNDS + CORNERS, ids=str)
@pytest.mark.parametrize("query", [*ADDITIVE[:-1], Histogram(values=(0, 1))], ids=lambda query: type(query).__name__)
def test_epsilon_of_noisy_numbers_of_groups_is_exact(query: Query, bound: Bound) -> None:
    assert excess(query, bound, TWO, query.bits * bound.total) == 0


@pytest.mark.parametrize("bound", [Bound(3), *CORNERS], ids=str)
def test_epsilon_of_counts_of_three_groups_is_exact(bound: Bound) -> None:
    assert excess(Count(values=(5,)), bound, THREE, bound.total) == 0


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("query", [median, third, two], ids=["median", "third", "two"])
def test_epsilon_of_quantiles_holds(query: OfRanks, bound: Bound) -> None:
    bits = query.bits * bound.total
    assert excess(query, bound, ONE, bits) < 0 < excess(query, bound, ONE, bits // 2)


@pytest.mark.parametrize("bound", BOUNDS + CORNERS, ids=str)
@pytest.mark.parametrize("query", [median_of_two, two_of_two], ids=["median", "two"])
def test_epsilon_of_quantiles_of_groups_holds(query: OfRanks, bound: Bound) -> None:
    bits = query.bits * bound.total
    assert excess(query, bound, TWO, bits) < 0 < excess(query, bound, TWO, bits // 4)


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("threshold", range(4))
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_delta_of_private_keys_is_that_of_the_theorem(rows: int, threshold: int, bits: int) -> None:
    keys = Keys(threshold, Fraction(1, 2**bits))
    assert excess(keys, Bound(rows), ONE, bits * rows) == keys.delta(rows)


# --- faults ----------------------------------------------------------------------------------------------------------


class Fault(NamedTuple):
    """A fault in the choice or in the query, and tables that show it."""

    query: Query
    bound: Bound
    every: Sequence[Any]  # the arguments of `tables`
    delta: Fraction = Fraction(0)
    keys: tuple[str, ...] = ONE
    wrong_query: Query | None = None
    wrong_law: Callable[[Bound, tuple[str, ...]], Callable[[Table], Law]] | None = None
    ordered: bool = False


QUARTER = Fraction(1, 4)


def for_delta_of_a_row(delta: Fraction) -> Keys:
    """The least threshold that a single row reaches with a probability of at most delta."""
    every = (Keys(threshold, QUARTER) for threshold in range(1, 99))
    return next(keys for keys in every if keys.reaches(1) <= delta)


of_keys = Keys(3, QUARTER)
FAULTS = {
    "m rows in each group": Fault(Count(), Bound(1), (2, "a", TWO, 1), keys=TWO, wrong_law=faults.in_each_group),
    "epsilon of one row in the sum": Fault(
        Mean(), Bound(2), (2, "a", ONE, 2), wrong_query=faults.of_one_row(Mean, 0, 2)
    ),
    "epsilon of one row in the count": Fault(
        Mean(), Bound(2), (2, "a", ONE, 2), wrong_query=faults.of_one_row(Mean, 1, 2)
    ),
    "epsilon of one row in a quantile": Fault(
        median, Bound(2), (4, "ab", ONE, 3), wrong_query=OfRanks(*median.ranks, bits=4)
    ),
    "delta of one row": Fault(
        of_keys, Bound(2), (2, "a", ONE, 3), Fraction(1, 5), wrong_query=for_delta_of_a_row(Fraction(1, 5))
    ),
    "delta / m of one row": Fault(
        of_keys, Bound(2), (2, "a", ONE, 3), Fraction(2, 5), wrong_query=for_delta_of_a_row(Fraction(2, 5) / 2)
    ),
    "missing ids as the last person": Fault(
        Histogram(), Bound(1), (4, ("a", "b", None), TWO, 2), keys=TWO, wrong_law=faults.missing_as_the_last
    ),
    "merged ids": Fault(Histogram(), Bound(1), (2, ("A", "a"), ONE, 2), wrong_law=faults.merged_persons),
    "keys by place": Fault(
        Histogram(), Bound(1), (3, "ab", ONE, 2), wrong_law=faults.seed_from_the_place, ordered=True
    ),
    "keys without rows": Fault(
        of_keys,
        Bound(1),
        (2, "a", ONE, 3),
        of_keys.delta(1),
        wrong_query=faults.ZeroCounts(3, QUARTER),
        wrong_law=faults.all_keys,
    ),
    "errors from the true number of rows": Fault(Mean(), Bound(1), (2, "ab", ONE, 2), wrong_query=faults.TrueErrors()),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str) -> None:
    fault = FAULTS[name]

    def law(table: Table) -> Law:
        return kept_of(fault.bound, fault.keys, persons_of(table, fault.keys))

    pairs = neighbours(tuple, tables(*fault.every, ordered=fault.ordered))
    worst = partial(worst_excess, pairs=pairs, bits=fault.query.bits * fault.bound.total)
    assert worst(fault.query, law) <= fault.delta
    wrong_law = fault.wrong_law(fault.bound, fault.keys) if fault.wrong_law else law
    assert worst(fault.wrong_query or fault.query, wrong_law) > fault.delta
