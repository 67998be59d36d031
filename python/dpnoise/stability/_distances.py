"""Distances to instability: how many people's values must change for an answer to change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns, _native
from dpnoise._display import progress
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, items_of
from dpnoise._types import Integer, Number
from dpnoise.sensitivity import Relation, check_relation
from dpnoise.stability._powers import DISCRETIZATIONS, checked_base, interval


class Found(NamedTuple):
    """An answer, or None for no data, its distance to instability, and the number of values."""

    value: Any
    distance: int
    n: int


def local_sensitivity(
    f: Callable[[list[Any]], Any], data: Iterable[Any], domain: Iterable[Any], *, relation: Relation = "add/remove"
) -> float:
    """Compute the local sensitivity: the most that any one row can change the answer of a function for the given data.

    All neighbours are tried, so it is for small made-up data, to learn what one row can do. It is exact and depends on
    the data, so it is not private, nor is noise in proportion to it: do not use it on private data.

    Parameters
    ----------
    f : callable
        The function, called with a list of rows: it returns a finite number, or as many of them for all data.
    data : iterable of length n
        The rows.
    domain : iterable
        All values that a row may have, one or more.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added, at the end, or removed; `"substitute"`: one
        row is replaced by a value of the domain.

    Returns
    -------
    float
        The largest L1 distance between the answers for the data and for a neighbour.

    References
    ----------
    Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data analysis", definition 1.3;
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Definition 7.1.

    Examples
    --------
    >>> from statistics import median_low
    >>> from dpnoise import stability
    >>> stability.local_sensitivity(median_low, [0, 0, 0, 100, 100], domain=range(101), relation="substitute")
    100.0
    >>> stability.local_sensitivity(median_low, [0, 0, 0, 0, 100], domain=range(101), relation="substitute")
    0.0
    """
    check_relation(relation)
    if not callable(f):
        raise TypeError(f"f must be callable, got {type(f).__name__}")
    if hasattr(data, "columns"):
        raise TypeError(f"data must be an iterable of rows, got {type(data).__name__}, whose items are its columns")
    rows, values = items_of(data, "data", "rows"), items_of(domain, "domain", "values")
    if not values or (not rows and relation == "substitute"):
        raise ParameterError(f"{'data' if values else 'domain'} must have one or more values, got none")
    exact = _numbers(f(rows.copy()))  # f may change its list
    number = len(values) * len(rows) if relation == "substitute" else len(values) + len(rows)
    most = 0.0
    with progress("trying", number, "neighbours") as advance:
        for neighbour in _neighbours(rows, values, relation):
            answer = _numbers(f(neighbour))
            if answer.shape != exact.shape or not np.isfinite([answer, exact]).all():
                raise ParameterError("f must return finite numbers, as many for all data")
            most = max(most, float(np.abs(answer - exact).sum()))
            advance(1)
    return most


def _numbers(answer: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(answer, np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.array(np.nan)


def _neighbours(rows: list[Any], values: list[Any], relation: Relation) -> Iterator[list[Any]]:
    for place in range(len(rows)):
        before, after = rows[:place], rows[place + 1 :]
        yield from ([*before, value, *after] for value in values) if relation == "substitute" else [before + after]
    if relation == "add/remove":
        yield from ([*rows, value] for value in values)


def median_distance(x: Any, *, relation: Relation = "add/remove") -> int:
    """Compute the distance to instability of the median: one less than the fewest values whose change can change it.

    The median is the lower one, of rank ceil(n/2). The distance changes by at most 1 between neighbours, and is 0 if
    any neighbour has a different median. It is exact, so it is not private: do not release it.

    Parameters
    ----------
    x : array_like
        Finite numbers. Integers beyond 2**53 count as the nearest double.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one value is added or removed, and the number n of values is
        private; `"substitute"`: one value is replaced, and n is public. A value is a person. Under `"add/remove"` empty
        data have no median, and a distance of 0.

    Returns
    -------
    int
        From 0 to ``n - 1`` under "add/remove", to ``ceil(n/2) - 1`` under "substitute". Values may change to any
        number, and every number is taken to have a smaller and a larger one.

    Notes
    -----
    The values are partitioned, not sorted. The running time depends on the data.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", section 7.2; Nissim, Raskhodnikova
    and Smith (2007), "Smooth sensitivity and sampling in private data analysis", section 3, for medians.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.median_distance([1, 3, 3, 3, 3, 3, 8])
    4
    >>> stability.median_distance([1, 3, 3, 3, 3, 3, 8], relation="substitute")
    2
    """
    return median(x, relation).distance


def mode_distance(x: Any, *, relation: Relation = "add/remove") -> int:
    """Compute the distance to instability of the mode: one less than the fewest values whose change can change it.

    The mode is the most frequent value, the smallest of those if there are several. The distance changes by at most 1
    between neighbours, and is 0 if any neighbour has a different mode. It is exact, so it is not private: do not
    release it.

    Parameters
    ----------
    x : array_like
        The values: all finite numbers, all texts, all bytes or all booleans.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one value is added or removed, and the number n of values is
        private; `"substitute"`: one value is replaced, and n is public. A value is a person. Under `"add/remove"` empty
        data have no mode, and a distance of 0.

    Returns
    -------
    int
        From 0 to ``n - 1`` under "add/remove", to ``ceil(n/2) - 1`` under "substitute". Values may change to any other,
        and a value that is smaller than the mode and does not occur in `x` is taken to exist.

    Notes
    -----
    Sorting or counting takes most of the time. The running time depends on the data.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", section 7.3; Smith and Thakurta
    (2013), "Differentially private feature selection via stability arguments, and the robustness of the lasso".

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.mode_distance(["tea"] * 9 + ["coffee"] * 4)
    4
    """
    return mode(x, relation).distance


def iqr_distance(x: Any, discretization: Integer = 1, *, base: Number = 2.0) -> int:
    """Compute the fewest values that must be replaced for the interquartile range to leave its interval.

    The range is the value of rank ceil(3n/4) minus the value of rank ceil(n/4), as a double. The intervals divide its
    logarithm: [k, k + 1) for integers k, or [k - 1/2, k + 1/2); a range of 0, and one beyond the largest double, have
    intervals of their own.

    Neighbours differ by the substitution of one value, and the number n of values is public. The distance changes by
    at most 1 between them, and is 1 if any neighbour has its range in another interval. It is exact, so it is not
    private: do not release it.

    Parameters
    ----------
    x : array_like
        Two or more finite numbers. Integers beyond 2**53 count as the nearest double.
    discretization : {1, 2}, default 1
        The choice of intervals: 1 for [k, k + 1), 2 for [k - 1/2, k + 1/2).
    base : float, default 2.0
        The base of the logarithm, from ``1 + 2**-6`` to ``2**10``. The limits of the intervals are exact: the smallest
        doubles from a power of the base, or of its square root, on.

    Returns
    -------
    int
        From 1 to ceil(n/4). Values may be replaced by any number, and every number is taken to have a smaller and a
        larger one.

    Notes
    -----
    Sorting takes most of the time. The search after it takes time linear in n at worst, usually much less. Both times
    depend on the data.

    References
    ----------
    Dwork and Lei (2009), "Differential privacy and robust statistics", section 4; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", Algorithm 12.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.iqr_distance(range(1000))  # the range is 500, and leaves [256, 512) at 512
    12
    """
    way, base = integer(discretization, "discretization", DISCRETIZATIONS), checked_base(base)
    values = ascending(x)
    return _native.iqr_distance(values, *interval(_native.interquartile_range(values), base, way))


def ascending(x: Any) -> NDArray[np.float64]:
    """Copy a column of numbers to a new array, sorted; missing values are NaN, and come last."""
    values = _columns.floats(x, "x")
    values.sort()
    return values


def median(x: Any, relation: Relation) -> Found:
    """Find the lower median."""
    check_relation(relation)
    values = _columns.floats(x, "x")
    n = len(values)
    if n:
        values.partition((n - 1) // 2)
    distance = _native.median_distance(values, relation)
    # Adding 0.0 turns -0.0 into 0.0: which of the two is in the middle may depend on a single value.
    return Found(float(values[(n - 1) // 2]) + 0.0 if n else None, distance, n)


def mode(x: Any, relation: Relation) -> Found:
    """Find the smallest of the most frequent values."""
    check_relation(relation)
    array = _columns.column_of(x, "x")
    if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
        kind = {"i": np.int64, "u": np.uint64, "f": np.float64}[array.dtype.kind]
        values: Any = np.sort(array).astype(kind, copy=False)
        found = _native.mode(values, relation)
    else:
        counts = _columns.counts(array, "x")
        if sum(counts.values()) < len(array) or counts.keys() & {math.inf, -math.inf}:
            raise ParameterError("x must have no missing and no infinite values")
        values = sorted(counts)
        found = _native.mode_of_counts([counts[value] for value in values], relation)
    if found is None:
        return Found(None, 0, 0)
    place, distance = found
    return Found(_columns.plain(values[place]), distance, len(array))
