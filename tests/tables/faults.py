"""Planted faults: what is kept of a table, and what is released, as it should not be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables.specification import (
    Below,
    Bound,
    Kept,
    Keys,
    Law,
    Mean,
    Persons,
    Query,
    Table,
    by_group,
    by_selection_sampling,
    kept_of,
    outcomes,
    persons_of,
)


def law_of(procedure: Callable[[Table, Bound, Below], frozenset[int]], bound: Bound, keys: Sequence[str]) -> Any:
    """What is kept of a table by a procedure that sees the rows that take part."""

    def law(table: Table) -> Law:
        rows = tuple(row for row in table if None not in row)
        return by_group(keys, rows, outcomes(partial(procedure, rows, bound)))

    return law


# --- choices that are not uniform, or not independent of each other --------------------------------------------------


def places_of_persons(table: Table) -> list[list[int]]:
    persons = dict.fromkeys(row.person for row in table if row.person is not None)
    return [[place for place, row in enumerate(table) if row.person == person] for person in persons]


def first_rows(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    return frozenset(place for places in places_of_persons(table) for place in places[: bound.rows])


def smallest_values(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    def order(place: int) -> Any:
        return table[place].value, place

    return frozenset(place for places in places_of_persons(table) for place in sorted(places, key=order)[: bound.rows])


def seed_from_the_id(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    kept: list[int] = []
    for places in places_of_persons(table):
        turn = ord(table[places[0]].person or "") % len(places)
        kept += (places[turn:] + places[:turn])[: bound.rows]
    return frozenset(kept)


def one_order_for_all(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    drawn: dict[int, int] = {}

    def once(limit: int) -> int:
        if limit not in drawn:
            drawn[limit] = below(limit)
        return drawn[limit]

    return by_selection_sampling(table, bound, once)


def groups_by_their_rows(table: Table, bound: Bound, below: Below) -> frozenset[int]:
    """The groups of a person are those of the first rows in a random order: those with many rows are preferred."""
    rows: list[int | None] = [None] * len(table)
    for places in places_of_persons(table):
        order = list(places)
        for place in range(len(order) - 1, 0, -1):
            other = below(place + 1)
            order[place], order[other] = order[other], order[place]
        groups = list(dict.fromkeys(table[place].group for place in order))[: bound.groups]
        for place in places:
            rows[place] = place if table[place].group in groups else None
    left = [place for place in rows if place is not None]
    inner = Bound(bound.rows, bound.rows_per_group)
    return frozenset(left[i] for i in by_selection_sampling(tuple(table[i] for i in left), inner, below))


BIASED = [first_rows, smallest_values, seed_from_the_id, one_order_for_all, groups_by_their_rows]


# --- choices that are not private ------------------------------------------------------------------------------------


def in_each_group(bound: Bound, keys: tuple[str, ...]) -> Callable[[Table], Law]:
    """The rows of a person are bounded in each group, and epsilon is that for the rows of one."""
    wrong = Bound(bound.rows * len(keys), bound.rows)
    return lambda table: kept_of(wrong, keys, persons_of(table, keys))


def missing_as_the_last(bound: Bound, keys: tuple[str, ...]) -> Callable[[Table], Law]:
    """The code of a missing person, -1, addresses the last one."""

    def read(table: Table) -> Persons:
        persons = [row.person for row in table if row.person is not None]
        return persons_of(tuple(row._replace(person=row.person or max(persons)) for row in table if persons), keys)

    return lambda table: kept_of(bound, keys, read(table))


def merged_persons(bound: Bound, keys: tuple[str, ...]) -> Callable[[Table], Law]:
    """Two ids have the same code."""
    return lambda table: kept_of(
        bound, keys, persons_of(tuple(row._replace(person=row.person and row.person.lower()) for row in table), keys)
    )


def seed_from_the_place(bound: Bound, keys: tuple[str, ...]) -> Callable[[Table], Law]:
    """The rows with the smallest numbers are kept, which are made of a seed and the place in the table."""
    numbers = [5, 2, 7, 1, 4]

    def procedure(table: Table, bound: Bound, below: Below) -> frozenset[int]:
        ordered = (sorted(places, key=numbers.__getitem__) for places in places_of_persons(table))
        return frozenset(place for places in ordered for place in places[: bound.rows])

    return law_of(procedure, bound, keys)


def all_keys(bound: Bound, keys: tuple[str, ...]) -> Callable[[Table], Law]:
    """What is kept, and all values of the table."""

    def law(table: Table) -> Law:
        found = tuple(sorted({row.value for row in table if None not in row}))
        return {(*kept, found): p for kept, p in kept_of(bound, keys, persons_of(table, keys)).items()}

    return law


# --- releases that are not private -----------------------------------------------------------------------------------


def of_one_row(query: type[Any], part: int, rows: int) -> Query:
    """The noise of one of the numbers of a group is that of one row: a row moves it by as many steps as a person."""

    class Fault(query):  # type: ignore[misc]
        def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
            found = list(super().statistics(values))
            found[part] *= rows
            return tuple(found)

    return Fault()


class ZeroCounts(Keys):
    """Keys of which no row was kept get noise, too."""

    def seen(self, kept: Kept) -> Hashable:
        return tuple(sorted((key, kept[0].count(key)) for key in kept[1]))


class TrueErrors(Mean):
    """The error beside a mean is made of the true number of rows, which so is shown without noise."""

    def statistics(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        return *super().statistics(values), Exact(len(values))

    @staticmethod
    def noisy(window: range, number: int) -> NDArray[np.int64]:
        exact = (np.array(window) == number).astype(np.int64)
        return exact if isinstance(number, Exact) else Mean.noisy(window, number)


class Exact(int):
    """A number without noise."""
