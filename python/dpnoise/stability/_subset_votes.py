"""Votes of random subsets of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpnoise import _interchange
from dpnoise._errors import ParameterError
from dpnoise._native import SubsetVotes
from dpnoise._parameters import Rng, doubles, reals_of

NativeName = Literal["mode", "median", "argmax_column_sum"]

Advance = Callable[[float], None]

# About how many positions, or equivalent work, a part of the subsets has: a tenth of a second.
_PART: Final = 2**24


@dataclass(frozen=True)
class Votes:
    """The votes of the subsets.

    Attributes
    ----------
    winner : object
        The commonest value.
    failed : bool
        Whether having no value got the most votes, so that there is no winner.
    first, second : int
        The numbers of subsets that voted for the winner, and for the next value.
    most_appearances : int
        The largest number of subsets that any one row is in. It does not depend on the data.
    """

    winner: Any
    failed: bool
    first: int
    second: int
    most_appearances: int


def check_name(name: str) -> None:
    if name not in get_args(NativeName):
        names = ", ".join(map(repr, get_args(NativeName)))
        raise ParameterError(f"f must be a function or one of {names}, got {name!r}")


class NativeFunction:
    def __init__(self, name: NativeName, data: Any, threads: int | None) -> None:
        self._threads = threads
        self._make = getattr(SubsetVotes, name)
        self._values: list[Any] | range
        if name == "argmax_column_sum":
            self._table: NDArray[Any] = _matrix(data)
            self._values = range(self._table.shape[1])
            self._possible = len(self._values)
        else:
            self._values, self._table = _values_and_ranks(name, data)
            self._possible = len(self._table)
        self.rows = len(self._table)
        if self.rows == 0:
            raise ParameterError("data must have rows, got none")
        self._prepare(self._table, 0.5, len(self._values))  # checks the rest of the data

    def seconds_per_subset(self, q: float) -> float:
        """Measure the time for a subset, on zeros of the same shape and with as many values as the data could have."""
        votes = self._prepare(np.zeros_like(self._table), q, self._possible)
        subsets, seconds = 1, 0.0
        while seconds < 0.002:
            subsets *= 2
            # A busy machine may pause for longer than that in one trial, but hardly in all.
            seconds = min(_time(votes, subsets) for _ in range(3))
        return seconds / subsets

    def count(self, subsets: int, q: float, rng: Rng, advance: Advance) -> Votes:
        votes = self._prepare(self._table, q, len(self._values))
        work = (self.rows * q + 16) * (self._table.size // self.rows)
        for part in parts(subsets, max(1, int(_PART / work))):
            votes.add(part, rng)
            advance(part)
        counts = votes.counts
        best, following = _top_two(counts)
        failed = best == len(self._values)
        winner = None if failed else self._values[best]
        return Votes(winner, failed, int(counts[best]), following, votes.most_appearances)

    def _prepare(self, table: NDArray[Any], q: float, values: int) -> SubsetVotes:
        votes: SubsetVotes = self._make(table.ravel(), values, q, self._threads)
        return votes


def _time(votes: SubsetVotes, subsets: int) -> float:
    start = perf_counter()
    votes.add(subsets)
    return perf_counter() - start


def parts(subsets: int, size: int) -> Iterator[int]:
    """Divide subsets into parts of the same size, and the rest."""
    for start in range(0, subsets, size):
        yield min(size, subsets - start)


def _top_two(counts: NDArray[np.uint64]) -> tuple[int, int]:
    """Find where the largest count is, and how large the next is."""
    best = int(counts.argmax())
    return best, int(np.delete(counts, best).max(initial=0))


def _values_and_ranks(name: str, data: Any) -> tuple[list[Any], NDArray[np.uint32]]:
    """Return the different values in ascending order, and for each row the place of its value among them."""
    ranks: NDArray[Any]
    array = _interchange.floats(data, "data") if name == "median" else _interchange.column_of(data, "data")
    if array.dtype.kind == "O":
        counts = _interchange.counts(array, "data")
        complete = sum(counts.values()) == len(array) and not counts.keys() & {math.inf, -math.inf}
        values = sorted(counts)
        places = {value: place for place, value in enumerate(values)}
        ranks = np.fromiter((places.get(_interchange.plain(value), 0) for value in array), np.uint32, len(array))
    elif array.dtype.kind in "biufSU":
        complete = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        found, ranks = np.unique(array, return_inverse=True)
        values = found.tolist()
    else:
        raise TypeError(f"data must be of texts, of numbers or of booleans, got dtype {array.dtype}")
    if not complete:
        raise ParameterError("data must have no missing and no infinite values")
    # Equal values must look the same: 0.0 and -0.0, or 1 and 1.0 of different people.
    plain = [value + 0.0 for value in values] if name == "median" else [_interchange.plain(value) for value in values]
    return plain, ranks.astype(np.uint32)


def _matrix(data: Any) -> NDArray[np.float64]:
    matrix = reals_of(data, "data")
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ParameterError(f"data must be a matrix with rows and columns, got the shape {matrix.shape}")
    return doubles(matrix)
