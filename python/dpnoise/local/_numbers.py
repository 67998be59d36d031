"""Protocols for a real number: means, and densities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._arrays import dtype_of, vector_of_reals
from dpnoise._display import Column, Record, Tabular
from dpnoise._errors import ParameterError
from dpnoise._native import LocalAccumulator
from dpnoise._numbers import real
from dpnoise._types import Integer, Items, Number, Real, Reals, Rng, Values
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._doubt import are_unlikely, is_rare, laplace_exponent
from dpnoise.local._estimate import normal_quantile
from dpnoise.local._protocol import Protocol
from dpnoise.sensitivity import check_bounds

if TYPE_CHECKING:
    from dpnoise.sensitivity import Bounds


def _chances_of_window(keep: int, planes: int, width: int, outputs: int) -> NDArray[np.float64]:
    """Return the chance of an output that is not in the window, and of one that is."""
    kept = keep / 2**planes
    other = (1 - kept) / outputs
    return np.array([other, other + kept / width])


class NumberProtocol(Protocol):
    """A protocol for one real number, whose reports are whole numbers as rows of bytes."""

    __slots__ = ()

    def perturb(
        self,
        values: Reals | Items[Real | Decimal],
        *,
        out: NDArray[np.uint8] | None = None,
        threads: int | None = None,
        rng: Rng = None,
    ) -> NDArray[np.uint8]:
        """Randomise numbers, as each person's device does, for any number of people at once.

        Each report is (epsilon, delta)-locally differentially private for the achieved ``epsilon`` and ``delta``, which
        is 0 except for `GaussianMean`, provided that each person sends one. Time and memory addresses do not depend on
        numbers or reports.

        Parameters
        ----------
        values : array of numbers in the range of the protocol, shape (n,)
            A number for each person: an array of any floating-point or integer dtype, converted to float64, a list of
            numbers, or a column or tensor of another library: pandas, polars, Arrow data, DLPack. Decimals are the
            nearest doubles. May be empty. The range is [0, 1] for `SquareWave` and [-1, 1] for the others, both ends
            included; where a protocol has bounds, numbers are clamped to them.
        out : ndarray of uint8, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can undo the randomisation.
            By default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person: whole numbers in little-endian bytes; unused bits are zero.
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[np.float64]:
        return vector_of_reals(values)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        # Each counter is of an output, which is in the window of a number or not.
        counters, n, _ = state.counters()
        low, high = self._chances(self._specified(), len(counters))
        return are_unlikely(counters, n, low, high)

    def _chances(self, fields: Mapping[str, Any], outputs: int) -> NDArray[np.float64]:
        """Return the least and the largest chance of an output, for all outputs or for each."""
        return _chances_of_window(fields["keep"], fields["planes"], fields["width"], outputs)

    def _limits(self) -> tuple[float, float]:
        return -1.0, 1.0


@dataclass(frozen=True)
class MeanEstimate(Record):
    """The mean of people's numbers, estimated from their reports.

    Attributes
    ----------
    mean : float
        The estimated mean, unbiased. It is not clamped: for few people it may be outside of the bounds.
    standard_error : float
        The standard deviation of ``mean``. It covers the randomisation, and also the sampling of the people from a
        population. For the mean of exactly these people it is too large, and intervals hold more often than ``level``
        says, since it includes the spread of their numbers. That matters only where epsilon is so large that the spread
        is not small compared with the noise.
    lower, upper : float
        The ends of the confidence interval, by the normal approximation.
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
    rejected : int
        The number of malformed reports, which were not counted.
    level : float
        The probability with which the interval holds.
    """

    mean: float
    standard_error: float
    lower: float
    upper: float
    n: int
    rejected: int
    level: float


class MeanProtocol(NumberProtocol):
    """A protocol for the mean of numbers in [-1, 1], whose reports are unbiased estimates of the numbers.

    A report is epsilon-locally differentially private for the achieved ``epsilon``; a report of `GaussianMean` is
    (epsilon, delta)-locally differentially private. With ``bounds``, given to the class or to `about`, numbers are
    within these instead.
    """

    __slots__ = ()

    _domain: tuple[float, float] | None

    def _make_within(self, bounds: Bounds | None, **arguments: Number) -> None:
        self._domain = None if bounds is None else self._domain_of(bounds)
        self._make(**arguments)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The numbers that -1 and 1 stand for in reports; None if it is these."""
        return self._domain

    def about(self, *, question: str | None = None, period: str | None = None, bounds: Bounds | None = None) -> Self:
        """Make the same randomiser for another collection, whose reports are never counted as those of this one.

        All of it is public, and part of the specification.

        Parameters
        ----------
        question : str, optional
            What is asked, of whom and by whom: from 1 to 255 bytes of UTF-8, in Unicode's normal form NFC. It stays the
            same as long as people may be asked again. By default that of this object.
        period : str, optional
            The time in which each person sends one report, from 1 to 63 bytes: by custom a week as ``"2026-W48"`` or a
            month as ``"2026-11"``. By default that of this object.
        bounds : pair of float, optional
            The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
            Numbers are clamped to them, and the mean is in their unit. By default those of this object.

        Returns
        -------
        MeanProtocol
            A protocol of the same class.

        Raises
        ------
        ParameterError
            When a text has another length, a space at either end, characters that are not seen, or is not in NFC; or
            when bounds are not two finite numbers, the lower one first.

        Examples
        --------
        >>> from dpnoise import local
        >>> ages = local.DuchiMean(epsilon=1.0).about(question="age in years", bounds=(0, 100))
        >>> ages
        DuchiMean(bounds=(0.0, 100.0), epsilon=1.0).about(question='age in years')
        """
        return self._renewed(question, period, None if bounds is None else self._domain_of(bounds))

    @classmethod
    def _domain_of(cls, given: Any) -> tuple[float, float]:
        lower, upper = check_bounds(given)
        return lower + 0.0, upper + 0.0  # 0 for -0

    def _vector(self, values: Any) -> NDArray[np.float64]:
        vector = super()._vector(values)
        if self._domain is not None and np.isnan(vector).any():
            raise ParameterError("values must be numbers, and none of them NaN")
        self._native.to_positions(vector)
        return vector

    def estimate(
        self, collected: Accumulator | Values, *, level: Number = 0.95, threads: int | None = None
    ) -> MeanEstimate:
        """Estimate the mean of people's numbers from at least one report.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        level : float, default 0.95
            The probability with which the interval holds: between 0 and 1, both excluded.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        MeanEstimate
            The mean with its interval.

        Raises
        ------
        ParameterError
            When no report was counted.
        """
        quantile = normal_quantile(level)
        position, spread, n, rejected = self._collected(collected, threads)._for_estimate().estimate_mean()
        middle, half = self._native.scale
        mean, error = middle + half * position, half * spread
        return MeanEstimate(mean, error, mean - quantile * error, mean + quantile * error, n, rejected, float(level))

    def variance(self, n: Integer, x: Number) -> float:
        """Predict the variance of an estimated mean over the randomisation.

        The class says for which number it is largest. For people with different numbers, average it over them.

        Parameters
        ----------
        n : int
            The number of reports, from 1 to 2**64 - 1.
        x : float
            The number that all these people have: from -1 to 1, or within the bounds.
        """
        position, factor = self._at(x, "x")
        return factor * self._native.variance_of_mean(n, position)

    def _at(self, number: Number, name: str) -> tuple[Number, float]:
        """Return where a number that people have is between -1 and 1, and the factor of variances."""
        middle, half = self._native.scale
        if self._domain is None:
            return number, 1.0
        lower, upper = self._domain
        given = real(number, name)
        if not lower <= given <= upper:
            raise ParameterError(f"{name} must be between {lower!r} and {upper!r}, got {given!r}")
        return min(1.0, max(-1.0, (given - middle) / half)), half * half


class DuchiMean(MeanProtocol):
    """Duchi's mechanism: a number in [-1, 1] is rounded at random to -1 or 1, and that sign is randomised.

    A report is epsilon-locally differentially private. The variance per person is
    ``((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 - x**2`` for a sender with the number ``x``: largest for 0, and never
    below 1 there. A report has one bit. It is the choice for epsilon below 0.61.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    bounds : pair of float, optional
        The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
        Numbers are clamped to them, and estimates are in their unit. By default numbers are in [-1, 1].

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

    def __init__(self, *, epsilon: Number, bounds: Bounds | None = None) -> None:
        self._make_within(bounds, epsilon=epsilon)


class PiecewiseMean(MeanProtocol):
    """The piecewise mechanism: a number in [-1, 1] is moved at random, more often than not within a window around it.

    A report is epsilon-locally differentially private. With ``s = exp(epsilon / 2)`` the variance per person is
    ``x**2 / (s - 1) + (s + 3) / (3 (s - 1)**2)`` for a sender with the number ``x``: largest for -1 and 1. For epsilon
    above 1.29 this largest variance is smaller than the largest variance of `DuchiMean`; for epsilon above 0.61
    `HybridMean` has a smaller one than both.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    bounds : pair of float, optional
        The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
        Numbers are clamped to them, and estimates are in their unit. By default numbers are in [-1, 1].

    Notes
    -----
    Numbers are rounded at random to a grid, without bias, and reports are one of up to 4096 whole numbers, of which the
    collector keeps a histogram. The proof page "Windows" has the definition and its exact variance, which is within 1 %
    of the variance without a grid for epsilon up to 16, and below it for more.

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

    def __init__(self, *, epsilon: Number, bounds: Bounds | None = None) -> None:
        self._make_within(bounds, epsilon=epsilon)


class HybridMean(MeanProtocol):
    """The hybrid mechanism: `PiecewiseMean` or `DuchiMean`, at random, each report by itself.

    A report is epsilon-locally differentially private. With ``s = exp(epsilon / 2)``, `PiecewiseMean` is chosen with
    probability ``1 - 1 / s`` if epsilon is above 0.61, and never otherwise. If it is above, the variance per person is
    the same for all numbers, up to small terms:
    ``(s + 3) / (3 s (s - 1)) + ((exp(epsilon) + 1) / (exp(epsilon) - 1))**2 / s``; its largest value is the smallest of
    the three mechanisms.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    bounds : pair of float, optional
        The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
        Numbers are clamped to them, and estimates are in their unit. By default numbers are in [-1, 1].

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

    def __init__(self, *, epsilon: Number, bounds: Bounds | None = None) -> None:
        self._make_within(bounds, epsilon=epsilon)

    def _chances(self, fields: Mapping[str, Any], outputs: int) -> NDArray[np.float64]:
        share = fields["alpha"] / 2**24
        piecewise = share * super()._chances(fields, outputs - 2)
        duchi = (1 - share) * _chances_of_window(fields["duchi_keep"], fields["duchi_planes"], 1, 2)
        return np.repeat(np.column_stack([piecewise, duchi]), [outputs - 2, 2], axis=1)


class LaplaceMean(MeanProtocol):
    """The Laplace mechanism: a number in [-1, 1] plus Laplace noise of scale 2 / epsilon.

    A report is epsilon-locally differentially private. The variance per person is ``8 / epsilon**2`` for every number;
    `HybridMean` has a smaller variance for every epsilon. Noise is exact, on a grid that is finer than its scale by
    2**15 or more. A report takes 4 bytes, and the collector keeps a single sum.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    bounds : pair of float, optional
        The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
        Numbers are clamped to them, and estimates are in their unit. By default numbers are in [-1, 1].

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

    def __init__(self, *, epsilon: Number, bounds: Bounds | None = None) -> None:
        self._make_within(bounds, epsilon=epsilon)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        mean, _, _, _ = state.estimate_mean()
        _, n, _ = state.counters()
        return is_rare(n * laplace_exponent(abs(mean) - 1, self.epsilon, self._specified()["unit"]), 1)


class GaussianMean(MeanProtocol):
    """The Gaussian mechanism: a number in [-1, 1] plus Gaussian noise, for an epsilon and a delta.

    A report is (epsilon, delta)-locally differentially private. Sigma is the smallest for this epsilon and delta (the
    analytic Gaussian mechanism), and the variance per person is ``sigma**2`` for every number. That of `LaplaceMean`,
    whose delta is 0, is smaller unless delta is large: above 0.04 for epsilon = 1. Take this protocol where the noise
    has to be Gaussian. The noise is exact, on a grid that is finer than sigma by 2**16 or more. A report takes 4 bytes,
    and the collector keeps a single sum.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.
    delta : float
        The privacy parameter of one report, from 2**-64 to below 1. For all x, x' and all sets S of reports,
        ``P(S | x) <= exp(epsilon) * P(S | x') + delta``. Choose it much smaller than one over the number of people,
        since (epsilon, delta) does not rule out that each person's number is shown with the probability delta.
    bounds : pair of float, optional
        The numbers within which people's numbers are, the lower one first: public, and not looked up in the data.
        Numbers are clamped to them, and estimates are in their unit. By default numbers are in [-1, 1].

    Notes
    -----
    Noise is discrete, and its tail is not cut off: delta is computed for noise on all whole numbers (Canonne, Kamath
    and Steinke, theorem 7), and clamping to the range of reports is post-processing. Standard errors are as for
    `LaplaceMean`. Protocols that amplify the privacy of reports by shuffling take a delta of 0 only.

    References
    ----------
    Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy: analytical calibration and
    optimal denoising"; Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.GaussianMean(epsilon=1.0, delta=1e-6)
    >>> round(protocol.sigma, 4)
    8.4494
    """

    __slots__ = ()
    _family = "gaussian_mean"

    def __init__(self, *, epsilon: Number, delta: Number, bounds: Bounds | None = None) -> None:
        self._make_within(bounds, epsilon=epsilon, delta=delta)

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        mean, _, _, _ = state.estimate_mean()
        _, n, _ = state.counters()
        return is_rare(n * (max(0.0, abs(mean) - 1) / self.sigma) ** 2 / 2, 1)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise, exactly."""
        fields = self._specified()
        return float(fields["sigma"] / fields["unit"])


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
    n : int
        The number of reports counted; for an attribute of `Sampled`, the number of reports about all attributes.
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
        """Return the share of people below each edge.

        Returns
        -------
        ndarray of float64, shape (k + 1,)
            The shares, from 0 at the first edge to 1 at the last.
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
            Shares of people, from 0 to 1.

        Returns
        -------
        ndarray of float64
            A number from 0 to 1 for each share, in the shape of ``q``.
        """
        shares = np.asarray(q)
        if shares.dtype.kind not in "iuf":
            raise TypeError(f"q must be a number or an array of numbers, got dtype {dtype_of(shares)}")
        if not np.all((shares >= 0) & (shares <= 1)):
            raise ParameterError("q must be between 0 and 1, in every element")
        return np.asarray(np.interp(shares, self.cdf(), self.edges))

    def _columns(self) -> dict[str, Column]:
        return {"lower": self.edges[:-1], "upper": self.edges[1:], "probability": self.probabilities}


class SquareWave(NumberProtocol):
    """The square wave mechanism: numbers in [0, 1] are moved at random, to estimate their distribution.

    A report is epsilon-locally differentially private. A number is put into one of k bins. A report is one of
    ``k + 2 b`` bins, b more at either end; bins at most b away from the true one are ``exp(epsilon)`` times as likely
    as the others. The estimate is the distribution that maximises the likelihood of the reports.

    Parameters
    ----------
    k : int
        The number of bins, from 2 to 4096. More people allow for more bins; the paper has 256 to 1024 for 10**5 to
        10**6 people, and with smoothing too many do little harm.
    epsilon : float
        The privacy parameter of one report, from 2**-20 to 32.

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

    def __init__(self, *, k: Integer, epsilon: Number) -> None:
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
            An accumulator of this protocol, or reports as ``perturb`` made them, also as Arrow data.
        smoothing : bool, default True
            Whether to smooth neighbouring bins with weights 1/4, 1/2, 1/4 after each step, as the authors recommend.
            Without it the estimate fits noise as well, but keeps peaks of single bins.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        DensityEstimate
            The share of people in each bin.

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
        state = self._collected(collected, threads)._for_estimate()
        probabilities, n, rejected = state.estimate_density(bool(smoothing))
        edges = np.linspace(0.0, 1.0, self.k + 1)
        for array in (probabilities, edges):
            array.flags.writeable = False
        return DensityEstimate(probabilities, edges, n, rejected, bool(smoothing))
