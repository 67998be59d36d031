"""Quantiles."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns, sensitivity
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._parameters import real
from dpnoise.accounting._losses import Loss
from dpnoise.mechanisms import Exponential
from dpnoise.mechanisms._mechanism import Rng, WithoutErrorBound
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds

# The largest number of candidates: 32 MiB of scores.
_MOST_CANDIDATES = 2**22

# A quantile is rounded to a fraction with such a denominator, so that scores are integers.
_DENOMINATOR = 10**6


class Quantile(WithoutErrorBound, Query):
    """A quantile of the values, each clamped to bounds first, by the exponential mechanism.

    Candidates are the multiples of ``granularity`` within the bounds. Where ``L`` values are below a candidate and
    ``G`` above it, its score is ``-abs((1 - q) * L - q * G)``, 0 at a q-quantile. The release is
    epsilon-differentially private.

    Parameters
    ----------
    q : float
        Between 0 and 1; taken as the nearest fraction with a denominator of at most 10**6.
    bounds : (float, float)
        The smallest and the largest value: both finite, the smaller one first. Values outside are clamped. The bounds
        must not be taken from the data.
    epsilon : float
        Positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which columns are neighbours. Missing values (NaN, None, nulls) are left out.
    granularity : float, optional
        The distance of candidates, a power of two. By default there are about 2**15 to 2**16 candidates.

    Attributes
    ----------
    q, bounds, granularity
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    The time depends on the column, since it is sorted.

    References
    ----------
    McSherry and Talwar (2007), "Mechanism design via differential privacy"; Smith (2011), "Privacy-preserving
    statistical estimation with optimal convergence rates", section 3, for quantiles.

    Examples
    --------
    >>> from dpnoise import queries
    >>> ninety = queries.Quantile(q=0.9, bounds=(0, 100), epsilon=1.0).release(range(100))
    """

    __slots__ = ("_bounds", "_choice", "_granularity", "_q")

    _reason = "how far a value is off depends on how many rows have values near it, see rank_error"

    _parameters: ClassVar[tuple[str, ...]] = ("q", "bounds", "epsilon", "relation", "granularity")

    def __init__(
        self,
        *,
        q: float,
        bounds: Bounds,
        epsilon: float,
        relation: Relation = "add/remove",
        granularity: float | None = None,
    ) -> None:
        sensitivity.quantile_score(q, relation)
        self._q = Fraction(real(q, "q")).limit_denominator(_DENOMINATOR)
        if not 0 < self._q < 1:
            raise ParameterError(f"q must be from 1e-6 to 1 - 1e-6, got {q!r}")
        self._bounds = lower, upper = check_bounds(bounds)
        self._granularity = _power_of_two(_step(lower, upper) if granularity is None else granularity)
        first, last = self._range()
        if not 0 < last - first < _MOST_CANDIDATES or max(abs(first), abs(last)) > 2**53:
            raise ParameterError(
                f"granularity must leave 2 to {_MOST_CANDIDATES} multiples within the bounds, of up to 2**53 steps, "
                f"got {self._granularity!r}"
            )
        below, above = self._q.numerator, self._q.denominator - self._q.numerator
        steps = max(below, above) if relation == "add/remove" else self._q.denominator
        self._choice = Exponential(epsilon=epsilon, sensitivity=steps)
        self._relation = relation

    @property
    def q(self) -> float:
        """The quantile."""
        return float(self._q)

    @property
    def bounds(self) -> Bounds:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def granularity(self) -> float:
        """The distance of candidates, in the values' unit."""
        return self._granularity

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._choice.epsilon

    def rank_error(self, level: float = 0.95) -> float:
        """Bound by how many rows the rank of a release is off.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.

        Returns
        -------
        float
            By how many rows the score of the release is below that of the best candidate at most, with probability
            ``level`` or more: of L values below it and G above it, ``abs((1 - q) * L - q * G)`` is larger by so much.

        Raises
        ------
        ParameterError
            When ``level`` is out of range.
        """
        first, last = self._range()
        return self._choice.error(int(last - first) + 1, level) / self._q.denominator

    def release(self, column: Values, *, rng: Rng = None) -> float:
        """Release the quantile.

        Parameters
        ----------
        column : array_like
            Real numbers, one dimension.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        float
            A multiple of ``granularity`` within the bounds.

        Raises
        ------
        ParameterError
            When the column is not one-dimensional.
        TypeError
            When it is not made of real numbers.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        first, last = self._range()
        candidates = np.arange(first, last + 1).astype(np.float64) * self._granularity
        winner = self._choice.release(self._scores(_columns.floats(column), candidates), rng=rng)
        return float(candidates[winner])

    def _loss(self) -> Loss:
        return self._choice._loss()

    def _scores(self, values: NDArray[np.float64], candidates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the scores times the denominator of q, which makes them integers."""
        ordered = np.sort(np.clip(values[~np.isnan(values)], *self._bounds))
        below = np.searchsorted(ordered, candidates, "left")
        above = len(ordered) - np.searchsorted(ordered, candidates, "right")
        part, whole = self._q.numerator, self._q.denominator
        scores: NDArray[np.float64] = -np.abs((whole - part) * below - part * above).astype(np.float64)
        return scores

    def _range(self) -> tuple[int, int]:
        lower, upper = (Fraction(bound) / Fraction(self._granularity) for bound in self._bounds)
        return -(-lower // 1), upper // 1


class Median(Quantile):
    """The median of the values, each clamped to bounds first: `Quantile` with q = 1/2.

    Parameters
    ----------
    bounds : (float, float)
        As for `Quantile`.
    epsilon : float
        Positive and finite.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which columns are neighbours.
    granularity : float, optional
        As for `Quantile`.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Examples
    --------
    >>> from dpnoise import queries
    >>> age = queries.Median(bounds=(0, 100), epsilon=1.0).release([23, 45, 31, 67])
    """

    __slots__ = ()

    _parameters: ClassVar[tuple[str, ...]] = ("bounds", "epsilon", "relation", "granularity")

    def __init__(
        self,
        *,
        bounds: Bounds,
        epsilon: float,
        relation: Relation = "add/remove",
        granularity: float | None = None,
    ) -> None:
        super().__init__(q=0.5, bounds=bounds, epsilon=epsilon, relation=relation, granularity=granularity)


def _step(lower: float, upper: float) -> float:
    """Give a power of two of which 2**15 to 2**16 multiples are within the bounds, if doubles can tell them apart."""
    exponents = np.frexp([upper / 2 - lower / 2, max(abs(lower), abs(upper))])[1]
    return float(np.ldexp(1.0, max(int(exponents[0]) - 15, int(exponents[1]) - 53)))


def _power_of_two(granularity: float) -> float:
    value = real(granularity, "granularity")
    if not (0 < value < float("inf")) or np.frexp(value)[0] != 0.5:
        raise ParameterError(f"granularity must be a power of two, got {granularity!r}")
    return value
