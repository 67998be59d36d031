"""Whole releases of tables with persons and groups, beside OpenDP, and the choice of rows alone.

``python -m benches.tables release`` times counts and means by group of 10**6 rows (needs ``opendp[polars]``),
``choice`` the choice of rows, and ``large`` a release of 10**8 rows with its memory, of which 12 GiB must be free.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import Table, _native
from dpnoise.queries import Count, Mean

GROUPS, ROWS, BOUNDS, EPSILON = 50, 3, (0.0, 500.0), 1.0
RUNS = 7


def table(n: int, persons: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(n)
    return {
        "user": rng.integers(0, persons, n),
        "region": rng.integers(0, GROUPS, n),
        "spend": rng.gamma(2.0, 30.0, n),
    }


def dpnoise(frame: dict[str, NDArray[Any]]) -> tuple[list[float], list[float]]:
    asked = Table(frame, person="user", rows=ROWS).by("region", keys=range(GROUPS))
    half = EPSILON / 2
    found = asked.release(n=Count(epsilon=half), spend=("spend", Mean(bounds=BOUNDS, epsilon=half)))
    return found["n"].values, found["spend"].values


def opendp(frame: dict[str, NDArray[Any]]) -> tuple[list[float], list[float]]:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    rows = pl.DataFrame(frame)
    context = dp.Context.compositor(
        data=rows.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="user"),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["region"], max_length=len(rows), max_groups=GROUPS)],
    )
    spend = pl.col("spend").fill_null(0.0).fill_nan(0.0)
    asked = (
        context.query()
        .truncate_per_group(ROWS)
        .group_by("region")
        .agg(dp.len(signed=True), spend.dp.sum(bounds=BOUNDS))
    )
    found = asked.with_keys(pl.LazyFrame({"region": range(GROUPS)})).release().collect().sort("region")
    counts = found["len"].to_list()
    return counts, (found["spend"] / found["len"]).to_list()


def seconds(call: Callable[[], Any], runs: int = RUNS) -> list[float]:
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found


def release() -> None:
    frame = table(10**6, 10**5)
    warnings.simplefilter("ignore")
    times: dict[str, list[float]] = {"dpnoise": [], "opendp": []}
    for _ in range(RUNS):  # in turns
        for entrant in (dpnoise, opendp):
            times[entrant.__name__] += seconds(lambda: check(entrant(frame)), 1)  # noqa: B023
    for name, found in times.items():
        print(f"{name}: {median(found):.3f} s ({min(found):.3f} to {max(found):.3f})")
    print(f"ratio: {median(times['opendp']) / median(times['dpnoise']):.1f}")


def check(found: tuple[list[float], list[float]]) -> None:
    """Refuse an answer that is no count and mean by group of up to three rows of each person."""
    counts, means = found
    assert len(counts) == len(means) == GROUPS
    assert all(4000 < count < 8000 for count in counts)
    assert all(45 < mean < 75 for mean in means)


def choice() -> None:
    frame = table(10**6, 10**5)
    codes, ids = (
        frame["user"].astype(np.int32),
        np.random.default_rng(2).integers(-(2**63), 2**63, 10**5)[frame["user"]],
    )

    def from_ids() -> None:
        found, distinct = _native.codes(ids)
        _native.keep_rows(found, len(distinct), ROWS)

    print(f"from codes: {1e3 * median(seconds(lambda: _native.keep_rows(codes, 10**5, ROWS))):.1f} ms")
    print(f"from ids: {1e3 * median(seconds(from_ids)):.1f} ms")


def large() -> None:
    frame = table(10**8, 10**7)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (taken,) = seconds(lambda: dpnoise(frame), 1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"10**8 rows, 10**7 persons: {taken:.1f} s, {(after - before) * 1024 / 10**8:.1f} bytes a row beside the table"
    )


if __name__ == "__main__":
    {"release": release, "choice": choice, "large": large}[sys.argv[1]]()
