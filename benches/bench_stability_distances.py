"""Distances to instability: the search after the sort, beside NumPy's sort of the same values, and both together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from benches.machine import OURS
from benches.record import Record
from benches.timing import Entrant
from dpnoise import _native, stability
from dpnoise.stability._powers import interval

# One search makes one item of a million nanoseconds.
MILLISECOND = 1_000_000
LARGEST = 10**7
WHOLE = f"{OURS}, with the sort"

Values = np.ndarray


@lru_cache(maxsize=2)
def values_of(kind: str, n: int) -> Values:
    generator = np.random.default_rng(1)
    return {
        "normal": lambda: generator.normal(size=n),
        "lognormal": lambda: generator.lognormal(sigma=2, size=n),
        "Cauchy": lambda: generator.standard_cauchy(n),
        "ages": lambda: generator.integers(18, 90, n).astype(float),
    }[kind]()


@lru_cache(maxsize=2)
def prepared(kind: str, n: int, name: str) -> Values:
    values = values_of(kind, n)
    return np.partition(values, (n - 1) // 2) if name == "median" else np.sort(values)


# --- the same by NumPy -----------------------------------------------------------------------------------------------


def median_distance(values: Values) -> int:
    n, median = len(values), values[(len(values) - 1) // 2]
    below, above = np.count_nonzero(values < median), np.count_nonzero(values > median)
    return -(-min(n - 2 * below, n + 1 - 2 * above) // 2) - 1


def mode_distance(values: Values) -> int:
    counts = np.unique(values, return_counts=True)[1]
    place = int(np.argmax(counts))
    below, above = counts[:place].max(initial=0), counts[place + 1 :].max(initial=0)
    return -(-min(counts[place] - below, counts[place] - above + 1) // 2) - 1


def iqr_distance(values: Values, discretization: int) -> int:
    """Compare sums, not differences, which decides otherwise in hardly any case: none of these."""
    n = len(values)
    a, b = -(-n // 4), n - n // 4
    width, offset = values[b - 1] - values[a - 1], (discretization - 1) / 2
    lower = 2.0 ** (np.floor(np.log2(width) + offset) - offset)
    middle = values[a - 1 : b]
    fullest = (np.searchsorted(middle, middle + lower) - np.arange(len(middle))).max()
    right = np.searchsorted(values, values[a - 1 :: -1] + 2 * lower) - (b - 1)
    sums = np.arange(a) + np.maximum(right, 0)
    return int(min(len(middle) - fullest, sums[right <= n - b].min(initial=a)))


class Distance(NamedTuple):
    """A distance: the search, all of it, and the same by NumPy."""

    search: Callable[[Values], Any]
    whole: Callable[[Values], int]
    reference: Callable[[Values], int]


def iqr(discretization: int) -> Distance:
    def search(values: Values) -> int:
        return _native.iqr_distance(values, *interval(_native.interquartile_range(values), 2.0, discretization))

    return Distance(
        search,
        lambda values: stability.iqr_distance(values, discretization),
        lambda values: iqr_distance(values, discretization),
    )


DISTANCES = {
    "median": Distance(
        lambda values: _native.median_distance(values, "substitute"),
        partial(stability.median_distance, relation="substitute"),
        median_distance,
    ),
    "mode": Distance(
        lambda values: _native.mode(values, "substitute")[1],
        partial(stability.mode_distance, relation="substitute"),
        mode_distance,
    ),
    "IQR": iqr(1),
    "IQR, halves": iqr(2),
}


@cache
def expected(kind: str, n: int, name: str) -> int:
    return DISTANCES[name].reference(prepared(kind, n, name))


# --- the benchmarks --------------------------------------------------------------------------------------------------


def entrants(kind: str, n: int, name: str) -> list[Entrant]:
    values, ready, distance = values_of(kind, n), prepared(kind, n, name), DISTANCES[name]
    check = partial(np.testing.assert_equal, desired=expected(kind, n, name))
    ends = partial(check_ends, values)
    others = {"NumPy sort": partial(np.sort, values)}
    if name == "median":
        others["NumPy partition"] = partial(np.partition, values, (n - 1) // 2)
    return [
        Entrant(OURS, partial(distance.search, ready), check, MILLISECOND),
        Entrant(WHOLE, partial(distance.whole, values), check, MILLISECOND),
        *(Entrant(other, work, ends, MILLISECOND) for other, work in others.items()),
    ]


def check_ends(values: Values, ordered: Values) -> None:
    middle = (len(values) - 1) // 2
    assert ordered[:middle].max() <= ordered[middle] <= ordered[middle + 1 :].min()
    assert len(ordered) == len(values)


@pytest.mark.parametrize("name", ["IQR", "IQR, halves"])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "Cauchy", "ages"])
def test_iqr_distance(race: Any, kind: str, name: str) -> None:
    column = kind + name.removeprefix("IQR")
    race("IQR distance of 10^7 sorted values", column, "ms", entrants(kind, LARGEST, name))


@pytest.mark.parametrize("n", [10**5, 10**6, LARGEST])
@pytest.mark.parametrize("name", DISTANCES)
def test_distances(race: Any, name: str, n: int) -> None:
    column = f"{name}, 10^{len(str(n)) - 1}"
    race("Distances to instability of sorted normal values", column, "ms", entrants("normal", n, name))


# The high-water mark of the process's own memory, beyond what it has with the values.
PEAK = """
import re, numpy as np
from dpnoise import stability
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
values = np.random.default_rng(1).normal(size={n})
{work}(values[:1000])
before = peak()
{work}(values)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize(
    "work", ["np.sort", "stability.median_distance", "stability.mode_distance", "stability.iqr_distance"]
)
def test_peak_memory_of_distances(record: Record, work: str) -> None:
    command = [sys.executable, "-c", PEAK.format(work=work, n=LARGEST)]
    peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    table = record.table("Peak memory of distances", "MiB beyond the values, which take 76")
    table.add("10^7", {work: peak})
    assert peak > 0


def test_a_fast_wrong_answer_is_refused() -> None:
    for name in DISTANCES:
        ours, *_ = entrants("ages", 10**5, name)
        ours.check(ours.work())
        with pytest.raises(AssertionError):
            ours.check(ours.work() + 1)
