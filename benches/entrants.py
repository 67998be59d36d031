"""A host's noise and ours in one run: scalars by calls, and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benches import moments
from benches.timing import Entrant

CALLS = 200
SHORT, LONG = 2000, 1_000_000


def entrants(theirs: str, pairs: dict[str, tuple[Callable[[], Any], int]], expected: Any) -> list[Entrant]:
    """Return entrants by their names, ours first, each with its work and how many samples that makes."""

    def check(samples: Any) -> None:
        if expected is not None:
            moments.check(samples, expected)

    named = {name or theirs: work for name, work in pairs.items()}
    return [Entrant(name, work, check, items) for name, (work, items) in named.items()]


def calls(call: Callable[[Any], Any], value: Any) -> tuple[Callable[[], Any], int]:
    return lambda: [call(value) for _ in range(CALLS)], CALLS
