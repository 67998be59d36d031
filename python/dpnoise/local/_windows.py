"""Windows on whole numbers, as the specification of a protocol describes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Window(NamedTuple):
    """An output is one of ``width`` from a position on with probability ``kept``, otherwise any, each as likely."""

    k: int
    width: int
    kept: float
    replaced: float

    @classmethod
    def of(cls, k: int, width: int, keep: int, planes: int) -> Window:
        """Make a window with the numerator ``keep`` over 2**``planes``."""
        one = 1 << planes
        return cls(k, width, keep / one, (one - keep) / one)  # the second without cancellation

    @classmethod
    def of_specification(cls, fields: Mapping[str, int]) -> Window:
        """Make the window that a specification describes."""
        return cls.of(fields["k"], fields["width"], fields["keep"], fields["planes"])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self.k + self.width - 1

    def unbiased_values(self) -> NDArray[np.float64]:
        """Give for each output the number in [-1, 1] that it stands for: its expectation is the sender's."""
        outputs = np.arange(self.outputs)
        return np.asarray((2.0 * outputs - (self.outputs - 1)) / (self.kept * (self.k - 1)), np.float64)

    def variance(self, x: float) -> float:
        """Give the variance of the unbiased value for a sender with the number ``x``."""
        steps = self.k - 1
        upwards = math.modf((1.0 + x) / 2.0 * steps)[0]
        rounding = upwards * (1.0 - upwards)
        inside = (self.width**2 - 1) / 12.0 + rounding
        anywhere = (self.outputs**2 - 1) / 12.0
        between = self.kept * self.replaced * (x * steps / 2.0) ** 2
        return (self.kept * inside + self.replaced * anywhere + between) * (2.0 / (self.kept * steps)) ** 2

    def least_variance(self) -> float:
        """Give what that variance is at least: without rounding, and with the window in the middle."""
        inside, anywhere = (self.width**2 - 1) / 12.0, (self.outputs**2 - 1) / 12.0
        return (self.kept * inside + self.replaced * anywhere) * (2.0 / (self.kept * (self.k - 1))) ** 2

    def spread(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the probabilities of all outputs when the positions have those of ``shares``."""
        # Not differences of running sums: what cancels there is more than some of these probabilities are.
        moved = np.convolve(shares, np.ones(self.width))
        return np.asarray(self.replaced / self.outputs * shares.sum() + self.kept / self.width * moved)

    def gather(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give for each position the expectation of the ``weights`` of its outputs."""
        inside = np.convolve(weights, np.ones(self.width), mode="valid")
        return np.asarray(self.replaced / self.outputs * weights.sum() + self.kept / self.width * inside)
