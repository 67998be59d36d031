"""Votes of random subsets of the rows, by a native or a Python function."""

from __future__ import annotations

import itertools
import math
import pickle
import statistics
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns
from dpnoise._arrays import doubles, dtype_of, reals_of
from dpnoise._columns import plain
from dpnoise._errors import ParameterError
from dpnoise._native import Subsets, SubsetVotes
from dpnoise._processes import Died, in_processes
from dpnoise._silence import interruptible
from dpnoise._types import Rng
from dpnoise.stability._functions import answer_of, check_importable, tried
from dpnoise.stability._rows import Rows

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
    if not isinstance(name, str) or name not in get_args(NativeName):
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
        best = int(counts.argmax())
        following = int(np.delete(counts, best).max(initial=0))
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


def _values_and_ranks(name: str, data: Any) -> tuple[list[Any], NDArray[np.uint32]]:
    """Return the different values in ascending order, and for each row the place of its value among them."""
    ranks: NDArray[Any]
    array = _columns.floats(data, "data") if name == "median" else _columns.column_of(data, "data")
    if array.dtype.kind == "O":
        counts = _columns.counts(array, "data")
        complete = sum(counts.values()) == len(array) and not counts.keys() & {math.inf, -math.inf}
        values = sorted(counts)
        places = {value: place for place, value in enumerate(values)}
        ranks = np.fromiter((places.get(_columns.plain(value), 0) for value in array), np.uint32, len(array))
    elif array.dtype.kind in "biufSU":
        complete = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        found, ranks = np.unique(array, return_inverse=True)
        values = found.tolist()
    else:
        raise TypeError(f"data must be of texts, of numbers or of booleans, got dtype {dtype_of(array)}")
    if not complete:
        raise ParameterError("data must have no missing and no infinite values")
    # Equal values must look the same: 0.0 and -0.0, or 1 and 1.0 of different people.
    plain = [value + 0.0 for value in values] if name == "median" else [_columns.plain(value) for value in values]
    return plain, ranks.astype(np.uint32)


def _matrix(data: Any) -> NDArray[np.float64]:
    matrix = reals_of(data, "data")
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ParameterError(f"data must be a matrix with rows and columns, got the shape {matrix.shape}")
    return doubles(matrix)


# The most subsets in a part of the work, and about the most positions.
_SUBSETS: Final = 256
_POSITIONS: Final = 2**20

# How many subsets `try_on` calls a function on.
_TRIED: Final = 20

# How long the trial of a function takes, in seconds.
_TRIAL: Final = 0.1

# The deepest nesting of tuples and frozen sets in a value; Python's own recursion limit would depend on the caller.
_LEVELS: Final = 32

# The positions of all subsets, one after the other, and where each subset ends.
Drawn = tuple[NDArray[np.int64], NDArray[np.int64]]

# The votes by the key of each value. `_FAILED` stands for no value.
Counts = Counter[Any]

_FAILED: Final = None


class PythonFunction:
    def __init__(self, f: Callable[[Any], Any], data: Any, processes: int | None) -> None:
        rows = Rows(data)
        self.rows = len(rows)
        self._processes = processes or 1
        self._f, self._data = f, rows
        self._ask = partial(_ask, f, rows)
        if self._processes > 1:
            check_importable(f)

    def try_on(self, q: float) -> None:
        """Call the function on subsets of made-up rows, and show what it raises."""
        positions, ends = Subsets(self.rows, q).draw(_TRIED)
        for subset in np.split(positions, ends[:-1]):
            tried(self._f, _key, self._data.at(subset))

    def seconds_per_subset(self, q: float) -> float:
        """Measure the time for a subset of the data, after a warm-up."""
        sizes = itertools.chain([1, 1, 1], (2**i for i in itertools.count()))
        times: list[float] = []
        with closing(self._replies(map(Subsets(self.rows, q).draw, sizes), 1)) as replies:
            next(replies)
            began = start = perf_counter()
            while len(times) < 3 or start - began < _TRIAL:
                asked = next(replies).total()
                start, before = perf_counter(), start
                times.append((start - before) / asked)
        return statistics.median(times) / self._processes

    def count(self, subsets: int, q: float, rng: Rng, advance: Advance) -> Votes:
        source = Subsets(self.rows, q)
        size = max(1, min(_SUBSETS, int(_POSITIONS / (self.rows * q + 1))))
        drawn = (source.draw(part, rng) for part in parts(subsets, size))
        total: Counts = Counter()
        with closing(self._replies(drawn, self._processes)) as replies:
            for counts in replies:
                advance(counts.total())
                total.update(counts)
        (best, first), (_, second) = [*total.most_common(2), (_FAILED, 0)][:2]
        failed = best is _FAILED
        return Votes(None if failed else _value(best), failed, first, second, source.most_appearances)

    def _replies(self, drawn: Iterable[Drawn], processes: int) -> Generator[Counts, None, None]:
        """Call the function here or in other processes; a trial, too, may kill the process that runs it."""
        return self._in_turn(drawn) if self._processes == 1 else self._in_processes(drawn, processes)

    def _in_turn(self, drawn: Iterable[Drawn]) -> Generator[Counts, None, None]:
        with interruptible(self._ask) as asking:
            yield from map(asking, drawn)

    def _in_processes(self, drawn: Iterable[Drawn], processes: int) -> Generator[Counts, None, None]:
        """Call the function in other processes; if a part of the subsets kills them, find those that do by halving."""
        for subsets, reply in in_processes(self._ask, ((part, part) for part in drawn), processes):
            if not isinstance(reply, Exception):
                yield reply
            elif not isinstance(reply, Died):
                raise reply
            elif len(subsets[1]) == 1:
                yield Counter([_FAILED])
            else:
                yield from self._in_processes(_halves(subsets), processes)


def _ask(f: Callable[[Any], Any], rows: Rows, subsets: Drawn) -> Counts:
    positions, ends = subsets
    # `answer_of` gives None, which is `_FAILED`, where there is no value.
    return Counter(answer_of(f, _key, rows.at(subset)) for subset in np.split(positions, ends[:-1]))


def _key(value: Any, levels: int = _LEVELS) -> tuple[type, Any]:
    """Return the key under which a value is counted, from which `_value` rebuilds the value.

    Whole numbers are ints, so that 1.0 is 1. Otherwise equality is not enough: 1 and True are equal, and counting them
    together would release the one that was seen first.
    """
    if isinstance(value, np.number | np.bool_ | np.character | float):
        value = plain(value)
    kind = type(value)
    if kind in (float, complex):
        return kind, repr(value)
    if value is None or kind in (bool, int, str, bytes):
        return kind, value
    if kind in (tuple, frozenset):
        if levels == 0:
            raise ValueError
        keys = [_key(item, levels - 1) for item in value]
        # Sets are built in a canonical order, since the order of insertion can show in a set.
        return kind, tuple(keys if kind is tuple else sorted(set(keys), key=repr))
    hash(value)
    pickled = pickle.dumps(value)
    pickle.loads(pickled)  # noqa: S301 # the user's own object
    return object, pickled


def _value(key: tuple[type, Any]) -> Any:
    """Rebuild a value from its key alone, so that it carries nothing else that a single row could have left in it."""
    kind, content = key
    if kind is object:
        return pickle.loads(content)  # noqa: S301
    if kind in (tuple, frozenset):
        return kind(map(_value, content))
    return content if content is None else kind(content)


def _halves(subsets: Drawn) -> list[Drawn]:
    positions, ends = subsets
    half = len(ends) // 2
    middle = ends[half - 1]
    return [(positions[:middle], ends[:half]), (positions[middle:], ends[half:] - middle)]
