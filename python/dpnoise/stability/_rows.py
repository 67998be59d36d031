"""Rows of data of several kinds, taken by position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._interchange import library_of
from dpnoise._native import ParameterError


def number_of_rows(data: Any) -> int:
    """Count the rows of data that `rows_at` can take rows of."""
    frame = library_of(type(data)) in ("pandas", "polars", "pyarrow") and hasattr(data, "__len__")
    if not frame and not isinstance(data, list | tuple) and not hasattr(data, "__dlpack__"):
        raise TypeError(
            "data must be a NumPy array, a list, a tensor, or a pandas, polars or pyarrow table or column, got"
            f" {type(data).__name__}"
        )
    rows = 0 if getattr(data, "ndim", 1) == 0 else len(data)
    if rows == 0:
        raise ParameterError("data must have rows")
    return rows


def rows_at(data: Any, positions: NDArray[np.int64]) -> Any:
    """Take rows, as data of the same kind."""
    if isinstance(data, list | tuple):
        return [data[position] for position in positions]
    if library_of(type(data)) == "pyarrow":
        return data.take(positions)
    return data.iloc[positions] if hasattr(data, "iloc") else data[positions]
