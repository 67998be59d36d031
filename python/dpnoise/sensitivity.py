"""Sensitivities: the most that one person can change the answer to a query.

The neighbouring relation is the parameter ``relation`` of each function:

- ``"add/remove"``: one row is added or removed. The number of rows is private.
- ``"substitute"``: one row is replaced by another. The number of rows is public.

A person is one row: if a person may have up to ``m`` rows, use ``epsilon / m``, or ``m`` times the sensitivity.

The sensitivities hold for exact arithmetic, and are rounded up to a float. A floating-point sum can change by more
(Casacuberta, Shoemate, Vadhan and Wagaman 2022, "Widespread underestimation of sensitivity in differentially private
libraries and how to fix it"): `dpnoise.queries` adds integers instead.

References
----------
Dwork and Roth (2014), "The algorithmic foundations of differential privacy", definitions 3.1 and 3.8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from dpnoise._errors import ParameterError
from dpnoise._parameters import at_least, fraction_of, integer, real

__all__ = ["Relation", "count", "histogram", "mean", "quantile_score", "sum", "variance"]

Relation = Literal["add/remove", "substitute"]
"""Which data sets are neighbours: those that differ in the presence of one record, or in the content of one."""

Bounds = tuple[float, float]


def count(relation: Relation = "add/remove") -> int:
    """Give the sensitivity of the number of rows that meet a condition: 1.

    Parameters
    ----------
    relation : {"add/remove", "substitute"}
        Which data sets are neighbours.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        When ``relation`` is neither.
    """
    check_relation(relation)
    return 1


def histogram(relation: Relation = "add/remove") -> int:
    """Give the L1 sensitivity of the counts of disjoint groups: 1, or 2 when a row may change its group.

    Parameters
    ----------
    relation : {"add/remove", "substitute"}
        Which data sets are neighbours.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        When ``relation`` is neither.
    """
    check_relation(relation)
    return 1 if relation == "add/remove" else 2


def sum(bounds: Bounds, relation: Relation = "add/remove") -> float:
    """Give the sensitivity of the sum of values within bounds.

    Parameters
    ----------
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first.
    relation : {"add/remove", "substitute"}
        Which data sets are neighbours.

    Returns
    -------
    float
        ``max(abs(lower), abs(upper))`` under "add/remove", ``upper - lower`` under "substitute", rounded up.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    """
    lower, upper = _exact(bounds)
    check_relation(relation)
    return at_least(max(abs(lower), abs(upper)) if relation == "add/remove" else upper - lower)


def mean(bounds: Bounds, n: int) -> float:
    """Give the sensitivity of the mean of ``n`` values within bounds, under "substitute".

    Under "add/remove" the number of rows is private, and the sensitivity of the mean is that of a single value.

    Parameters
    ----------
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first.
    n : int
        The public number of rows, positive.

    Returns
    -------
    float
        ``(upper - lower) / n``, rounded up.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    """
    lower, upper = _exact(bounds)
    return at_least((upper - lower) / _check_rows(n))


def variance(bounds: Bounds, n: int) -> float:
    """Give the sensitivity of the variance of ``n`` values within bounds, under "substitute".

    The variance is the mean squared distance from the mean.

    Parameters
    ----------
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first.
    n : int
        The public number of rows, positive.

    Returns
    -------
    float
        ``(upper - lower) ** 2 * (n - 1) / n ** 2``, rounded up.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    With the other rows held, the variance is a parabola in the row that changes. Its curvature is ``2 (n - 1) / n**2``,
    so it changes the most when the row moves from the parabola's lowest point, the mean of the others, to a bound: by
    ``(n - 1) / n**2`` times a squared distance of at most ``upper - lower``.
    """
    lower, upper = _exact(bounds)
    rows = _check_rows(n)
    return at_least((upper - lower) ** 2 * (rows - 1) / rows**2)


def quantile_score(q: float, relation: Relation = "add/remove") -> float:
    """Give the sensitivity of the score by which `dpnoise.queries.Quantile` ranks candidates.

    Parameters
    ----------
    q : float
        The quantile, strictly between 0 and 1.
    relation : {"add/remove", "substitute"}
        Which data sets are neighbours.

    Returns
    -------
    float
        ``max(q, 1 - q)``, rounded up, under "add/remove", 1 under "substitute".

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    """
    check_relation(relation)
    if not 0 < real(q, "q") < 1:
        raise ParameterError(f"q must be between 0 and 1, got {q!r}")
    share = fraction_of(q)
    return at_least(max(share, 1 - share)) if relation == "add/remove" else 1.0


def check_relation(relation: str) -> None:
    """Refuse everything but the two relations."""
    if relation not in ("add/remove", "substitute"):
        raise ParameterError(f'relation must be "add/remove" or "substitute", got {relation!r}')


def check_bounds(bounds: Bounds) -> Bounds:
    """Refuse everything but two finite numbers in order."""
    try:
        lower, upper = (real(bound, "bounds") for bound in bounds)
    except ParameterError:
        raise
    except (TypeError, ValueError):
        raise TypeError(f"bounds must be two numbers, the lower one first, got {bounds!r}") from None
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ParameterError(f"bounds must be two finite numbers, the lower one first, got {bounds!r}")
    return lower, upper


def _exact(bounds: Bounds) -> tuple[Fraction, Fraction]:
    """Give the exact values of the bounds, even if no float holds them."""
    check_bounds(bounds)
    lower, upper = map(fraction_of, bounds)
    return lower, upper


def _check_rows(n: int) -> int:
    return integer(n, "n", range(1, 2**63))
