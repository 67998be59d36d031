"""The bases of all queries, and of those whose answers are counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpnoise._columns import held_column
from dpnoise._types import Number
from dpnoise.accounting import PrivacyCost, PrivacyLoss
from dpnoise.mechanisms import DiscreteLaplace, Mechanism
from dpnoise.sensitivity import Relation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Released = TypeVar("Released", default=Any)
else:  # before Python 3.13 it has no default
    from typing import TypeVar

    Released = TypeVar("Released")


class Query(Mechanism):
    """A mechanism that takes a column."""

    __slots__ = ("_relation",)

    _relation: Relation

    @property
    def relation(self) -> Relation:
        """The neighbouring relation, "add/remove" or "substitute"."""
        return self._relation

    def _threads(self, threads: int | None) -> int | None:
        """Return the threads of a call: one by default where the number of rows is private."""
        return 1 if threads is None and self._relation == "add/remove" else threads

    def _held(self, x: Any) -> Any:
        return held_column(x, "column")


class CountingQuery(Query):
    """A query whose answers are counts with discrete Laplace noise."""

    __slots__ = ("_noise",)

    _noise: DiscreteLaplace

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._noise.epsilon

    @property
    def scale(self) -> float:
        """The scale of the noise of a count."""
        return self._noise.scale

    def _loss(self) -> PrivacyLoss | PrivacyCost:
        return self._noise._loss()

    def error(self, level: Number = 0.95) -> float:
        """Bound the error of each count from the noise, by the smallest sufficient whole number.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._noise.error(level)
