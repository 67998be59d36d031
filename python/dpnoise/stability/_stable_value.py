from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

from dpnoise._parameters import Rng
from dpnoise.stability._mechanism import Release, StableMechanism, released, stability_test


class StableValue(StableMechanism):
    """The exact value, if the data are far from any with a different value.

    Discrete Laplace noise of scale 1 / epsilon is added to the distance to instability. The value is released when the
    sum is above the smallest t >= 0 that the noise alone exceeds with a probability of at most delta. The release is
    (epsilon, delta)-differentially private if the distance has the properties that `release` asks for.

    Parameters
    ----------
    epsilon, delta : float
        Epsilon is from 2**-40 to 2**40. Delta is between 0 and 1, and should be much smaller than one over the number
        of people.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13 and Theorem 7.3; Smith
    and Thakurta (2013), "Differentially private feature selection via stability arguments, and the robustness of the
    lasso".

    Examples
    --------
    >>> votes = {"tea": 9000, "coffee": 4000}
    >>> gap = votes["tea"] - votes["coffee"]  # one vote more or less changes it by at most 1
    >>> stability.StableValue(epsilon=1.0, delta=1e-6).release(("tea", gap - 1))
    'tea'
    """

    __slots__ = ()

    _parameters = ("epsilon", "delta")

    def __init__(self, *, epsilon: float, delta: float) -> None:
        self._native = stability_test(epsilon, delta)

    def release(self, x: tuple[Any, int], *, rng: Rng = None) -> Any:
        """Release a value if its distance to instability passes the test, None otherwise.

        Parameters
        ----------
        x : (object, int)
            The exact answer for the data, and its distance to instability: an integer that changes by at most 1 between
            neighbours and is 0 or less if any neighbour has a different answer. The neighbouring relation is the one
            for which this holds.
        """
        return self._attempt(x, rng).value

    def _attempt(self, x: tuple[Any, int], rng: Rng) -> Release:
        if not isinstance(x, tuple) or len(x) != 2:
            raise TypeError("x must be a tuple of two: the value, and its distance to instability")
        value, distance = x
        return released(value, integer(distance), self._native, rng)


def integer(distance: Any, verb: str = "be") -> int:
    """Convert a distance to an int, clamped to 64 bits, which keeps its sensitivity; no message may show it."""
    found = None
    if not isinstance(distance, bool):
        with suppress(Exception):  # the object may raise any
            found = operator.index(distance)
    if found is None:
        raise TypeError(f"distance must {verb} an int, got {type(distance).__name__}")
    return max(-(2**63), min(found, 2**63 - 1))
