"""How OpenDP's numbers take noise: on the grid, exactly, and within the range of their type."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def ends(number: Any) -> tuple[Any, Any]:
    """Return the least and the largest finite number of a type, as Python numbers."""
    if np.dtype(number).kind == "f":
        return float(np.finfo(number).min), float(np.finfo(number).max)
    return int(np.iinfo(number).min), int(np.iinfo(number).max)


def add_real(x: float, noise: float, granularity: float, number: Any) -> float:
    """Add noise to one number, faster than `add_reals`, with the same result."""
    least, largest = ends(number)
    value = 0.0 if math.isnan(x) else float(number(min(max(x, least), largest)))
    if abs(value) < 2.0**53 * granularity:
        place = value / granularity
        below = math.floor(place)
        value = (below + (place - below >= 0.5)) * granularity
    return float(number(min(max(value + noise, least), largest)))


def add_integer(x: int, noise: int, number: Any) -> int:
    """Add noise to one integer, faster than `add_integers`, with the same result."""
    least, most = ends(number)
    total: int = min(max(x + noise, least), most)
    return total


def add_reals(x: NDArray[Any], noise: NDArray[np.float64], granularity: float, number: Any) -> NDArray[Any]:
    """Round to the grid, halves up as the host does, add exactly, and round the sum once."""
    values = np.nan_to_num(finite(x))  # the host, too, takes NaN for 0
    # Larger numbers are on the grid already.
    near = np.abs(values) < 2.0**53 * granularity
    places = values[near] / granularity
    below = np.floor(places)
    values[near] = (below + (places - below >= 0.5)) * granularity
    largest = float(np.finfo(number).max)
    with np.errstate(over="ignore"):
        total = np.clip(values + noise, -largest, largest)
    return total.astype(number)


def finite(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return the nearest finite numbers, as the host does; NaN, which its domains exclude, stays."""
    largest = float(np.finfo(x.dtype).max)
    return np.clip(x.astype(np.float64), -largest, largest)


def below_best(scores: NDArray[Any], negate: bool) -> NDArray[np.int64]:
    """Return minus the distances to the best score, which lead to the same choice and are exact up to 2**53.

    The distance between two vectors of scores does not grow. A score that is 2**53 worse is at least 2**13 scales
    worse.
    """
    # The differences fit into 64 unsigned bits, so wrapping does no harm.
    wrapped = scores.astype(np.uint64)
    if scores.size:
        wrapped = wrapped - wrapped[scores.argmin()] if negate else wrapped[scores.argmax()] - wrapped
    return -np.minimum(wrapped, np.uint64(2**53)).astype(np.int64)


def add_integers(x: NDArray[Any], noise: NDArray[np.int64], number: Any) -> NDArray[Any]:
    """Add modulo 2**64, detect overflow by comparison, and saturate to the range of the type."""
    wide = np.dtype(np.uint64 if np.dtype(number).kind == "u" else np.int64)
    values, limits = x.astype(wide), np.iinfo(wide)
    total = values + noise.astype(wide)
    total = np.where((noise > 0) & (total < values), limits.max, total)
    total = np.where((noise < 0) & (total > values), limits.min, total)
    clipped: NDArray[Any] = np.clip(total, np.iinfo(number).min, np.iinfo(number).max).astype(number)
    return clipped
