"""Noisy means, of which means and variances are made."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnoise._native import ParameterError
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.queries._count import Count
from dpnoise.queries._sum import Sum
from dpnoise.sensitivity import Bounds, Relation


class Moments:
    """Noisy means of several numbers of each row, the i-th within +-bounds[i], for one epsilon."""

    __slots__ = ("_count", "_sums", "epsilon")

    def __init__(self, bounds: list[float], epsilon: float, relation: Relation) -> None:
        Count(epsilon=epsilon, relation=relation)  # checks what the user has given, not a part of it
        private_rows = relation == "add/remove"
        share = part_of(epsilon, len(bounds) + private_rows)
        self._sums = [Sum(bounds=(-bound, bound), epsilon=share, relation=relation) for bound in bounds]
        self._count = Count(epsilon=share, relation=relation) if private_rows else None
        self.epsilon = float(epsilon)

    def release(self, columns: list[NDArray[np.float64]], threads: int | None, rng: Rng) -> list[float]:
        """Release the means; what is missing is missing in all columns."""
        rows = len(columns[0])
        if self._count is not None:
            rows = max(1, self._count.release(columns[0], rng=rng))
        elif rows == 0:
            raise ParameterError("column must have rows")
        sums = zip(self._sums, columns, strict=True)
        return [one.release(column, threads=threads, rng=rng) / rows for one, column in sums]


def middle(bounds: Bounds) -> float:
    """Give the middle of the bounds."""
    return bounds[0] / 2 + bounds[1] / 2


def part_of(epsilon: float, parts: int) -> float:
    """Give a part of epsilon, so that all parts are no more than the whole."""
    share = epsilon / parts
    return math.nextafter(share, 0.0) if Fraction(share) * parts > Fraction(epsilon) else share
