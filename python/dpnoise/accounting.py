"""What a release costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpnoise._native import ParameterError

__all__ = ["PrivacyCost"]


@dataclass(frozen=True)
class PrivacyCost:
    """A guarantee of (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        Zero or more, finite.
    delta : float, default 0
        From 0 up to, but not including, 1.

    Raises
    ------
    ParameterError
        When a value is out of range.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> Laplace(epsilon=0.5).cost
    PrivacyCost(epsilon=0.5, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ParameterError(f"epsilon must be zero or more and finite, got {self.epsilon!r}")
        if not 0 <= self.delta < 1:
            raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {self.delta!r}")
