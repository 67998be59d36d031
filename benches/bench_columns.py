"""Releases of a column, beside the plain answer, which has no noise, and other libraries' releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from benches import peers
from benches.bench_local_protocols import errors_of_counts
from benches.machine import OURS
from benches.targets import OF_K, PLAIN
from benches.timing import Entrant
from dpnoise import local
from dpnoise.queries import Count, Histogram, Mean, Median, StabilityHistogram, Sum, Variance

N, BY_PEER = 1_000_000, 100_000
EPSILON = 1.0
BOUNDS = (0, 100)
OF_TEXTS = ("Arrow texts", "polars texts", "pandas texts")
TEXTS = ["red", "green", "blue", "other"]
FREQUENT = 100  # above what is released of values that are rare

of_texts = Histogram(domain=TEXTS, epsilon=EPSILON)
of_integers = StabilityHistogram(epsilon=EPSILON, delta=1e-6)


def normal(n: int) -> np.ndarray:
    return np.random.default_rng(1).normal(40, 10, n)


def integers(n: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 100, n)


def texts(n: int) -> pa.Array:
    return pa.array(TEXTS).take(pa.array(integers(n) % 4, mask=integers(n) == 99))


COLUMNS: dict[str, Callable[[int], Any]] = {
    "float64": normal,
    "float32": lambda n: normal(n).astype(np.float32),
    "int64": integers,
    "list of floats": lambda n: normal(n).tolist(),
    "list(array)": lambda n: list(normal(n)),
    "Arrow texts": texts,
    "polars texts": lambda n: pl.Series(texts(n)),
    "pandas texts": lambda n: texts(n).to_pandas(),
    "pandas categories": lambda n: texts(n).to_pandas().astype("category"),
    "objects": lambda n: np.array(texts(n).to_pylist(), object),
    "100 integers": integers,
    "distinct integers": np.random.default_rng(1).permutation,
}
column = cache(lambda name, rows: COLUMNS[name](rows))


def count(column: Any) -> int:
    if isinstance(column, pa.Array):
        return len(column) - column.null_count
    return column.count() if hasattr(column, "count") else np.count_nonzero(pd.notna(column))


def frequent(column: np.ndarray) -> np.ndarray:
    times = np.unique(column, return_counts=True)[1]
    return times[times > FREQUENT]


class Work(NamedTuple):
    """A query of ours, and how columns are answered without noise."""

    release: Callable[[Any], Any]
    plain: Callable[[Any], Any]
    columns: Sequence[str] = ("float64", "int64")
    within: float = 60
    """How far a release may be from the plain answer: many times the noise of anyone."""
    rows: int = N


def numbers(query: Callable[..., Any], plain: Callable[[Any], Any], within: float, *more: str) -> Work:
    release = query(bounds=BOUNDS, epsilon=EPSILON).release
    return Work(release, lambda column: plain(np.clip(column, *BOUNDS)), ("float64", "int64", *more), within)


def median(epsilon: float) -> Work:
    return Work(Median(bounds=BOUNDS, epsilon=epsilon).release, np.median, within=2, rows=2 * N)


def histogram(bins: int) -> Work:
    edges = np.linspace(*BOUNDS, bins + 1)
    release = partial(Histogram(edges=edges, epsilon=EPSILON).release, threads=1)
    return Work(release, lambda column: np.histogram(column, edges)[0])


# By the names of other libraries' queries.
WORKS = {
    "count": Work(Count(epsilon=EPSILON).release, count, (*OF_TEXTS, "pandas categories", "objects")),
    "sum": numbers(Sum, np.sum, 6000, "float32", "list of floats", "list(array)"),
    "mean": numbers(Mean, np.mean, 0.1),
    "variance": numbers(Variance, np.var, 10),
    "median": median(EPSILON),
    "median, epsilon = 0.01": median(0.01),
    "histogram of 10 bins": histogram(10),
    "histogram of 100 bins": histogram(100),
    "histogram of 4 texts": Work(
        lambda column: list(of_texts.release(column, threads=1).values()),
        lambda column: pd.Series(column, copy=False).value_counts()[TEXTS],
        ("pandas texts", "objects"),
    ),
    "stability histogram": Work(
        lambda column: [x for x in of_integers.release(column, threads=1).values() if x > FREQUENT],
        frequent,
        ("100 integers", "distinct integers"),
    ),
}


def release(query: str, name: str) -> Any:
    work = WORKS[query]
    return work.release(column(name, work.rows))


def check(work: Work, rows: Any) -> Callable[[Any], None]:
    return partial(np.testing.assert_allclose, desired=work.plain(rows), rtol=0, atol=work.within)


@pytest.mark.parametrize(("query", "name"), [(query, name) for query, work in WORKS.items() for name in work.columns])
def test_column(race: Any, other_instruction_sets: dict[str, Executor], query: str, name: str) -> None:
    work, ours = WORKS[query], partial(release, query, name)
    rows = column(name, work.rows)
    few, right = rows[:BY_PEER], check(work, rows)
    found = peers.queries(query, BOUNDS, EPSILON, BY_PEER) if name == "float64" else {}
    entrants = [
        Entrant(OURS, ours, right, work.rows),
        *(Entrant(other, ours, right, work.rows, process) for other, process in other_instruction_sets.items()),
        Entrant(PLAIN, partial(work.plain, rows), right, work.rows),
        *(Entrant(peer, partial(theirs, few), check(work, few), BY_PEER) for peer, theirs in found.items()),
    ]
    race(f"Column: {query}", name, "ns per row", entrants)


@pytest.mark.parametrize("protocol", [local.GeneralizedRandomizedResponse, local.OptimizedUnaryEncoding])
def test_labels(race: Any, protocol: Any) -> None:
    values = integers(N)
    of_k, labelled = protocol(k=100, epsilon=EPSILON), protocol(domain=range(1, 101), epsilon=EPSILON)

    def right(reports: np.ndarray) -> None:
        assert np.abs(errors_of_counts(of_k, reports, values)).max() < 6

    entrants = [
        Entrant(OURS, partial(labelled.perturb, values + 1, threads=1), right, N),
        Entrant(OF_K, partial(of_k.perturb, values, threads=1), right, N),
    ]
    race("Integer labels, client", protocol.__name__, "ns per report", entrants)


@pytest.mark.parametrize("query", WORKS)
def test_a_fast_wrong_answer_is_refused(query: str) -> None:
    work, name = WORKS[query], WORKS[query].columns[0]
    right, answer = check(work, column(name, work.rows)), release(query, name)
    right(answer)
    with pytest.raises(AssertionError):
        right(np.multiply(answer, 1.2))
