"""The bases of all queries, and of those whose answers are counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._codes import Coded
from dpnoise._columns import held_column
from dpnoise._numbers import share_of
from dpnoise._types import Number, Rng
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

    @abstractmethod
    def _read(self, column: Any, name: str = "column") -> Any:
        """Read a column once, as arrays with an entry for each row that `_released` takes, and check its type."""

    def _present(self, rows: Any) -> NDArray[np.bool_]:
        """Say which rows that were read count: the true ones for a count, and those that are not missing."""
        if isinstance(rows, Coded):
            return rows.codes >= 0
        if rows.dtype == np.bool_:
            return np.asarray(rows)
        return ~np.isnan(rows) if rows.dtype.kind == "f" else np.ones(len(rows), np.bool_)

    @abstractmethod
    def _released(self, rows: Any, threads: int | None, rng: Rng) -> Any:
        """Release the answer for rows that `_read` has given, or for some of them."""

    def _released_with_error(self, rows: Any, level: float, rng: Rng) -> tuple[Any, float | None]:
        """Release the answer, and a bound on its error from what is released: None where there is none in its unit."""
        return self._released(rows, None, rng), self.error(level)

    def _check_own(self, name: str) -> None:
        """Refuse a query of a class of the caller's, which may release something else than is asked here."""
        if not type(self).__module__.startswith("dpnoise."):
            raise TypeError(f"{name} must be a query of dpnoise, got its subclass {type(self).__name__}")

    def _check_level(self, level: float) -> None:
        """Refuse a level for which `_released_with_error` would have no bound, before anything is drawn."""
        self.error(level)

    @property
    def _range(self) -> tuple[float, float]:
        """The smallest and the largest answer."""
        return -math.inf, math.inf

    def _of_rows(self, most: int) -> Query:
        """Return the query that, for persons of whom at most so many rows are kept, has the guarantee of this one."""
        return type(self)(**{**self._values(), "epsilon": share_of(self.epsilon, most)})


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
