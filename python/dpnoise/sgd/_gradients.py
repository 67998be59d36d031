"""Conversion of gradients, by one set of rules for all functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import array_for, array_of, dtype_of
from dpnoise._errors import ParameterError

Floats = NDArray[np.floating[Any]]  # of 32 or 64 bits


def gradients_of(gradients: Any) -> Floats:
    """Convert per-example gradients to a C-contiguous matrix of float32 or float64; no message may show a value."""
    given = array_of(gradients, "gradients")
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"gradients must be real numbers of at most 64 bits, got dtype {dtype_of(given)}")
    if given.ndim != 2 or given.shape[1] == 0:
        raise ParameterError(
            "gradients must be of shape (examples, parameters), a row for each example with all of its parameters"
            f" (reshape and concatenate those of several layers), got {_kind_of_shape(given)}"
        )
    single = given.dtype.kind == "f" and given.dtype.itemsize <= 4
    with np.errstate(all="ignore"):  # as in `doubles`
        return np.require(given, np.float32 if single else np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def output_for(gradients: Floats, out: Floats | None) -> Floats:
    array: Floats = array_for(gradients.shape[1:], out, gradients.dtype.type)
    if np.may_share_memory(array, gradients):
        raise ParameterError("out must not share memory with gradients")
    return array


def _kind_of_shape(given: NDArray[Any]) -> str:
    # The number of examples is private.
    return f"{given.ndim} dimensions" if given.ndim != 2 else "no parameters"
