"""Folding into bounds, without the host's recursion, which can be as deep as the noise is large."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError

_LARGEST: Final = 2**61


def fold(values: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Reflect each value at the bounds until it lies between them. Infinite values stay if both bounds are infinite."""
    if not (np.isfinite(lower) and np.isfinite(upper)):
        with np.errstate(invalid="ignore"):  # results for a bound at infinity are not used
            values = np.where(values < lower, 2 * lower - values, values)
            return np.where(values > upper, 2 * upper - values, values)
    if lower == upper:
        return np.full_like(values, lower)
    period = 2 * (upper - lower)
    finite = np.isfinite(values)
    into = np.mod(np.where(finite, values, lower) - lower, period)
    return np.where(finite, np.clip(lower + np.minimum(into, period - into), lower, upper), values)


def fold_integers(values: NDArray[np.int64], lower: Any, upper: Any) -> NDArray[np.int64]:
    """Reflect integers at bounds that are multiples of a half, exactly."""
    twice_lower, twice_upper = (bound if np.isinf(bound) else round(2 * bound) for bound in (lower, upper))
    if not (np.isfinite(lower) and np.isfinite(upper)):
        # Saturated values are as far away as they can be, on either side.
        values = np.where(values < lower, _reflect(values, twice_lower), values)
        return np.where(values > upper, _reflect(values, twice_upper), values)
    period = twice_upper - twice_lower
    if period == 0:
        return np.full_like(values, -(-twice_lower // 2))
    first = -(-twice_lower // 2)
    # The first integer lies half a step above the bound, or on it.
    half = twice_lower % 2
    into = np.mod(np.mod(values, period) - first % period, period)
    folded: NDArray[np.int64] = first + np.minimum(into, np.mod(period - half - into, period))
    return folded


def check_integer_bounds(lower: Any, upper: Any) -> None:
    """Refuse bounds that `fold_integers` cannot double in 64 bits."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if np.isfinite(bound) and abs(bound) >= _LARGEST:
            raise ParameterError(f"{name} must be infinite or below 2**61 in magnitude, got {bound!r}")


def _reflect(values: NDArray[np.int64], twice_bound: Any) -> NDArray[np.int64]:
    if np.isinf(twice_bound):
        return values
    reflected: NDArray[np.int64] = np.int64(twice_bound) - np.clip(values, -(2**62), 2**62)
    return reflected
