from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native, sensitivity
from dpnoise._errors import ParameterError
from dpnoise._numbers import real
from dpnoise._types import Instant, Number, Rng, Values
from dpnoise.accounting import BoundedRangeLoss, PrivacyLoss, ZcdpCost
from dpnoise.queries._query import Query, Released
from dpnoise.queries._times import bounds_of, read
from dpnoise.sensitivity import Bounds, Relation

Time = TypeVar("Time", bound=Instant)

# A quantile is rounded to a fraction with such a denominator, so that scores are integers.
_DENOMINATOR = 10**6


class _OfRanks(Query, Generic[Released]):
    """A query that releases candidates by their ranks among the values."""

    __slots__ = ("_bounds", "_clock")

    _reason = "how far a value is off depends on how many rows have values near it, see rank_error"

    _parameters: ClassVar[tuple[str, ...]] = ("q", "bounds", "epsilon", "relation", "granularity")

    def __init__(
        self, kind: Any, q: Any, bounds: Any, epsilon: Number, relation: Relation, granularity: Number | None
    ) -> None:
        (lower, upper), self._clock = bounds_of(bounds)
        self._bounds = lower, upper
        if self._clock is not None:
            granularity = 1 if granularity is None else granularity
            if real(granularity, "granularity") < 1:
                raise ParameterError(f"granularity must be at least 1 for dates and times, got {granularity!r}")
        self._native = kind(q=q, lower=lower, upper=upper, epsilon=epsilon, relation=relation, granularity=granularity)
        self._relation = relation

    @property
    def bounds(self) -> tuple[Released, Released]:
        """The bounds, in the values' unit."""
        lower, upper = map(self._value, self._bounds)
        return lower, upper

    @property
    def granularity(self) -> float:
        """The distance of candidates, in the values' unit."""
        return float(self._native.granularity)

    def _check_level(self, level: float) -> None:
        self._native.rank_error(level)

    def _released_with_error(self, rows: NDArray[Any], level: float, rng: Rng) -> tuple[Any, None]:
        return self._released(rows, None, rng), None

    def _read(self, column: Any, name: str = "column") -> NDArray[Any]:
        return read(column, self._clock, name)

    def _value(self, number: float) -> Released:
        return cast("Released", number if self._clock is None else self._clock.value(number))


class Quantile(_OfRanks[Released]):
    """A quantile of the values, each clamped to bounds first, by the exponential mechanism.

    Values are rounded to multiples of ``granularity``, and candidates are all these multiples within the bounds. Where
    of ``n`` values ``L`` are below a candidate and ``G`` above it, its score is minus the distance of ``q * n`` from
    the interval from ``L`` to ``n - G``: 0 at a q-quantile, and how many ranks it is off elsewhere. The release is
    epsilon-differentially private.

    Missing values (NaN, None, nulls, NaT) are left out. Wide bounds cost little: see `rank_error`.

    With bounds that are dates or times the column has dates or times, and so has the release: whole days between dates,
    microseconds between times, and the unit of bounds of NumPy. A moment is rounded down to that unit, and a date
    stands for its first moment. Times with a time zone and times without are not compared.

    Parameters
    ----------
    q : float
        The quantile, from 1e-6 to 1 - 1e-6; taken as the nearest fraction with a denominator of at most 10**6.
    bounds : pair of float, date, datetime or datetime64
        The smallest and the largest value, both finite, the smaller one first. Values outside are clamped. Never take
        them from the data. Dates and times are at most 2**52 of their units from 1970: times are from 1828 to 2112.
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.
    granularity : float, optional
        The distance of candidates, in the values' unit: a power of two from 2**-1019 to 2**900, of which two multiples
        are within the bounds; 1 for whole numbers. By default the finest that is allowed, 2**-52 of the larger bound;
        for dates and times it is 1 of their unit by default, and at least that.

    Notes
    -----
    The time depends on the column, since it is sorted.

    References
    ----------
    McSherry and Talwar (2007), "Mechanism design via differential privacy"; Smith (2011), "Privacy-preserving
    statistical estimation with optimal convergence rates", section 3, for the intervals between the values.

    Examples
    --------
    >>> from dpnoise import queries
    >>> ninety = queries.Quantile(q=0.9, bounds=(0, 100), epsilon=1.0).release(range(100))
    """

    __slots__ = ("_q",)

    _native: _native.Quantile

    @overload
    def __init__(
        self: Quantile[float],
        *,
        q: Number,
        bounds: Bounds,
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Quantile[Time],
        *,
        q: Number,
        bounds: Sequence[Time],
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    def __init__(
        self,
        *,
        q: Number,
        bounds: Bounds | Sequence[Instant],
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None:
        self._q = _rank(q, relation)
        super().__init__(_native.Quantile, self._q.as_integer_ratio(), bounds, epsilon, relation, granularity)

    @property
    def q(self) -> float:
        """The quantile."""
        return float(self._q)

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, ``epsilon**2 / 8``, rounded up.

        For an epsilon above 8 it is the smaller rho of every mechanism with that epsilon.
        """
        return self._loss().rho

    def rank_error(self, level: Number = 0.95) -> float:
        """Bound by how many rows the rank of a release is off.

        Of ``n`` values, clamped and rounded, with ``L`` below the release and ``G`` above it, ``q * n`` is at most this
        far from the interval from ``L`` to ``n - G``. The bound grows with the logarithm of the number of candidates: a
        factor of 1000 in the bounds costs ``14 * max(q, 1 - q) / epsilon`` rows at one granularity under "add/remove".

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._native.rank_error(level)

    def release(self, column: Values, *, rng: Rng = None) -> Released:
        """Release the quantile, a multiple of ``granularity`` within the bounds.

        Parameters
        ----------
        column : array_like
            One real number for each person, taken as float64; or one date or time, as the bounds are. Missing values
            (NaN, None, nulls, NaT) are left out.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float, date, datetime or datetime64
            The chosen candidate, in the values' unit: of the type of the bounds if they are dates or times.
        """
        return self._released(self._read(column), None, rng)

    def _released(self, rows: NDArray[Any], threads: int | None, rng: Rng) -> Released:
        return self._value(self._native.release(rows, rng))

    def _loss(self) -> PrivacyLoss:
        return BoundedRangeLoss(self.epsilon)


class Median(Quantile[Released]):
    """The median of the values, each clamped to bounds first: `Quantile` with q = 1/2, by the exponential mechanism.

    The release is epsilon-differentially private.

    Parameters
    ----------
    bounds : pair of float, date, datetime or datetime64
        The smallest and the largest value, both finite, the smaller one first. Values outside are clamped. Never take
        them from the data. Dates and times are at most 2**52 of their units from 1970: times are from 1828 to 2112.
    epsilon : float
        The privacy parameter: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.
    granularity : float, optional
        The distance of candidates, in the values' unit: a power of two from 2**-1019 to 2**900, of which two multiples
        are within the bounds; 1 for whole numbers. By default the finest that is allowed, 2**-52 of the larger bound;
        for dates and times it is 1 of their unit by default, and at least that.

    Examples
    --------
    >>> from dpnoise import queries
    >>> age = queries.Median(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    >>> from datetime import date
    >>> births = [date(1990, 5, 17), date(2001, 2, 3), date(1979, 11, 30)] * 100
    >>> queries.Median(bounds=(date(1900, 1, 1), date(2030, 1, 1)), epsilon=50.0).release(births)
    datetime.date(1990, 5, 17)
    """

    __slots__ = ()

    _parameters: ClassVar[tuple[str, ...]] = ("bounds", "epsilon", "relation", "granularity")

    @overload
    def __init__(
        self: Median[float],
        *,
        bounds: Bounds,
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Median[Time],
        *,
        bounds: Sequence[Time],
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    def __init__(
        self, *, bounds: Any, epsilon: Number, relation: Relation = "add/remove", granularity: Number | None = None
    ) -> None:
        super().__init__(q=0.5, bounds=bounds, epsilon=epsilon, relation=relation, granularity=granularity)


class Quantiles(_OfRanks[Released]):
    """Several quantiles of the values, each clamped to bounds first, in one release by the exponential mechanism.

    The quantile in the middle is released as by `Quantile`, then those below and above it, in the same way, from the
    rows on either side, and so on. Only the choices for the rows of one side after another concern a person: these
    share epsilon, ``log2(k) + 1`` of them for ``k`` quantiles. The release is epsilon-differentially private.

    Rows of one value are told apart by random numbers below one step of ``granularity``, so that a value which many
    rows share falls on both sides of a quantile, as those rows do. Answers are in order: a higher quantile is never
    below a lower one.

    Missing values (NaN, None, nulls, NaT) are left out. Bounds may be dates or times, as those of `Quantile`.

    Parameters
    ----------
    q : iterable of float
        The quantiles: one or more, from 1e-6 to 1 - 1e-6, in any order, each taken as the nearest fraction with a
        denominator of at most 10**6. Equal ones are released once and get the same answer.
    bounds : pair of float, date, datetime or datetime64
        The smallest and the largest value, both finite, the smaller one first. Values outside are clamped. Never take
        them from the data. Dates and times are at most 2**52 of their units from 1970: times are from 1828 to 2112.
    epsilon : float
        The privacy parameter of all quantiles together: positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one row is added or removed, and the number of rows is private;
        `"substitute"`: one row is replaced, and the number of rows is public. A row is a person.
    granularity : float, optional
        The distance of candidates, in the values' unit: a power of two from 2**-1019 to 2**900, of which two multiples
        are within the bounds; 1 for whole numbers. By default 2**-32 of the distance of the bounds, or 2**-52 of the
        larger bound if that is coarser; for dates and times it is 1 of their unit by default, and at least that. The
        random numbers have as many bits as are left of 52, at most 20.

    Notes
    -----
    The time depends on the column, since it is sorted.

    Replacing a row takes one row away and adds another. So under "substitute" the answers are those of "add/remove"
    with half the epsilon.

    References
    ----------
    Kaplan, Schnapp and Stemmer (2022), "Differentially private approximate quantiles".

    Examples
    --------
    >>> from dpnoise import queries
    >>> quarters = queries.Quantiles(q=[0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1.0).release(range(100))
    """

    __slots__ = ("_q",)

    _native: _native.Quantiles

    @overload
    def __init__(
        self: Quantiles[float],
        *,
        q: Iterable[Number],
        bounds: Bounds,
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Quantiles[Time],
        *,
        q: Iterable[Number],
        bounds: Sequence[Time],
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None: ...
    def __init__(
        self,
        *,
        q: Iterable[Number],
        bounds: Bounds | Sequence[Instant],
        epsilon: Number,
        relation: Relation = "add/remove",
        granularity: Number | None = None,
    ) -> None:
        if not isinstance(q, Iterable):
            raise TypeError(f"q must be a list of quantiles, got {type(q).__name__}")
        self._q = [_rank(one, relation) for one in q]
        ratios = [one.as_integer_ratio() for one in self._q]
        super().__init__(_native.Quantiles, ratios, bounds, epsilon, relation, granularity)

    @property
    def q(self) -> tuple[float, ...]:
        """The quantiles, in the order in which they were given."""
        return tuple(map(float, self._q))

    @property
    def rho(self) -> float:
        """The cost under zero-concentrated differential privacy, rounded up.

        The choices for the rows of one side after another cost ``epsilon_i**2 / 8`` each, for their share
        ``epsilon_i`` of epsilon: about ``epsilon**2 / (8 * (log2(k) + 1))`` together for ``k`` quantiles.
        """
        return self._native.rho

    def rank_error(self, level: Number = 0.95) -> float:
        """Bound by how many rows the ranks of all answers are off.

        Of ``n`` values, clamped and rounded, with ``L`` below an answer for ``q`` and ``G`` above it, ``q * n`` is at
        most this far from the interval from ``L`` to ``n - G``, for all answers at once. The bound adds up those of one
        choice after another, as if all of them erred in the same direction: the usual error is many times smaller, see
        the guide to the accuracy of quantiles. It does not count the rows that share their value and their random
        number with others, and up to ``n / 10**6`` rows where the rank of a quantile between two others is rounded to a
        millionth.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._native.rank_error(level)

    @overload
    def release(  # type: ignore[overload-overlap] # of numbers
        self: Quantiles[float], column: Values, *, rng: Rng = None
    ) -> NDArray[np.float64]: ...
    @overload
    def release(self, column: Values, *, rng: Rng = None) -> list[Released]: ...
    def release(self, column: Values, *, rng: Rng = None) -> NDArray[np.float64] | list[Released]:
        """Release the quantiles, multiples of ``granularity`` within the bounds.

        Parameters
        ----------
        column : array_like
            One real number for each person, taken as float64; or one date or time, as the bounds are. Missing values
            (NaN, None, nulls, NaT) are left out.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of float64, or list
            The chosen candidates, in the values' unit, in the order of ``q``: a list of dates or times if the bounds
            are such.
        """
        released: NDArray[np.float64] | list[Released] = self._released(self._read(column), None, rng)
        return released

    def _released(self, rows: NDArray[Any], threads: int | None, rng: Rng) -> Any:
        found = self._native.release(rows, rng)
        return np.array(found) if self._clock is None else list(map(self._value, found))

    def _zcdp(self) -> ZcdpCost:
        return ZcdpCost(self.rho)


def _rank(q: Number, relation: Relation) -> Fraction:
    sensitivity.quantile_score(q, relation)  # checks both
    share = Fraction(real(q, "q")).limit_denominator(_DENOMINATOR)
    if not 0 < share < 1:
        raise ParameterError(f"q must be from 1e-6 to 1 - 1e-6, got {q!r}")
    return share
