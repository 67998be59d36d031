"""The queries: exact sensitivities, columns of every kind, and what they refuse."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpnoise import DiscreteLaplace, Exponential, NoErrorBound, ParameterError, _columns, hazmat, queries, sensitivity
from dpnoise._numbers import share_of
from dpnoise.accounting import Ledger
from dpnoise.queries import Count, Histogram, Mean, Median, Quantile, Quantiles, StabilityHistogram, Sum, Variance

RELATIONS = ("add/remove", "substitute")

# The noise of one step of the grid at most: what is released is the exact answer.
SURE = 1e9


def moved(query: Any, column: Any, neighbour: Any) -> Fraction:
    """By how much two releases with the same noise differ."""
    first, second = (query.release(rows, rng=hazmat.SeededRng(1)) for rows in (column, neighbour))
    return abs(Fraction(first) - Fraction(second))


# --- labels --------------------------------------------------------------------------------------------------------


def test_a_histogram_is_labelled_by_its_groups() -> None:
    bins = Histogram(edges=[0, 0.1, 25, 1234567.5], epsilon=SURE)
    found = bins.to_pandas(bins.release([0.0, 3, 25, 1234567.5, 30]))
    assert found.to_dict() == {"[0, 0.1)": 1, "[0.1, 25)": 1, "[25, 1234567.5]": 3}
    assert (found.name, found.dtype) == ("count", np.int64)
    assert Histogram(edges=[0, 1], epsilon=SURE).to_pandas(np.array([4])).to_dict() == {"[0, 1]": 4}
    drinks = Histogram(domain=["tea", "rum"], epsilon=SURE)
    assert drinks.to_pandas(drinks.release(["rum", "rum"])).to_dict() == {"tea": 0, "rum": 2}
    for released in (np.array([1, 2, 3]), {"tea": 1}):
        with pytest.raises(ParameterError, match=r"^released must be a release of this histogram, of 2 counts$"):
            drinks.to_pandas(released)


def test_bins_may_be_without_an_end() -> None:
    assert Histogram(edges=[0, 18, 65, math.inf], epsilon=SURE).release([5, 30, 70, 80]).tolist() == [1, 1, 2]
    column = [-math.inf, -1e308, -1, 0, 10**400, math.inf, -(10**400), None, math.nan]
    for edges, counts in (([-math.inf, 0, math.inf], [4, 3]), ([0, math.inf], [3]), ([-math.inf, -1], [4])):
        bins = Histogram(edges=edges, epsilon=SURE)
        assert bins.release(column).tolist() == counts
        assert pickle.loads(pickle.dumps(bins)) == bins  # noqa: S301
    ends = Histogram(edges=[-math.inf, 0.5, math.inf], epsilon=SURE)
    assert ends.to_pandas(ends.release(column)).to_dict() == {"[-inf, 0.5)": 5, "[0.5, inf]": 2}


ODD = [
    [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0],
    [2**70, -(2**70), 10**400, 1, 2, 3, None],
    np.array([np.nan, np.inf, 1e300], np.longdouble),
    np.frombuffer(bytes.fromhex("010000000000f07f") * 3),  # signalling NaN
    pd.Series([1, None, 3], dtype="Int64"),
    pd.Series([np.inf, None, 1e308], dtype="Float64"),
    pl.Series([math.inf, None, math.nan]),
    pa.array([math.inf, None, math.nan]),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("column", ODD, ids=lambda column: f"{type(column).__module__} {type(column).__name__}")
def test_no_values_cause_a_warning(column: Any, relation: Any) -> None:
    bounds = (-1e200, 1e200)
    for query in (
        Count(epsilon=1.0, relation=relation),
        *(kind(bounds=bounds, epsilon=1.0, relation=relation) for kind in (Sum, Mean, Median)),
        Variance(bounds=(-1e100, 1e100), epsilon=1.0, relation=relation),
        Histogram(edges=[-1e308, 0, 1e308], epsilon=1.0, relation=relation),
        Histogram(domain=[1, 2], epsilon=1.0, relation=relation),
        StabilityHistogram(epsilon=1.0, delta=0.1, relation=relation),
    ):
        query.release(column)


# --- sums ----------------------------------------------------------------------------------------------------------


def test_a_float_sum_moves_by_more_than_its_sensitivity_and_ours_does_not() -> None:
    # From 2^62 on sums are multiples of 1024: a row rounds down or up, though it moves by 2 only.
    bounds = (2.0**50 + 511, 2.0**50 + 513)
    column = np.full(5000, bounds[0])
    neighbour = column.copy()
    neighbour[-1] = bounds[1]
    query = Sum(bounds=bounds, epsilon=1.0, relation="substitute")
    assert query.sensitivity == sensitivity.sum(bounds, "substitute") == 2.0
    assert np.cumsum(neighbour)[-1] - np.cumsum(column)[-1] == 512 * query.sensitivity, "the control"
    assert moved(query, column, neighbour) <= query.sensitivity


def test_a_row_that_is_added_does_not_change_how_the_others_are_rounded() -> None:
    # Single precision, rows in order: below 2^12 a row of 2^-12 is added, from there on it is lost.
    small = np.full(2**23, 2.0**-12, np.float32)
    large = np.full(2**12 - 2**10, 1.0, np.float32)
    column, neighbour = np.concatenate([large, small]), np.concatenate([large, [np.float32(1)] * 1, small])
    bounds = (0.0, 1.0)
    query = Sum(bounds=bounds, epsilon=1.0)
    assert moved(query, column, neighbour) == query.sensitivity == 1.0
    shuffled = np.random.default_rng(0).permutation(column)
    assert moved(query, column, shuffled) == 0
    in_order = [np.cumsum(rows, dtype=np.float32)[-1] for rows in (column, shuffled)]
    assert abs(float(in_order[0]) - float(in_order[1])) > 1.0, "the control: the order of the rows counts for float32"


def test_integers_do_not_wrap_around() -> None:
    column = np.full(4, 2**62, np.int64)
    assert column.sum() == 0, "the control"
    assert Sum(bounds=(0, 2**62), epsilon=SURE).release(column) == pytest.approx(2.0**64, rel=1e-6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_are_clamped(relation: Any) -> None:
    query = Sum(bounds=(-1, 3), epsilon=SURE, relation=relation)
    column = [5.0, -math.inf, 2.5, math.inf, 0.0]
    assert query.release(column) == pytest.approx(3 - 1 + 2.5 + 3, abs=1e-6)
    missing = 0.0 if relation == "add/remove" else 1.0
    assert query.release([*column, math.nan]) == pytest.approx(7.5 + missing, abs=1e-6)
    assert query.release([]) == pytest.approx(0, abs=1e-6)
    assert (query.sensitivity, query.bounds, query.relation) == (
        3 if relation == "add/remove" else 4,
        (-1, 3),
        relation,
    )
    assert query.scale == query.sensitivity / SURE


def test_the_error_of_a_sum_is_that_of_its_noise() -> None:
    query = Sum(bounds=(0, 10), epsilon=0.5, granularity=0.5)
    released = np.array([query.release([1.0, 2.0]) for _ in range(4000)])
    assert np.mean(np.abs(released - 3.0) <= query.error(0.9)) == pytest.approx(0.9, abs=0.03)
    assert np.array_equal(released, np.rint(released * 2) / 2)
    assert query.error(0.9) == pytest.approx(20 * math.log(10), rel=0.02)


# --- the other queries ---------------------------------------------------------------------------------------------


def neighbours(values: list[float], rows: int, relation: str) -> list[tuple[list[float], list[float]]]:
    """All pairs of neighbouring columns of so many rows."""
    columns = itertools.product(values, repeat=rows)
    if relation == "add/remove":
        return [(list(column), list(column[:-1])) for column in columns]
    return [(list(column), [*column[:-1], value]) for column in columns for value in values]


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_count_moves_by_its_sensitivity_at_most(relation: Any) -> None:
    values = [math.nan, 0.0, 0.5, 1.0, 2.0]
    histogram = Histogram(epsilon=1.0, edges=[0, 1, 2], relation=relation)
    sure = Histogram(epsilon=SURE, edges=[0, 1, 2], relation=relation)
    worst = 0
    for column, neighbour in neighbours(values, 3, relation):
        counts, others = sure.release(np.array(column)), sure.release(np.array(neighbour))
        worst = max(worst, int(np.abs(counts - others).sum()))
        assert moved(Count(epsilon=1.0, relation=relation), column, neighbour) <= sensitivity.count(relation)
    assert worst == sensitivity.histogram(relation) == histogram.scale


@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_are_right_when_epsilon_is_large(relation: Any) -> None:
    column = np.random.default_rng(3).normal(40, 12, 2001)
    clamped = np.clip(column, 10, 60)
    sure: dict[str, Any] = {"epsilon": SURE, "relation": relation}
    assert Count(**sure).release(column > 40) == np.sum(column > 40)
    assert Count(**sure).release([1.0, None, math.nan, 3.0]) == 2
    assert Mean(bounds=(10, 60), **sure).release(column) == pytest.approx(clamped.mean(), abs=1e-6)
    assert Variance(bounds=(10, 60), **sure).release(column) == pytest.approx(clamped.var(), abs=1e-5)
    edges = np.arange(10, 61, 5)
    assert np.array_equal(Histogram(edges=edges, **sure).release(column), np.histogram(column, edges)[0])
    by_name = Histogram(domain=["tea", "coffee"], **sure)
    assert by_name.release(["coffee", "tea", "water", None, "coffee"]) == {"tea": 1, "coffee": 2}
    for q in (0.1, 0.5, 0.9):
        quantile = Quantile(q=q, bounds=(10, 60), **sure)
        assert quantile.release(column) == pytest.approx(np.quantile(clamped, q), abs=0.2)
    assert Median(bounds=(10, 60), **sure).release(column) == pytest.approx(np.median(column), abs=0.1)


def test_means_stay_within_their_bounds() -> None:
    # Each bound is reached in more than a fifth of the releases.
    for relation in RELATIONS:
        released = [Mean(bounds=(5, 6), epsilon=0.01, relation=relation).release([5.5] * 3) for _ in range(200)]
        assert (min(released), max(released)) == (5, 6)
        spread = Variance(bounds=(5, 6), epsilon=10.0, relation=relation)
        released = [spread.release(column) for column in ([5.5] * 3, [5, 6]) for _ in range(200)]
        assert (min(released), max(released)) == (0, 0.25)


def test_parts_of_epsilon_are_no_more_than_the_whole() -> None:
    for epsilon in (1.0, 0.1, 0.7, 1e-3, 5e-324, 3.0, 1 / 3):
        for parts in (1, 2, 3):
            share = share_of(epsilon, parts)
            assert share * Fraction(parts) <= Fraction(epsilon)
            assert math.nextafter(share, 1e9) * Fraction(parts) >= Fraction(epsilon)
    more = [epsilon for epsilon in np.linspace(0.1, 1, 100).tolist() if Fraction(epsilon / 3) * 3 > Fraction(epsilon)]
    assert more, "the control: dividing is not enough"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 20.0])
def test_the_threshold_is_the_smallest_that_keeps_delta(epsilon: float, relation: Any) -> None:
    for delta in (0.7, 0.1, 1e-3, 1e-9, 1e-300):
        histogram = StabilityHistogram(epsilon=epsilon, delta=delta, relation=relation)
        r = math.exp(-1 / histogram.scale)

        def log_of_reaching(threshold: int, r: float = r, scale: float = histogram.scale) -> float:
            return -(threshold - 1) / scale - math.log1p(r)

        assert log_of_reaching(histogram.threshold) <= math.log(delta)
        assert histogram.threshold == 1 or log_of_reaching(histogram.threshold - 1) > math.log(delta) - 1e-9


def test_rare_values_are_not_released() -> None:
    histogram = StabilityHistogram(epsilon=1.0, delta=0.01)
    column = ["tea"] * 500 + ["coffee"] * 300 + [f"only {person}" for person in range(5000)]
    released = histogram.release(column)
    rare = [value for value in released if value.startswith("only")]
    assert {"tea", "coffee"} <= set(released)
    assert list(released) == sorted(released)
    # Each with a probability of 0.0049, which is at most 0.01: that of none of 5000 is 2e-11. That of more than 100 is
    # 6e-31, and would be 1.2e-10 at 0.01.
    assert 0 < len(rare) <= 100
    assert all(count >= histogram.threshold for count in released.values())
    assert histogram.delta == histogram.cost.delta == 0.01
    assert StabilityHistogram(epsilon=SURE, delta=0.5).release([3, 1, 3, 2, 3, 2]) == {2: 2, 3: 3}


# --- columns -------------------------------------------------------------------------------------------------------


class OnlyArrow:
    """A column that nothing is known of but that it speaks Arrow."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


NUMBERS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    lambda rows: np.array(rows, float),
    lambda rows: np.ma.masked_invalid(np.array(rows, float)),
    lambda rows: pd.Series(rows, dtype="float64"),
    lambda rows: pd.Series(rows, dtype="Int64"),
    pl.Series,
    pa.array,
    lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
    lambda rows: OnlyArrow(pa.array(rows)),
    lambda rows: pa.array(rows).dictionary_encode(),
    lambda rows: pa.chunked_array([pa.array(rows).dictionary_encode()]),
]


@pytest.mark.parametrize("make", NUMBERS)
def test_columns_of_every_library(make: Callable[[list[Any]], Any]) -> None:
    column = make([3, None, 4, 4])
    assert Sum(bounds=(0, 10), epsilon=SURE).release(column) == pytest.approx(11, abs=1e-6)
    assert Count(epsilon=SURE).release(column) == 3
    assert Histogram(epsilon=SURE, edges=[0, 3.5, 10]).release(column).tolist() == [1, 2]
    assert Histogram(epsilon=SURE, domain=[4, 5]).release(column) == {4: 2, 5: 0}
    assert StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {4: 2}


@pytest.mark.parametrize(
    "make",
    [
        list,
        pd.Series,
        lambda rows: pd.Series(rows, dtype="boolean"),
        pl.Series,
        pa.array,
        lambda rows: OnlyArrow(pa.array(rows)),
        lambda rows: pa.chunked_array([pa.array(rows).dictionary_encode()]),
    ],
)
def test_conditions_of_every_library(make: Callable[[list[Any]], Any]) -> None:
    assert Count(epsilon=SURE).release(make([True, None, False, True])) == 2
    assert Count(epsilon=SURE).release(make([True, False])) == 1


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_texts_of_every_library(make: Callable[[list[Any]], Any]) -> None:
    column = make(["tea", "coffee", "tea"])
    assert Count(epsilon=SURE).release(column) == 3
    assert Histogram(epsilon=SURE, domain=["coffee", "tea"]).release(column) == {"coffee": 1, "tea": 2}
    assert StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {"tea": 2}


OTHER_TEXTS: list[list[Any]] = [
    [],
    ["tea"],
    [math.nan, np.nan, None, pd.NA],
    ["lone \ud800", "lone \ud800", "\N{HOT BEVERAGE}", "\N{HOT BEVERAGE}"],
    [np.str_("tea"), "tea", type("Text", (str,), {"__hash__": lambda _: 0})("tea")],
    [np.nan, "tea", "tea", np.float64("nan"), float("-nan")],
]


@pytest.mark.parametrize("rows", OTHER_TEXTS, ids=range(len(OTHER_TEXTS)))
def test_objects_are_counted_wherever_they_lie(rows: list[Any]) -> None:
    """Each text as one object and as many, so that it is found by its address and by its content."""
    many = [str(bytes(f"text {i % 3000}", "ascii"), "ascii") for i in range(9000)]
    named = [sys.intern(text) for text in many]
    for column in (rows, [*many, *rows], [*rows, *named, None]):
        array = np.empty(len(column), object)
        array[:] = column
        record = np.zeros(len(column), np.dtype([("byte", "u1"), ("object", object)]))  # not aligned
        record["object"] = array
        texts = [str.__str__(text) for text in column if isinstance(text, str)]
        expected = {text: count for text, count in sorted(Counter(texts).items()) if count >= 2}
        for given in (column, array, np.repeat(array, 2)[::2], record["object"], pd.Series(array, dtype=object)):
            assert Count(epsilon=SURE).release(given) == len(texts)
            assert StabilityHistogram(epsilon=SURE, delta=0.5).release(given) == expected


def test_places_without_an_object_are_missing() -> None:
    for column in (np.ndarray(3, object), np.ndarray((3, 2), object)[:, 0]):
        assert Count(epsilon=SURE).release(column) == 0
        assert StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {}


@pytest.mark.parametrize("name", ["count", "", "value"])
def test_a_series_may_have_any_name(name: str) -> None:
    for column in (pl.Series(name, ["tea", "tea", None]), pd.Series(["tea", "tea", None], name=name)):
        assert StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {"tea": 2}


CODED: list[Any] = [
    pd.Series([True, False, None, True], dtype="category"),
    pd.Categorical([0, None, np.nan, 1]),
    pd.Series(["", None, "a", None], dtype="category"),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 0], pa.uint8()), pa.array([True, False, None])),
    pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([0.5, math.nan])),
            pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array([math.nan, 0.0])),
        ]
    ),
    pa.array(["a", None, "", None]).dictionary_encode()[1:].take([0, 1, 1]),
    pd.Series(pd.array(["a", None, ""], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))),
    pl.Series(["a", None, ""], dtype=pl.Categorical),
    pl.Series(["a", None, ""], dtype=pl.Enum(["", "a"])),
    pa.array(["a", None, ""], pa.string_view()),
    pa.array(["x", "a", None, ""], pa.large_string())[1:],
    pd.Series(["a", None, ""], dtype=pd.StringDtype("python")),
    pd.Series(["a", None, ""], dtype=pd.ArrowDtype(pa.string())),
]


@pytest.mark.parametrize("column", CODED, ids=range(len(CODED)))
def test_categories_count_unless_they_are_false_or_missing(column: Any) -> None:
    assert Count(epsilon=SURE).release(column) == 2
    assert Count(epsilon=SURE).release(column[:0]) == 0


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", np.longdouble, "?", "U3", "S3"])
def test_arrays_are_counted_as_their_items_are(dtype: Any) -> None:
    column = np.array([1, 0, 1, 1, 0, 120], dtype)
    query = StabilityHistogram(epsilon=0.5, delta=0.9)
    for release in (query.release, Histogram(domain=[column[0].item()], epsilon=0.5).release):
        found, expected = (release(given, rng=hazmat.SeededRng(3)) for given in (column, list(column)))
        assert repr(found) == repr(expected)


REALS: list[list[Any]] = [
    [0.5, -0.0, math.inf, math.nan],
    [True, 3, 0.5, None],
    [2**63, 2**53 + 1, -(2**80)],
    [10**400, -(10**400), None],
    [np.float64(0.1), 0.1, 7],
    [np.float64("nan"), None, pd.NA, np.longdouble(1) / 3],
    [Fraction(1, 3), np.int64(2**62 + 1), np.bool_(True)],
    *([kind(0), kind(1), kind(100)] for kind in (np.bool_, np.int8, np.uint64, np.float16, np.float32, np.longdouble)),
    [np.int64(2**53 + 1), np.int64(-(2**63)), np.int64(2**63 - 1)],
    [np.longdouble("1e4000"), np.longdouble("1e-4000"), np.longdouble(1) / 3],
]


@pytest.mark.parametrize("rows", REALS, ids=range(len(REALS)))
def test_numbers_in_lists_are_each_the_nearest_double(rows: list[Any]) -> None:
    with np.errstate(all="raise"):
        found = _columns.floats(rows)
    with np.errstate(all="ignore"):
        expected = np.array([_columns.to_float(item) for item in rows])
    assert found.tobytes() == expected.tobytes() or np.array_equal(found, expected, equal_nan=True)


def counts_of(column: Any) -> str:
    """The exact counts of values that two rows have or more, and how the values look."""
    return repr(StabilityHistogram(epsilon=SURE, delta=0.5).release(column))


@pytest.mark.parametrize(
    ("rows", "one"),
    [
        ([False] * 9, None),
        ([True, False] * 9, math.nan),
        ([2**53, 2**53 + 1] * 9, math.nan),
        ([2**53, 2**53 + 1] * 9, 0.5),
        ([-1, 2**62, 2**62 + 1] * 9, 2**63),
        ([1, 2] * 9, 2.5),
        ([1, 2] * 9, Fraction(1, 3)),
        ([1, 2] * 9, np.float32(0.5)),
        ([1, 2] * 9, 10**400),
        (["a", "a\0"] * 9, "b" * 10**6),
    ],
)
def test_a_row_does_not_change_what_the_others_are(rows: list[Any], one: Any) -> None:
    for neighbour in ([one, *rows], [*rows, one]):
        assert moved(Count(epsilon=1.0), rows, neighbour) <= 1
        assert counts_of(rows) == counts_of(neighbour)


@pytest.mark.parametrize("one", [7, "x", math.nan, None])
def test_a_row_that_is_no_condition_does_not_make_the_others_count(one: Any) -> None:
    assert moved(Count(epsilon=1.0), [False] * 9, [*[False] * 9, one]) <= 1


def test_zeros_look_the_same() -> None:
    for make in (list, np.array):
        assert counts_of(make([0.0] * 9)) == counts_of(make([-0.0, *[0.0] * 8])) == "{0: 9}"


class Drink(str, Enum):  # noqa: UP042 -- a StrEnum shows itself as its text
    """A text that shows itself in another way."""

    TEA = "tea"


class Size(IntEnum):
    """A number likewise."""

    LARGE = 3


EQUALS: list[tuple[list[Any], str]] = [
    ([Drink.TEA, "tea", np.str_("tea")], "'tea'"),
    ([type("Bytes", (bytes,), {})(b"tea"), b"tea", np.bytes_(b"tea")], "b'tea'"),
    ([Size.LARGE, 3, 3.0, np.int8(3), np.float32(3), np.longdouble(3), Fraction(3)], "3"),
    ([0, 0.0, -0.0, np.float16(-0.0)], "0"),
    ([Fraction(1, 2), 0.5, np.float32(0.5), np.longdouble(0.5), type("Float", (float,), {})(0.5)], "0.5"),
    ([True, np.True_], "True"),
]


@pytest.mark.parametrize(("equals", "shown"), EQUALS, ids=[shown for _, shown in EQUALS])
def test_equal_values_look_the_same(equals: list[Any], shown: str) -> None:
    for first in equals:
        assert counts_of([first, *equals]) == f"{{{shown}: {len(equals) + 1}}}"


@pytest.mark.parametrize("make", [pl.Series, pa.array, lambda rows: pd.Series(rows, dtype="Int64")])
def test_a_missing_value_does_not_round_the_others(make: Callable[[list[Any]], Any]) -> None:
    rows = [2**53, 2**53 + 1] * 9
    assert counts_of(make(rows)) == counts_of(make([*rows, None]))


def test_rows_of_another_kind_are_refused() -> None:
    durations = np.array([1, 1], "m8[ns]")
    for rows in ([True, False, 1], ["a", 1], ["a", b"a"], [1, None, "a"], durations, list(durations)):
        with pytest.raises(TypeError, match="column must be of texts, of numbers or of booleans, got "):
            StabilityHistogram(epsilon=1.0, delta=0.5).release(rows)
    with pytest.raises(TypeError, match=r"^column must be of the kind of the domain \(texts\), got numbers$"):
        Histogram(epsilon=1.0, domain=["a"]).release([1])


def test_categories_are_told_apart_exactly() -> None:
    numbers = Histogram(epsilon=SURE, domain=[2**53, 2**53 + 1, 0.5])
    assert numbers.release([2**53, 2**53 + 1, 2**53 + 1, 0.5, None]) == {2**53: 1, 2**53 + 1: 2, 0.5: 1}
    texts = Histogram(epsilon=SURE, domain=["a", "a\0"])
    assert texts.release(["a", "a\0", "a\0"]) == {"a": 1, "a\0": 2}


def test_numbers_wider_than_a_double_are_counted_as_the_nearest_one() -> None:
    for make in (list, np.array):
        column = make([np.longdouble(1) / 3] * 2 + [np.longdouble(1 / 3)] * 3 + [np.longdouble("1e-4000"), 0.0])
        assert StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {0: 2, 1 / 3: 5}


def test_messages_do_not_tell_the_length_of_texts() -> None:
    with pytest.raises(TypeError, match=r"^column must be of real numbers, got dtype str_$"):
        Sum(bounds=(0, 1), epsilon=1.0).release(np.array(["a secret of 24 characters"]))


def test_what_no_float_can_hold_is_clamped_and_missing_dates_do_not_count() -> None:
    with np.errstate(all="raise"):  # what it says of a row would be data
        wide = np.array(["1e4000", "1e-4000"], np.longdouble)
        assert Sum(bounds=(-3, 5), epsilon=SURE).release(wide) == pytest.approx(5, abs=1e-6)
    assert Sum(bounds=(-3, 5), epsilon=SURE).release([True, np.True_]) == pytest.approx(2, abs=1e-6)
    with pytest.raises(TypeError, match=r"^column must be of real numbers, got timedelta64$"):
        Sum(bounds=(-3, 5), epsilon=SURE).release([np.timedelta64(1, "ns")])
    assert Sum(bounds=(-3, 5), epsilon=SURE).release([10**400, 10**400, -(10**400)]) == pytest.approx(7, abs=1e-6)
    assert Count(epsilon=SURE).release(np.array(["2026-11-21", "NaT"], "datetime64[D]")) == 1
    assert Count(epsilon=SURE).release(range(4)) == 4


ALL = [
    Count(epsilon=1.0),
    Sum(bounds=(0, 1), epsilon=1.0),
    Mean(bounds=(0, 1), epsilon=1.0, relation="substitute"),
    Variance(bounds=(0, 1), epsilon=1.0),
    Histogram(epsilon=1.0, edges=[0, 1, 2]),
    Histogram(epsilon=1.0, domain=[1, 2]),
    StabilityHistogram(epsilon=1.0, delta=1e-6),
    Quantile(q=0.25, bounds=(0, 1), epsilon=1.0),
    Quantiles(q=[0.75, 0.25, 0.75], bounds=(0, 1), epsilon=1.0),
    Median(bounds=(0, 1), epsilon=1.0),
]


@pytest.mark.parametrize("query", ALL, ids=lambda query: type(query).__name__)
def test_queries_are_values(query: Any) -> None:
    again = pickle.loads(pickle.dumps(query))  # noqa: S301
    assert again == query
    assert hash(again) == hash(query)
    assert eval(repr(query), vars(queries)) == query  # noqa: S307
    assert query.cost.epsilon == query.epsilon == 1.0
    with pytest.raises(AttributeError):
        query.epsilon = 2.0


@pytest.mark.parametrize("query", ALL, ids=lambda query: type(query).__name__)
def test_what_is_no_column_is_refused_without_a_word_about_its_values(query: Any) -> None:
    with pytest.raises(ParameterError, match="column must have one dimension, got 2"):
        query.release(np.array([[31337.0, 1.0]]))
    with pytest.raises(TypeError, match="column must be a NumPy array, list"):
        query.release(31337)
    if not isinstance(query, Count):
        with pytest.raises(TypeError, match="column must be of") as caught:
            query.release(["a secret", 31337, object()])
        assert "secret" not in str(caught.value)
        assert "31337" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Count(epsilon=0.0), "epsilon must be positive and finite, got 0.0"),
        (lambda: Count(epsilon=1.0, relation="bounded"), 'relation must be "add/remove" or "substitute", got'),
        (lambda: Sum(bounds=(1, 0), epsilon=1.0), "bounds must be two finite numbers, the lower one first, got"),
        (lambda: Sum(bounds=(0, math.inf), epsilon=1.0), "bounds must be two finite numbers"),
        (lambda: Sum(bounds=(0, 10**400), epsilon=1.0), "bounds must be in the range of a float"),
        (lambda: Sum(bounds=(0, 1), epsilon=1.0, relation="x"), 'relation must be "add/remove" or "substitute", got'),
        (lambda: Sum(bounds=(0, 1), epsilon=1.0, granularity=0.3), "granularity must be a power of two"),
        (lambda: Mean(bounds=(0, 1), epsilon=-1.0), "epsilon must be positive and finite, got -1.0"),
        (lambda: Mean(bounds=(0, 0), epsilon=1.0), "bounds must be two finite numbers"),
        (lambda: Mean(bounds=(0, 1e300), epsilon=1.0), "epsilon must be such that, shared by the sums and the count, "),
        (lambda: Mean(bounds=(0, 1), epsilon=1.0, relation="substitute").release([]), "column must have rows"),
        (lambda: Variance(bounds=(0, 1e300), epsilon=1.0), "bounds must be 1e-120 to 1e150 apart"),
        (
            lambda: Histogram(epsilon=1.0),
            "either edges or domain must be given, got neither: use StabilityHistogram for",
        ),
        (lambda: Histogram(epsilon=1.0, edges=[0, 1], domain=[1]), "either edges or domain must be given, got both"),
        (
            lambda: Histogram(epsilon=1.0, edges=[0, math.inf, math.inf]),
            "edges must be two or more numbers, each above",
        ),
        (lambda: Histogram(epsilon=1.0, edges=[math.inf, 0]), "edges must be two or more numbers, each above the one"),
        (lambda: Histogram(epsilon=1.0, edges=[0, 0]), "edges must be two or more numbers, each above the one"),
        (lambda: Histogram(epsilon=1.0, edges=[0, math.nan]), "edges must be two or more numbers, each above the one"),
        (lambda: Histogram(epsilon=1.0, domain=["a", "a"]), "domain must be one or more values that differ"),
        (lambda: Histogram(epsilon=1.0, domain=[]), "domain must be one or more values that differ"),
        (lambda: StabilityHistogram(epsilon=1.0, delta=0.0), "delta must be between 0 and 1, both excluded, got"),
        (lambda: Quantile(q=0.0, bounds=(0, 1), epsilon=1.0), "q must be between 0 and 1, got 0.0"),
        (lambda: Quantile(q=1e-9, bounds=(0, 1), epsilon=1.0), "q must be from 1e-6 to 1 - 1e-6, got 1e-09"),
        (lambda: Quantile(q=0.5, bounds=(0, 1), epsilon=1.0, granularity=0.3), "granularity must be a power of two"),
        (lambda: Quantile(q=0.5, bounds=(0, 1), epsilon=1.0, granularity=4.0), "granularity must be so fine that two"),
        (lambda: Quantile(q=0.5, bounds=(0, 1), epsilon=1.0, granularity=2.0**-60), "granularity must be at least 2.2"),
        (lambda: Median(bounds=(0, 1e300), epsilon=1.0), "bounds must be such that the larger one is at most 2**952"),
        (lambda: Quantiles(q=[], bounds=(0, 1), epsilon=1.0), "q must be one quantile or more"),
        (lambda: Quantiles(q=[0.5, 0.0], bounds=(0, 1), epsilon=1.0), "q must be between 0 and 1, got 0.0"),
        (lambda: Quantiles(q=[0.5, 1e-9], bounds=(0, 1), epsilon=1.0), "q must be from 1e-6 to 1 - 1e-6, got 1e-09"),
        (lambda: Quantiles(q=[0.2, 0.3], bounds=(0, 1), epsilon=0.0), "epsilon must be positive and finite, got 0.0"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("query", "bounds", "epsilon"),
    [(Mean, (0, 1e300), 1.0), (Mean, (2, 3), 2.0**-40), (Variance, (0, 9e149), 1e-10), (Variance, (2, 3), 2.0**-40)],
)
def test_the_numbers_of_the_user_are_shown_and_no_part_of_them(query: Any, bounds: Any, epsilon: float) -> None:
    with pytest.raises(ParameterError) as caught:
        query(bounds=bounds, epsilon=epsilon)
    shown = repr(tuple(map(float, bounds))).replace("e+", "e")
    assert str(caught.value).endswith(f"2**40 (the bounds are {shown}), got {epsilon!r}")
    assert str(caught.value).startswith("epsilon must be such that, shared by the sums and the count, the noise of ")


def test_a_message_does_not_tell_whether_a_value_is_missing() -> None:
    for rows in (["a"], ["a", None], [None, "a", math.nan]):
        for column in (rows, pl.Series(rows, dtype=pl.String, strict=False), pa.array(rows, from_pandas=True)):
            with pytest.raises(TypeError, match=r"^column must be of real numbers, got str$"):
                Sum(bounds=(0, 1), epsilon=1.0).release(column)


def test_numbers_of_numpy_are_parameters_too() -> None:
    half: Any = np.float32(0.5)
    assert Mean(bounds=(0, half), epsilon=half) == Mean(bounds=(0, 0.5), epsilon=0.5)
    assert Quantile(q=half, bounds=(0, 1), epsilon=half, granularity=half).granularity == 0.5


def test_wrong_types_are_named() -> None:
    wrong: Any = "1"
    for make in (
        lambda: Sum(bounds=wrong, epsilon=1.0),
        lambda: Sum(bounds=cast("Any", "09"), epsilon=1.0),
        lambda: Median(bounds=(0, 1), epsilon=1.0, granularity=wrong),
        lambda: Sum(bounds=(0, 1), epsilon=wrong),
        lambda: Mean(bounds=(0, 1), epsilon=wrong),
        lambda: Histogram(epsilon=1.0, edges=["a", "b"]),
        lambda: Histogram(epsilon=1.0, domain=["a", 1]),
        lambda: Histogram(epsilon=1.0, domain=cast("Any", 5)),
        lambda: Quantiles(q=cast("Any", 0.5), bounds=(0, 1), epsilon=1.0),
        lambda: Quantiles(q=cast("Any", "0.5"), bounds=(0, 1), epsilon=1.0),
        lambda: Quantiles(q=cast("Any", [[0.5]]), bounds=(0, 1), epsilon=1.0),
    ):
        with pytest.raises(TypeError, match=r"^(bounds|epsilon|edges|domain|granularity|q) must be "):
            make()


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        np.array([True, False] * 300)[::-2],
        np.broadcast_to(True, 1000),
        np.frombuffer(b"\0\1\2\xff\0", np.bool_),
        np.array([1.5, np.nan, 0.0]),
        np.array(["a", ""]),
        np.array([], bool),
        [None, "x", False, 0],
    ],
    ids=["list", "strided", "broadcast", "odd bytes", "numbers", "texts", "none", "mixed"],
)
def test_a_count_gets_its_noise_before_python_sees_it(column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python int shows by its address whether it is at most 256, so nothing in Python may count."""
    rows = [item is not None and item is not False and item == item for item in np.asarray(column, object).tolist()]
    if isinstance(column, np.ndarray) and column.dtype == bool:
        rows = [byte != 0 for byte in np.ascontiguousarray(column).view(np.uint8).tolist()]
    expected = DiscreteLaplace(epsilon=0.3).release(sum(rows), rng=hazmat.SeededRng(3))
    monkeypatch.setattr(np, "count_nonzero", None)
    monkeypatch.setattr(np, "sum", None)
    assert Count(epsilon=0.3).release(column, rng=hazmat.SeededRng(3)) == expected


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", [Mean, Variance])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_means_and_variances_are_within_the_error_that_is_said(kind: Any, relation: Any, level: float) -> None:
    query, rng, runs = kind(bounds=(-3.0, 9.0), epsilon=1.0, relation=relation), hazmat.SeededRng(7), 2000
    column = np.append(np.linspace(-5.0, 9.0, 299), np.nan)  # some beyond a bound, one without a value
    clamped = np.clip(column, -3.0, 9.0)
    if relation == "substitute":
        clamped[-1] = 3.0
    rows = np.count_nonzero(~np.isnan(clamped))
    exact = np.nanmean(clamped) if kind is Mean else np.nanvar(clamped)
    if (kind, relation) == (Variance, "substitute"):  # the missing one counts with half of the largest square
        exact = np.nanmean((np.append(clamped[:-1], 3.0 + math.sqrt(18.0)) - 3.0) ** 2) - np.mean(clamped - 3.0) ** 2
    errors = np.array([abs(query.release(column, rng=rng) - exact) for _ in range(runs)])
    said = query.error(level, rows=rows)
    slack = 6 * math.sqrt(level * (1 - level) / runs)
    assert np.mean(errors <= said) > level - slack
    assert np.mean(errors <= said / 40) < level - slack, "the control, for a bound over all columns"
    assert query.error(level, rows=10**6) < said


def test_no_error_is_larger_than_the_answers_allow() -> None:
    assert Mean(bounds=(-3.0, 9.0), epsilon=1e-6).error(rows=5) == pytest.approx(12)
    assert Variance(bounds=(-3.0, 9.0), epsilon=1e-6).error(rows=5) == pytest.approx(36)
    tight = Mean(bounds=(1e9, 1e9 + 1e-6), epsilon=SURE, relation="substitute")
    column = np.array([1e9, 1e9 + 1e-6] * 50)
    assert abs(Fraction(tight.release(column)) - sum(map(Fraction, column.tolist())) / 100) <= tight.error(rows=100)


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_an_error_that_depends_on_the_number_of_rows_asks_for_it(kind: Any) -> None:
    name = kind.__name__
    for relation, private in (("add/remove", ", which is private"), ("substitute", "")):
        query = kind(bounds=(0, 1), epsilon=1.0, relation=relation)
        with pytest.raises(
            NoErrorBound, match=rf"^the error of {name} depends on the number of rows{private}: error\("
        ):
            query.error()
        with pytest.raises(ParameterError, match=r"^rows must be an integer from 1 to \d+, got 0$"):
            query.error(rows=0)


AGES = np.floor(18 + 60 * np.random.default_rng(5).beta(2, 3, 3000))
COLUMNS_OF_QUANTILES = {
    "ages": AGES,
    "heavy ties": np.repeat([1.0, 2.0], [6000, 4000]),
    "far from 0": 1.8e9 + 10 * AGES,
    "few": np.array([5.0, 7.0, 11.0]),
}


def ranks_off(column: Any, q: float, released: float) -> float:
    """How far q n is from the ranks of the released value."""
    target = q * len(column)
    return float(max(0, np.sum(column < released) - target, target - np.sum(column <= released)))


@pytest.mark.parametrize("q", [0.1, 0.5])
@pytest.mark.parametrize("name", COLUMNS_OF_QUANTILES)
@pytest.mark.parametrize("upper", [2e10, 1e12, 1e15])
def test_quantiles_are_near_however_wide_the_bounds_are(name: str, q: float, upper: float) -> None:
    column, query = COLUMNS_OF_QUANTILES[name], Quantile(q=q, bounds=(0, upper), epsilon=1.0)
    for _ in range(20):
        assert ranks_off(column, q, query.release(column)) <= query.rank_error(1 - 1e-12)


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_rank_of_a_quantile_is_within_the_error_that_is_said(q: float) -> None:
    query, rng, runs, level = (
        Quantile(q=q, bounds=(0, 1024), epsilon=1.0, granularity=1.0),
        hazmat.SeededRng(3),
        300,
        0.9,
    )
    column = np.arange(1024)
    off = np.array([ranks_off(column, q, query.release(column, rng=rng)) for _ in range(runs)])
    assert np.mean(off <= query.rank_error(level)) > level
    assert np.mean(off <= query.rank_error(level) / 40) < level
    # A factor in the bounds costs its logarithm.
    wider = Quantile(q=q, bounds=(0, 1024e9), epsilon=1.0, granularity=1.0)
    cost = 2 * max(q, 1 - q) * math.log(1e9)
    assert wider.rank_error(level) - query.rank_error(level) == pytest.approx(cost, rel=1e-3)
    of_two = Quantile(q=q, bounds=(0, 1), epsilon=1.0, granularity=1.0)  # ln(2 / (1 - level)) of a scale
    assert of_two.rank_error(0.75) / of_two.rank_error(0.5) == pytest.approx(1.5)
    with pytest.raises(NoErrorBound, match=r"^Quantile has no bound on its error: .*see rank_error$"):
        query.error()


def test_the_cost_under_zcdp_is_that_of_bounded_range(tmp_path: Path) -> None:
    quarters: Any = {"q": [0.25, 0.5, 0.75], "bounds": (0, 1)}
    assert Median(bounds=(0, 1), epsilon=2.0).rho == Exponential(epsilon=2.0).rho == 0.5
    assert Quantiles(**quarters, epsilon=2.0).rho == pytest.approx(2 * 1.0**2 / 8, rel=1e-15)  # two levels
    for relation in ("add/remove", "substitute"):
        query = Quantiles(**quarters, epsilon=2.0, relation=relation)
        assert Fraction(query.rho) >= Fraction(1, 4)
        ledger = Ledger(tmp_path / relation.replace("/", " "), rho=1.0, relation=relation)
        ledger.release(query, [0.5])
        assert ledger.spent.rho == pytest.approx(0.25, rel=1e-12)


# Whole numbers are released as such.
COLUMNS_OF_MANY_QUANTILES = {
    "no ties": (np.random.default_rng(1).normal(50, 15, 10_000), (0, 100), None),
    "ages": (np.clip(np.random.default_rng(2).normal(45, 16, 10_000).round(), 18, 90), (0, 120), 1.0),
    "60 % one value": (np.repeat([1.0, 2.0], [6000, 4000]), (0, 10), 1.0),
    "Poisson": (np.random.default_rng(3).poisson(3, 10_000), (0, 100), 1.0),
    "30 % zeros": (
        np.where(np.arange(10_000) < 3000, 0, np.random.default_rng(4).lognormal(3, 1, 10_000)),
        (0, 1e4),
        None,
    ),
}


def mean_ranks_off(column: Any, query: Quantiles, releases: int, rng: Any) -> float:
    return float(np.mean([
        ranks_off(column, q, answer)
        for _ in range(releases)
        for q, answer in zip(query.q, query.release(column, rng=rng), strict=True)
    ]))  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS_OF_MANY_QUANTILES)
def test_deciles_are_near_also_where_many_rows_share_a_value(name: str) -> None:
    """The mean of 20 releases is 6 with a standard deviation of 0.3; the tails are exponential."""
    column, bounds, granularity = COLUMNS_OF_MANY_QUANTILES[name]
    deciles = Quantiles(q=np.arange(1, 10) / 10, bounds=bounds, epsilon=1.0, granularity=granularity)
    assert mean_ranks_off(column, deciles, 20, hazmat.SeededRng(7)) < 9


def test_without_fractions_ties_are_on_one_side() -> None:
    """The positive control: bounds so wide that 52 bits leave no fraction."""
    column, _, granularity = COLUMNS_OF_MANY_QUANTILES["Poisson"]
    wide = Quantiles(q=np.arange(1, 10) / 10, bounds=(0, 2**52), epsilon=1.0, granularity=granularity)
    assert mean_ranks_off(column, wide, 20, hazmat.SeededRng(7)) > 30


def test_all_ranks_are_within_the_error_that_is_said() -> None:
    query, column, rng = (
        Quantiles(q=[0.9, 0.1, 0.5], bounds=(0, 1024), epsilon=1.0),
        np.arange(1024),
        hazmat.SeededRng(3),
    )
    worst = [max(map(partial(ranks_off, column), query.q, query.release(column, rng=rng))) for _ in range(300)]
    assert np.mean(np.array(worst) <= query.rank_error(0.9)) > 0.9
    assert np.mean(np.array(worst) <= query.rank_error(0.9) / 40) < 0.9
    with pytest.raises(NoErrorBound, match=r"^Quantiles has no bound on its error: .*see rank_error$"):
        query.error()


def test_quantiles_are_in_the_order_in_which_they_were_asked() -> None:
    query = Quantiles(q=(Fraction(9, 10), 0.1, np.float32(0.5), 0.9), bounds=(0, 1e4), epsilon=100.0)
    high, low, middle, again = query.release(np.arange(10_000)).tolist()
    assert high == again
    assert [low, middle, high] == pytest.approx([1000, 5000, 9000], abs=20)
    assert query.q == (0.9, 0.1, 0.5, 0.9)


@pytest.mark.parametrize("variance", [0.0, 5e-324, 1e-9, 3.0, 99.0, 2500.0])
@pytest.mark.parametrize("error", [0.0, 1e-12, 2.0, 50.0, 1e6])
def test_the_error_of_a_root_holds_at_both_ends(monkeypatch: pytest.MonkeyPatch, variance: float, error: float) -> None:
    monkeypatch.setattr(queries.Variance, "_released_with_error", lambda *_: (variance, error))
    deviation = queries.StandardDeviation(bounds=(0, 100), epsilon=1.0)
    answer, bound = deviation._released_with_error(np.empty(0), 0.95, None)
    for true in (max(Decimal(0), Decimal(variance) - Decimal(error)), Decimal(variance) + Decimal(error)):
        assert abs(Decimal(answer) - true.sqrt()) <= Decimal(bound)
