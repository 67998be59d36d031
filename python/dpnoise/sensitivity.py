"""Sensitivities: the most that one person can change the answer to a query.

The neighbouring relation is the parameter ``relation`` of each function:

- ``"add/remove"``: one row is added or removed. The number of rows is private.
- ``"substitute"``: one row is replaced by another. The number of rows is public.

A person is one row. Where a person may have several, `dpnoise.Table` and `dpnoise.queries.PerPerson` keep at most ``m``
of them, with the noise that these need; a mechanism of your own needs ``m`` times the sensitivity for ``m`` rows.

The sensitivities hold for exact arithmetic, and are rounded up to a float. A floating-point sum can change by more
(Casacuberta, Shoemate, Vadhan and Wagaman 2022, "Widespread underestimation of sensitivity in differentially private
libraries and how to fix it"): `dpnoise.queries` adds integers instead.

References
----------
Dwork and Roth (2014), "The algorithmic foundations of differential privacy", definitions 3.1 and 3.8.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Literal

from numpy.typing import NDArray

from dpnoise import _calls
from dpnoise._columns import column_of
from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, check_text, check_word, fraction_of, integer, real
from dpnoise._types import Integer, Integers, Number

__all__ = ["Relation", "count", "histogram", "histogram_distance", "mean", "quantile_score", "sum", "variance"]

Relation = Literal["add/remove", "substitute"]
"""Which data sets are neighbours: those that differ in the presence of one record, or in the content of one."""

Bounds = Sequence[Number] | NDArray[Any]

_COUNTS: Final = range(2**63)


def count(relation: Relation = "add/remove") -> int:
    """Return the sensitivity of the number of rows that meet a condition: 1.

    Parameters
    ----------
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    Returns
    -------
    int
        The sensitivity, in rows: 1.
    """
    check_relation(relation)
    return 1


def histogram(relation: Relation = "add/remove") -> int:
    """Return the L1 sensitivity of the counts of disjoint groups: 1, or 2 when a row may change its group.

    Parameters
    ----------
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    Returns
    -------
    int
        The sensitivity, in rows: 1 or 2.
    """
    check_relation(relation)
    return 1 if relation == "add/remove" else 2


def histogram_distance(x: Mapping[Any, Integer] | Integers, x_prime: Mapping[Any, Integer] | Integers) -> int:
    """Return the L1 distance of two databases that are given as histograms.

    The distance is the sum over all kinds of records of the absolute differences of their numbers: the number of
    additions and removals of records between the databases. Databases at a distance of at most 1 are neighbours under
    "add/remove".

    Parameters
    ----------
    x, x_prime : array_like of int, shape (k,), or mapping
        The number of records of each of ``k`` kinds, in the same order; or two mappings from a kind to the number,
        where a kind that is absent has none. A list is taken for numbers, never for records: count records first, with
        `collections.Counter`. From 0 to ``2**63 - 1`` of each kind.

    Returns
    -------
    int
        The distance, in records.

    Notes
    -----
    The distance is exact, so it is as private as the databases.

    References
    ----------
    Dwork and Roth (2014), section 2.3 and definition 2.3.

    Examples
    --------
    >>> from collections import Counter
    >>> from dpnoise import sensitivity
    >>> sensitivity.histogram_distance([2, 3], [2, 4])
    1
    >>> sensitivity.histogram_distance(Counter("aab"), Counter("abc"))
    2
    """
    if isinstance(x, Mapping) != isinstance(x_prime, Mapping):
        raise TypeError(
            "x and x_prime must be both mappings or both arrays of counts, got "
            f"{type(x).__name__} and {type(x_prime).__name__}"
        )
    ours, theirs = _counts(x, "x"), _counts(x_prime, "x_prime")
    if not isinstance(x, Mapping) and len(ours) != len(theirs):
        raise ParameterError(f"x_prime must have as many counts as x, which has {len(ours)}, got {len(theirs)}")
    return ((ours - theirs) + (theirs - ours)).total()


def _counts(histogram: Any, name: str) -> Counter[Any]:
    listed = histogram.items() if isinstance(histogram, Mapping) else enumerate(column_of(histogram, name).tolist())
    return Counter({kind: integer(count, f"every count of {name}", _COUNTS) for kind, count in listed})


def sum(bounds: Bounds, relation: Relation = "add/remove") -> float:
    """Return the sensitivity of the sum of values within bounds.

    The sensitivity is ``max(abs(lower), abs(upper))`` under "add/remove", and ``upper - lower`` under "substitute",
    rounded up.

    Parameters
    ----------
    bounds : pair of float
        The smallest and the largest value, both finite, the smaller one first, taken at their exact values. Never take
        them from the data.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    Returns
    -------
    float
        The sensitivity, in the values' unit.
    """
    lower, upper = _exact(bounds)
    check_relation(relation)
    return at_least(max(abs(lower), abs(upper)) if relation == "add/remove" else upper - lower)


def mean(bounds: Bounds, n: Integer) -> float:
    """Return the sensitivity of the mean of ``n`` values within bounds, under "substitute".

    Under "add/remove" the number of rows is private, and the mean is as sensitive as a single value.

    Parameters
    ----------
    bounds : pair of float
        The smallest and the largest value, both finite, the smaller one first, taken at their exact values. Never take
        them from the data.
    n : int
        The number of rows, which is public: from 1 to 2**63 - 1.

    Returns
    -------
    float
        The sensitivity, in the values' unit: ``(upper - lower) / n``, rounded up.
    """
    lower, upper = _exact(bounds)
    return at_least((upper - lower) / _check_rows(n))


def variance(bounds: Bounds, n: Integer) -> float:
    """Return the sensitivity of the variance of ``n`` values within bounds, under "substitute".

    The variance is the mean squared distance from the mean. Its sensitivity is ``(upper - lower)**2 * (n - 1) / n**2``,
    rounded up.

    Parameters
    ----------
    bounds : pair of float
        The smallest and the largest value, both finite, the smaller one first, taken at their exact values. Never take
        them from the data.
    n : int
        The number of rows, which is public: from 1 to 2**63 - 1.

    Returns
    -------
    float
        The sensitivity, in the square of the values' unit.

    Notes
    -----
    With the other rows held, the variance is a parabola in the row that changes. Its curvature is ``2 (n - 1) / n**2``,
    so it changes the most when the row moves from the parabola's lowest point, the mean of the others, to a bound: by
    ``(n - 1) / n**2`` times a squared distance of at most ``upper - lower``.
    """
    lower, upper = _exact(bounds)
    rows = _check_rows(n)
    return at_least((upper - lower) ** 2 * (rows - 1) / rows**2)


def quantile_score(q: Number, relation: Relation = "add/remove") -> float:
    """Return the sensitivity of the score by which `dpnoise.queries.Quantile` ranks candidates for ``q``.

    The sensitivity is ``max(q, 1 - q)``, rounded up, under "add/remove", and 1 under "substitute".

    Parameters
    ----------
    q : float
        The quantile: between 0 and 1, both excluded.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    Returns
    -------
    float
        The sensitivity, in rows.
    """
    check_relation(relation)
    if not 0 < real(q, "q") < 1:
        raise ParameterError(f"q must be between 0 and 1, got {q!r}")
    share = fraction_of(q)
    return at_least(max(share, 1 - share)) if relation == "add/remove" else 1.0


def check_relation(relation: str) -> None:
    check_word(relation, "relation", "add/remove", "substitute")


def check_person(person: str | None, relation: Relation | None) -> None:
    """Check the column that says whose a row is: persons are added or removed, and not substituted."""
    if person is None:
        return
    check_text(person, "person")
    if relation != "add/remove":
        raise ParameterError(
            f'relation must be "add/remove" with person={person!r}, got {relation!r}: how many rows of a person are '
            f"kept is private, and a person who is replaced may change twice as many rows; what is private at "
            f'epsilon / 2 under "add/remove" of persons is so at epsilon under substitution'
        )


def check_bounds(bounds: Bounds) -> tuple[float, float]:
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
    """Return the exact values of the bounds, even if no float holds them."""
    check_bounds(bounds)
    lower, upper = map(fraction_of, bounds)
    return lower, upper


def _check_rows(n: Integer) -> int:
    return integer(n, "n", range(1, 2**63))


_calls.explain(__name__)
