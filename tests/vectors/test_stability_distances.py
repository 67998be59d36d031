"""The distances to instability, held against every data set of up to 6 values out of 5, and every edit of each of them.

Edits reach values below and above all of the data, too. How many edits lead from one data set to another is counted,
not searched: data sets are multisets, of the size of the data under substitution, of all sizes up to twice that under
addition and removal. No edit is left out: 6 of either kind can change any answer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpnoise import stability

Values = tuple[float, ...]
MOST = 6
FAR = 2.0**40
# For medians and modes the order is all that matters; scales need sums and quotients.
ORDER: Values = (0, 1, 2, 3, 4)
SCALES: dict[str, Values] = {
    "even": ORDER,
    "powers": (0, 1, 2, 4, 8),
    "around powers": (0, 1 - 2.0**-53, 1, 2 - 2.0**-52, 2),
    "around roots": (0, 0.7071067811865475, 0.7071067811865476, 1.414213562373095, 1.4142135623730951),
    "negative": (-7, -3, -1, 2, 3.5),
    "smallest": (0, 5e-324, 1e-323, 2e-323, 4e-323),
}


class Edits(NamedTuple):
    """All data sets that edits may lead to, as counts over the values, and what they are."""

    values: Values
    counts: np.ndarray
    data: list[Values]


@cache
def edits(domain: Values, sizes: tuple[int, ...]) -> Edits:
    values = (-FAR, *domain, FAR)
    places = [place for n in sizes for place in itertools.combinations_with_replacement(range(len(values)), n)]
    counts = np.array([np.bincount(place, minlength=len(values)) for place in map(np.int64, places)], np.int8)
    return Edits(values, counts, [tuple(values[i] for i in place) for place in places])


def disagreements(
    distance: Callable[[Values], int],
    answer: Callable[[Values], Any],
    domain: Values,
    relation: str,
    sizes: Iterable[int],
) -> tuple[int, int]:
    """Count the data sets whose distance is not the fewest edits that change the answer, and the edits looked at."""
    wrong = pairs = 0
    for n in sizes:
        after = edits(domain, (n,) if relation == "substitute" else tuple(range(2 * n + 2)))
        codes: dict[Any, int] = {}
        answers = np.array([codes.setdefault(answer(data), len(codes)) for data in after.data])
        for data in itertools.combinations_with_replacement(domain, n):
            counts = np.array([data.count(value) for value in after.values], np.int8)
            moves = np.abs(after.counts - counts).sum(axis=1)
            fewest = moves[answers != codes[answer(data)]].min()
            fewest = fewest // 2 if relation == "substitute" else fewest
            wrong += distance(data) != fewest
            pairs += len(moves) if relation == "substitute" else int((moves <= n).sum())
    return wrong, pairs


# --- answers, by their definitions -----------------------------------------------------------------------------------


def median(data: Values) -> float | None:
    return sorted(data)[math.ceil(len(data) / 2) - 1] if data else None


def mode(data: Values) -> float | None:
    return min(data, key=lambda value: (-data.count(value), value)) if data else None


def interval(discretization: int, base: float = 2.0) -> Callable[[Values], int | None]:
    """Return the interval of the logarithm of the interquartile range: the exponent of its lower end, twice."""

    def answer(data: Values) -> int | None:
        ordered = sorted(data)
        n = len(data)
        width = Fraction(ordered[math.ceil(3 * n / 4) - 1] - ordered[math.ceil(n / 4) - 1])
        if width == 0:
            return None
        offset = discretization - 1
        # base^(2k - offset) <= width^2 < base^(2k + 2 - offset)
        k = 2 * math.ceil((width.numerator.bit_length() - width.denominator.bit_length()) / math.log2(base)) + 4
        while width**2 < Fraction(base) ** (k - offset):
            k -= 2
        return k

    return answer


# --- formulas, some of them wrong ------------------------------------------------------------------------------------


def scale_formula(data: Values, *, shrinks: bool = True, grows: bool = True, closed: bool = False) -> int:
    """Return the distance for [k, k + 1) by all windows and all pairs of ranks."""
    ordered = sorted(data)
    n = len(data)
    a, b = math.ceil(n / 4), math.ceil(3 * n / 4)
    width = ordered[b - 1] - ordered[a - 1]
    lower, upper = (2.0 ** (math.frexp(width)[1] - 1), 2.0 ** math.frexp(width)[1]) if width else (0.0, 5e-324)
    found = [n]
    for start in ordered if shrinks and width else ():
        below = sum(value < start for value in ordered)
        above = sum(value - start > lower if closed else value - start >= lower for value in ordered)
        found.append(max(0, below - (a - 1)) + max(0, above - (n - b)))
    padded = [-math.inf, *ordered, math.inf]
    if grows:
        ranks = itertools.product(range(a + 1), range(n - b + 2))
        found += [j1 + j2 for j1, j2 in ranks if padded[b + j2] - padded[a - j1] >= upper]
    return min(found)


def fewest(distance: Callable[..., int], **options: Any) -> Callable[[Values], int]:
    return lambda data: distance(list(data), **options) + 1


def of_negated(distance: Callable[[Values], int]) -> Callable[[Values], int]:
    return lambda data: distance(tuple(-value for value in data))


# --- the tests -------------------------------------------------------------------------------------------------------

# Pairs of a data set and what edits make of it.
PAIRS = {"substitute": 270_347, "add/remove": 1_173_844}
PAIRS_OF_SCALES = 270_312
CASES: Sequence[tuple[str, Callable[..., int], Callable[[Values], Any]]] = (
    ("median", stability.median_distance, median),
    ("mode", stability.mode_distance, mode),
)


@pytest.mark.parametrize("relation", ["add/remove", "substitute"])
@pytest.mark.parametrize(("name", "distance", "answer"), CASES, ids=["median", "mode"])
def test_median_and_mode(name: str, distance: Callable[..., int], answer: Callable[..., Any], relation: Any) -> None:
    sizes = range(relation == "substitute", MOST + 1)
    found = disagreements(fewest(distance, relation=relation), answer, ORDER, relation, sizes)
    print(f"{name}, {relation}: {found[1]:,} pairs")
    assert found == (0, PAIRS[relation])


@pytest.mark.parametrize("discretization", [1, 2])
@pytest.mark.parametrize(("scale", "base"), [*((scale, 2.0) for scale in SCALES), ("powers", 1.25)])
def test_iqr(scale: str, base: float, discretization: int) -> None:
    def distance(data: Values) -> int:
        return stability.iqr_distance(list(data), discretization, base=base)

    found = disagreements(distance, interval(discretization, base), SCALES[scale], "substitute", range(2, MOST + 1))
    print(f"IQR, {scale}: {found[1]:,} pairs")
    assert found == (0, PAIRS_OF_SCALES)


def test_wrong_formulas_are_found() -> None:
    def wrong(distance: Callable[[Values], int], answer: Callable[[Values], Any], relation: str) -> bool:
        sizes = range(2, MOST + 1 if relation == "substitute" else 4)
        return bool(disagreements(distance, answer, SCALES["powers"], relation, sizes)[0])

    for relation in ("add/remove", "substitute"):
        for _, distance, answer in CASES:
            right = fewest(distance, relation=relation)
            assert not wrong(right, answer, relation)
            # The upper median, and the largest of the most frequent values.
            assert wrong(of_negated(right), answer, relation)
        other = {"substitute": "add/remove", "add/remove": "substitute"}[relation]
        assert wrong(fewest(stability.median_distance, relation=other), median, relation)
        assert wrong(fewest(stability.mode_distance, relation=other), mode, relation)
    assert not wrong(scale_formula, interval(1), "substitute")
    for faults in ({"shrinks": False}, {"grows": False}, {"closed": True}):
        assert wrong(partial(scale_formula, **faults), interval(1), "substitute")
    assert wrong(lambda data: stability.iqr_distance(list(data), 2), interval(1), "substitute")
    assert wrong(lambda data: stability.iqr_distance(list(data), base=1.25), interval(1), "substitute")


def test_the_range_of_a_single_value_never_changes() -> None:
    """The formula would say 1: a rank below the first would be that of the third quartile, too."""
    assert len({interval(1)((value,)) for value in (-FAR, *ORDER, FAR)}) == 1
    assert scale_formula((3.0,)) == 1
