"""Whether a warning tells of private values: the same are given for all of them, with what the processor notes.

An error refuses a value, and does not show it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from host_tests.errors import error_of

LARGEST = 1.7976931348623157e308
FLOATS = (0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 2.0**-511, 1e16, 2.0**512, 1e308, -1e308, LARGEST, -LARGEST)
NOT_FINITE = (float("nan"), float("inf"), -float("inf"))
INTEGERS = (0, 1, -1, 2**31, -(2**53), 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, -(10**400))
NUMBERS = (*FLOATS, *NOT_FINITE, *map(np.float64, (*FLOATS, *NOT_FINITE)), *INTEGERS, True, False)
UNSIGNED = {np.float16: np.uint16, np.float32: np.uint32, np.float64: np.uint64}


def columns(length: int, dtypes: Iterable[Any] = (np.float64, np.float32)) -> list[np.ndarray]:
    """Give columns with an odd number first, last, everywhere, and beside its opposite; and a signalling NaN."""
    found = []
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            signalling = (np.array(np.inf, dtype).view(UNSIGNED[dtype]) + 1).astype(UNSIGNED[dtype]).view(dtype)
            for odd in (*FLOATS, *NOT_FINITE, signalling):
                first, last, every, opposite = np.ones((4, length), dtype)
                first[:1] = last[-1:] = every[:] = opposite[:] = odd
                opposite[::2] *= -1
                found += [first, last, every, opposite]
    return found


def told(call: Callable[[], object]) -> tuple[set[tuple[type[Warning], str]], tuple[type[Exception], str] | None]:
    """Give what a call warns of, and its error."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        error = error_of(call)
    return {(each.category, str(each.message)) for each in caught}, error


def check_silent(call: Callable[[Any], object], values: Iterable[Any]) -> None:
    """Check that warnings are the same for all values that are taken, and no others for those that are refused."""
    seen = [(value, *told(lambda value=value: call(value))) for value in values]
    usual = next((warned for _, warned, error in seen if error is None), set())
    for value, warned, error in seen:
        assert warned == usual or (error and warned <= usual), f"{value!r} is warned of: {warned}"
        if error:
            assert issubclass(error[0], ValueError | TypeError), f"{value!r} raises {error}"
            assert len(str(value)) < 6 or str(value) not in error[1], f"an error shows {value!r}"
