"""Calling a mechanism many times on the same input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpnoise._errors import ParameterError
from dpnoise._parameters import array_of
from dpnoise.audit._outcomes import Outcomes, outcomes_of

BLOCK = 2**16
"""Releases in one go: enough for arrays to be fast, few enough for memory and for a progress bar."""


def releases_of(mechanism: Any, vectorized: bool) -> Callable[[Any, int], Outcomes]:
    """Return a function that releases an input a given number of times."""
    if callable(getattr(mechanism, "perturb", None)):
        return lambda x, count: outcomes_of(_in_blocks(mechanism.perturb, x, count))
    release = getattr(mechanism, "release", mechanism)
    if not callable(release):
        kind = type(mechanism).__name__
        raise TypeError(f"mechanism must be callable, or have a method release or perturb, got {kind}")
    if vectorized:
        return lambda x, count: outcomes_of(_in_blocks(release, x, count))
    return lambda x, count: outcomes_of([release(x) for _ in range(count)])


def _in_blocks(release: Callable[[Any], Any], x: Any, count: int) -> Any:
    parts = [_all_at_once(release, x, min(BLOCK, count - start)) for start in range(0, count, BLOCK)]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [outcome for part in parts for outcome in part]


def _all_at_once(release: Callable[[Any], Any], x: Any, count: int) -> Any:
    released = release(np.repeat(array_of(x, "x")[np.newaxis], count, axis=0))
    if not hasattr(released, "__len__") or len(released) != count:
        found = f"{len(released)} of them" if hasattr(released, "__len__") else type(released).__name__
        raise ParameterError(
            f"mechanism must return one outcome for each of the {count} rows it is given when vectorized is true, "
            f"got {found}"
        )
    return released
