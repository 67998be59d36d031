"""What can be asked of tables and of groups: a method for each question, and several at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from numpy.typing import ArrayLike

from dpnoise._errors import ParameterError
from dpnoise._types import Instant, Labels, Number, Rng
from dpnoise.queries import (
    Count,
    Histogram,
    Mean,
    Median,
    Quantiles,
    Query,
    StabilityHistogram,
    StandardDeviation,
    Sum,
    Variance,
)
from dpnoise.sensitivity import Bounds
from dpnoise.tables._release import Release

Asked: TypeAlias = Query | tuple[Any, Query]
Questioned: TypeAlias = Mapping[str, tuple[Any, Query]]
"""The column, if there is one, and the query of each question."""

# What other libraries call what `Questions` has.
_SYNONYMS: Final = {
    "agg": "release(name=(column, query))",
    "aggregate": "release(name=(column, query))",
    "avg": "mean",
    "group_by": "by(column, keys=...)",
    "groupby": "by(column, keys=...)",
    "len": "count",
    "quantile": "quantiles(column, q=[...])",
    "size": "count",
    "std": "standard_deviation",
    "unique": "keys",
    "value_counts": "keys",
    "var": "variance",
}


class Questions(ABC):
    """What can be asked of a table, or of each of its groups: the abstract base class."""

    __slots__ = ()

    def release(self, *, level: Number = 0.95, label: str | None = None, rng: Rng = None, **asked: Asked) -> Release:
        """Release the answers to one or more questions, which are paid for together.

        Everything that can be wrong with the questions is refused first. Then the cost of all answers is spent from the
        ledger, as one entry, and only then are rows chosen and noise drawn. If that fails, or the process is killed,
        the cost stays spent.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which each interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default the names of the answers.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws fresh keys from the operating system.
        **asked : Query, or pair of a column's name and a Query
            The questions by the names that the answers get: a query of `dpnoise.queries` under "add/remove", with the
            name of the column that it is about, as in ``spend=("spend", queries.Mean(bounds=(0, 500), epsilon=0.5))``.
            A `Count` alone counts rows. Epsilon and delta are those of a person, if the table has persons.

        Returns
        -------
        Release
            The answers, with bounds on their errors.

        Raises
        ------
        BudgetExceeded, LedgerError
            When the ledger does not pay. Nothing is drawn then.
        ParameterError, TypeError
            When there is no such column, or a query does not fit its column. Nothing is spent or drawn then.
        """
        if not asked:
            raise ParameterError("release needs questions, such as visits=queries.Count(epsilon=0.5)")
        return self._release({name: _question(name, one) for name, one in asked.items()}, level, label, rng)

    @abstractmethod
    def _release(self, questions: Questioned, level: Number, label: str | None, rng: Rng) -> Release:
        """Release the answers to questions that have been checked each by itself."""

    if not TYPE_CHECKING:  # checkers would take every name

        def __getattr__(self, name: str) -> NoReturn:
            """Say what a name of other libraries is here."""
            hint = f", use {_SYNONYMS[name]}" if name in _SYNONYMS else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{hint}")

    def count(self, column: Any = None, *, epsilon: Number, level: Number = 0.95, label: str | None = None) -> Release:
        """Count rows, or the values of a column that are neither missing nor false.

        Parameters
        ----------
        column : str, optional
            The column whose values are counted, as by `queries.Count`; by default rows are counted.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "count".
        """
        return self.release(level=level, label=label, count=(column, Count(epsilon=epsilon)))

    def sum(
        self, column: Any, *, bounds: Bounds, epsilon: Number, level: Number = 0.95, label: str | None = None
    ) -> Release:
        """Add up the values of a column, each clamped to bounds, as `queries.Sum` does.

        Parameters
        ----------
        column : str
            The column of numbers.
        bounds : pair of float
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "sum".
        """
        return self.release(level=level, label=label, sum=(column, Sum(bounds=bounds, epsilon=epsilon)))

    def mean(
        self, column: Any, *, bounds: Bounds, epsilon: Number, level: Number = 0.95, label: str | None = None
    ) -> Release:
        """Release the mean of the values of a column, each clamped to bounds, as `queries.Mean` does.

        Parameters
        ----------
        column : str
            The column of numbers.
        bounds : pair of float
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "mean".
        """
        return self.release(level=level, label=label, mean=(column, Mean(bounds=bounds, epsilon=epsilon)))

    def variance(
        self, column: Any, *, bounds: Bounds, epsilon: Number, level: Number = 0.95, label: str | None = None
    ) -> Release:
        """Release the variance of the values of a column, each clamped to bounds, as `queries.Variance` does.

        Parameters
        ----------
        column : str
            The column of numbers.
        bounds : pair of float
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "variance".
        """
        return self.release(level=level, label=label, variance=(column, Variance(bounds=bounds, epsilon=epsilon)))

    def standard_deviation(
        self, column: Any, *, bounds: Bounds, epsilon: Number, level: Number = 0.95, label: str | None = None
    ) -> Release:
        """Release the standard deviation of the values of a column, as `queries.StandardDeviation` does.

        Parameters
        ----------
        column : str
            The column of numbers.
        bounds : pair of float
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "standard_deviation".
        """
        query = StandardDeviation(bounds=bounds, epsilon=epsilon)
        return self.release(level=level, label=label, standard_deviation=(column, query))

    def median(
        self,
        column: Any,
        *,
        bounds: Bounds | Sequence[Instant],
        epsilon: Number,
        granularity: Number | None = None,
        level: Number = 0.95,
        label: str | None = None,
    ) -> Release:
        """Release the median of the values of a column, as `queries.Median` does.

        Parameters
        ----------
        column : str
            The column of numbers, dates or times.
        bounds : pair of float, date, datetime or datetime64
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        granularity : float, optional
            The distance of candidates: a power of two, 1 for whole numbers; by default the finest.
        level : float, default 0.95
            The probability with which the rank error holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "median".
        """
        query: Query = Median(bounds=bounds, epsilon=epsilon, granularity=granularity)
        return self.release(level=level, label=label, median=(column, query))

    def quantiles(
        self,
        column: Any,
        *,
        q: Sequence[Number],
        bounds: Bounds | Sequence[Instant],
        epsilon: Number,
        granularity: Number | None = None,
        level: Number = 0.95,
        label: str | None = None,
    ) -> Release:
        """Release quantiles of the values of a column, as `queries.Quantiles` does.

        Parameters
        ----------
        column : str
            The column of numbers, dates or times.
        q : sequence of float
            The quantiles, from 1e-6 to 1 - 1e-6.
        bounds : pair of float, date, datetime or datetime64
            The smallest and the largest value, both finite, the smaller one first. Never take them from the data.
        epsilon : float
            The privacy parameter of all quantiles together: positive and finite.
        granularity : float, optional
            The distance of candidates: a power of two, 1 for whole numbers; by default 2**-32 of the distance of the
            bounds.
        level : float, default 0.95
            The probability with which the rank error holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "quantiles".
        """
        query: Query = Quantiles(q=q, bounds=bounds, epsilon=epsilon, granularity=granularity)
        return self.release(level=level, label=label, quantiles=(column, query))

    def histogram(
        self,
        column: Any,
        *,
        edges: ArrayLike | Sequence[Instant] | None = None,
        domain: Labels | None = None,
        epsilon: Number,
        level: Number = 0.95,
        label: str | None = None,
    ) -> Release:
        """Count the values of a column in bins, or by label, as `queries.Histogram` does.

        Parameters
        ----------
        column : str
            The column of numbers, dates or times for bins, or of labels.
        edges : array_like, optional
            The edges of the bins, each above the one before. Give exactly one of `edges` and `domain`.
        domain : sequence of str, int, float or bool, optional
            The labels, one or more, all different. Never take them from the data.
        epsilon : float
            The privacy parameter: positive and finite.
        level : float, default 0.95
            The probability with which each interval holds: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "histogram".
        """
        groups: dict[str, Any] = {"edges": edges, "domain": domain}
        query: Query = Histogram(epsilon=epsilon, **groups)
        return self.release(level=level, label=label, histogram=(column, query))


def _question(name: str, asked: Any) -> tuple[Any, Query]:
    """Return the column and the query of a question."""
    column, query = asked if isinstance(asked, tuple) and len(asked) == 2 else (None, asked)
    if not isinstance(query, Query):
        raise TypeError(
            f"{name} must be a query, or a column and a query, as in ('spend', queries.Sum(bounds=(0, 9), epsilon=1)), "
            f"got {type(query).__name__}"
        )
    query._check_own(name)
    if query.relation != "add/remove":
        raise ParameterError(f'{name} must have the relation "add/remove", got "{query.relation}"')
    if isinstance(query, StabilityHistogram):
        raise ParameterError(f"{name} must have public groups: Table.keys releases those that are not, got {query!r}")
    if column is None and not isinstance(query, Count):
        raise ParameterError(f"{name} must name the column that it is about, as in ('spend', {query!r})")
    return column, query
