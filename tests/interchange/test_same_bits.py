"""Every public function gives for every container what it gives for a NumPy array of the same values: the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import nanoarrow
import pandas as pd
import polars as pl
from interchange.calls import LOCAL, MATRICES, OF_TEXTS, QUERIES, RAPPOR, REALS, VECTORS, Call
from interchange.calls import TEXTS as TEXTS_OF_CALLS
from interchange.containers import COLUMNS, TEXTS, Make, OnlyArray, OnlyStream, OnlyTensor
from interchange.containers import MATRICES as TABLES

from dpnoise import ParameterError, stability
from dpnoise._arrays import array_of
from dpnoise.hazmat import SeededRng

ARROW_TABLES = ("pandas", "pandas nullable", "polars", "pyarrow table", "pyarrow batch", "stream")


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, Exception):
        return False
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, np.ndarray):
        found = found.to_numpy() if isinstance(found, pd.Series | pl.Series) else found
        return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    return type(found) is type(expected) and bool(found == expected)


def others(call: Call, containers: Mapping[str, Make]) -> dict[str, Any]:
    """Give what comes out for containers for which it is not what it is for NumPy."""
    function, values = call
    expected = function(values)
    found = {}
    for name, make in containers.items():
        try:
            result = function(make(values))
        except (TypeError, ValueError, ImportError) as error:
            result = error
        if not same(result, expected):
            found[name] = result
    return found


@pytest.mark.parametrize("name", VECTORS)
def test_columns(name):
    few = ["polars chunks", "pyarrow dictionary chunks", "pandas nullable", "DLPack"]  # it takes a tenth of a second
    assert others(VECTORS[name], {key: COLUMNS[key] for key in few} if name == "StableBootstrap" else COLUMNS) == {}


FRAMES: dict[str, Make] = {
    "pandas": lambda a: pd.DataFrame({"a": a}),
    "polars": lambda a: pl.DataFrame({"a": a}),
    "pyarrow table": lambda a: pa.table({"a": a}),
    "pyarrow batch": lambda a: pa.record_batch({"a": a}),
    "stream": lambda a: OnlyStream(pa.table({"a": pa.chunked_array([a[:5], a[5:]])})),
    "capsule": lambda a: OnlyArray(pa.record_batch({"a": a})),
}


@pytest.mark.parametrize("name", {**QUERIES, **LOCAL})
def test_tables_of_one_column_are_that_column(name):
    assert others(VECTORS[name], FRAMES) == {}


@pytest.mark.parametrize("name", ["Count", "Sum", "Histogram of categories", *LOCAL])
def test_tables_of_several_columns_or_none_are_refused(name):
    function, values = VECTORS[name]
    for width, table in ((2, {"a": values, "b": values}), (0, {})):
        for make in (pd.DataFrame, pl.DataFrame, pa.table, lambda table: OnlyStream(pa.table(table))):
            with pytest.raises(ParameterError, match=rf"must be a single column, got a table of {width} columns: pass"):
                function(make(table))


@pytest.mark.parametrize("name", OF_TEXTS)
def test_columns_of_texts(name):
    assert others(OF_TEXTS[name], TEXTS) == {}


def test_streams_that_can_be_read_once():
    def stream(a: Any) -> Any:
        return nanoarrow.ArrayStream(pa.chunked_array([pa.array(a)]))

    rappor = (lambda texts: RAPPOR.estimate(RAPPOR.accumulator(), texts).candidates, TEXTS_OF_CALLS[:4])
    for call in (VECTORS["Laplace"], VECTORS["Mean"], *OF_TEXTS.values(), rappor):
        assert others(call, {"stream": stream}) == {}


@pytest.mark.parametrize("name", MATRICES)
def test_tables(name):
    # Reports in a table are one column of bytes, not many of numbers. The bootstrap takes a tenth of a second.
    left_out = ARROW_TABLES if name == "aggregate" else ()
    kept = ("unaligned", "polars", "DLPack") if name == "StableBootstrap" else TABLES.keys() - left_out
    assert others(MATRICES[name], {key: TABLES[key] for key in kept}) == {}


class Tensor(OnlyTensor):
    """A tensor with rows that can be counted and taken."""

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, positions: Any) -> Tensor:
        return Tensor(self.data[positions])


@pytest.mark.parametrize("make", [pa.array, lambda a: pa.chunked_array([a[:9], a[9:]]), pd.Series, pl.Series, Tensor])
def test_functions_of_the_user_get_rows_of_the_same_kind(make):
    def release(data: Any) -> Any:
        def mean(rows: Any) -> float:
            assert type(rows) is (np.ndarray if make is Tensor else type(data))
            return float(np.mean(array_of(rows, "rows")))

        options = {"blocks": 6, "aggregate": "mean", "bounds": (-5, 15), "epsilon": 1.0}
        return stability.SubsampleAndAggregate(f=mean, **options).release(data, rng=SeededRng(5))

    assert release(make(REALS)) == release(REALS)


def test_functions_of_the_user_get_tables():
    options = {"blocks": 6, "aggregate": "mean", "bounds": (-5, 15), "epsilon": 1.0}
    table = pa.table({"a": REALS, "b": -REALS})
    of_a = stability.SubsampleAndAggregate(f=lambda rows: float(np.mean(array_of(rows["a"], "a"))), **options)
    of_all = stability.SubsampleAndAggregate(f=lambda rows: float(rows.mean()), **options)
    assert of_a.release(table, rng=SeededRng(5)) == of_all.release(REALS, rng=SeededRng(5))


def test_another_value_is_told_apart():
    function, values = VECTORS["Laplace"]
    changed = values.copy()
    changed[-1] += 2.0**-10
    assert list(others((function, values), {"changed": lambda _: changed})) == ["changed"]
