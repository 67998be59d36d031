"""The bases of mechanisms that choose among candidates by their scores."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import Reals
from dpnoise._parameters import Rng, doubles, reals_of
from dpnoise.mechanisms._mechanism import Mechanism


class SelectionMechanism(Mechanism):
    """A mechanism that rounds scores to a grid and chooses among them."""

    __slots__ = ()

    _native: _native.Selection

    _parameters: ClassVar[tuple[str, ...]] = ("epsilon", "sensitivity", "monotonic")

    @property
    def sensitivity(self) -> float:
        """The most that a score changes between neighbours."""
        return self._native.sensitivity

    @property
    def monotonic(self) -> bool:
        """Whether all scores change in the same direction."""
        return self._native.monotonic

    @property
    def scale(self) -> float:
        """The scale, in the scores' unit: a score that is lower by the scale has a weight that is e times smaller."""
        return self._native.scale

    @property
    def granularity(self) -> float:
        """The step of the grid that scores are rounded to, a power of two near ``scale / 2**40``."""
        return self._native.granularity

    def error(self, count: int, level: float = 0.95) -> float:  # type: ignore[override]
        """Bound how far a chosen score is below the best one.

        For `TopK` it is the distance to the best remaining score, for each choice. The bound is ``scale * ln(count / (1
        - level))``, and a step for the rounding.

        Parameters
        ----------
        count : int
            The number of candidates; positive.
        level : as everywhere
        """
        return self._native.error(count, level)

    def _choices(self, scores: Any, rng: Rng) -> list[int]:
        return self._native.release(_scores(scores), rng)


class OneOfMany(SelectionMechanism):
    """A mechanism that chooses one candidate."""

    __slots__ = ()

    def release(self, scores: Reals, *, rng: Rng = None) -> int:
        """Choose a candidate, and return its index.

        Parameters
        ----------
        scores : array_like
            A finite real number for each candidate, of one dimension; higher is better. Integers up to 2**53 in
            magnitude. Scores more than 2**51 steps of the grid below the best one are clamped to that distance.
        rng : as everywhere
        """
        return self._choices(scores, rng)[0]


def _scores(scores: Any) -> NDArray[np.float64]:
    """Take scores as a contiguous float64 array, exactly; no message may show a score."""
    given = reals_of(scores, "scores")
    if given.ndim != 1:
        raise ParameterError(f"scores must have one dimension, got {given.ndim}")
    return doubles(given)
