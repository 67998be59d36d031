"""How many ranks medians are off, ours beside diffprivlib and OpenDP: the table of docs/guide/quantile_errors.md.

``python -m benches.quantiles`` prints it, in half an hour. OpenDP chooses among candidates that the caller names: here
as many as an analyst might, spread evenly over the bounds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise.queries import Median

Column = NDArray[np.float64]
Release = Callable[[Column], float]

RUNS = 1000
CANDIDATES = 1001
EPSILON = 1.0


def ages(n: int) -> Column:
    return np.clip(np.random.default_rng(n).normal(37, 13, n).round(), 0, 100)


def times(n: int) -> Column:
    return 1_767_225_600 + np.random.default_rng(n).integers(0, 365 * 86400, n).astype(np.float64)


TIES = np.repeat([1.0, 2.0], [6000, 4000])

CASES: list[tuple[str, Column, tuple[float, float]]] = [
    *(("ages", ages(10_000), (0, upper)) for upper in (1e2, 1e4, 1e6, 1e7, 1e9, 1e12, 1e15)),
    *(("ages", ages(n), (0, upper)) for n in (10, 100, 1000, 100_000, 1_000_000) for upper in (1e2, 1e7)),
    ("times in 2026, in seconds", times(10_000), (1.7e9, 1.8e9)),
    ("times in 2026, in seconds", times(10_000), (0, 1e15)),
    ("6000 ones, 4000 twos", TIES, (0, 10)),
    ("6000 ones, 4000 twos", TIES, (0, 1e7)),
]


def dpnoise(bounds: tuple[float, float]) -> Release:
    return Median(bounds=bounds, epsilon=EPSILON).release


def diffprivlib(bounds: tuple[float, float]) -> Release:
    from diffprivlib.tools import quantile

    return lambda column: float(quantile(column, 0.5, epsilon=EPSILON, bounds=bounds))


def opendp(bounds: tuple[float, float]) -> Release:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(*bounds, CANDIDATES).tolist()
    # The noise of which a map of 1 row is EPSILON.
    measurement: Any = dp.binary_search_chain(
        lambda scale: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, 0.5, scale), 1, EPSILON
    )
    return lambda column: float(measurement(column))


def ranks_off(column: Column, released: float) -> float:
    """How far n / 2 is from the ranks of the released value; ``column`` is sorted."""
    middle, low = len(column) / 2, np.searchsorted(column, released)
    return float(max(0, low - middle, middle - np.searchsorted(column, released, "right")))


def cells() -> Iterator[str]:
    for name, column, bounds in CASES:
        ordered = np.sort(column)
        yield f"{name} | {len(column):,} | {bounds[0]:g} to {bounds[1]:g}"
        yield f"{Median(bounds=bounds, epsilon=EPSILON).rank_error():.0f}"
        for library in (dpnoise, diffprivlib, opendp):
            release, off = library(bounds), []
            for _ in range(RUNS):
                try:
                    off.append(ranks_off(ordered, release(column)))
                except RuntimeError:  # of diffprivlib, whose weights are not numbers for many rows
                    break
            yield "{:,.0f} / {:,.0f}".format(*np.quantile(off, [0.5, 0.95])) if len(off) == RUNS else "fails"


def main() -> None:
    warnings.simplefilter("ignore")
    print("| column | rows | bounds | bound, 95 % | dpnoise | diffprivlib | OpenDP |")
    print("| --- | --: | --- | --: | --: | --: | --: |")
    for number, cell in enumerate(cells()):
        print(("| " if number % 5 == 0 else " | ") + cell, end=" |\n" if number % 5 == 4 else "")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
