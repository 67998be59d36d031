"""Partition selection for a private set of groups, and buffers of noise for single numbers."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from functools import lru_cache, partial
from typing import Any, Final

from dpnoise import _native
from dpnoise._calls import hot
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real, real_down
from dpnoise._types import Integer, Number
from dpnoise.mechanisms._noise import RealNoise

# The safety margin: a share of epsilon and delta.
_MARGIN: Final = 2.0**-20
# For each group of a person: so that the margin is larger than the error of the probabilities, and that doubles hold
# these. More than the most is as good as infinite.
_LEAST_EPSILON: Final = 2.0**-20
_MOST_EPSILON: Final = 60
_LEAST_DELTA: Final = 2.0**-800
# The logarithm of a number near 1 loses digits: enough must remain for the smallest double.
_DELTA_DIGITS: Final = Context(prec=400, traps=[])
_DIGITS: Final = Context(prec=60, traps=[])


class TruncatedGeometric:
    """Partition selection that keeps as many groups as epsilon and delta allow.

    The set of groups is private, too: a group is released only if it is kept. All groups together are (epsilon,
    delta)-differentially private for neighbours that differ by one person.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: at least ``2**-20 * max_partitions_contributed``, and finite.
    delta : float
        The privacy parameter: 0, or at least ``2**-800 * max_partitions_contributed`` and at most 1. Choose it much
        smaller than one over the number of people.
    max_partitions_contributed : int, default 1
        The most groups that a person is in, from 1 to 2**63 - 1.

    Notes
    -----
    The probabilities are computed for an epsilon and a delta that are smaller by one part in 2**20, which is more than
    their rounding errors; the draw is exact for them.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam (2022), "Differentially private partition selection", Theorem 1.

    Examples
    --------
    >>> from dpnoise.mechanisms import TruncatedGeometric
    >>> selection = TruncatedGeometric(epsilon=1.0, delta=1e-5)
    >>> selection.should_keep(0), selection.should_keep(100)
    (False, True)
    """

    __slots__ = ("_delta", "_epsilon", "_max_partitions_contributed", "_native")

    def __init__(self, *, epsilon: Number, delta: Number, max_partitions_contributed: Integer = 1) -> None:
        partitions = integer(max_partitions_contributed, "max_partitions_contributed", range(1, 2**63))
        self._epsilon, self._delta = real_down(epsilon, "epsilon"), real_down(delta, "delta")
        self._max_partitions_contributed = partitions
        bound = f"max_partitions_contributed (which is {partitions})"
        if not _LEAST_EPSILON <= self.epsilon / partitions < math.inf:
            raise ParameterError(f"epsilon must be at least 2**-20 * {bound}, and finite, got {self.epsilon!r}")
        if self.delta != 0 and not _LEAST_DELTA * partitions <= self.delta <= 1:
            raise ParameterError(f"delta must be 0, or at least 2**-800 * {bound} and at most 1, got {self.delta!r}")
        self._native = _native.TruncatedGeometric(**_law(self.epsilon, self.delta, partitions))

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee for all groups together."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee for all groups together."""
        return self._delta

    @property
    def max_partitions_contributed(self) -> int:
        """The most groups that a person is in."""
        return self._max_partitions_contributed

    @hot
    def should_keep(self, num_users: Number) -> bool:
        """Decide at random whether a group is released.

        Parameters
        ----------
        num_users : int or float
            The number of people in the group: a whole number.

        Returns
        -------
        bool
            Whether the group is kept, and may be released.
        """
        kind = type(num_users)
        return self._native.should_keep(num_users if kind is int or kind is float else real(num_users, "num_users"))

    def _values(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ("epsilon", "delta", "max_partitions_contributed")}

    def __repr__(self) -> str:
        return f"TruncatedGeometric({', '.join(f'{name}={value!r}' for name, value in self._values().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(TruncatedGeometric, **self._values()), ()  # type: ignore[arg-type]


class NoiseBuffer:
    """A mechanism for one real number at a time, with its noise drawn in advance.

    A call costs as much privacy as a release of the mechanism, and takes a fraction of the time. Each call has noise of
    its own, which is overwritten when it is used; the child of a fork discards the noise that its parent has drawn.

    Parameters
    ----------
    mechanism : Laplace or Gaussian
        The mechanism whose noise is drawn.

    Examples
    --------
    >>> from dpnoise.mechanisms import Laplace, NoiseBuffer
    >>> buffer = NoiseBuffer(Laplace(epsilon=0.5))
    >>> noisy = [buffer.add_noise(count) for count in (120, 5, 0)]
    """

    __slots__ = ("_native",)

    def __init__(self, mechanism: RealNoise) -> None:
        if not isinstance(mechanism, RealNoise):
            raise TypeError(f"mechanism must be a Laplace or a Gaussian, got {type(mechanism).__name__}")
        self._native = _native.NoisyUsers(mechanism._native)

    @hot
    def add_noise(self, x: Number) -> float:
        """Release a number.

        Parameters
        ----------
        x : float
            The number to release, in the unit of the mechanism's sensitivity: finite.

        Returns
        -------
        float
            The noisy number: a multiple of the mechanism's ``granularity`` as far as a double can hold it.
        """
        try:
            return self._native.release(x if type(x) is float or type(x) is int else real(x, "x"))
        except (TypeError, ParameterError):
            real(x, "x")  # the native error names another parameter
            raise


@lru_cache(maxsize=256)
def _law(epsilon: float, delta: float, partitions: int) -> dict[str, Any]:
    """Return the law of Theorem 1 for slightly smaller parameters, so that doubles may be rounded: see the proofs."""
    safe = 1 - Decimal(_MARGIN)
    with localcontext(_DELTA_DIGITS):
        share = Decimal(delta)
        if 0 < delta < 1:
            share = safe * (1 - ((1 - share).ln() / partitions).exp())
    with localcontext(_DIGITS):
        least = math.nextafter(float(min(safe * Decimal(epsilon) / partitions, Decimal(_MOST_EPSILON))), 0.0)
        if not share:
            return {"epsilon": least, "turn": (1.0, 0.0), "start": (0.0, 0.0), "last": (0.0, 0.0)}
        exact = Decimal(least)
        grown = exact.exp()
        step = share / (grown - 1)
        reached = (1 + (grown - 1) / (grown + 1) * (1 / share - 1)).ln() / exact
        first = 1 + int(reached.to_integral_value(ROUND_FLOOR))
        dropped = 1 - ((first * exact).exp() - 1) * step
        turn = first if dropped >= Decimal("0.5") else first - 1
        further = ((dropped + step) / step).ln() / exact
        whole = int(further.to_integral_value(ROUND_FLOOR))
        return {
            "epsilon": least,
            "turn": (turn, float(step * (turn * exact).exp())),
            "start": (first, float(dropped + step)),
            "last": (first + whole, float((further - whole) * exact)),
        }
