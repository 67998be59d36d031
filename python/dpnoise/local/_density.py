"""The square wave: a protocol for the distribution of numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._display import Column
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._estimate import Tabular
from dpnoise.local._numbers import NumberProtocol


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DensityEstimate(Tabular):
    """How people's numbers in [0, 1] are distributed, estimated from their reports.

    As a table it has the columns lower and upper (the ends of a bin) and probability, all float64.

    Attributes
    ----------
    probabilities : ndarray of float64, shape (k,)
        The share of people in each bin, not negative; their sum is 1. Read-only, as are the edges.
    edges : ndarray of float64, shape (k + 1,)
        The ends of the bins, evenly spaced from 0 to 1.
    n : int
        The number of reports counted; for an attribute of `Sampled` those about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    smoothing : bool
        Whether neighbouring bins were smoothed in each step.
    """

    probabilities: NDArray[np.float64]
    edges: NDArray[np.float64]
    n: int
    rejected: int
    smoothing: bool

    def cdf(self) -> NDArray[np.float64]:
        """Give the share of people below each edge.

        Returns
        -------
        ndarray of float64, shape (k + 1,)
            From 0 to 1.
        """
        shares: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        return np.asarray(shares / shares[-1])

    def mean(self) -> float:
        """Give the mean, with each bin's people taken to be at its centre.

        Returns
        -------
        float
            For the mean alone `HybridMean` is more accurate, and unbiased.
        """
        return float(self.probabilities @ (self.edges[:-1] + self.edges[1:]) / 2.0)

    def quantile(self, q: ArrayLike) -> NDArray[np.float64]:
        """Give the numbers below which the given shares of people are, with each bin's people spread evenly over it.

        Parameters
        ----------
        q : float or array of floats
            Shares from 0 to 1.

        Returns
        -------
        ndarray of float64
            Of the shape of ``q``.

        Raises
        ------
        ParameterError
            When a share is not between 0 and 1.
        TypeError
            When ``q`` is not made of numbers.
        """
        shares = np.asarray(q)
        if shares.dtype.kind not in "iuf":
            raise TypeError(f"q must be a number or an array of numbers, got dtype {shares.dtype}")
        if not np.all((shares >= 0) & (shares <= 1)):
            raise ParameterError("q must be between 0 and 1, in every element")
        return np.asarray(np.interp(shares, self.cdf(), self.edges))

    def _columns(self) -> dict[str, Column]:
        return {"lower": self.edges[:-1], "upper": self.edges[1:], "probability": self.probabilities}


class SquareWave(NumberProtocol):
    """The square wave mechanism: numbers in [0, 1] are moved at random, to estimate their distribution.

    A number is put into one of k bins. A report is one of ``k + 2 b`` bins, b more at either end; those at most b away
    from the true one are ``exp(epsilon)`` times as likely as the others. The estimate is the distribution that
    maximises the likelihood of the reports.

    Parameters
    ----------
    k : int
        The number of bins, from 2 to 4096. More people allow for more bins; the paper has 256 to 1024 for 10**5 to
        10**6 people, and with smoothing too many do little harm.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    TypeError
        When a parameter is of the wrong type.

    Notes
    -----
    ``b / k`` is, rounded down to whole bins, ``(epsilon e - e + 1) / (2 e (e - 1 - epsilon))`` with
    ``e = exp(epsilon)``, which maximises the mutual information of number and report.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li (2020), "Estimating numerical distributions under local differential
    privacy", section 5; here numbers are put into bins before they are randomised.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SquareWave(k=64, epsilon=1.0)
    >>> found = protocol.estimate(protocol.perturb([0.2, 0.3, 0.9] * 1000))
    >>> round(float(found.probabilities.sum()), 9)
    1.0
    """

    __slots__ = ()
    _family = "square_wave"

    def __init__(self, *, k: int, epsilon: float) -> None:
        self._make(k=k, epsilon=epsilon)

    @property
    def k(self) -> int:
        """The number of bins."""
        return self._native.k

    def _limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    def estimate(
        self, collected: Accumulator | Values, *, smoothing: bool = True, threads: int | None = None
    ) -> DensityEstimate:
        """Estimate how people's numbers are distributed.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as `perturb` made them.
        smoothing : bool
            Whether to smooth neighbouring bins with weights 1/4, 1/2, 1/4 after each step, as the authors recommend.
            Without it the estimate fits noise as well, but keeps peaks of single bins.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        DensityEstimate

        Raises
        ------
        ParameterError
            When no report was counted, or ``collected`` is of another protocol or shape.
        TypeError
            When the dtype is wrong, or ``smoothing`` is not a bool.

        Notes
        -----
        Expectation maximisation stops when the log-likelihood changes by less than 0.001, or without smoothing by less
        than 0.001 exp(epsilon) (as in the paper, with epsilon at most 2.5, the largest of its experiments), or after
        10000 steps. The same counts always give the same result.
        """
        if not isinstance(smoothing, bool | np.bool_):
            raise TypeError(f"smoothing must be a bool, got {type(smoothing).__name__}")
        state = self._collected(collected, threads)._state
        probabilities, n, rejected = state.estimate_density(bool(smoothing))
        edges = np.linspace(0.0, 1.0, self.k + 1)
        for array in (probabilities, edges):
            array.flags.writeable = False
        return DensityEstimate(probabilities, edges, n, rejected, bool(smoothing))
