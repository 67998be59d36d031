"""What random subsets of the rows vote for, by a function of Python's."""

from __future__ import annotations

import pickle
import statistics
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._native import Subsets
from dpnoise._parameters import integer
from dpnoise._processes import Died, in_processes
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.stability._functions import answer_of, check_importable
from dpnoise.stability._rows import number_of_rows, rows_at
from dpnoise.stability._subset_votes import Advance, Votes, parts

# A part has at most so many subsets, and at most about so many positions.
_SUBSETS: Final = 256
_POSITIONS: Final = 2**20

# For how many seconds a function is tried.
_TRIAL: Final = 0.2

# The positions of all subsets, one after the other, and where each subset ends.
Drawn = tuple[NDArray[np.int64], NDArray[np.int64]]

# Every value, under what tells it from others, with its votes. `_FAILED` stands for no value.
Counts = dict[Any, tuple[Any, int]]

_FAILED: Final = None


class PythonFunction:
    """A function of Python's with the data that it is asked about."""

    def __init__(self, f: Callable[[Any], Any], data: Any, processes: int | None) -> None:
        self.rows = number_of_rows(data)
        self._processes = 1 if processes is None else integer(processes, "processes", range(1, 2**15))
        self._ask = partial(_ask, f, data)
        if self._processes > 1:
            check_importable(f)

    def seconds_per_subset(self, q: float) -> float:
        """Try how long it takes on the data, once everything is warm."""
        source = Subsets(self.rows, q)
        times: list[float] = []
        while len(times) < 4 or sum(times) < _TRIAL:
            drawn = source.draw(1)
            start = perf_counter()
            self._ask(drawn)
            times.append(perf_counter() - start)
        return statistics.median(times[1:]) / self._processes

    def count(self, subsets: int, q: float, rng: Rng, advance: Advance) -> Votes:
        """Draw subsets and count their votes."""
        source = Subsets(self.rows, q)
        size = max(1, min(_SUBSETS, int(_POSITIONS / (self.rows * q + 1))))
        drawn = (source.draw(part, rng) for part in parts(subsets, size))
        total: Counts = {}
        with closing(self._in_turn(drawn) if self._processes == 1 else self._in_processes(drawn)) as replies:
            for counts in replies:
                advance(sum(votes for _, votes in counts.values()))
                for key, (value, votes) in counts.items():
                    total[key] = (value, votes + total.get(key, (value, 0))[1])
        best = max(total, key=lambda key: total[key][1])
        winner, first = total.pop(best)
        second = max((votes for _, votes in total.values()), default=0)
        return Votes(winner, best is _FAILED, first, second, source.most_appearances)

    def _in_turn(self, drawn: Iterable[Drawn]) -> Generator[Counts, None, None]:
        yield from map(self._ask, drawn)

    def _in_processes(self, drawn: Iterable[Drawn]) -> Generator[Counts, None, None]:
        """Have other processes ask. A subset over which they die has no value, but the others of its part have."""
        for subsets, reply in in_processes(self._ask, ((part, part) for part in drawn), self._processes):
            if not isinstance(reply, Exception):
                yield reply
            elif not isinstance(reply, Died):
                raise reply
            elif len(subsets[1]) == 1:
                yield {_FAILED: (None, 1)}
            else:
                yield from self._in_processes(_halves(subsets))


def _ask(f: Callable[[Any], Any], data: Any, subsets: Drawn) -> Counts:
    positions, ends = subsets
    counts: Counts = {}
    for subset in np.split(positions, ends[:-1]):
        key, value = answer_of(f, _outcome, rows_at(data, subset)) or (_FAILED, None)
        counts[key] = (value, counts.get(key, (value, 0))[1] + 1)
    return counts


def _outcome(value: Any) -> tuple[Any, Any]:
    """Give a value, and a key that is the same for the same value only.

    Equality is not enough: 1, 1.0 and True are equal, but a winner that is one of them would tell which was seen first.
    """
    if isinstance(value, np.number | np.bool_ | np.character):
        value = value.item()
    kind = type(value)
    if kind in (float, complex):
        return (kind, repr(value)), value
    if value is None or kind in (bool, int, str, bytes):
        return (kind, value), value
    if kind is tuple:
        outcomes = [_outcome(item) for item in value]
        return (kind, tuple(key for key, _ in outcomes)), tuple(item for _, item in outcomes)
    if kind is frozenset:
        # In an order of its own, since that in which it was made can show.
        items = sorted(dict(map(_outcome, value)).items(), key=lambda item: repr(item[0]))
        return (kind, frozenset(key for key, _ in items)), frozenset(item for _, item in items)
    hash(value)
    return (object, pickle.dumps(value)), value


def _halves(subsets: Drawn) -> list[Drawn]:
    positions, ends = subsets
    half = len(ends) // 2
    middle = ends[half - 1]
    return [(positions[:middle], ends[:half]), (positions[middle:], ends[half:] - middle)]
