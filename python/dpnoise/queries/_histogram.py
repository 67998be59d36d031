"""Counts of the values of a column: of fixed bins or labels, and of the labels that occur."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, Generic, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import _columns, _native, sensitivity
from dpnoise._arrays import dtype_of
from dpnoise._codes import Coded, coded
from dpnoise._columns import distinct_labels
from dpnoise._errors import ParameterError
from dpnoise._numbers import share_of
from dpnoise._types import Instant, Labels, Number, Rng, Values
from dpnoise.accounting import PrivacyCost
from dpnoise.mechanisms import DiscreteLaplace
from dpnoise.queries._query import CountingQuery, Released
from dpnoise.queries._times import Clock, counted, read
from dpnoise.sensitivity import Relation

# Up to so many edges are compared with each value, in a time that does not depend on it. With more, sorting is faster.
_COMPARED: Final = 128


class Histogram(CountingQuery, Generic[Released]):
    """The numbers of rows in disjoint public groups: bins of numbers, or labels.

    Adds discrete Laplace noise to each count: of scale ``1 / epsilon`` under "add/remove", ``2 / epsilon`` under
    "substitute", since a row may leave one group for another. The release is epsilon-differentially private.

    Rows that are in no group, missing values among them, are not counted: add open ends to bins, as in
    ``edges=[-inf, 0, 18, 65, inf]``, to count all numbers.

    Parameters
    ----------
    edges : array_like, optional
        The edges of bins of numbers: two or more, each above the one before. The first may be ``-inf`` and the last
        ``inf``, for bins without an end. Bin ``i`` has the values from ``edges[i]`` up to, but not including,
        ``edges[i + 1]``; the last bin includes its upper edge, as in `numpy.histogram`. Give exactly one of `edges` and
        `domain`. Never take them from the data. Edges may be dates or times, as the bounds of `Quantile` may be.
    domain : sequence of str, int, float or bool, optional
        The labels of the groups, one or more, all different: all texts, all numbers or all booleans; a pandas
        `Categorical`, a polars `Enum` or an Arrow dictionary stands for its categories. Never take it from the data:
        `StabilityHistogram` is for a private domain.
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", example 3.2.

    Examples
    --------
    >>> from dpnoise import queries
    >>> decades = queries.Histogram(edges=range(0, 101, 10), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ("_clock", "_domain", "_edges")

    _parameters = ("edges", "domain", "epsilon", "relation")

    @overload
    def __init__(
        self: Histogram[NDArray[np.int64]],
        *,
        edges: ArrayLike | Sequence[Instant],
        epsilon: Number,
        relation: Relation = "add/remove",
    ) -> None: ...
    @overload
    def __init__(
        self: Histogram[dict[Any, int]], *, domain: Labels, epsilon: Number, relation: Relation = "add/remove"
    ) -> None: ...
    def __init__(
        self,
        *,
        edges: ArrayLike | Sequence[Instant] | None = None,
        domain: Labels | None = None,
        epsilon: Number,
        relation: Relation = "add/remove",
    ) -> None:
        if (edges is None) == (domain is None):
            got = "both" if domain is not None else "neither: use StabilityHistogram for a domain that is not public"
            raise ParameterError(f"either edges or domain must be given, got {got}")
        self._noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity.histogram(relation))
        self._edges: tuple[float, ...] | None = None
        self._clock: Clock | None = None
        if edges is not None:
            self._edges, self._clock = _increasing(edges)
        self._domain = None if domain is None else tuple(distinct_labels(domain, "domain")[0])
        self._relation = relation

    @property
    def edges(self) -> tuple[Any, ...] | None:
        """The edges of the bins, if the groups are bins: floats, dates or times."""
        return self._edges if self._edges is None or self._clock is None else tuple(map(self._clock.value, self._edges))

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The labels, if the groups are labels."""
        return self._domain

    @property
    def labels(self) -> list[Any]:
        """The names of the groups, in the order of their counts: those of bins are texts such as "[0, 10)"."""
        return list(self._domain or ()) if self._edges is None else _names(self.edges or ())

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> Released:
        """Release the counts.

        Parameters
        ----------
        column : array_like
            One value for each person: real numbers, dates or times, as the edges are, if the groups are bins, otherwise
            values of the type of the labels.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of int64, or dict
            One count for each bin, in their order; or the counts by label, in the order of the domain. Counts may be
            negative: they are not clamped.
        """
        if self._domain is None:
            return self._released(self._read(column), threads, rng)
        return self._of_labels(self._count(column), threads, rng)

    def _read(self, column: Any, name: str = "column") -> Any:
        if self._domain is None:
            return read(column, self._clock, name)
        return coded(column, name).found_in(list(map(_columns.plain, self._domain)), name, "domain")

    def _present(self, rows: Any) -> NDArray[np.bool_]:
        if self._edges is None:
            return super()._present(rows)
        return np.asarray((rows >= self._edges[0]) & (rows <= self._edges[-1]))

    def _released(self, rows: Any, threads: int | None, rng: Rng) -> Released:
        if self._domain is not None:
            return self._of_labels(rows.counts(), threads, rng)
        edges = self._edges or ()
        if len(edges) <= _COMPARED:
            bins = self._noise._native.release_bins(edges, rows, threads, rng)
            return cast("Released", np.array(bins, np.int64))
        counts = np.histogram(rows[~np.isnan(rows)], edges)[0].astype(np.int64)
        return cast("Released", self._noise.release(counts, threads=threads, rng=rng))

    def _of_labels(self, counts: NDArray[np.int64], threads: int | None, rng: Rng) -> Released:
        noisy = self._noise.release(counts, threads=threads, rng=rng).tolist()
        return cast("Released", dict(zip(self._domain or (), noisy, strict=True)))

    def _count(self, column: Any) -> NDArray[np.int64]:
        """Count labels: what `_read` would have, in a fraction of the time."""
        domain = list(map(_columns.plain, self._domain or ()))
        found = _columns.counts(column)
        if found and (kind := _columns.common_kind(found)) != (wanted := _columns.common_kind(domain)):
            raise TypeError(f"column must be of the kind of the domain ({wanted}), got {kind}")
        return np.array([found.get(label, 0) for label in domain], np.int64)

    def to_pandas(self, released: NDArray[np.int64] | dict[Any, int]) -> Any:
        """Label the counts of a release, as a pandas series of int64.

        Parameters
        ----------
        released : ndarray of int64, or dict
            What `release` of this histogram returned.

        Returns
        -------
        pandas.Series
            The counts by label; or by bin, named by its edges: the last bin is as in "[90, 100]" or "[90, inf]" and
            includes its upper edge, and the others are as in "[0, 10)".

        Examples
        --------
        >>> from dpnoise import queries
        >>> decades = queries.Histogram(edges=range(0, 101, 10), epsilon=1.0)
        >>> counts = decades.to_pandas(decades.release([23, 45, 31, 67]))
        """
        import pandas as pd

        index = self.labels
        if len(released) != len(index):
            raise ParameterError(f"released must be a release of this histogram, of {len(index)} counts")
        counts = [released[label] for label in index] if isinstance(released, dict) else released
        return pd.Series(counts, index=index, name="count", dtype=np.int64)


def _names(edges: tuple[Any, ...]) -> list[str]:
    # In full: rounding might give one name to two bins.
    shown = [str(edge).removesuffix(".0") for edge in edges]
    names = [f"[{low}, {high})" for low, high in pairwise(shown)]
    return [*names[:-1], f"{names[-1][:-1]}]"]


def _increasing(edges: Any) -> tuple[tuple[float, ...], Clock | None]:
    given, clock = counted(edges, "edges")
    array = np.asarray(given)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"edges must be real numbers, got dtype {dtype_of(array)}")
    values = array.astype(np.float64)
    # Infinite numbers that are each above the one before are at the ends.
    if values.ndim != 1 or len(values) < 2 or not (values[1:] > values[:-1]).all():
        raise ParameterError(f"edges must be two or more numbers, each above the one before, got {edges!r}")
    return tuple(values.tolist()), clock


class StabilityHistogram(CountingQuery):
    """The counts of the values of a column, where the set of values is private too.

    The count of each value that occurs gets discrete Laplace noise, and is released if the noisy count reaches
    `threshold`. The noisy count of a value that only one person has reaches it with a probability of at most delta. The
    release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas (2009), "Releasing search queries and clicks privately"; Bun, Nissim and
    Stemmer (2016), "Simultaneous private learning of multiple concepts", section 3.

    Examples
    --------
    >>> from dpnoise import queries
    >>> column = ["tea"] * 400 + ["coffee"] * 300 + ["xyzzy"]
    >>> drinks = queries.StabilityHistogram(epsilon=1.0, delta=1e-9).release(column)
    """

    __slots__ = ()

    _native: _native.StabilityHistogram
    _parameters = ("epsilon", "delta", "relation")

    def __init__(self, *, epsilon: Number, delta: Number, relation: Relation = "add/remove") -> None:
        self._make(epsilon, delta, relation, 1)

    def _make(self, epsilon: Number, delta: Number, relation: Relation, rows: int) -> None:
        self._native = _native.StabilityHistogram(epsilon=epsilon, delta=delta, relation=relation, rows=rows)
        share = epsilon if rows == 1 else share_of(float(epsilon), rows)
        self._noise = DiscreteLaplace(epsilon=share, sensitivity=sensitivity.histogram(relation))
        self._relation = relation

    def _of_rows(self, most: int) -> StabilityHistogram:
        # The probability that new values are seen grows with the rows in its own way, and so does the threshold.
        made = StabilityHistogram.__new__(StabilityHistogram)
        made._make(self.epsilon, self.delta, self._relation, most)
        return made

    @property
    def delta(self) -> float:
        """The privacy parameter delta."""
        return self._native.delta

    def _loss(self) -> PrivacyCost:
        return self.cost

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        return self._native.threshold

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> dict[Any, int]:
        """Release the values that are frequent enough, and their counts.

        Parameters
        ----------
        column : array_like
            One value for each person: all texts, all numbers or all booleans. Missing values are left out.
        threads : int, optional
            The number of threads that share the work, at least 1; by default one, since others are started only for
            many different values, whose number is private. It does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        dict
            The noisy counts by value, in the order of the values. Integral values are of type int, for every dtype.
        """
        return self._of_values(*_columns.counts_in_order(column), threads, rng)

    def _read(self, column: Any, name: str = "column") -> Coded:
        return coded(column, name)

    def _released(self, rows: Coded, threads: int | None, rng: Rng) -> dict[Any, int]:
        return self._of_values(*rows.in_order(), threads, rng)

    def _of_values(
        self, values: NDArray[Any], counts: NDArray[np.int64], threads: int | None, rng: Rng
    ) -> dict[Any, int]:
        places = self._native.release(counts, 1 if threads is None else threads, rng)
        released = map(_columns.plain, values[places].tolist())
        return dict(zip(released, counts[places].tolist(), strict=True))
