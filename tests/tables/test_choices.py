"""The rows that are kept, and what is released of them, are those of the specification, for each choice that there is.

Every outcome of selection sampling is brought about by the words that give it. Together with the laws of the
specification and of the noise, which other tests check, that is the law of the release.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from tables.specification import Bound, Keys, Row, by_selection_sampling, kept_rows, runs, tables

from dpnoise import Table, _native, queries
from dpnoise.accounting import Ledger, PrivacyCost
from dpnoise.hazmat import ScriptedRng, SeededRng

TAIL = random.Random(7).randbytes(1 << 14)
PERSONS = ("a", "b", None)
BOUNDS = [Bound(1), Bound(2)]
CORNERS = [Bound(2, 1), Bound(3, 1, 2), Bound(3, 2, 1), Bound(3, None, 1), Bound(3, 2, 2)]


def words(drawn: list[tuple[int, int]], *, last: bool) -> bytes:
    """The first or the last words with which these numbers are drawn: a number is floor(word * limit / 2**64)."""
    ends = [((number + 1 << 64) // limit - 1 if last else -((-number << 64) // limit)) for number, limit in drawn]
    return b"".join(end.to_bytes(8, "little") for end in ends)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_words_choose_rows(most: int) -> None:
    for count in range(5):
        for codes in itertools.product([0, 1, 2, -1], repeat=count):
            table = tuple(Row(None if code < 0 else f"{code}", "x", 0) for code in codes)
            for kept, drawn in runs(partial(by_selection_sampling, table, Bound(most))):
                for last in (False, True):
                    rng = ScriptedRng(words(drawn, last=last))
                    found = _native.keep_rows(np.array(codes, np.int32), 4, most, rng)
                    assert (frozenset(np.flatnonzero(found)), rng.remaining) == (kept, 0)


def test_a_word_between_two_numbers_is_decided_by_the_next() -> None:
    third = 2**64 // 3
    for after, is_kept in [(third - 1, 1), (third + 1, 0)]:
        script = third.to_bytes(8, "little") + bytes(16) + after.to_bytes(8, "little")
        assert _native.keep_rows(np.zeros(3, np.int32), 1, 1, ScriptedRng(script))[0] == is_kept


class Asked(NamedTuple):
    """A query, its two values and a missing one, and those values that are as good as missing."""

    make: Callable[..., Any]
    values: tuple[Any, Any] = (-1.0, 2.0)
    missing: Any = None
    left_out: tuple[int, ...] = ()


BOUNDS_OF_VALUES = (-1, 2)
ASKED = {
    "Count": Asked(queries.Count, (0.0, 8.0)),
    "Count of truths": Asked(queries.Count, (True, False), False, (1,)),
    "Sum": Asked(partial(queries.Sum, bounds=BOUNDS_OF_VALUES)),
    "Sum on a grid": Asked(partial(queries.Sum, bounds=BOUNDS_OF_VALUES, granularity=1.0)),
    "Mean": Asked(partial(queries.Mean, bounds=BOUNDS_OF_VALUES), missing=math.nan),
    "Variance": Asked(partial(queries.Variance, bounds=BOUNDS_OF_VALUES)),
    "StandardDeviation": Asked(partial(queries.StandardDeviation, bounds=BOUNDS_OF_VALUES)),
    "Histogram of bins": Asked(partial(queries.Histogram, edges=[0, 1, 2]), (0.5, 7.0), None, (1,)),
    "Histogram of labels": Asked(partial(queries.Histogram, domain=["b", "a"]), ("a", "z"), None, (1,)),
    "StabilityHistogram": Asked(partial(queries.StabilityHistogram, delta=0.9), ("a", "b")),
    "Median": Asked(partial(queries.Median, bounds=BOUNDS_OF_VALUES, granularity=1.0)),
    "Quantile": Asked(partial(queries.Quantile, q=0.25, bounds=BOUNDS_OF_VALUES)),
    "Quantiles": Asked(partial(queries.Quantiles, q=[0.25, 0.5], bounds=BOUNDS_OF_VALUES)),
}


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(np.all(one == other))


def check_the_rows_that_are_asked_about(name: str, missing_person: Any) -> None:
    make, values, missing, left_out = ASKED[name]
    for bound in BOUNDS:
        asked = queries.PerPerson(make(epsilon=0.7), person="user", rows=bound.rows, missing_person=missing_person)
        for table in tables(3, PERSONS, "x", 2):
            column = [missing if row.value is None else values[row.value] for row in table]
            read = tuple(row._replace(value=None) if row.value in left_out else row for row in table)
            for kept, drawn in runs(partial(kept_rows, read, bound, "x", missing_person)):
                rng, rest = ScriptedRng(words(drawn, last=False) + TAIL), ScriptedRng(TAIL)
                found = asked.release(column, [row.person for row in table], rng=rng)
                of_kept = [value if place in kept else missing for place, value in enumerate(column)]
                assert same(found, asked.row_level.release(of_kept, rng=rest))
                assert rng.remaining == rest.remaining


@pytest.mark.parametrize("missing_person", ["drop", "own"])
@pytest.mark.parametrize("name", ASKED)
def test_the_query_of_rows_is_asked_about_the_rows_that_are_kept(name: str, missing_person: Any) -> None:
    check_the_rows_that_are_asked_about(name, missing_person)


def first_rows(codes: NDArray[np.int32], count: int, most: int, rng: Any) -> NDArray[np.uint8]:
    """A planted fault: the first rows are kept."""
    before = (np.count_nonzero(codes[:place] == code) for place, code in enumerate(codes))
    KEEP_ROWS(codes, count, most, rng)  # takes as many words
    return np.array([code >= 0 and each < most for code, each in zip(codes, before, strict=True)], np.uint8)


def last_person(codes: NDArray[np.int32], count: int, most: int, rng: Any) -> NDArray[np.uint8]:
    """A planted fault: a row without a person has the code -1, which is that of the last one."""
    return KEEP_ROWS(np.where(codes < 0, np.int32(count - 1), codes), count, most, rng)


KEEP_ROWS = _native.keep_rows


@pytest.mark.parametrize("fault", [first_rows, last_person])
def test_other_choices_are_found(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "keep_rows", fault)
    with pytest.raises(AssertionError):
        check_the_rows_that_are_asked_about("Sum", "drop")


@pytest.mark.parametrize(("missing_person", "other"), [("drop", False), ("own", True)])
@pytest.mark.parametrize("bound", BOUNDS + CORNERS, ids=str)
def test_groups_have_the_rows_that_are_kept(bound: Bound, missing_person: Any, other: bool) -> None:
    """Without noise, a sum of powers of two tells which rows are in it."""
    keys = ("y", "x", None) if other else ("y", "x")
    total = queries.Sum(bounds=(0, 8), epsilon=1e6, granularity=1.0)
    every = tables(3, PERSONS, ("x", "y", None), 1)
    for table in (table for table in every if len(table) < 3 or all(row.value is not None for row in table)):
        frame = {
            "user": [row.person for row in table],
            "group": [row.group for row in table],
            "value": [None if row.value is None else 2.0**place for place, row in enumerate(table)],
        }
        asked = Table(frame, person="user", rows=bound.rows, missing_person=missing_person).by(
            "group", keys=["y", "x"], other=other, rows_per_group=bound.rows_per_group, groups=bound.groups
        )
        for kept, drawn in runs(partial(kept_rows, table, bound, keys, missing_person)):
            found = asked.release(total=("value", total), rng=ScriptedRng(words(drawn, last=True) + TAIL))
            assert found.value == [sum(2**place for place in kept if table[place].group == key) for key in keys]


@pytest.mark.parametrize("name", [name for name in ASKED if name != "StabilityHistogram"])
def test_groups_are_answered_in_order(name: str) -> None:
    make, values, missing, left_out = ASKED[name]
    table = (Row("a", "x", 0), Row("b", "y", None), Row("a", "x", 1), Row("b", None, 0), Row("b", "x", 0))
    table += (Row("a", "y", 0), Row(None, "y", 0), Row("b", "y", 1))
    column = [missing if row.value is None else values[row.value] for row in table]
    read = tuple(row._replace(value=None) if row.value in left_out else row for row in table)
    frame = {"user": [row.person for row in table], "group": [row.group for row in table], "value": column}
    keys, query = ["y", "z", "x"], make(epsilon=9.0)
    of_rows: Any = queries.PerPerson(query, person="user", rows=2).row_level
    for kept, drawn in runs(partial(kept_rows, read, Bound(2), keys, "drop")):
        rng, rest = ScriptedRng(words(drawn, last=True) + TAIL), ScriptedRng(TAIL)
        asked = Table(frame, person="user", rows=2).by("group", keys=keys)
        found = asked.release(one=("value", query), level=0.9, rng=rng)["one"]
        answers: list[Any] = []
        for key in keys:
            places = [place for place, row in enumerate(table) if row.group == key]
            answer = of_rows.release([column[place] if place in kept else missing for place in places], rng=rest)
            answers += answer.values() if isinstance(answer, dict) else np.ravel(answer).tolist()
        assert (found.values, rng.remaining) == (answers, rest.remaining)
        if found.errors is None:
            assert found.rank_error == of_rows.rank_error(0.9)
        elif not isinstance(of_rows, queries.Mean | queries.Variance):
            assert set(found.errors) == {of_rows.error(0.9)}


@pytest.mark.parametrize("name", ["Mean", "Variance"])
def test_errors_of_means_are_made_of_what_is_released(name: str) -> None:
    """By the noisy number of rows, which is released, and not by the true one."""
    query: Any = ASKED[name].make(epsilon=6.0)
    asked = Table({"group": [*"x" * 20, *"y" * 30], "value": [-1.0, 2.0] * 25}).by("group", keys=["x", "y", "z"])
    widest = query.error(rows=1)
    of_true_numbers = [query._native.error_of_release(rows, 0.95) for rows in (20, 30, 0)]
    others = 0
    for seed in range(20):
        rng, rest = SeededRng(seed), SeededRng(seed)
        found = asked.release(one=("value", query), rng=rng)["one"].errors
        noisy = [query._native.release(np.array(rows), 1, rest)[1] for rows in ([-1.0, 2.0] * 10, [-1.0, 2.0] * 15, [])]
        assert found == [query._native.error_of_release(rows, 0.95) for rows in noisy]
        assert max(found[:2]) < widest == found[2]
        others += found != of_true_numbers
    assert others


@pytest.mark.parametrize("bound", BOUNDS + CORNERS, ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_epsilon_of_a_row_is_a_share_rounded_down(name: str, bound: Bound) -> None:
    for epsilon in (0.7, 1 / 3, 1.0, 1e-4, 37.5):
        query = ASKED[name].make(epsilon=epsilon)
        asked = queries.PerPerson(
            query, person="user", rows=bound.rows, rows_per_group=bound.rows_per_group, groups=bound.groups
        )
        share = asked.row_level.epsilon
        assert Fraction(share) * bound.total <= Fraction(epsilon) < Fraction(math.nextafter(share, 1e9)) * bound.total
        assert repr(asked.row_level) == repr(ASKED[name].make(epsilon=share))
        assert (asked.epsilon, asked.delta) == (query.epsilon, query.delta)
        if name != "StabilityHistogram":
            row, all_rows, pure, found = map(rho_of, (asked.row_level, query, PrivacyCost(epsilon), asked))
            exact = min(row * bound.squares, all_rows, pure)
            assert exact <= found <= exact * (1 + Fraction(1, 2**50))


def rho_of(asked: Any) -> Fraction:
    ledger = Ledger(":memory:", rho=1e9, person=asked.person)
    ledger.spend(asked)
    return Fraction(ledger.spent.rho)


@pytest.mark.parametrize(("epsilon", "rows"), [(4.0, 2), (8.0, 5), (1.0, 1), (1.0, 2), (0.3, 7), (0.1, 3)])
def test_the_threshold_of_private_keys_is_the_least(epsilon: float, rows: int) -> None:
    """It is decided at the floats on either side of each delta where it changes."""

    def of_persons(delta: float) -> Any:
        query = queries.StabilityHistogram(epsilon=epsilon, delta=delta)
        return queries.PerPerson(query, person="user", rows=rows).row_level

    with mpmath.workdps(100):
        ratio = mpmath.exp(-mpmath.mpf(epsilon) / rows).as_integer_ratio()
    for threshold in range(1, 40):
        exact = Keys(threshold, Fraction(*map(int, ratio))).delta(rows)
        enough = float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), 1.0)
        if enough < 1.0:
            assert of_persons(enough).threshold == threshold
            assert of_persons(math.nextafter(enough, 0.0)).threshold == threshold + 1
