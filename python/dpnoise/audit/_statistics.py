"""Statistics of an outcome, large for one input and small for the other: an event is that one reaches a threshold.

They are fitted to outcomes of both inputs. By the lemma of Neyman and Pearson the most powerful events are those in
which the likelihood ratio reaches a threshold. The ratio is estimated directly for outcomes that repeat, and by
intervals for numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise.audit._outcomes import Outcomes

Codes = Callable[[Outcomes], NDArray[Any]]
Scores = Callable[[Outcomes], NDArray[np.float64]]

_MOST_COLUMNS: Final = 8  # the number of columns with statistics of their own; the sums over columns include all
_MOST_ATOMS: Final = 256  # if there are more distinct values, they are put into intervals
_INTERVALS: Final = 64
_LOW_BITS: Final = 8
_NO_BIT: Final = 1024  # above all exponents


@dataclass(frozen=True)
class Statistic:
    name: str
    of: Scores


Fit = Callable[[Outcomes, Outcomes], Iterator[Statistic]]


def fit(x: Outcomes, x_prime: Outcomes) -> Iterator[Statistic]:
    """Yield statistics for outcomes of any kind, the simplest first."""
    width = max(x.numbers.shape[1], x_prime.numbers.shape[1])
    scales = [_standardised_difference(x.column(j), x_prime.column(j)) for j in range(width)]
    for j in sorted(range(width), key=lambda j: -abs(scales[j][0]))[:_MOST_COLUMNS]:
        name = "the outcome" if width == 1 else f"outcome[{j}]"
        yield Statistic(name, partial(_column, j))
        # A missing number reaches no threshold, so "less than" needs a statistic of its own.
        yield Statistic(f"minus {name}", partial(_column, j, sign=-1.0))
    yield log_ratio("the log-likelihood ratio of single outcomes", lambda y: y.codes, x, x_prime)
    if np.ptp(np.concatenate([x.patterns, x_prime.patterns])):
        yield log_ratio("the log-likelihood ratio of outcomes without their numbers", lambda y: y.patterns, x, x_prime)
    if width:
        yield _sum_of_log_ratios("the log-likelihood ratio of intervals", range(width), _intervals, x, x_prime)
    if width > 1:
        weights = np.array([difference / deviation for difference, deviation in scales])
        yield Statistic("a projection of the outcome", lambda y: _project(y, weights))
    yield from low_order_bits(x, x_prime)


def low_order_bits(x: Outcomes, x_prime: Outcomes) -> Iterator[Statistic]:
    """Yield statistics of the low-order bits of numbers, which floating-point noise may leave unchanged."""
    width = max(x.numbers.shape[1], x_prime.numbers.shape[1])
    yield _sum_of_log_ratios("the log-likelihood ratio of the lowest set bit", range(width), _lowest_bits, x, x_prime)
    yield _sum_of_log_ratios("the log-likelihood ratio of the low-order bits", range(width), _low_bits, x, x_prime)


def log_ratio(name: str, codes: Codes, x: Outcomes, x_prime: Outcomes) -> Statistic:
    """Estimate the log-likelihood ratio of each code; 0 for codes that were never seen."""
    return Statistic(name, _fitted(codes, x, x_prime))


def lowest_set_bit(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the exponent of the largest power of two that divides a number; 1024 for zero, NaN and infinity."""
    if numbers.dtype.kind != "f":
        fraction, exponent = numbers.astype(np.int64), np.zeros(len(numbers), np.int64)
    else:
        mantissas, exponents = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0).astype(np.float64))
        fraction, exponent = np.ldexp(mantissas, 53).astype(np.int64), exponents.astype(np.int64) - 53
    trailing = np.frexp((fraction & -fraction).astype(np.float64))[1] - 1
    return np.where(fraction == 0, _NO_BIT, exponent + trailing)


def _standardised_difference(x: NDArray[Any], x_prime: NDArray[Any]) -> tuple[float, float]:
    """Return the difference of the means in standard deviations, and the standard deviation."""
    parts = [part[np.isfinite(part)].astype(np.float64) for part in (x, x_prime)]
    if not all(part.size for part in parts):
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(np.sqrt(sum(part.var() for part in parts)))
        difference = float(parts[0].mean() - parts[1].mean()) / (deviation or 1.0)
    return (difference, deviation or 1.0) if np.isfinite(difference + deviation) else (0.0, 1.0)


def _column(j: int, y: Outcomes, sign: float = 1.0) -> NDArray[np.float64]:
    return sign * y.column(j).astype(np.float64)


def _project(y: Outcomes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros(len(y))
    for j, weight in enumerate(weights):
        column = _column(j, y)
        total += weight * np.where(np.isfinite(column), column, 0.0)
    return total


def _sum_of_log_ratios(
    name: str, columns: range, coded: Callable[[int, Outcomes, Outcomes], Codes], x: Outcomes, x_prime: Outcomes
) -> Statistic:
    """Add up the log-likelihood ratios of the columns: the ratio of the outcome, if their noise is independent."""
    fitted = [_fitted(coded(j, x, x_prime), x, x_prime) for j in columns]
    return Statistic(name, lambda y: np.sum([np.zeros(len(y)), *(scores(y) for scores in fitted)], axis=0))


def _fitted(codes: Codes, x: Outcomes, x_prime: Outcomes) -> Scores:
    values, places = np.unique(np.concatenate([codes(x), codes(x_prime)]), return_inverse=True)
    seen = [np.bincount(part, minlength=values.size) for part in (places[: len(x)], places[len(x) :])]
    # One half is added to each count, so that rare codes get ratios near 1, and unseen codes are not impossible.
    ratios = np.log(seen[0] + 0.5) - np.log(seen[1] + 0.5)

    def scores(y: Outcomes) -> NDArray[np.float64]:
        wanted = codes(y)
        found = np.minimum(np.searchsorted(values, wanted), values.size - 1)
        return np.where(values[found] == wanted, ratios[found], 0.0)

    return scores


def _intervals(j: int, x: Outcomes, x_prime: Outcomes) -> Codes:
    both = np.concatenate([_column(j, x), _column(j, x_prime)])
    edges = np.unique(both)
    if edges.size > _MOST_ATOMS:
        present = both[~np.isnan(both)]
        edges = np.unique(np.quantile(present, np.arange(1, _INTERVALS) / _INTERVALS, method="lower"))
    return lambda y: np.searchsorted(edges, _column(j, y), side="right")


def _lowest_bits(j: int, x: Outcomes, x_prime: Outcomes) -> Codes:
    return lambda y: lowest_set_bit(y.column(j))


def _low_bits(j: int, x: Outcomes, x_prime: Outcomes) -> Codes:
    def codes(y: Outcomes) -> NDArray[np.int64]:
        column = y.column(j)
        bits = column.astype(np.float64).view(np.int64) if column.dtype.kind == "f" else column.astype(np.int64)
        return bits & (2**_LOW_BITS - 1)

    return codes
