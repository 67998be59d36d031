"""Decimals, and integers of 128 bits: the nearest doubles as numbers, exact as labels where they are whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import pandas as pd
import polars as pl
from interchange.containers import OnlyStream

from dpnoise import ParameterError, _columns, local, queries
from dpnoise.hazmat import SeededRng

DIGITS = Context(prec=800)
SURE = 1e9


def beside(places: list[int]) -> list[int]:
    """Give each integer, those beside it, and their negatives, within 38 digits."""
    near = {sign * (place + step) for place in places for step in (-1, 0, 1) for sign in (1, -1)}
    return [place for place in near if abs(place) < 10**38]


def unscaled(scale: int) -> list[int]:
    """Give what is hard to round: the ends of each type of integer, and decimals beside the middle of two doubles."""
    middles = []
    for double in (0.1, 1.5, 1 / 3, 1e6 / 7, 2.0**53, 2.0**62, 2.0**90):
        middle = DIGITS.divide(DIGITS.add(Decimal(double), Decimal(math.nextafter(double, math.inf))), Decimal(2))
        middles.append(int(middle.scaleb(scale, DIGITS)))
    return beside([0, 2**31, 2**53, 2**63, 2**64, 2**64 + 2**53, 2**126, 3 * 10**22, 10**38 - 1, *middles])


def arrow(rows: list[Any], scale: int, kind: Any = None) -> Any:
    return pa.array(rows, (kind or pa.decimal128)(38, scale))


MAKE: dict[str, Callable[[list[Any], int], Any]] = {
    "list": lambda rows, scale: rows,
    "objects": lambda rows, scale: np.array(rows, object),
    "pandas": lambda rows, scale: pd.Series(rows, dtype=object),
    "decimal128": arrow,
    "decimal256": lambda rows, scale: pa.array(rows, pa.decimal256(76, scale)),
    "sliced": lambda rows, scale: arrow([None, *rows], scale)[1:],
    "chunks": lambda rows, scale: pa.chunked_array([arrow(rows[:7], scale), arrow([], scale), arrow(rows[7:], scale)]),
    "stream": lambda rows, scale: OnlyStream(pa.chunked_array([arrow(rows, scale)])),
    "pandas of Arrow": lambda rows, scale: pd.Series(pd.arrays.ArrowExtensionArray(arrow(rows, scale))),
    "polars": lambda rows, scale: pl.Series(rows, dtype=pl.Decimal(38, scale)),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("scale", [0, 2, 18, 22, 23, 37])
def test_they_are_rounded_to_the_nearest_double(scale: int, name: str) -> None:
    rows = [*(Decimal(number).scaleb(-scale, DIGITS) for number in unscaled(scale)), None]
    expected = np.array([math.nan if row is None else float(row) for row in rows])
    found = _columns.floats(MAKE[name](rows, scale))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


def test_the_cast_of_pyarrow_is_caught() -> None:
    rows = [Decimal(number).scaleb(-18, DIGITS) for number in unscaled(18)]
    found = arrow(rows, 18).cast(pa.float64()).to_numpy()
    assert (found != np.array(list(map(float, rows)))).any()


@pytest.mark.parametrize("name", ["decimal32", "decimal64", "decimal256"])
def test_other_widths_and_scales(name: str) -> None:
    kind = getattr(pa, name, None)
    if kind is None:
        pytest.skip("this pyarrow lacks the type")
    for scale in (-4, 0, 5, *((76, -60) if name == "decimal256" else ())):
        rows = [Decimal(number).scaleb(-scale, DIGITS) for number in (12345, -12345, 1, -7)]
        found = _columns.floats(pa.array([*rows, None], kind(5, scale)))
        np.testing.assert_array_equal(found, [*map(float, rows), math.nan])
    assert _columns.floats(pa.array([], kind(5, 2))).shape == (0,)


def test_a_list_may_have_what_no_column_has() -> None:
    rows = [Decimal(text) for text in ("NaN", "sNaN", "Infinity", "-1E400", "5E-324", "2.4E-324", "1E-1000000", "-0")]
    found = _columns.floats([*rows, 1, 2.5, None, np.float32(0.5)])
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.inf, -np.inf, 5e-324, 0, 0, 0, 1, 2.5, np.nan, 0.5])
    assert queries.Count(epsilon=SURE).release(rows) == 6


@pytest.mark.parametrize("name", MAKE)
def test_queries_take_them(name: str) -> None:
    column = MAKE[name]([Decimal("1.50"), None, Decimal("2.25"), Decimal("2.25")], 2)
    assert queries.Count(epsilon=SURE).release(column) == 3
    assert queries.Sum(bounds=(0, 2), epsilon=SURE).release(column) == pytest.approx(5.5)
    assert queries.Mean(bounds=(0, 3), epsilon=SURE).release(column) == pytest.approx(2)
    assert queries.Median(bounds=(0, 4), epsilon=SURE).release(column) == pytest.approx(2.25)
    assert queries.Histogram(edges=[0, 2, 3], epsilon=SURE).release(column).tolist() == [1, 2]
    assert queries.StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {2.25: 2}
    domain = [Decimal("2.25"), 1.5, Decimal("0.1")]
    assert queries.Histogram(domain=domain, epsilon=SURE).release(column) == {2.25: 2, 1.5: 1, Decimal("0.1"): 0}


@pytest.mark.parametrize("name", MAKE)
def test_labels_are_exact_where_they_are_whole_and_else_the_nearest_doubles(name: str) -> None:
    large = 10**37 + 1
    column = MAKE[name]([Decimal(large), Decimal(large), Decimal(large + 1), None], 0)
    assert queries.StabilityHistogram(epsilon=SURE, delta=0.5).release(column) == {large: 2}
    column = MAKE[name]([Decimal("0.1"), Decimal("0.1")], 1)
    assert queries.Histogram(domain=[0.1, 0.2], epsilon=SURE).release(column) == {0.1: 2, 0.2: 0}


@pytest.mark.parametrize("dtype", [kind for kind in ("Int128", "UInt128") if hasattr(pl, kind)])
def test_integers_of_128_bits(dtype: str) -> None:
    rows = [2**126 + 1, None, 2**126 + 1, 2**126, *map(abs, beside([2**53, 2**64, 2**120 + 2**67]))]
    column = pl.Series(rows, dtype=getattr(pl, dtype))
    np.testing.assert_array_equal(_columns.floats(column), [math.nan if row is None else float(row) for row in rows])
    domain = [2**126, 2**126 + 1]
    assert queries.Histogram(domain=domain, epsilon=SURE).release(column) == {2**126: 1, 2**126 + 1: 2}
    assert queries.Count(epsilon=SURE).release(column) == len(rows) - 1


@pytest.mark.parametrize("name", MAKE)
def test_local_protocols_for_numbers_take_them(name: str) -> None:
    for protocol in (local.LaplaceMean(epsilon=1.0), local.SquareWave(k=8, epsilon=1.0)):
        column = MAKE[name]([Decimal("0.1"), Decimal("0.25")], 2)
        assert (protocol.perturb(column, rng=SeededRng(1)) == protocol.perturb([0.1, 0.25], rng=SeededRng(1))).all()
        with pytest.raises((ParameterError, TypeError), match="missing values"):
            protocol.perturb(MAKE[name]([Decimal("0.1"), None], 2))
    with pytest.raises(ParameterError, match=r"^values must be numbers in \[-1, 1\]$"):
        local.LaplaceMean(epsilon=1.0).perturb([Decimal("sNaN")])
