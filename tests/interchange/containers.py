"""Containers of other libraries with the same values as a NumPy array, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[Any]


class OnlyArray:
    """A column or batch of a library that knows nothing but the PyCapsule interface."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.data.__arrow_c_array__(requested_schema)


class OnlyStream:
    """The same, for a stream."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.data.__arrow_c_stream__(requested_schema)


class OnlyTensor:
    """A tensor of a library that knows nothing but DLPack, as of before its version 1.0."""

    def __init__(self, data: Array, device: tuple[int, int] = (1, 0)) -> None:
        self.data, self.device = data, device

    def __dlpack__(self, *, stream: object = None) -> Any:
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Versioned(OnlyTensor):
    """The same, as of version 1.0, which says whether memory may be written."""

    def __dlpack__(self, *, stream: object = None, max_version: Any = None, **_: object) -> Any:
        return self.data.__dlpack__(max_version=max_version) if max_version else self.data.__dlpack__()


class Tagged(pa.ExtensionType):
    """A type of a user's own."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "dpnoise.tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def _unaligned(a: Array) -> Array:
    around = np.zeros(a.nbytes + 1, np.uint8)
    found = around[1:].view(a.dtype).reshape(a.shape)
    found[:] = a
    return found


def _read_only(a: Array) -> Array:
    found = a.copy()
    found.flags.writeable = False
    return found


def _sliced(a: Array) -> pa.Array:
    """Give an array that starts in the middle of its buffer, and of a byte where values are bits."""
    return pa.array(np.concatenate([a[-3:], a, a[:5]]))[min(3, len(a)) :][: len(a)]


def _halves(a: Array) -> list[pa.Array]:
    half = len(a) // 2
    return [pa.array(a[:half]), pa.array(a[:0], pa.array(a).type), _sliced(a[half:])]


def _chunked_dictionary(a: Array) -> pa.ChunkedArray:
    """Give chunks with dictionaries of their own."""
    return pa.chunked_array([chunk.dictionary_encode() for chunk in _halves(a)])


def _runs(a: Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, len(a) + 1), pa.int32()), pa.array(a))


def _tagged(column: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(Tagged(column.type), column)


def _polars_chunks(a: Array) -> pl.Series:
    half = len(a) // 2
    return pl.concat([pl.Series(a[:half]), pl.Series(a[half:])], rechunk=False)


def _nullable(a: Array) -> str:
    return {"bool": "boolean"}.get(a.dtype.name, a.dtype.name.capitalize().replace("Ui", "UI"))


Make = Callable[[Array], Any]

NUMPY: dict[str, Make] = {
    "strided": lambda a: np.repeat(a, 3)[1::3],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder("S")),
    "unaligned": _unaligned,
    "read-only": _read_only,
    "unmasked": lambda a: np.ma.masked_array(a, mask=False),
}

ARROW: dict[str, Make] = {
    "pyarrow": pa.array,
    "pyarrow sliced": _sliced,
    "pyarrow chunks": lambda a: pa.chunked_array(_halves(a)),
    "pyarrow one chunk": lambda a: pa.chunked_array([pa.array(a)]),
    "pyarrow dictionary": lambda a: pa.array(a).dictionary_encode(),
    "pyarrow dictionary chunks": _chunked_dictionary,
    "pyarrow runs": _runs,
    "pyarrow extension": lambda a: _tagged(pa.array(a)),
    "pyarrow extension of dictionary": lambda a: _tagged(pa.array(a).dictionary_encode()),
    "capsule": lambda a: OnlyArray(_sliced(a)),
    "stream": lambda a: OnlyStream(pa.chunked_array(_halves(a))),
    "nanoarrow": lambda a: nanoarrow.Array(pa.array(a)),
    "nanoarrow C array": lambda a: nanoarrow.c_array(pa.array(a)),
    "polars": lambda a: pl.Series("a", a),
    "polars sliced": lambda a: pl.Series(np.concatenate([a[:3], a]))[3:],
    "polars chunks": _polars_chunks,
    "pandas of Arrow": lambda a: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(_halves(a)))),
    "pandas of an Arrow dictionary": lambda a: pd.Series(pd.arrays.ArrowExtensionArray(_chunked_dictionary(a))),
}

PANDAS: dict[str, Make] = {
    "pandas": lambda a: pd.Series(a, index=range(len(a), 0, -1)),
    "pandas index": pd.Index,
    "pandas array": pd.array,
    "pandas nullable": lambda a: pd.Series(a, dtype=_nullable(a)),
    "pandas categorical": lambda a: pd.Series(a).astype("category"),
}

TENSORS: dict[str, Make] = {"DLPack": OnlyTensor, "DLPack strided": lambda a: OnlyTensor(np.repeat(a, 2)[::2])}

COLUMNS = {**NUMPY, **ARROW, **PANDAS, **TENSORS}
"""How to make a column or a vector."""

TEXTS = {name: make for name, make in ARROW.items() if name != "pandas of an Arrow dictionary"}
if not pl.__version__.startswith("1."):  # whose first ones offer categories that pyarrow cannot read
    TEXTS["polars Categorical"] = lambda a: pl.Series(a).cast(pl.Categorical)
    TEXTS["polars Enum"] = lambda a: pl.Series(a).cast(pl.Enum(np.unique(a).tolist()))
"""How to make a column of texts."""


def _names(a: Array) -> list[str]:
    return [f"c{place}" for place in range(a.shape[1])]


def _table(a: Array) -> pa.Table:
    return pa.table([pa.chunked_array(_halves(column)) for column in a.T], _names(a))


MATRICES: dict[str, Make] = {
    "Fortran order": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "byte-swapped": NUMPY["byte-swapped"],
    "unaligned": _unaligned,
    "rows": lambda a: [row.copy() for row in a],
    "tensors": lambda a: [OnlyTensor(row) for row in a],
    "pandas": lambda a: pd.DataFrame(a, columns=_names(a)),
    "pandas nullable": lambda a: pd.DataFrame(a, columns=_names(a)).astype(_nullable(a)),
    "polars": lambda a: pl.DataFrame(a, schema=_names(a)),
    "pyarrow table": _table,
    "pyarrow batch": lambda a: pa.record_batch(list(a.T), _names(a)),
    "stream": lambda a: OnlyStream(_table(a)),
    "DLPack": OnlyTensor,
    "DLPack of columns": lambda a: OnlyTensor(np.asfortranarray(a)),
}
"""How to make a matrix."""
