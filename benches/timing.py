"""Interleaved timing: entrants take turns, so that a ratio is of one moment, on a machine which others use too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any


@dataclass(frozen=True)
class Entrant:
    """Someone who can do a piece of work."""

    name: str
    """Ours begin with ``dpnoise``."""
    work: Callable[[], Any]
    """Does it once."""
    check: Callable[[Any], None]
    """Refuses a wrong result: a fast wrong answer is no answer."""
    items: int
    """How many items that makes."""
    process: Executor | None = None
    """Where to do it, if not here."""

    def time(self) -> float:
        """Return the nanoseconds per item, once."""
        if self.process is None:
            return time_once(self.work, self.check) / self.items
        return self.process.submit(time_once, self.work, self.check).result() / self.items


def time_once(work: Callable[[], Any], check: Callable[[Any], None]) -> int:
    """Return how many nanoseconds `work` takes, and check what it makes."""
    start = perf_counter_ns()
    result = work()
    elapsed = perf_counter_ns() - start
    check(result)
    return elapsed


def interleaved(benchmark: Any, entrants: Sequence[Entrant], rounds: int) -> dict[str, float]:
    """Return every entrant's median time per item, in nanoseconds.

    pytest-benchmark times the first entrant; the others have their turns in its set-up, between the rounds.
    """
    first, *others = entrants
    times: dict[str, list[float]] = {entrant.name: [] for entrant in others}

    def others_turns() -> None:
        for entrant in others:
            times[entrant.name].append(entrant.time())

    first.check(benchmark.pedantic(first.work, setup=others_turns, rounds=rounds, warmup_rounds=1))
    medians = {first.name: benchmark.stats.stats.median * 1e9 / first.items}
    return medians | {name: median(rounds[1:]) for name, rounds in times.items()}
