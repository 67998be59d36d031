"""Protocols for the mean of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise._display import Record
from dpnoise._interchange import Reals, Values
from dpnoise.local import _inputs
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._estimate import normal_quantile
from dpnoise.local._protocol import Protocol, Rng


class NumberProtocol(Protocol):
    """A protocol for one real number, whose reports are whole numbers as rows of bytes."""

    __slots__ = ()

    def perturb(
        self,
        values: Reals,
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise numbers, as each person's device does, for any number of people at once.

        Each report is epsilon-locally differentially private for the achieved ``epsilon``, provided that each person
        sends one. Time and memory addresses do not depend on numbers or reports.

        Parameters
        ----------
        values : array of numbers in the range of the protocol, shape (n,)
            Any floating-point or integer dtype, converted to float64, a list of numbers, or a column or tensor of
            another library: pandas, polars, Arrow data, DLPack. May be empty. The range is [0, 1] for `SquareWave`
            and [-1, 1] for the others, both ends included.
        out : ndarray of uint8, shape (n, report_bytes), optional
            A writable C-contiguous array to fill.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only. Its words are used in order on one thread, whatever ``threads`` says.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            Whole numbers in little-endian bytes; unused bits are zero.

        Raises
        ------
        ParameterError
            When a number is outside of the range, infinite or NaN (the message does not say which) or ``out`` does not
            fit; nothing has been drawn then.
        TypeError
            When the values are not numbers, or ``out`` is not an array of uint8.
        RandomnessError
            When the source of randomness fails; ``out`` is zero then.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[np.float64]:
        return _inputs.numbers(values)

    def _limits(self) -> tuple[float, float]:
        return -1.0, 1.0


@dataclass(frozen=True)
class MeanEstimate(Record):
    """The mean of people's numbers, estimated from their reports.

    Attributes
    ----------
    mean : float
        Unbiased. It is not clamped: for few people it may be outside of [-1, 1].
    standard_error : float
        The standard deviation of ``mean``. It covers the randomisation, and also the sampling of the people from a
        population. For the mean of exactly these people it is too large, and intervals hold more often than ``level``
        says, since it includes the spread of their numbers. That matters only where epsilon is so large that the spread
        is not small compared with the noise.
    lower, upper : float
        The ends of the confidence interval, by the normal approximation.
    n : int
        The number of reports counted; for an attribute of `Sampled` those about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The confidence level of the interval.
    """

    mean: float
    standard_error: float
    lower: float
    upper: float
    n: int
    rejected: int
    level: float


class MeanProtocol(NumberProtocol):
    """A protocol for the mean of numbers in [-1, 1], whose reports are unbiased estimates of them."""

    __slots__ = ()

    def estimate(
        self, collected: Accumulator | Values, *, level: float = 0.95, threads: int | None = None
    ) -> MeanEstimate:
        """Estimate the mean of people's numbers.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as `perturb` made them.
        level : float
            The confidence level of the interval, between 0 and 1.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        MeanEstimate

        Raises
        ------
        ParameterError
            When no report was counted, ``level`` is not between 0 and 1, or ``collected`` is of another protocol or
            shape.
        TypeError
            When the dtype is wrong.
        """
        quantile = normal_quantile(level)
        mean, error, n, rejected = self._collected(collected, threads)._state.estimate_mean()
        return MeanEstimate(mean, error, mean - quantile * error, mean + quantile * error, n, rejected, float(level))

    def variance(self, n: int, x: float) -> float:
        """Predict the variance of an estimated mean over the randomisation.

        Parameters
        ----------
        n : int
            The number of reports, at least 1.
        x : float
            The number that all these people have, from -1 to 1.

        Returns
        -------
        float
            The docstring of the class says where it is largest. For people with different numbers, average it over
            them.

        Raises
        ------
        ParameterError
            When a parameter is out of range.
        TypeError
            When a parameter is not a number.
        """
        return self._native.variance_of_mean(n, x)


class DuchiMean(MeanProtocol):
    """Duchi's mechanism: a number in [-1, 1] is rounded at random to -1 or 1, and that sign is randomised.

    The variance per person is ``((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 - x**2`` for a sender with the number
    ``x``: largest for 0, and never below 1 there. A report has one bit. It is the choice for epsilon below 0.61.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.
    TypeError
        When a parameter is of the wrong type.

    References
    ----------
    Duchi, Jordan and Wainwright (2018), "Minimax optimal procedures for locally private estimation".

    Examples
    --------
    >>> from dpnoise import local
    >>> local.DuchiMean(epsilon=1.0).report_bytes
    1
    """

    __slots__ = ()
    _family = "duchi_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._make(epsilon=epsilon)


class PiecewiseMean(MeanProtocol):
    """The piecewise mechanism: a number in [-1, 1] is moved at random, more often than not within a window around it.

    With ``s = exp(epsilon / 2)`` the variance per person is ``x**2 / (s - 1) + (s + 3) / (3 (s - 1)**2)`` for a sender
    with the number ``x``: largest for -1 and 1. For epsilon above 1.29 this largest variance is smaller than that of
    `DuchiMean`; for epsilon above 0.61 that of `HybridMean` is smaller than both.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.
    TypeError
        When a parameter is of the wrong type.

    Notes
    -----
    Numbers are rounded at random to a grid, without bias, and reports are one of up to 4096 whole numbers, of which
    the collector keeps a histogram. The proof page "Windows" has the definition and its exact variance, which is
    within 1 % of that of real numbers for epsilon up to 16, and below it for more.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), "Collecting and analyzing multidimensional data with local
    differential privacy", algorithm 2.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.PiecewiseMean(epsilon=2.0)
    >>> estimate = protocol.estimate(protocol.perturb([0.3, -0.5, 1.0] * 1000))
    >>> estimate.lower < estimate.mean < estimate.upper
    True
    """

    __slots__ = ()
    _family = "piecewise_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._make(epsilon=epsilon)


class HybridMean(MeanProtocol):
    """The hybrid mechanism: `PiecewiseMean` or `DuchiMean`, at random, each report by itself.

    With ``s = exp(epsilon / 2)`` the first is chosen with probability ``1 - 1 / s`` if epsilon is above 0.61, and never
    otherwise. If it is above, the variance per person is the same for all numbers, up to small terms:
    ``(s + 3) / (3 s (s - 1)) + ((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 / s``; its largest value is the smallest
    of the three mechanisms.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.
    TypeError
        When a parameter is of the wrong type.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), "Collecting and analyzing multidimensional data with local
    differential privacy", section III-C.

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HybridMean(epsilon=1.0).variance(n=1000, x=0.0) < local.DuchiMean(epsilon=1.0).variance(n=1000, x=0.0)
    True
    """

    __slots__ = ()
    _family = "hybrid_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._make(epsilon=epsilon)


class LaplaceMean(MeanProtocol):
    """The Laplace mechanism: a number in [-1, 1] plus Laplace noise of scale 2 / epsilon.

    The variance per person is ``8 / epsilon**2`` for every number; that of `HybridMean` is smaller for every epsilon.
    Noise is exact, on a grid that is finer than its scale by 2**15 or more. A report takes 4 bytes, and the collector
    keeps a single sum.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When ``epsilon`` is out of range.
    TypeError
        When a parameter is of the wrong type.

    Notes
    -----
    A sum does not show the spread of people's numbers. Standard errors assume the largest spread that numbers with this
    mean can have: they are too large by up to 6 % for epsilon = 1, and by more for a larger epsilon.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.LaplaceMean(epsilon=2.0)
    >>> round(protocol.variance(n=1, x=0.5), 6)
    2.0
    """

    __slots__ = ()
    _family = "laplace_mean"

    def __init__(self, *, epsilon: float) -> None:
        self._make(epsilon=epsilon)
