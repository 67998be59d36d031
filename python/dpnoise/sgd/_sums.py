"""Noise for sums of gradients that another library has made."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import dtype_of
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real_up
from dpnoise._types import Integer, Number, Rng
from dpnoise.sgd._strategy import ONE, BandedToeplitz

_BITS: Final = range(36, 41)  # stddev is at most 2 to the power of one of these in units
_SPARE: Final = 63 - 6  # a sum in the recursion has 63 bits, and room for 64 standard deviations
_UNLIMITED: Final = range(2**31 - 1)  # steps of independent noise, which 32 bits count


class Sums:
    """Noise for sums, independent or correlated between steps: what `FloatSums` and `IntegerSums` share."""

    __slots__ = ("_granularity", "_native", "_stddev", "_strategy")

    _native: _native.FloatSums | _native.IntegerSums
    _granularity: float
    _dtypes: tuple[str, ...]

    def __init__(self, strategy: BandedToeplitz | None, stddev: Number) -> None:
        if not isinstance(strategy, BandedToeplitz | None):
            raise TypeError(f"strategy must be a BandedToeplitz, got {type(strategy).__name__}")
        self._strategy, self._stddev = strategy, real_up(stddev, "stddev")

    @property
    def strategy(self) -> BandedToeplitz | None:
        """The strategy; None for independent noise."""
        return self._strategy

    @property
    def stddev(self) -> float:
        """The standard deviation of the independent noise."""
        return self._stddev

    @property
    def granularity(self) -> float:
        """The step of the grid of the sums."""
        return self._granularity

    def history_length(self, d: Integer) -> int:
        """Return the length of the history, the noise that the next steps need; 0 for independent noise.

        Parameters
        ----------
        d : int
            The number of numbers in a sum, zero or more.
        """
        return self._native.history_length(integer(d, "d", range(2**53)))

    def add_noise(
        self,
        sums: NDArray[Any],
        history: NDArray[np.int64],
        step: Integer,
        *,
        threads: int | None = None,
        rng: Rng = None,
    ) -> None:
        """Add the noise of a step to the sums, in their place.

        Parameters
        ----------
        sums : ndarray of float32 or float64, or of int64 for `IntegerSums`, shape (d,)
            C-contiguous and writable. NaN and infinities count as zero.
        history : ndarray of int64, shape (history_length(d),)
            C-contiguous and writable: zeros before the first step, and then the array as the step before has left it.
            **It is secret**: whoever has it can subtract that noise from what was released, and whoever can change it
            chooses what later steps take back.
        step : int
            The number of the step, from 0 and below the number of steps.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Raises
        ------
        RandomnessError
            When the source of randomness fails. The sums are zeros then.
        """
        if not isinstance(sums, np.ndarray) or sums.dtype not in self._dtypes:
            found = f"dtype {dtype_of(sums)}" if isinstance(sums, np.ndarray) else type(sums).__name__
            raise TypeError(f"sums must be a NumPy array of dtype {' or '.join(self._dtypes)}, got {found}")
        allowed = _UNLIMITED if self._strategy is None else range(self._strategy.steps)
        self._native.release(history, integer(step, "step", allowed), sums, threads, rng)

    def _recursion(self) -> tuple[tuple[int, ...], float]:
        """Return the numerators of the coefficients, and the largest norm of a row of the inverse."""
        return ((ONE,), 1.0) if self._strategy is None else (self._strategy._numerators, self._strategy._gain())


class FloatSums(Sums):
    """Noise for sums in floating point that another library has made; the caller answers for their sensitivity.

    A sum is rounded to a grid, and the noise is in whole steps of a grid that is 2**12 times finer. `NoisyGradient` and
    `CorrelatedGradient` clip and add up themselves, and their sums are exact.

    Parameters
    ----------
    strategy : BandedToeplitz, optional
        How the noise of the steps is correlated: it is the product of the inverse of the strategy and independent
        noise. Independent when not given, for any number of steps up to 2**31 - 1.
    stddev : float
        The standard deviation of the independent noise, from 2**-80 to 2**80: the noise multiplier, times the
        sensitivity of the strategy, times the sensitivity of a sum.

    Attributes
    ----------
    granularity : float
        The step of the grid of the sums, a power of two from 2**-28 to 2**-23 of ``stddev``.

    Raises
    ------
    ParameterError
        When the recursion of the strategy leaves too few of 64 bits for ``stddev``.

    Notes
    -----
    All steps together are S**2 / (2 stddev**2)-zCDP, where S is the sensitivity of the strategy times the largest L2
    norm by which an example changes a sum on the grid: the norm by which it changes the sum in memory, and less than
    sqrt(d) steps of the grid more for d numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import BandedToeplitz, FloatSums, SingleEpoch
    >>> strategy = BandedToeplitz([1.0, 0.5, 0.375], steps=100)
    >>> noise = FloatSums(strategy, stddev=1.1 * strategy.sensitivity(SingleEpoch()))
    >>> history = np.zeros(noise.history_length(3), np.int64)
    >>> for step in range(2):
    ...     sums = np.ones(3, np.float32)  # of gradients of an L2 norm of at most 1
    ...     noise.add_noise(sums, history, step)
    """

    __slots__ = ()
    _dtypes = "float32", "float64"

    def __init__(self, strategy: BandedToeplitz | None = None, *, stddev: Number) -> None:
        super().__init__(strategy, stddev)
        if not 2.0**-80 <= self._stddev <= 2.0**80:
            raise ParameterError(f"stddev must be from 2**-80 to 2**80, got {stddev!r}")
        numerators, gain = self._recursion()
        recalled = max(1, sum(numerators[1:]))
        bits = math.floor(min(_BITS[-1], _SPARE - math.log2(recalled)) - math.log2(gain))
        if bits not in _BITS:
            raise ParameterError(
                f"strategy must be one whose recursion in 64 bits leaves {_BITS[0]} of them for stddev, got one that "
                f"leaves {bits}: take fewer bands, or coefficients that decrease faster"
            )
        exponent = math.frexp(self._stddev)[1] - bits
        self._granularity = math.ldexp(ONE, exponent)
        self._native = _native.FloatSums(numerators, math.ldexp(self._stddev, -exponent), gain, self._granularity)


class IntegerSums(Sums):
    """Noise for sums of integers that another library has made; the caller answers for their sensitivity.

    Nothing is rounded before the noise is added: independent noise is in whole numbers. Correlated noise is in units of
    2**-12, and the noisy sums are rounded to whole numbers, half up.

    Parameters
    ----------
    strategy : BandedToeplitz, optional
        How the noise of the steps is correlated: it is the product of the inverse of the strategy and independent
        noise. Independent when not given, for any number of steps up to 2**31 - 1.
    stddev : float
        The standard deviation of the independent noise: the noise multiplier, times the sensitivity of the strategy,
        times the sensitivity of a sum. From 1 to 2**44, or 2**32 with a strategy of several bands, and less if the
        noise of late steps is made of the noise of many steps before.

    Attributes
    ----------
    granularity : float
        The step of the grid of the sums, which is 1.

    Notes
    -----
    All steps together are S**2 / (2 stddev**2)-zCDP, where S is the sensitivity of the strategy times the largest L2
    norm by which an example changes a sum.

    Sums are modulo 2**64. With several bands, they are modulo 2**52, and from -2**51 to 2**51 - 1.

    Examples
    --------
    >>> from numpy import full, int64, zeros
    >>> from dpnoise.sgd import IntegerSums
    >>> sums = full(3, 2**20)  # of rows of integers of an L2 norm of at most 2**20
    >>> IntegerSums(stddev=1.1 * 2**20).add_noise(sums, zeros(0, int64), step=0)
    """

    __slots__ = ()
    _dtypes = ("int64",)

    def __init__(self, strategy: BandedToeplitz | None = None, *, stddev: Number) -> None:
        super().__init__(strategy, stddev)
        numerators, gain = self._recursion()
        self._granularity = 1.0
        self._native = _native.IntegerSums(numerators, self._stddev, gain)
