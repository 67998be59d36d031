from __future__ import annotations

from dpnoise import _interchange, _native
from dpnoise._interchange import Values
from dpnoise._parameters import Rng
from dpnoise.accounting import LaplaceLoss, PrivacyLoss
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Bounds, Relation, check_bounds


class Sum(Query):
    """The sum of the values, each clamped to bounds first.

    Values are rounded to multiples of ``granularity`` and added as integers of 128 bits, so that neither rounding nor
    the order of the rows can raise the sensitivity; discrete Laplace noise is added to the exact sum, and the result
    is rounded once. The release is epsilon-differentially private.

    A missing value (NaN, None, nulls) counts as 0 under "add/remove", as the middle of the bounds under "substitute".

    Parameters
    ----------
    bounds, epsilon, relation : as everywhere
    granularity : float, optional
        The step of the grid, a power of two. By default the finest that is allowed: at least 2**-40 of the noise's
        scale and 2**-52 of the larger bound.

    References
    ----------
    Casacuberta, Shoemate, Vadhan and Wagaman (2022), "Widespread underestimation of sensitivity in differentially
    private libraries and how to fix it".

    Examples
    --------
    >>> from dpnoise import queries
    >>> hours = queries.Sum(bounds=(0, 80), epsilon=1.0).release([40, 37.5, 12, 168])
    """

    __slots__ = ("_bounds",)

    _native: _native.Sum
    _parameters = ("bounds", "epsilon", "relation", "granularity")

    def __init__(
        self, *, bounds: Bounds, epsilon: float, relation: Relation = "add/remove", granularity: float | None = None
    ) -> None:
        self._bounds = lower, upper = check_bounds(bounds)
        self._native = _native.Sum(
            epsilon=epsilon, lower=lower, upper=upper, relation=relation, granularity=granularity
        )
        self._relation = relation

    @property
    def bounds(self) -> Bounds:
        """The bounds, in the values' unit."""
        return self._bounds

    @property
    def sensitivity(self) -> float:
        """The most that one person can change the sum on the grid, in the values' unit."""
        return self._native.sensitivity

    @property
    def scale(self) -> float:
        """The scale of the noise, in the values' unit."""
        return self._native.scale

    @property
    def granularity(self) -> float:
        """The step of the grid, in the values' unit."""
        return self._native.granularity

    def release(self, column: Values, *, threads: int | None = None, rng: Rng = None) -> float:
        """Release the sum, a multiple of ``granularity`` as far as a double can hold it.

        Parameters
        ----------
        column : array_like of real numbers
        threads : int, optional
            At most the cores that the process may use. The default is all of them under "substitute", and one under
            "add/remove": there the number of rows is private, so the given number of threads is started for any number
            of rows.
        rng : as everywhere
        """
        shared = 1 if threads is None and self._relation == "add/remove" else threads
        return self._native.release(_interchange.floats(column), shared, rng)

    def _loss(self) -> PrivacyLoss:
        return LaplaceLoss(self.epsilon, round(self.sensitivity / self.granularity))

    def error(self, level: float = 0.95) -> float:
        """Bound the error from the noise by the smallest sufficient multiple of the granularity.

        It bounds the distance to the sum of the clamped and rounded values. Rounding changes each value by at most half
        a step more. The error from clamping is not included, since it is private.

        Parameters
        ----------
        level : as everywhere
        """
        return self._native.error(level)
