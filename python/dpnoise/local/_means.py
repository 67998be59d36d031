"""What the protocols for means have in common: the law of their estimates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise._parameters import integer, real
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._estimate import normal_quantile
from dpnoise.local._numbers import NumberProtocol


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of people's numbers, estimated from their reports.

    Attributes
    ----------
    mean : float
        Unbiased. It is not clipped: for few people it may be outside of [-1, 1].
    standard_error : float
        The standard deviation of ``mean``. It covers the randomisation, and also who was asked, if these people are a
        random sample of those whom the mean is about. If it is about exactly these people, the standard error is too
        large, and intervals hold more often than they say: their numbers' own spread is counted. That matters only
        where epsilon is large, so that the spread is not small beside the noise.
    lower, upper : float
        The ends of the confidence interval, by the normal approximation.
    n : int
        The number of reports counted.
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
    """A protocol for the mean of numbers in [-1, 1], each report of which stands for a number without bias."""

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
            When no report was counted, ``level`` is not between 0 and 1, or what was collected is of another protocol
            or shape.
        TypeError
            When the dtype is another.
        """
        quantile = normal_quantile(level)
        counters, n, rejected = self._collected(collected, threads)._state.counters()
        if n == 0:
            raise ParameterError("collected must have at least one report, got none")
        mean, square = self._moments(counters, n)
        # The true mean is within [-1, 1]. And no few reports that happen to be alike make it look certain: the
        # randomisation alone has a variance that is known.
        variance = max(square - min(max(mean, -1.0), 1.0) ** 2, self._least_variance())
        error = math.sqrt(variance / n)
        return MeanEstimate(mean, error, mean - quantile * error, mean + quantile * error, n, rejected, float(level))

    def variance(self, n: int, x: float) -> float:
        """Predict the variance of an estimated mean over the randomisation.

        Parameters
        ----------
        n : int
            The number of reports, at least 1.
        x : float
            The number of all these people, from -1 to 1.

        Returns
        -------
        float
            The class says where it is largest. For people with different numbers it is the mean of their variances.

        Raises
        ------
        ParameterError
            When a parameter is out of range.
        """
        people = integer(n, "n", range(1, 2**64))
        number = real(x, "x")
        if not -1.0 <= number <= 1.0:
            raise ParameterError(f"x must be between -1 and 1, got {x!r}")
        return self._variance_of_one(number) / people

    @abstractmethod
    def _moments(self, counters: NDArray[np.uint64], n: int) -> tuple[float, float]:
        """Give the means of the numbers that reports stand for and, at least, of their squares."""

    @abstractmethod
    def _variance_of_one(self, x: float) -> float:
        """Give the variance of the number that a report stands for, for a sender with the number ``x``."""

    @abstractmethod
    def _least_variance(self) -> float:
        """Give what that variance is at least, whatever ``x`` is."""
