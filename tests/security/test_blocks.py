"""What a block shows beside its own rows: nothing, in any container, whatever one other row is.

For each container the data are made as people make them, so that the library infers types, categories and lengths from
all rows. Neighbours differ in the last row.
"""

from __future__ import annotations

import itertools
import sys
import warnings
import zlib
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpnoise.hazmat import SeededRng
from dpnoise.stability import StableBootstrap, SubsampleAndAggregate
from dpnoise.stability._rows import Rows

N = 40

NUMBERS = [1, 2] * (N // 2 - 1) + [1]
TEXTS = ["a", "b"] * (N // 2 - 1) + ["a"]
TRUTHS = [True, False] * (N // 2 - 1) + [True]

# The rows but for the last one, and what the last one may be.
# What 0/0 gives on x86.
NEGATIVE_NAN = -float("nan")

DATA: dict[str, tuple[list[Any], list[Any]]] = {
    "missing": ([NEGATIVE_NAN, 0.5] * (N // 2 - 1) + [-0.0], [1.0, None, float("nan")]),
    "numbers": (NUMBERS, [2, 2.5, None, float("nan"), -0.0, True, 2**40, Decimal("0.125")]),
    "texts": (TEXTS, ["b", "secret-of-alice", "", None]),
    "truths": (TRUTHS, [False, None]),
}

# Last rows of another kind than the others, where a library makes objects of all.
MIXED: dict[str, tuple[list[Any], list[Any]]] = {
    "missing": (NUMBERS, ["secret-of-alice", (1, 2)]),
    "numbers": (NUMBERS, ["secret-of-alice", b"x", (1, 2)]),
    "texts": (TEXTS, [7, 2.5, (1, 2)]),
    "truths": (TRUTHS, [2, 0.5, "secret-of-alice"]),
}


def pandas_index(rows: list[Any]) -> pd.Series:
    """The rows in an index whose unused levels stay."""
    objects = list(map(str, rows))
    return pd.Series(np.arange(len(rows)) % 3, index=pd.MultiIndex.from_arrays([objects, objects]))


CONTAINERS: dict[str, Any] = {
    "NumPy": np.array,
    "NumPy objects": lambda rows: np.fromiter(rows, object, len(rows)),
    "NumPy masked": lambda rows: np.ma.array(
        np.array([rows[0] if row is None else row for row in rows]), mask=[row is None for row in rows]
    ),
    "pandas series": pd.Series,
    "pandas nullable": lambda rows: pd.Series(rows).convert_dtypes(),
    "pandas category": lambda rows: pd.Series(rows, dtype="category"),
    "pandas Arrow": lambda rows: pd.Series(rows).convert_dtypes(dtype_backend="pyarrow"),
    "pandas frame": lambda rows: pd.DataFrame({"x": rows, "y": pd.Categorical(rows)}),
    "pandas index": pandas_index,
    "polars series": lambda rows: pl.Series("x", rows, strict=False),
    "polars categorical": lambda rows: pl.Series("x", list(map(str, reversed(rows))), dtype=pl.Categorical).reverse(),
    "polars enum": lambda rows: pl.Series("x", list(map(str, rows)), dtype=pl.Enum(sorted(set(map(str, rows))))),
    "polars frame": lambda rows: pl.DataFrame({"x": rows, "y": list(map(str, rows))}, strict=False),
    "Arrow array": pa.array,
    "Arrow dictionary": lambda rows: pa.array(list(map(str, rows))).dictionary_encode(),
    "Arrow chunks": lambda rows: pa.chunked_array([pa.array(rows)]),
    "Arrow table": lambda rows: pa.table({"x": rows, "y": pa.array(list(map(str, rows))).dictionary_encode()}),
    "Arrow batch": lambda rows: pa.record_batch({"x": pa.array(rows)}),
}

TAKES_OBJECTS = ("NumPy objects", "pandas series", "pandas index")


def arrow_columns(block: Any) -> list[Any]:
    if not isinstance(block, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        return []
    return block.columns if hasattr(block, "column_names") else [block]


def arrow_arrays(block: Any) -> list[Any]:
    return [chunk for column in arrow_columns(block) for chunk in getattr(column, "chunks", [column])]


def columns_of(block: Any) -> list[Any]:
    if isinstance(block, pd.DataFrame):
        return [column for _, column in block.items()]
    return block.get_columns() if isinstance(block, pl.DataFrame) else [block]


# What a function may look at. Each gives a text, the same one where a container has no such thing.
METADATA: dict[str, Any] = {
    "dtype": lambda b: [str(getattr(c, "dtype", "")) for c in columns_of(b)] + [str(a.type) for a in arrow_arrays(b)],
    "schema": lambda b: str(getattr(b, "schema", "")),
    "categories": lambda b: [
        str(c.dtype.categories)
        for c in columns_of(b)
        if isinstance(getattr(c, "dtype", None), pd.CategoricalDtype | pl.Enum)
    ],
    "codes": lambda b: [str(c.to_physical()) for c in columns_of(b) if isinstance(c, pl.Series)],
    "dictionary": lambda b: [str(a.dictionary) for a in arrow_arrays(b) if pa.types.is_dictionary(a.type)],
    "buffers": lambda b: [[buffer is None for buffer in a.buffers()] for a in arrow_arrays(b)],
    "chunks": lambda b: [getattr(c, "num_chunks", 1) for c in arrow_columns(b)],
    "item size": lambda b: (getattr(b, "itemsize", 0), getattr(b, "nbytes", 0), getattr(b, "strides", 0)),
    "size": lambda b: getattr(b, "size", 0),
    "bits": lambda b: [
        c.to_numpy().tobytes() if hasattr(c, "to_numpy") else c.tobytes()
        for c in columns_of(b)
        if str(getattr(c, "dtype", "")).lower() == "float64"
    ],
    "mask": lambda b: (type(getattr(b, "mask", None)).__name__, str(getattr(b, "fill_value", ""))),
    "index": lambda b: (
        [str(level) for level in getattr(getattr(b, "index", None), "levels", [])]
        + [type(getattr(b, "index", None)).__name__]
    ),
    "attributes": lambda b: str(getattr(b, "attrs", "")),
    "flags": lambda b: [str(c.flags) for c in columns_of(b) if isinstance(c, pl.Series | np.ndarray)],
    "value counts": lambda b: [c.value_counts().size for c in columns_of(b) if isinstance(c, pd.Series)],
    "mode": lambda b: [repr(c.mode().tolist()[:1]) for c in columns_of(b) if isinstance(c, pd.Series)],
    "items": lambda b: [
        sorted({type(item).__name__ for item in (c.tolist() if hasattr(c, "tolist") else c.to_pylist())})
        for c in [*columns_of(b), *arrow_columns(b)]
        if hasattr(c, "tolist") or hasattr(c, "to_pylist")
    ],
    "text": str,
    "class": lambda b: type(b).__name__,
}


def as_it_was(data: Any, positions: np.ndarray) -> Any:
    """The planted fault: rows taken by the library, with whatever it knows of all rows."""
    if isinstance(data, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return data.take(positions)
    return data.iloc[positions] if hasattr(data, "iloc") else data[positions]


def made(container: str, rows: list[Any]) -> Any:
    """The data, or None where the library cannot hold them together: then nobody has such data."""
    try:
        return CONTAINERS[container](rows)
    except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
        return None


def neighbours(container: str, kind: str) -> list[Any]:
    first, lasts = DATA[kind]
    mixed = MIXED[kind][1] if container in TAKES_OBJECTS else []
    found = [made(container, [*first, last]) for last in (*lasts, *mixed)]
    return [data for data in found if data is not None]


CASES = [
    (container, kind) for container, kind in itertools.product(CONTAINERS, DATA) if len(neighbours(container, kind)) > 1
]

# Of all rows but the last one; of one kind, and of one row.
BLOCKS = [np.arange(N - 1), np.arange(0, N - 1, 2), np.arange(1, N - 1, 2), np.array([3]), np.array([4, 2, 2])]


def shown(take: Any, data: Any, name: str) -> list[str]:
    return [str(METADATA[name](take(data, positions))) for positions in BLOCKS]


def taken(data: Any, positions: np.ndarray) -> Any:
    return Rows(data).at(positions)


@pytest.mark.parametrize(("container", "kind"), CASES)
def test_no_metadata_of_a_block_hangs_on_another_row(container: str, kind: str) -> None:
    first, *others = neighbours(container, kind)
    for name in METADATA:
        expected = shown(taken, first, name)
        for other in others:
            assert shown(taken, other, name) == expected, name


def test_blocks_as_the_libraries_take_them_show_other_rows() -> None:
    """The control: each container is caught, and each kind of metadata but those that all blocks share."""
    caught: set[tuple[str, str]] = set()
    for container, kind in CASES:
        first, *others = neighbours(container, kind)
        for name in METADATA:
            expected = shown(as_it_was, first, name)
            if any(shown(as_it_was, other, name) != expected for other in others):
                caught.add((container, name))
    for container in CONTAINERS:
        print(f"{container}: {', '.join(name for name in METADATA if (container, name) in caught)}")
    # NumPy's objects are the rows' own, and what polars knows of categories is of the whole process.
    assert {container for container, _ in caught} == set(CONTAINERS) - {"NumPy objects", "polars categorical"}
    assert {name for _, name in caught} >= {"dtype", "schema", "categories", "dictionary", "buffers", "item size"}
    assert {name for _, name in caught} >= {"index", "mask", "mode", "items", "text", "value counts"}


# --- aggregates ----------------------------------------------------------------------------------------------------

BLOCK_NUMBER = 10

OPTIONS: dict[str, dict[str, Any]] = {
    "mean": {"bounds": (0.0, 1.0)},
    "trimmed_mean": {"bounds": (0.0, 1.0), "alpha": 0.2},
    "winsorized_mean": {"bounds": (0.0, 1.0), "alpha": 0.2},
    "median": {"bounds": (0.0, 1.0)},
    "noisy_max": {"candidates": range(8)},
    "mode": {"delta": 1e-9},
}


# What is the same for all blocks, but for the one whose own row is another one.
SAME_IN_ALL = ("schema", "categories", "dictionary", "chunks", "mask", "index", "attributes", "class")


def released(data: Any, aggregate: str) -> tuple[dict[str, list[str]], Any]:
    """What blocks answer about their metadata, and the release: of the same partition, with the same noise.

    The release is of what is the same in all blocks.
    """
    # All blocks are the same for every aggregate: one is asked about all metadata.
    looks = METADATA if aggregate == "mode" else {name: METADATA[name] for name in SAME_IN_ALL}
    answers: dict[str, list[str]] = {name: [] for name in looks}

    def f(block: Any) -> Any:
        for name, look in looks.items():
            answers[name].append(str(look(block)))
        text = " ".join(answers[name][-1] for name in SAME_IN_ALL)
        number = zlib.crc32(text.encode())
        return text if aggregate == "mode" else number % 8 if aggregate == "noisy_max" else number / 2**32

    mechanism = SubsampleAndAggregate(f=f, blocks=BLOCK_NUMBER, aggregate=aggregate, epsilon=1e6, **OPTIONS[aggregate])
    return answers, mechanism.release(data, rng=SeededRng(5))


@pytest.mark.parametrize("aggregate", OPTIONS)
@pytest.mark.parametrize(("container", "kind"), CASES)
def test_one_row_changes_one_answer_about_metadata(container: str, kind: str, aggregate: str) -> None:
    first, *others = neighbours(container, kind)
    answers, release = released(first, aggregate)
    for other in others:
        answers_then, release_then = released(other, aggregate)
        for name, before in answers.items():
            assert sum(map(str.__ne__, before, answers_then[name])) <= 1, name
        if aggregate == "mean":
            assert abs(release - release_then) <= 1 / BLOCK_NUMBER + 1e-4
        else:
            assert release == release_then


def test_a_category_of_one_row_is_not_released() -> None:
    """As it was found: the text of one row was in the release of all."""
    column = pd.Series([*TEXTS * 100, "secret-of-alice"], dtype="category")
    options: dict[str, Any] = {"blocks": 100, "aggregate": "mode", "epsilon": 1.0, "delta": 1e-9}
    assert SubsampleAndAggregate(f=lambda b: tuple(b.cat.categories), **options).release(column) is None, "it has none"
    found = SubsampleAndAggregate(f=lambda b: tuple(sorted(set(b))), **options).release(column)
    assert found in (None, ("a", "b"))


@pytest.mark.parametrize("last", [2, None, 2.5])
def test_the_mode_of_whole_numbers_is_one_value(last: Any) -> None:
    column = pd.Series([1] * 3999 + [last])
    options: dict[str, Any] = {"blocks": 100, "aggregate": "mode", "epsilon": 1.0, "delta": 1e-9}
    for f in (lambda b: b.mode()[0], lambda b: float(b.mode()[0]), lambda b: int(b.mode()[0])):
        assert repr(SubsampleAndAggregate(f=f, **options).release(column)) == "1"
    for f in (lambda b: b.median(), lambda b: int(b.median())):
        assert repr(StableBootstrap(f=f, epsilon=60.0, delta=1e-6).release(column)) == "1"


def test_blocks_are_what_the_documentation_says() -> None:
    """Numbers are float64, missing ones as the library has it; the rest is texts, bytes or objects."""
    every = np.arange(3)
    frame = pd.DataFrame({"n": pd.array([1, 2, None], "Int64"), "t": ["a", None, "b"], "d": [True, False, True]})
    frame.index = pd.Index(["x", "y", "z"], name="people")
    block = taken(frame, every)
    assert [str(dtype) for dtype in block.dtypes] == ["float64", "object", "float64"]
    assert block["t"].tolist() == ["a", None, "b"]
    assert np.isnan(block["n"][2])
    assert isinstance(block.index, pd.RangeIndex)
    frame.columns = pd.MultiIndex.from_tuples([("p", "n"), ("p", "t"), ("q", "d")])
    assert taken(frame, every).columns.tolist() == frame.columns.tolist()
    frame.columns = ["n", "n", "n"]
    assert taken(frame, every).columns.tolist() == ["n"] * 3
    polars = taken(pl.DataFrame({"n": [1, None, 3], "t": ["a", None, "b"], "b": [b"a", None, b""]}), every)
    assert polars.dtypes == [pl.Float64, pl.String, pl.Binary]
    assert polars.rows() == [(1.0, "a", b"a"), (None, None, None), (3.0, "b", b"")]
    table = taken(pa.table({"n": [1, None, 3], "t": ["a", None, "b"], "b": [b"a", None, b""]}), every)
    assert table.schema.types == [pa.float64(), pa.large_string(), pa.large_binary()]
    assert table.to_pydict() == {"n": [1.0, None, 3.0], "t": ["a", None, "b"], "b": [b"a", None, b""]}
    assert taken(np.array([[1, 2], [3, 4], [5, 6]]), every).dtype == np.float64
    wide = np.array([1, 10**400, None, Decimal("sNaN")], object)
    np.testing.assert_array_equal(taken(wide, np.arange(4)), [1.0, np.inf, np.nan, np.nan])
    assert taken(np.array(["a", "bcd"]), np.arange(2)).tolist() == ["a", "bcd"]
    items = [object(), "a"]
    assert taken(np.array([*items, 1], object), np.arange(2)).tolist() == items


UNUSABLE: dict[str, Any] = {
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "times": pd.Series(pd.to_datetime(["2020-01-01"])),
    "time zones": pd.Series(pd.to_datetime(["2020-01-01"])).dt.tz_localize("UTC"),
    "differences": pd.Series(pd.to_timedelta(["1s"])),
    "intervals": pd.cut(pd.Series([1, 2, 3]), 2),
    "periods": pd.Series(pd.period_range("2020", periods=2, freq="D")),
    "complex": np.array([1j]),
    "records": np.array([(1, "a")], [("n", int), ("t", "U3")]),
    "polars dates": pl.Series([1, 2]).cast(pl.Date),
    "polars lists": pl.Series([[1], [2, 3]]),
    "polars objects": pl.Series([object()], dtype=pl.Object),
    "polars mixed": pl.Series(["a", 1], dtype=pl.Object),
    "Arrow dates": pa.array([1, 2], pa.date32()),
    "Arrow times": pa.array([1, 2], pa.time64("us")),
    "Arrow structs": pa.array([{"a": 1}]),
    "pandas mixed": pd.Series(["a", 1], dtype="category"),
    "a column of a table": pl.DataFrame({"x": [1], "y": [[1]]}),
    "masked dates": np.ma.array(np.array(["2020-01-01"], "M8[D]"), mask=[False]),
    "masked complex": np.ma.array([1j]),
    "masked records": np.ma.array(np.array([(1, "a")], [("n", int), ("t", "U3")])),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_columns_of_which_no_block_can_be_made_are_refused(kind: str) -> None:
    with pytest.raises(TypeError, match=r"^data must have columns of numbers, of texts or of bytes, got .*: cast them"):
        Rows(UNUSABLE[kind])


def test_an_index_of_several_levels_is_refused() -> None:
    """Its tuples are of levels, whose numbers one missing row makes floats."""
    with pytest.raises(TypeError, match=r"^data must be a table or column, got an index of several levels"):
        Rows(pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]))


class Telling(float):
    """A number that tells who looks at it."""

    def __float__(self) -> float:
        warnings.warn("a row of alice", stacklevel=1)
        raise ValueError("a row of alice")

    def __ne__(self, other: object) -> bool:
        raise ValueError("a row of alice")


def test_rows_of_classes_of_the_users_tell_nothing() -> None:
    data = np.array([1.0, Telling(2.0), "a"], object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = Rows(data)
        assert taken(data, np.arange(1)).tolist() == [1.0]
        assert np.isnan(rows.at(np.array([1]))).all()


def test_no_block_is_larger_than_its_rows() -> None:
    """A block that kept the array that it was cut from would show how long that is, and its rows."""
    block = taken(np.arange(10_000.0), np.arange(10))
    assert block.base is None
    assert sys.getsizeof(block) < 1000
