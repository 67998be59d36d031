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
        The share of people in each bin, not negative; the shares sum to 1.
    edges : ndarray of float64, shape (k + 1,)
        The ends of the bins, evenly spaced from 0 to 1.
    n, rejected : as everywhere
    smoothing : bool
        Whether neighbouring bins were smoothed in each step.
    """

    probabilities: NDArray[np.float64]
    edges: NDArray[np.float64]
    n: int
    rejected: int
    smoothing: bool

    def cdf(self) -> NDArray[np.float64]:
        """Return the share of people below each edge.

        Returns
        -------
        ndarray of float64, shape (k + 1,)
            From 0 to 1.
        """
        shares: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        return np.asarray(shares / shares[-1])

    def mean(self) -> float:
        """Compute the mean, as if all people of a bin were at its centre.

        For the mean alone `HybridMean` is more accurate, and unbiased.
        """
        return float(self.probabilities @ (self.edges[:-1] + self.edges[1:]) / 2.0)

    def quantile(self, q: ArrayLike) -> NDArray[np.float64]:
        """Compute the number below which each given share of people is, as if people were spread evenly over a bin.

        Parameters
        ----------
        q : float or array of floats
            Shares from 0 to 1.

        Returns
        -------
        ndarray of float64
            Of the shape of ``q``.
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

    A number is put into one of k bins. A report is one of ``k + 2 b`` bins, b more at either end; bins at most b away
    from the true one are ``exp(epsilon)`` times as likely as the others. The estimate is the distribution that
    maximises the likelihood of the reports.

    Parameters
    ----------
    k : int
        The number of bins, from 2 to 4096. More people allow for more bins; the paper has 256 to 1024 for 10**5 to
        10**6 people, and with smoothing too many do little harm.
    epsilon : as everywhere

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
        collected : as for `MeanProtocol.estimate`
        smoothing : bool
            Whether to smooth neighbouring bins with weights 1/4, 1/2, 1/4 after each step, as the authors recommend.
            Without it the estimate fits noise as well, but keeps peaks of single bins.
        threads : as everywhere

        Returns
        -------
        DensityEstimate

        Raises
        ------
        ParameterError
            When no report was counted.

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
