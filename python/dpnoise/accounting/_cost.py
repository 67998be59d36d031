"""What a release costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpnoise._errors import ParameterError
from dpnoise._parameters import at_least, real


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
    TypeError
        When a value is not a real number.

    Notes
    -----
    A number that no float can hold is rounded up.

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
        epsilon, delta = _rounded_up(self.epsilon, "epsilon"), _rounded_up(self.delta, "delta")
        if not (math.isfinite(epsilon) and epsilon >= 0):
            raise ParameterError(f"epsilon must be zero or more and finite, got {epsilon!r}")
        if not 0 <= delta < 1:
            raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {delta!r}")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


def _rounded_up(value: float, name: str) -> float:
    real(value, name)  # refuses what is none
    return at_least(value)
