"""Dates and times in queries: whole units since 1970, exactly, whatever holds them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import pandas as pd
import polars as pl
from interchange.containers import OnlyStream

from dpnoise import ParameterError, queries
from dpnoise.queries._times import bounds_of

SURE = 1e9
TOKYO = ZoneInfo("Asia/Tokyo")

DATES: list[Any] = [date(1969, 12, 31), None, date(1970, 1, 1), date(2010, 6, 1), date(2010, 6, 1), date(9999, 12, 31)]
TIMES: list[Any] = [row and datetime(row.year, row.month, row.day, 23, 59, 59, 999_999) for row in DATES]
ZONED: list[Any] = [row and row.replace(tzinfo=TOKYO) for row in TIMES]

DATE_COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda rows: rows,
    "objects": lambda rows: np.array(rows, object),
    "NumPy": lambda rows: np.array(rows, "M8[D]"),
    "list of NumPy": lambda rows: list(np.array(rows, "M8[D]")),
    "pandas objects": pd.Series,
    "date32": pa.array,
    "date64": lambda rows: pa.array(rows, pa.date64()),
    "dictionary": lambda rows: pa.array(rows).dictionary_encode(),
    "stream": lambda rows: OnlyStream(pa.chunked_array([pa.array(rows[:2]), pa.array(rows[2:])])),
    "pandas of Arrow": lambda rows: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(rows))),
    "polars": pl.Series,
}

TIME_COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    **{name: make for name, make in DATE_COLUMNS.items() if name not in ("NumPy", "list of NumPy", "date32", "date64")},
    "NumPy": lambda rows: np.array(rows, "M8[us]"),
    "byte-swapped": lambda rows: np.array(rows, "M8[us]").astype(">M8[us]"),
    "Arrow": pa.array,
    "pandas": lambda rows: pd.Series(np.array(rows, "M8[us]")),
    "pandas categories": lambda rows: pd.Series(np.array(rows, "M8[us]")).astype("category"),
    "pandas index": lambda rows: pd.DatetimeIndex(np.array(rows, "M8[us]")),
    "Timestamps": lambda rows: [row if row is None else pd.Timestamp(row) for row in rows],
}

ZONED_COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    **{name: TIME_COLUMNS[name] for name in ("list", "objects", "pandas objects", "Timestamps")},
    "Arrow": lambda rows: pa.array(rows, pa.timestamp("us", "Asia/Tokyo")),
    "stream": lambda rows: OnlyStream(pa.chunked_array([pa.array(rows, pa.timestamp("us", "UTC"))])),
    "pandas": lambda rows: pd.Series(rows, dtype="datetime64[us, Asia/Tokyo]"),
    "pandas index": lambda rows: pd.DatetimeIndex(pd.Series(rows, dtype="datetime64[us, Asia/Tokyo]")),
    "pandas array": lambda rows: pd.Series(rows, dtype="datetime64[us, Asia/Tokyo]").array,
    "pandas categories": lambda rows: pd.Series(rows, dtype="datetime64[us, Asia/Tokyo]").astype("category"),
    "pandas of Arrow": lambda rows: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(rows, pa.timestamp("us", "Asia/Tokyo")))
    ),
    "polars": lambda rows: pl.Series(rows, dtype=pl.Datetime("us", "Asia/Tokyo")),
}

MADE = [
    *[(f"dates: {name}", make(DATES), DATES) for name, make in DATE_COLUMNS.items()],
    *[(f"times: {name}", make(TIMES), TIMES) for name, make in TIME_COLUMNS.items()],
    *[(f"zoned: {name}", make(ZONED), ZONED) for name, make in ZONED_COLUMNS.items()],
]

NAIVE_BOUNDS: list[tuple[Any, Any]] = [
    (date(1900, 1, 1), date(2100, 1, 1)),
    (datetime(1900, 1, 1), datetime(2100, 1, 1)),
    *[(np.datetime64("1900-01-01", unit), np.datetime64("2100-01-01", unit)) for unit in ("D", "h", "m", "s", "us")],
]
ZONED_BOUNDS = (datetime(1900, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=TOKYO))


def micros(row: Any) -> float:
    """Count by Python's own arithmetic."""
    if row is None:
        return float("nan")
    row = row if isinstance(row, datetime) else datetime(row.year, row.month, row.day)
    return (row - datetime(1970, 1, 1, tzinfo=row.tzinfo and UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(("column", "rows"), [made[1:] for made in MADE], ids=[made[0] for made in MADE])
def test_columns_are_whole_units_since_1970(column: Any, rows: list[Any]) -> None:
    zoned = rows is ZONED
    for bounds in [ZONED_BOUNDS] if zoned else NAIVE_BOUNDS:
        _, clock = bounds_of(bounds)
        assert clock is not None
        size = {"us": 1, "D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}[clock.unit]
        np.testing.assert_array_equal(clock.floats(column), [micros(row) // size for row in rows])
        bins = queries.Histogram(edges=[bounds[0], clock.value(0), bounds[1]], epsilon=SURE)
        assert bins.release(column).tolist() == [1, 3]
        found = queries.Median(bounds=bounds, epsilon=SURE).release(column)
        assert type(found) is type(bounds[0])
        assert clock.count(found) == micros(rows[3]) // size
    assert queries.Count(epsilon=SURE).release(column) == 5


@pytest.mark.parametrize("make", [list, lambda rows: np.array(rows, object), pd.Series, pl.Series, pa.array])
def test_times_of_day_and_durations_are_counted(make: Callable[[list[Any]], Any]) -> None:
    for value in (time(7, 1), timedelta(7001)):
        assert queries.Count(epsilon=SURE).release(make([value, None, value])) == 2


def test_a_release_has_the_time_zone_of_the_lower_bound() -> None:
    found = queries.Median(bounds=ZONED_BOUNDS, epsilon=SURE).release(ZONED)
    assert (found.tzinfo, found) == (UTC, ZONED[3])
    tokyo = queries.Median(bounds=(ZONED_BOUNDS[0].astimezone(TOKYO), ZONED_BOUNDS[1]), epsilon=SURE)
    assert tokyo.release(ZONED).tzinfo is TOKYO


@pytest.mark.parametrize("given", ["W", "D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "s", "ms", "us"])
def test_units_are_converted_without_wrapping_around(unit: str, given: str) -> None:
    ticks = np.array([0, 1, -1, 999, -999, 1000, -1001, 10**6 + 1, -(10**9) - 1, 2**63 - 1, 1 - 2**63])
    column = ticks.view(f"M8[{given}]")
    bounds = (np.datetime64(-5000, unit), np.datetime64(5000, unit))
    clock = bounds_of(bounds)[1]
    assert clock is not None
    found = np.clip(clock.floats(column), -5000, 5000)
    sizes = {"W": 7 * 86_400 * 10**9, "D": 86_400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9}
    sizes |= {"ms": 10**6, "us": 10**3, "ns": 1}
    expected = [min(max(tick * sizes[given] // sizes[unit], -5000), 5000) for tick in map(int, ticks)]
    assert found.tolist() == expected


def test_the_cast_of_numpy_wraps_around_which_is_caught() -> None:
    far = np.array([2**62], "M8[D]")
    median = queries.Median(bounds=(datetime(1990, 1, 1), datetime(2025, 1, 1)), epsilon=SURE)
    assert median.release(far) == datetime(2025, 1, 1)
    assert median.release(far.astype("M8[us]")) != datetime(2025, 1, 1)


def test_microseconds_are_exact_at_the_ends_of_what_is_allowed() -> None:
    for sign in (-1, 1):
        end = datetime(1970, 1, 1) + sign * timedelta(microseconds=2**52)
        near = [end - sign * timedelta(microseconds=step) for step in range(4)]
        median = queries.Median(bounds=(min(near), max(near)), epsilon=SURE)
        for moment in near:
            assert median.release([moment] * 3) == moment
        with pytest.raises(ParameterError, match=r"^bounds must be at most 2\*\*52 units \(us\) from 1970, got "):
            queries.Median(bounds=sorted([near[3], end + sign * timedelta(microseconds=1)]), epsilon=1.0)


@pytest.mark.parametrize("bounds", [*NAIVE_BOUNDS, ZONED_BOUNDS], ids=lambda bounds: str(bounds[0]))
def test_queries_of_times_are_values(bounds: Any) -> None:
    for query in (
        queries.Median(bounds=bounds, epsilon=1.0),
        queries.Quantile(q=0.1, bounds=bounds, epsilon=1.0, granularity=8),
        queries.Histogram(edges=bounds, epsilon=1.0),
    ):
        again = pickle.loads(pickle.dumps(query))  # noqa: S301
        assert again == query
        assert hash(again) == hash(query)
        assert (again.edges if isinstance(again, queries.Histogram) else again.bounds) == bounds


def test_a_column_without_a_value_is_one_of_times_too() -> None:
    edges = pa.array([date(1990, 1, 1), date(2000, 1, 1)])
    for column in ([None, None], pl.Series([None, None]), pa.nulls(2), pd.Series([None, None], dtype=object)):
        assert queries.Histogram(edges=edges, epsilon=SURE).release(column).tolist() == [0]


def test_bins_are_named_by_their_dates() -> None:
    years = queries.Histogram(edges=[date(year, 1, 1) for year in (1969, 1970, 2000)], epsilon=SURE)
    found = years.to_pandas(years.release(DATES))
    assert found.to_dict() == {"[1969-01-01, 1970-01-01)": 1, "[1970-01-01, 2000-01-01]": 1}


DAYS = NAIVE_BOUNDS[0]
NAIVE = "column must be of dates or times without a time zone, as the bounds or edges are, got "
SECRET = date(7001, 7, 1)


@pytest.mark.parametrize(
    ("bounds", "column", "message"),
    [
        (DAYS, [7001.5], f"{NAIVE}float"),
        (DAYS, np.array([7001]), f"{NAIVE}dtype int64"),
        (DAYS, ["7001-07-01"], f"{NAIVE}str"),
        (DAYS, ZONED, f"{NAIVE}times with a time zone"),
        (DAYS, [*DATES, ZONED[0]], f"{NAIVE}dates and times with a time zone"),
        (DAYS, ZONED_COLUMNS["pandas"](ZONED), f"{NAIVE}times with a time zone"),
        (DAYS, ZONED_COLUMNS["polars"](ZONED), f"{NAIVE}times with a time zone"),
        (DAYS, ZONED_COLUMNS["Arrow"](ZONED), f"{NAIVE}times with a time zone"),
        (DAYS, np.array(["7001-07"], "M8[M]"), f"{NAIVE}dtype datetime64[M]"),
        (DAYS, [np.datetime64(7001, "25us")], f"{NAIVE}dtype datetime64[25us]"),
        (DAYS, np.array([7001], "m8[s]"), f"{NAIVE}dtype timedelta64[s]"),
        (DAYS, [time(7, 1)], f"{NAIVE}time"),
        (DAYS, [timedelta(7001)], f"{NAIVE}timedelta"),
        (
            ZONED_BOUNDS,
            TIMES,
            "column must be of times with a time zone, as the bounds or edges are, got times without",
        ),
        (ZONED_BOUNDS, [SECRET], "column must be of times with a time zone, as the bounds or edges are, got dates"),
        ((0, 1), np.array([SECRET], "M8[D]"), "column must be of real numbers, got dtype datetime64: cast them"),
        ((0, 1), [SECRET], "column must be of real numbers, got date: cast them"),
        ((0, 1), pl.Series([timedelta(7001)]), "column must be of real numbers, got dtype timedelta64: cast them"),
    ],
)
def test_columns_of_another_type_are_refused(bounds: Any, column: Any, message: str) -> None:
    for query in (queries.Median(bounds=bounds, epsilon=1.0), queries.Histogram(edges=bounds, epsilon=1.0)):
        with pytest.raises(TypeError) as caught:
            query.release(column)
        assert str(caught.value).startswith(message)
        assert "7001" not in str(caught.value)
        assert caught.value.__context__ is None


class Loud(datetime):
    """A time whose arithmetic shows what it is."""

    def __sub__(self, other: Any) -> Any:
        raise ValueError("7001")


def test_messages_of_other_classes_are_not_passed_on() -> None:
    with pytest.raises(TypeError) as caught:
        queries.Median(bounds=NAIVE_BOUNDS[1], epsilon=1.0).release([Loud(2001, 7, 1)])
    assert "7001" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (DAYS[::-1], "bounds must be two dates or times, the lower one first, got (datetime.date(2100"),
        (DAYS[:1], "bounds must be two dates or times, the lower one first, got (datetime.date(1900"),
        ((DAYS[0], 5), "bounds must be all dates, all times with a time zone, all times without, or all datetime64 of"),
        ((DAYS[0], NAIVE_BOUNDS[1][1]), "bounds must be all dates, all times with a time zone, all times without, or"),
        ((NAIVE_BOUNDS[1][0], ZONED_BOUNDS[1]), "bounds must be all dates, all times with a time zone, all times"),
        ((np.datetime64("1990-01-01"), np.datetime64("NaT")), "bounds must be all dates, all times with a time zone"),
        ((DAYS[0], pd.NaT), "bounds must be all dates, all times with a time zone"),
        ((np.datetime64("1990-01"), np.datetime64("1991-01")), "bounds must be all dates, all times with a time zone"),
        ((np.datetime64("1990", "D"), np.datetime64("2025", "s")), "bounds must be all dates, all times with a time"),
        (
            (np.datetime64("1990", "ns"), np.datetime64("2025", "ns")),
            "bounds must be at most 2**52 units (ns) from 1970",
        ),
        (("1990-01-01", "2025-01-01"), "bounds must be two numbers, the lower one first"),
    ],
)
def test_bad_bounds_are_named(bounds: Any, message: str) -> None:
    with pytest.raises((ParameterError, TypeError)) as caught:
        queries.Median(bounds=bounds, epsilon=1.0)
    assert str(caught.value).startswith(message)
    if "two" not in message:
        with pytest.raises((ParameterError, TypeError), match=r"^edges must be "):
            queries.Histogram(edges=bounds, epsilon=1.0)


def test_candidates_are_whole_units() -> None:
    assert queries.Median(bounds=DAYS, epsilon=1.0).granularity == 1.0
    found = queries.Median(bounds=DAYS, epsilon=1.0, granularity=64).release(DATES)
    assert (found - date(1970, 1, 1)).days % 64 == 0
    with pytest.raises(ParameterError, match=r"^granularity must be at least 1 for dates and times, got 0\.5$"):
        queries.Median(bounds=DAYS, epsilon=1.0, granularity=0.5)
