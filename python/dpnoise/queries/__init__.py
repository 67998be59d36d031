"""Queries: a column in, a differentially private answer out.

A query is a mechanism that knows the sensitivity of its statistic: it clamps, counts and adds integers, and then adds
its noise. Like every mechanism it is immutable, checks its parameters when it is made, and has ``epsilon``,
``delta``, ``cost`` and ``release``.

A column is a NumPy array, a list, a pandas or polars series, or Arrow data; one row is one person, and `PerPerson` is
for several rows of a person. The neighbouring relation is the parameter ``relation``: "add/remove" (one row more or
less; the number of rows is private) or "substitute" (one row is replaced; the number of rows is public). The type of a
column, such as texts or numbers, is public: a row of another type raises an error, which reveals that there is one.
"""

from dpnoise import _calls
from dpnoise.queries._histogram import Histogram, StabilityHistogram
from dpnoise.queries._moments import Mean, StandardDeviation, Variance
from dpnoise.queries._per_person import PerPerson
from dpnoise.queries._quantile import Median, Quantile, Quantiles
from dpnoise.queries._query import Query
from dpnoise.queries._totals import Count, Sum

__all__ = [
    "Count", "Histogram", "Mean", "Median", "PerPerson", "Quantile", "Quantiles", "Query", "StabilityHistogram",
    "StandardDeviation", "Sum", "Variance",
]  # fmt: skip

_calls.explain(__name__)
