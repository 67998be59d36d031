"""Votes of random subsets of the rows, by a Python function."""

from __future__ import annotations

import itertools
import pickle
import statistics
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._interchange import plain
from dpnoise._native import Subsets
from dpnoise._parameters import Rng
from dpnoise._processes import Died, in_processes
from dpnoise.stability._functions import answer_of, check_importable, interruptible
from dpnoise.stability._rows import Rows
from dpnoise.stability._subset_votes import Advance, Votes, parts

# The most subsets in a part of the work, and about the most positions.
_SUBSETS: Final = 256
_POSITIONS: Final = 2**20

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
        self._ask = partial(_ask, f, rows)
        if self._processes > 1:
            check_importable(f)

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
