"""Columns of reports, as Arrow and pandas have them, in the form that accumulators take."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpnoise._native import ParameterError


def as_rows(batch: Any, width: int) -> Any:
    """Give a batch as a uint8 matrix with rows of ``width`` bytes; arrays stay as they are."""
    if isinstance(batch, np.ndarray) and batch.dtype != np.object_:
        return batch
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch if isinstance(batch, pa.Array | pa.ChunkedArray) else pa.array(batch)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count or not pc.all(pc.equal(pc.binary_length(column), width)).as_py():
        if len(column):
            raise ParameterError(f"reports must have {width} bytes each, and none may be missing")
        return np.empty((0, width), np.uint8)
    whole = column.cast(pa.binary(width))
    start = whole.offset * width
    return np.frombuffer(whole.buffers()[1], np.uint8)[start : start + len(whole) * width].reshape(-1, width)
