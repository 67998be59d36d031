"""Decimals as the nearest doubles, correctly rounded, as `float` rounds a `decimal.Decimal`.

The casts of pyarrow are not correctly rounded. An integer of up to 2**53 and a power of ten of up to 10**22 are doubles
themselves, so that one division rounds once. All other decimals go through their texts, which both libraries read with
correct rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_EXACT: Final = 2**53
_POWER: Final = 22  # of ten


def double_of(item: Decimal) -> float:
    """Return the nearest double; NaN also for a signalling NaN, which `float` refuses."""
    return math.nan if item.is_nan() else float(item)


def number_of(item: Decimal) -> int | float:
    """Return an integral number in the range of a double as an int, and any other one as the nearest double."""
    item = Decimal(item)  # of no class of the caller
    nearest = double_of(item)
    return whole if nearest.is_integer() and item == (whole := int(item)) else nearest


def doubles_of_arrow(column: Any, pa: Any) -> NDArray[np.float64]:
    """Convert an Arrow chunked array of decimals; nulls become NaN."""

    def convert(chunk: Any) -> NDArray[np.float64]:
        width = chunk.type.bit_width
        words = np.frombuffer(chunk.buffers()[1] or b"", np.int32 if width == 32 else np.int64)
        low, *high = words.reshape(-1, max(1, width // 64))[chunk.offset :][: len(chunk)].T.astype(np.int64)
        valid = chunk.is_valid().to_numpy(zero_copy_only=False)
        narrow = np.ones(len(low), np.bool_)
        for word in high:
            narrow &= word == low >> 63

        def by_text(wide: NDArray[np.bool_]) -> Any:
            found = chunk.filter(pa.array(wide)).cast(pa.string()).cast(pa.float64())
            return found.to_numpy(zero_copy_only=False)

        found = _rounded(low, chunk.type.scale, narrow | ~valid, by_text)
        found[~valid] = np.nan
        return found

    return np.concatenate([np.empty(0), *(convert(chunk) for chunk in column.chunks if len(chunk))])


def doubles_of_polars(series: Any) -> NDArray[np.float64]:
    """Convert a polars series of decimals, or of integers of 128 bits; nulls become NaN."""
    import polars as pl

    scale = getattr(series.dtype, "scale", None)
    if scale is None:
        return np.asarray(series.cast(pl.Float64).to_numpy())
    low = series.to_physical().cast(pl.Int64, strict=False)  # a null where it does not fit
    narrow = (low.is_not_null() | series.is_null()).to_numpy()

    def by_text(wide: NDArray[np.bool_]) -> Any:
        return series.filter(pl.Series(wide)).cast(pl.String).cast(pl.Float64).to_numpy()

    found = _rounded(low.fill_null(0).to_numpy(), scale, narrow, by_text)
    found[series.is_null().to_numpy()] = np.nan
    return found


def _rounded(
    unscaled: NDArray[np.int64], scale: int, narrow: NDArray[np.bool_], by_text: Callable[[NDArray[np.bool_]], Any]
) -> NDArray[np.float64]:
    """Return ``unscaled / 10**scale`` where that rounds once, and what ``by_text`` finds elsewhere."""
    once = narrow & (unscaled <= _EXACT) & (unscaled >= -_EXACT) & (abs(scale) <= _POWER)
    power = float(10 ** min(abs(scale), _POWER))
    found: NDArray[np.float64] = np.multiply(unscaled, power) if scale < 0 else np.divide(unscaled, power)
    if not once.all():
        found[~once] = by_text(~once)
    return found
