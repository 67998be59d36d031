from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, cast, overload

from dpnoise import _native, sensitivity
from dpnoise._errors import ParameterError
from dpnoise._numbers import real
from dpnoise._types import Instant, Number, Rng, Values
from dpnoise.accounting import BoundedRangeLoss, PrivacyLoss
from dpnoise.queries._query import Query, Released
from dpnoise.queries._times import bounds_of, read
from dpnoise.sensitivity import Bounds, Relation

Time = TypeVar("Time", bound=Instant)

# A quantile is rounded to a fraction with such a denominator, so that scores are integers.
_DENOMINATOR = 10**6


class Quantile(Query, Generic[Released]):
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

    __slots__ = ("_bounds", "_clock", "_q")

    _native: _native.Quantile

    _reason = "how far a value is off depends on how many rows have values near it, see rank_error"

    _parameters: ClassVar[tuple[str, ...]] = ("q", "bounds", "epsilon", "relation", "granularity")

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
        sensitivity.quantile_score(q, relation)
        self._q = Fraction(real(q, "q")).limit_denominator(_DENOMINATOR)
        if not 0 < self._q < 1:
            raise ParameterError(f"q must be from 1e-6 to 1 - 1e-6, got {q!r}")
        (lower, upper), self._clock = bounds_of(bounds)
        self._bounds = lower, upper
        if self._clock is not None:
            granularity = 1 if granularity is None else granularity
            if real(granularity, "granularity") < 1:
                raise ParameterError(f"granularity must be at least 1 for dates and times, got {granularity!r}")
        self._native = _native.Quantile(
            q=self._q.as_integer_ratio(),
            lower=lower,
            upper=upper,
            epsilon=epsilon,
            relation=relation,
            granularity=granularity,
        )
        self._relation = relation

    @property
    def q(self) -> float:
        """The quantile."""
        return float(self._q)

    @property
    def bounds(self) -> tuple[Released, Released]:
        """The bounds, in the values' unit."""
        lower, upper = map(self._value, self._bounds)
        return lower, upper

    @property
    def granularity(self) -> float:
        """The distance of candidates, in the values' unit."""
        return self._native.granularity

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
        return self._value(self._native.release(read(column, self._clock), rng))

    def _value(self, number: float) -> Released:
        return cast("Released", number if self._clock is None else self._clock.value(number))

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
