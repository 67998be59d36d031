"""How many ranks quantiles are off, ours beside other libraries: the tables of docs/guide/quantile_errors.md.

``python -m benches.quantiles medians`` prints that of medians, in half an hour, and ``several`` that of several
quantiles at once, in five minutes. OpenDP chooses among candidates that the caller names: here as many as an analyst
might, spread evenly over the bounds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise.queries import Median, Quantile, Quantiles

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


def opendp(bounds: tuple[float, float], q: float = 0.5, epsilon: float = EPSILON) -> Release:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(*bounds, CANDIDATES).tolist()
    # The noise of which a map of 1 row is epsilon.
    measurement: Any = dp.binary_search_chain(
        lambda scale: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, q, scale), 1, epsilon
    )
    return lambda column: float(measurement(column))


def ranks_off(column: Column, released: float, q: float = 0.5) -> float:
    """How far q n is from the ranks of the released value; ``column`` is sorted."""
    target, low = q * len(column), np.searchsorted(column, released)
    return float(max(0, low - target, target - np.searchsorted(column, released, "right")))


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


# Columns of 10,000 rows, their bounds, and our granularity.
SEVERAL: list[tuple[str, Column, tuple[float, float], float | None]] = [
    ("normal", np.random.default_rng(1).normal(50, 15, 10_000), (0, 100), None),
    ("30 % zeros", np.random.default_rng(2).lognormal(3, 1, 10_000) * (np.arange(10_000) >= 3000), (0, 1e4), None),
    ("ages", ages(10_000), (0, 100), 1.0),
    ("Poisson, of mean 3", np.random.default_rng(3).poisson(3, 10_000).astype(float), (0, 100), 1.0),
    ("60 % one value", TIES, (0, 10), 1.0),
]

ReleaseAll = Callable[[Column], list[float]]


def all_by_dpnoise(q: list[float], bounds: tuple[float, float], granularity: float | None) -> ReleaseAll:
    query = Quantiles(q=q, bounds=bounds, epsilon=EPSILON, granularity=granularity)
    return lambda column: query.release(column).tolist()


def each_by_dpnoise(q: list[float], bounds: tuple[float, float], granularity: float | None) -> ReleaseAll:
    queries = [Quantile(q=one, bounds=bounds, epsilon=EPSILON / len(q), granularity=granularity) for one in q]
    return lambda column: [query.release(column) for query in queries]


def each_by_opendp(q: list[float], bounds: tuple[float, float], _: float | None) -> ReleaseAll:
    releases = [opendp(bounds, one, EPSILON / len(q)) for one in q]
    return lambda column: [release(column) for release in releases]


def all_by_pydp(q: list[float], bounds: tuple[float, float], _: float | None) -> ReleaseAll:
    """Release the quantiles of Google's tree, which its noise makes once for all of them."""
    from pydp.algorithms.quantile_tree import QuantileTree

    def release(column: Column) -> list[float]:
        tree = QuantileTree(*bounds, TREE_HEIGHT, BRANCHING)
        for value in column.tolist():
            tree.add_entry(value)
        return list(tree.compute_quantiles(EPSILON, 0.0, 1, 1, q, "laplace"))

    return release


TREE_HEIGHT, BRANCHING = 4, 16  # the defaults of Google's library


def rows_of_several() -> Iterator[str]:
    for name, column, bounds, granularity in SEVERAL:
        ordered = np.sort(column)
        for k, releases in ((9, 60), (99, 20)):
            q = [i / (k + 1) for i in range(1, k + 1)]
            cells = [
                name,
                str(k),
                f"{Quantiles(q=q, bounds=bounds, epsilon=EPSILON, granularity=granularity).rank_error():,.0f}",
            ]
            for library in (all_by_dpnoise, each_by_dpnoise, each_by_opendp, all_by_pydp):
                release = library(q, bounds, granularity)
                answers = [release(column) for _ in range(releases)]
                off = np.array(
                    [[ranks_off(ordered, *pair) for pair in zip(found, q, strict=True)] for found in answers]
                )
                cells.append(f"{off.mean():,.1f} / {off.max(axis=1).mean():,.0f}")
            yield " | ".join(cells)


def print_medians() -> None:
    print("| column | rows | bounds | bound, 95 % | dpnoise | diffprivlib | OpenDP |")
    print("| --- | --: | --- | --: | --: | --: | --: |")
    for number, cell in enumerate(cells()):
        print(("| " if number % 5 == 0 else " | ") + cell, end=" |\n" if number % 5 == 4 else "")
        sys.stdout.flush()


def print_several() -> None:
    print("| column | k | bound, 95 % | `Quantiles` | `Quantile`, ε/k each | OpenDP, ε/k each | PyDP, one tree |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for row in rows_of_several():
        print(f"| {row} |", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    for table in sys.argv[1:]:
        {"medians": print_medians, "several": print_several}[table]()


if __name__ == "__main__":
    main()
