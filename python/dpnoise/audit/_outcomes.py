"""The outcomes of many releases, in the two forms that events use: numbers, and codes that compare for equality."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import array_of
from dpnoise._errors import ParameterError

_NUMBERS: Final = frozenset({float, int, bool})
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: neighbours land far apart


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of one input.

    Attributes
    ----------
    released : sequence of length m
        The outcomes as the mechanism returned them.
    numbers : ndarray of shape (m, width)
        The numbers in each outcome, in order; NaN where there is none.
    codes : ndarray of int64, shape (m,)
        Equal for equal outcomes. Different outcomes may collide, which is harmless: an event is any function of the
        outcome.
    patterns : ndarray of int64, shape (m,)
        Like the codes, but of the outcome without its floating-point numbers.
    """

    released: Sequence[Any] | NDArray[Any]
    numbers: NDArray[Any]
    codes: NDArray[np.int64]
    patterns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, index: int) -> NDArray[Any]:
        return self.numbers[:, index] if index < self.numbers.shape[1] else np.full(len(self), np.nan)

    def example(self, found: NDArray[np.bool_]) -> str:
        shown = self.released[int(np.argmax(found))]
        text = " ".join(repr(shown.tolist() if isinstance(shown, np.ndarray | np.generic) else shown).split())
        return text if len(text) <= 60 else text[:57] + "..."


def outcomes_of(released: Sequence[Any] | NDArray[Any]) -> Outcomes:
    """Read the return value of a mechanism: an array with one row for each outcome, or a sequence of outcomes."""
    if isinstance(released, list) and _are_alike(released):
        released = np.stack(released)
    if isinstance(released, np.ndarray) and released.dtype.kind in "biuf":
        numbers = released.reshape(len(released), math.prod(released.shape[1:]))
        return Outcomes(released, numbers, _codes_of_rows(numbers), np.zeros(len(released), np.int64))
    # Zipped, a number alone becomes a tuple of one, as everywhere below.
    alone = set(map(type, released)) <= _NUMBERS
    rows = list(zip(released, strict=True)) if alone else [tuple(_leaves(outcome)) for outcome in released]
    floats_blanked = (tuple(None if type(leaf) is float else (leaf,) for leaf in row) for row in rows)
    return Outcomes(released, _numbers_of(rows), _codes_of(iter(rows), len(rows)), _codes_of(floats_blanked, len(rows)))


def _are_alike(released: list[Any]) -> bool:
    if set(map(type, released)) != {np.ndarray}:
        return False
    return len({(outcome.shape, outcome.dtype) for outcome in released}) == 1


def _leaves(outcome: Any) -> Iterator[Any]:
    """Yield the parts of an outcome; NaN, which is unequal to itself, becomes a text."""
    if isinstance(outcome, np.ndarray | np.generic):
        outcome = outcome.tolist()
    elif isinstance(outcome, Mapping):
        outcome = sorted(outcome.items(), key=repr)
    elif isinstance(outcome, Set):
        outcome = sorted(outcome, key=repr)
    if isinstance(outcome, list | tuple):
        for part in outcome:
            yield from _leaves(part)
    else:
        yield outcome if type(outcome) is not float or outcome == outcome else "nan"


def _codes_of(rows: Iterator[tuple[Any, ...]], count: int) -> NDArray[np.int64]:
    try:
        return np.fromiter(map(hash, rows), np.int64, count)
    except TypeError as error:
        raise TypeError(
            f"mechanism must return numbers, texts, None, or arrays, sequences, sets or mappings of them: {error}"
        ) from None


def _codes_of_rows(numbers: NDArray[Any]) -> NDArray[np.int64]:
    codes = np.zeros(len(numbers), np.uint64)
    for column in numbers.T:
        bits = column.astype(np.float64).view(np.uint64) if column.dtype.kind == "f" else column.astype(np.uint64)
        codes = (codes ^ bits) * _MIX
        codes ^= codes >> np.uint64(29)
    return codes.view(np.int64)


def _numbers_of(rows: list[tuple[Any, ...]]) -> NDArray[Any]:
    try:
        numbers = np.array(rows)
    except ValueError:  # of different lengths
        numbers = np.array(None)
    if numbers.dtype.kind in "biuf":
        return numbers.reshape(len(rows), -1)
    width = max(map(len, rows))
    padding = [(math.nan,) * missing for missing in range(width + 1)]
    padded = [[_number_of(leaf) for leaf in row + padding[width - len(row)]] for row in rows]
    return np.array(padded, np.float64).reshape(len(rows), width)


def _number_of(leaf: Any) -> float:
    if type(leaf) not in _NUMBERS:
        return math.nan
    try:
        return float(leaf)
    except OverflowError:
        return math.inf if leaf > 0 else -math.inf


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
