"""Missing values in every kind of container: never a value, and no refusal says which, where or how many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import nanoarrow
import pandas as pd
import polars as pl
from interchange.calls import LOCAL, NOISE
from interchange.containers import OnlyArray, OnlyStream, Tagged

from dpnoise import ParameterError, queries
from dpnoise.hazmat import SeededRng

SECRET = 7001


def with_gap(kind: type) -> list[Any]:
    """Give values of which the first repeats and the second is missing."""
    value = {int: SECRET, float: SECRET + 0.5, bool: True, str: str(SECRET)}[kind]
    return [value, None, value, value]


def dictionary(values: list[Any]) -> Any:
    """Give a dictionary without a null, and indices with one."""
    return pa.array(values).dictionary_encode()


def dictionary_of_null(values: list[Any]) -> Any:
    """Give indices without a null, and a dictionary with one."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0]), pa.array(values[:2]))


def runs(values: list[Any]) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 4], pa.int32()), pa.array(values[:3]))


def behind_the_bitmap(values: list[Any]) -> Any:
    """Give a null whose slot in the buffer holds a value that looks like the others."""
    full = pa.array([values[0]] * 4)
    return pa.Array.from_buffers(full.type, 4, [pa.py_buffer(b"\x0d"), *full.buffers()[1:]])  # bit 1 is not set


CONTAINERS = {
    "pyarrow": pa.array,
    "pyarrow sliced": lambda values: pa.array([*values, None])[:4],
    "pyarrow chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "pyarrow dictionary": dictionary,
    "pyarrow dictionary chunks": lambda values: pa.chunked_array([dictionary(values), dictionary(values[:1])]),
    "pyarrow dictionary of a null": dictionary_of_null,
    "pyarrow dictionary of a null, chunks": lambda values: pa.chunked_array([dictionary_of_null(values)] * 2),
    "pyarrow runs": runs,
    "pyarrow runs, chunks": lambda values: pa.chunked_array([runs(values)[:1], runs(values)[1:]]),
    "pyarrow extension": lambda values: pa.ExtensionArray.from_storage(
        Tagged(dictionary(values).type), dictionary(values)
    ),
    "pyarrow behind the bitmap": behind_the_bitmap,
    "capsule": lambda values: OnlyArray(pa.array(values)),
    "stream": lambda values: OnlyStream(pa.chunked_array([dictionary(values)])),
    "nanoarrow": lambda values: nanoarrow.Array(pa.array(values)),
    "polars": lambda values: pl.Series(values),
    "polars chunks": lambda values: pl.concat([pl.Series(values[:1]), pl.Series(values)], rechunk=False),
    "pandas nullable": lambda values: pd.Series(pd.array(values)),
    "pandas categorical": lambda values: pd.Series(pd.Categorical(values)),
    "pandas of Arrow": lambda values: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([values]))),
    "pandas of a dictionary": lambda values: pd.Series(pd.arrays.ArrowExtensionArray(dictionary(values))),
    "pandas of a dictionary of a null": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(dictionary_of_null(values))
    ),
}

STRICT = {
    "Laplace": (NOISE["Laplace"][0], float),
    "DiscreteLaplace": (NOISE["DiscreteLaplace"][0], int),
    "Exponential": (NOISE["Exponential"][0], float),
    "AboveThreshold": (NOISE["AboveThreshold"][0], float),
    "OptimizedUnaryEncoding": (LOCAL["OptimizedUnaryEncoding"][0], int),
    "LOLOHA": (LOCAL["LOLOHA"][0], int),
    "DuchiMean": (LOCAL["DuchiMean"][0], float),
    "RandomizedResponse": (LOCAL["RandomizedResponse"][0], bool),
}


def says_nothing(message: str) -> bool:
    """Say whether a message has no number in it but those of its own (2**53, int64)."""
    known = ("2**53", "int64", "float64", "int32", "float32")
    for word in known:
        message = message.replace(word, "")
    return not any(character.isdigit() for character in message)


@pytest.mark.parametrize("name", STRICT)
def test_they_are_refused(name):
    function, kind = STRICT[name]
    for container, make in CONTAINERS.items():
        with pytest.raises((ParameterError, TypeError), match="no missing values") as caught:
            function(make(with_gap(kind)))
        assert says_nothing(str(caught.value)), container
        assert caught.value.__cause__ is None


def objects_of(column: Any) -> list[Any]:
    """Give values as Python objects, not by the way that is tested."""
    if isinstance(column, OnlyArray | OnlyStream):
        column = column.data
    if isinstance(column, pd.Series):
        arrow = hasattr(column.dtype, "pyarrow_dtype")
        column = (
            column.array.__arrow_array__() if arrow else pl.Series(column.astype(object).where(column.notna(), None))
        )
    if isinstance(column, nanoarrow.Array):
        return list(column.iter_py())
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


@pytest.mark.parametrize("container", CONTAINERS)
def test_they_are_missing_in_queries(container):
    def released(query: Any, values: Any) -> Any:
        return query.release(values, rng=SeededRng(1))

    column = CONTAINERS[container](with_gap(int))
    plain = np.array([math.nan if item is None else item for item in objects_of(column)])
    assert np.isnan(plain).sum() in (1, 2)
    for query in (
        queries.Count(epsilon=1.0),
        queries.Sum(bounds=(0, 10_000), epsilon=1.0),
        queries.Mean(bounds=(0, 10_000), epsilon=1.0, relation="substitute"),
        queries.Median(bounds=(0, 10_000), epsilon=1.0),
        queries.Histogram(edges=[0, 7000, 8000], epsilon=1.0),
    ):
        assert released(query, column) == pytest.approx(released(query, plain), abs=0), query
    texts = CONTAINERS[container](with_gap(str))
    found = released(queries.Histogram(domain=[str(SECRET)], epsilon=1.0), texts)
    present = [item for item in objects_of(texts) if item is not None]
    assert found == released(queries.Histogram(domain=[str(SECRET)], epsilon=1.0), present)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.dictionary(pa.int8(), pa.string_view())])
def test_whether_a_text_is_missing_does_not_decide_whether_a_query_fails(kind):
    values = ["tea", None, "tea"]
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(values[:2], kind.value_type))
    else:
        column = pa.array(values, kind)
    texts = ["tea" if kind != pa.binary_view() else b"tea"] * 2
    for columns in (column, pa.chunked_array([column[:1], column[1:]]), OnlyArray(column)):
        query = queries.StabilityHistogram(epsilon=9.0, delta=0.9)
        assert query.release(columns, rng=SeededRng(1)) == query.release(texts, rng=SeededRng(1))


@pytest.mark.parametrize("container", CONTAINERS)
def test_large_integers_beside_them_stay_apart(container):
    large = 2**53 + 1
    column = CONTAINERS[container]([large, None, large, large])
    histogram = queries.Histogram(domain=[large - 1, large], epsilon=1.0)
    found = histogram.release(column, rng=SeededRng(1))
    expected = histogram.release([large] * objects_of(column).count(large), rng=SeededRng(1))
    assert found == expected
