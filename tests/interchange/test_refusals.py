"""What cannot be taken exactly is refused as it is in a NumPy array, whatever holds it, and no message shows it."""

from __future__ import annotations

import array
import collections
import datetime
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `test` is not installed")

import nanoarrow
import pandas as pd
import polars as pl
from interchange.calls import LOCAL, MATRICES, NOISE, OF_TEXTS, QUERIES
from interchange.containers import COLUMNS, OnlyArray, OnlyStream, OnlyTensor

from dpnoise import DiscreteLaplace, Laplace, ParameterError, local, queries, sgd
from dpnoise._arrays import array_of
from dpnoise.hazmat import SeededRng

SECRET = 7001
REFUSALS = (ParameterError, TypeError)


def refusal(call: Callable[[Any], Any], values: Any) -> tuple[type[Exception], str]:
    with pytest.raises(REFUSALS) as caught:
        call(values)
    return type(caught.value), str(caught.value)


BAD = {
    "large integers": (["Laplace", "Exponential", "AboveThreshold"], np.array([1, 2**53 + 1, -3])),
    "large unsigned integers": (["DiscreteLaplace", "Laplace"], np.array([1, 2**63, 3], np.uint64)),
    "NaN": (["Laplace", "Gaussian", "DuchiMean", "Exponential"], np.array([0.5, np.nan, 0.25])),
    "NaN of another payload": (["Laplace"], np.array([0x7FF8_0000_0000_1B59] * 3, np.uint64).view(np.float64)),
    "infinity": (["Laplace", "LaplaceMean"], np.array([0.5, -np.inf])),
    "out of range": (["OptimizedUnaryEncoding", "LocalHashing", "LOLOHA"], np.arange(36) + SECRET),
    "floats": (["DiscreteLaplace", "DiscreteGaussian", "OptimizedUnaryEncoding"], np.array([1.0, 2.5])),
    "booleans": (["Laplace", "DiscreteLaplace", "OptimizedUnaryEncoding"], np.array([True, False])),
    "integers": (["RandomizedResponse"], np.array([0, 1])),
}
"""Values that functions refuse in a NumPy array."""


@pytest.mark.parametrize("name", BAD)
def test_the_refusals_are_those_for_numpy(name):
    functions, values = BAD[name]
    for function in functions:
        call = {**NOISE, **LOCAL}[function][0]
        expected = refusal(call, values)
        assert str(SECRET) not in expected[1]
        for container, make in COLUMNS.items():
            found = refusal(call, make(values))
            if name.startswith("NaN") and container.startswith("pandas"):  # for which NaN may be missing
                assert found == expected or "must have no missing values" in found[1]
            else:
                assert found == expected, container


CATEGORIES = {
    ".cat.codes": lambda texts: pd.Series(texts, dtype="category"),
    ".codes": pd.Categorical,
    ".to_physical()": lambda texts: pl.Series(texts, dtype=pl.Enum(sorted(set(texts)))),
    ".cast(pl.Enum(values)).to_physical()": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    ".indices": lambda texts: pa.array(texts).dictionary_encode(),
    ".combine_chunks().indices": lambda texts: pa.chunked_array([pa.array(texts)]).dictionary_encode(),
}
"""Columns of categories, by what gives their codes."""


def test_categories_are_refused_with_what_gives_their_codes():
    texts = [f"{SECRET}a", "b", f"{SECRET}a"]
    by_index = (
        "values must be integers, got dtype object: replace every value by its index in the list of possible values"
    )
    takes_codes = [call for call, values in LOCAL.values() if values.dtype.kind == "i"]
    assert len(takes_codes) >= 11
    for call in takes_codes:
        for codes, make in CATEGORIES.items():
            found = f"{by_index}, which {codes} gives if the categories are that list"
            assert refusal(call, make(texts)) == (TypeError, found)
        # Without categories, and with values that are missing indeed.
        for column in (pd.Series(texts), pl.Series(texts), pa.array(texts), np.array(texts, object)):
            assert refusal(call, column) == (TypeError, by_index)
        kind, found = refusal(call, np.array([1, None]))
        assert (kind, found.split(": ")[1].startswith("fill or drop missing values (None, NA)")) == (TypeError, True)
    protocol = local.OptimizedUnaryEncoding(k=2, epsilon=1.0)
    expected = protocol.perturb([0, 1, 0], rng=SeededRng(1))
    for codes, make in CATEGORIES.items():
        # The advice is what to write, so it must run.
        column = eval(f"column{codes}", {"column": make(texts), "pl": pl, "values": sorted(set(texts))})  # noqa: S307
        assert np.array_equal(protocol.perturb(column, rng=SeededRng(1)), expected)


def test_how_long_the_longest_text_is_stays_out_of_messages():
    for call in (NOISE["Laplace"][0], LOCAL["DuchiMean"][0], LOCAL["LOLOHA"][0], MATRICES["clip_and_sum"][0]):
        assert refusal(call, ["a" * 7001]) == refusal(call, ["a"])
        assert refusal(call, [b"a" * 7001]) == refusal(call, [b"a"])
        long, short = (np.rec.array([("a" * length, 1.0)]) for length in (7001, 1))
        assert refusal(call, long) == refusal(call, short)


def test_float16_is_exact():
    values = np.array([0.5, -2.0, 1 / 3], np.float16)
    expected = Laplace(epsilon=1.0).release(values, rng=SeededRng(1))
    for make in (pa.array, pd.Series, pl.Series, OnlyTensor, lambda a: OnlyArray(pa.array(a))):
        assert np.array_equal(Laplace(epsilon=1.0).release(make(values), rng=SeededRng(1)), expected)


KINDS = {
    "decimals": [Decimal("7001.1"), Decimal(1)],
    "texts": [str(SECRET), "1"],
    "bytes": [b"7001", b"1"],
    "dates": [datetime.date(7001, 1, 1)] * 2,
    "instants": [datetime.datetime(2001, 7, 1)] * 2,
    "durations": [datetime.timedelta(SECRET)] * 2,
    "times": [datetime.time(7, 1)] * 2,
    "lists": [[SECRET, 1], [2, 3]],
}
"""Kinds of values that no function for numbers takes."""


@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_are_refused_not_converted(name):
    values = KINDS[name]
    for make in (pa.array, lambda a: OnlyStream(pa.chunked_array([a])), pl.Series, pd.Series, nanoarrow_of):
        for call in (
            NOISE["Laplace"][0],
            NOISE["DiscreteLaplace"][0],
            LOCAL["OptimizedUnaryEncoding"][0],
            LOCAL["DuchiMean"][0],
            lambda gradients: sgd.clip_and_sum(gradients, clip_norm=1.0),
            *([] if name == "decimals" else [QUERIES["Sum"][0]]),
        ):
            assert not re.search(r"7001|\b7\b", refusal(call, make(values))[1])


def nanoarrow_of(values: list[Any]) -> Any:
    return nanoarrow.c_array(pa.array(values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pl.Series([[1, None], [3, 4]], dtype=pl.Array(pl.Int64, 2)), "x must be a column of single values"),
        (pa.array([[1, None], [3, 4]], pa.list_(pa.int64(), 2)), "x must be a column of single values"),
        *[
            (table, "x must be an array or a column, got a table: pass one of its columns")
            for make in (pa.table, pa.record_batch, pd.DataFrame, pl.DataFrame)
            for table in (make({"a": [1]}), make({"a": [1, 2], "b": ["x", "y"]}))
        ],
        (OnlyStream(pa.table({"a": [1]})), "x must be an array or a column, got a table: pass one of its columns"),
        (pa.nulls(3), "x must have no missing values: fill or drop them first"),
        (pa.array([{"a": 1}, None]), "x must have no missing values: fill or drop them first"),
        (pa.array([{"a": 1}, {"a": None}]), "x must have no missing values: fill or drop them first"),
        ([pl.Series([1, None])], "x must have no missing values: fill or drop them first"),
        ([[OnlyArray(pa.array([1, None]))]], "x must have no missing values: fill or drop them first"),
        ([np.ma.masked_array([1], mask=True)], "x must have no masked values: fill or drop them first"),
        (np.ma.masked_array([1, 2], mask=[0, 1]), "x must have no masked values: fill or drop them first"),
        (pd.Series([1, pd.NA], dtype=object), "x must be integers, got dtype object"),
        ([1, pd.NA], "x must be integers, got dtype object"),
        (pd.Timestamp(2026, 11, 21), "x must be data that NumPy or pyarrow can read, got Timestamp"),
        (pl.LazyFrame({"a": [1]}), "x must be integers, got dtype object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_used(values, message):
    assert refusal(DiscreteLaplace(epsilon=1.0).release, values)[1].startswith(message)


BIG, HALF = [1, 2**53 + 1], [0.5, 1.5]
MIXED = {
    "pandas": pd.DataFrame({"a": BIG, "b": HALF}),
    "pandas nullable": pd.DataFrame({"a": BIG, "b": HALF}).convert_dtypes(),
    "polars": pl.DataFrame({"a": BIG, "b": HALF}),
    "pyarrow table": pa.table({"a": BIG, "b": HALF}),
    "pyarrow batch": pa.record_batch({"a": BIG, "b": HALF}),
    "stream": OnlyStream(pa.table({"a": BIG, "b": HALF})),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_table_of_integers_and_floats_is_not_rounded(name):
    wanted = "gradients must have columns of one dtype, got float64 and int64: cast them first"
    assert refusal(partial(sgd.clip_and_sum, clip_norm=1.0), MIXED[name]) == (ParameterError, wanted)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_a_table_without_columns_is_refused(make):
    wanted = "gradients must have columns, got a table without"
    assert refusal(partial(sgd.clip_and_sum, clip_norm=1.0), make({})) == (ParameterError, wanted)


def test_columns_in_a_list_are_not_rounded():
    wanted = "x must have integers of at most 2**53 in magnitude, or use a discrete mechanism"
    for make in (pa.array, pl.Series, pd.Series, lambda a: OnlyTensor(np.array(a))):
        assert refusal(Laplace(epsilon=1.0).release, [make(BIG), make(HALF)]) == (ParameterError, wanted)


class Giving:
    """What gives an array, of whatever class."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self.data


MASKED = np.ma.masked_array([1, SECRET], mask=[0, 1])


@pytest.mark.parametrize("sequence", [list, collections.deque, collections.UserList, lambda parts: [tuple(parts)]])
def test_sequences_of_any_class_are_looked_into(sequence):
    release = DiscreteLaplace(epsilon=1.0).release
    gap = pa.chunked_array([pa.array([5, None, 7]).dictionary_encode(), pa.array([7]).dictionary_encode()])
    assert refusal(release, sequence([gap]))[1] == "x must have no missing values: fill or drop them first"
    assert refusal(release, sequence([MASKED]))[1] == "x must have no masked values: fill or drop them first"
    wanted = "x must have integers of at most 2**53 in magnitude, or use a discrete mechanism"
    assert refusal(Laplace(epsilon=1.0).release, sequence([2**53 + 1, 0.5]))[1] == wanted
    assert np.shape(release(sequence([1, 2]))) in ((2,), (1, 2))


def test_masks_of_what_another_class_gives_are_seen():
    release = DiscreteLaplace(epsilon=1.0).release
    for values in (Giving(MASKED), [Giving(MASKED)]):
        assert refusal(release, values)[1] == "x must have no masked values: fill or drop them first"
    assert release(Giving(MASKED[:1])).shape == (1,)


@pytest.mark.parametrize("make", [lambda a: a, memoryview, lambda a: array.array("h", a.tolist()), Giving])
def test_memory_is_read_as_it_is(make):
    values = np.array([1, -2, 3], np.int16)
    assert array_of(make(values), "x").dtype == np.int16
    assert array_of([make(values)], "x").dtype == np.int16


@pytest.mark.parametrize("values", [{1: 2}, {1, 2}, "12", b"12"])
def test_what_is_no_sequence_to_numpy_is_none(values):
    assert refusal(DiscreteLaplace(epsilon=1.0).release, values)[0] is TypeError


class Series(pd.Series):  # type: ignore[misc]
    """A series of a library that is built on pandas."""


class Frame(pd.DataFrame):  # type: ignore[misc]
    """A table of one."""


class Quantity(np.ndarray):
    """An array that counts in its own way."""

    def astype(self, *_: object, **__: object) -> Any:
        return np.zeros(len(self) + 1)


def test_subclasses_are_what_they_derive_from():
    gradients = {"a": [0.5, np.nan], "b": [0.25, 2.0]}
    clip = MATRICES["clip_and_sum"][0]
    assert np.array_equal(clip(Frame(gradients)), clip(pd.DataFrame(gradients)))
    assert refusal(NOISE["Laplace"][0], Series([1, None], dtype="Int64"))[1].startswith("x must have no missing values")
    large = Series(pd.Categorical([2**53 + 1, None]))
    histogram = queries.Histogram(domain=[2**53, 2**53 + 1], epsilon=1.0)
    expected = histogram.release([2**53 + 1], rng=SeededRng(1))
    assert histogram.release(large, rng=SeededRng(1)) == expected
    total = queries.Sum(bounds=(0, 1), epsilon=1.0).release
    assert total(np.ones(9).view(Quantity), rng=SeededRng(1)) == total(np.ones(9), rng=SeededRng(1))


@pytest.mark.parametrize(
    ("device", "found"),
    [((2, 1), "CUDA device 1"), ((8, 0), "Metal device 0"), ((10, 3), "ROCm device 3"), ((99, 0), "device type 99")],
)
def test_a_tensor_elsewhere_is_not_fetched(device, found):
    tensor = OnlyTensor(np.array([0.25, 0.5]), device)
    for call in (NOISE["Laplace"][0], LOCAL["DuchiMean"][0], QUERIES["Sum"][0], MATRICES["clip_and_sum"][0]):
        kind, message = refusal(call, tensor)
        assert kind is ParameterError
        assert "must be in the memory of the CPU, got a tensor on" in message
        assert found in message


def test_memory_that_a_device_shares_is_read():
    values = np.array([0.25, 0.5])
    found = Laplace(epsilon=1.0).release(OnlyTensor(values, (3, 0)), rng=SeededRng(1))
    assert np.array_equal(found, Laplace(epsilon=1.0).release(values, rng=SeededRng(1)))


class Loud:
    """What fails with a message that shows a value."""

    dtype = "bfloat16"

    def _fail(self, *_: object, **__: object) -> Any:
        raise TypeError(f"cannot convert {SECRET}")


class LoudTensor(Loud):
    __dlpack__ = Loud._fail

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class LoudArray(Loud):
    __arrow_c_array__ = Loud._fail


class LoudStream(Loud):
    __arrow_c_stream__ = Loud._fail


class LoudSequence(Loud):
    __getitem__ = Loud._fail

    def __len__(self) -> int:
        return 2


class LoudConversion(Loud):
    __array__ = Loud._fail


@pytest.mark.parametrize("loud", [LoudSequence(), LoudConversion()], ids=lambda loud: type(loud).__name__)
def test_messages_of_other_classes_are_not_passed_on(loud):
    for call in (NOISE["Laplace"][0], LOCAL["OptimizedUnaryEncoding"][0], MATRICES["clip_and_sum"][0]):
        for values in (loud, [loud]):
            message = refusal(call, values)[1]
            assert message.endswith(f"must be data that NumPy or pyarrow can read, got {type(loud).__name__}")


@pytest.mark.parametrize("loud", [LoudTensor(), LoudArray(), LoudStream()], ids=lambda loud: type(loud).__name__)
def test_messages_of_other_libraries_are_not_passed_on(loud):
    calls = [NOISE["Laplace"][0], QUERIES["Sum"][0], LOCAL["OptimizedUnaryEncoding"][0]]
    if not isinstance(loud, LoudTensor):
        calls.append(OF_TEXTS["CountMeanSketch"][0])
    for call in calls:
        with pytest.raises(TypeError, match="must be data that NumPy or pyarrow can read, got Loud") as caught:
            call(loud)
        assert str(SECRET) not in str(caught.value)
        assert caught.value.__context__ is None


def test_what_works_without_pyarrow(monkeypatch):
    values = np.array([1.5, 2.5])
    streams = OnlyStream(pa.chunked_array([values]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    release = Laplace(epsilon=1.0).release
    for column in (pl.Series(values), pd.Series(values), pd.array(values), OnlyTensor(values)):
        release(column)
        queries.Sum(bounds=(0, 1), epsilon=1.0).release(column)
    sgd.clip_and_sum(pl.DataFrame({"a": values}), clip_norm=1.0)
    for call in (release, queries.Sum(bounds=(0, 1), epsilon=1.0).release, local.DuchiMean(epsilon=1.0).perturb):
        with pytest.raises(ImportError, match=re.escape('pip install "pyarrow>=18"')):
            call(streams)
