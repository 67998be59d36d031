"""Strategies of correlated noise: banded Toeplitz matrices, with the least error for a schema of participation."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._arrays import doubles, reals_of
from dpnoise._errors import ParameterError, require
from dpnoise._numbers import check_word, integer, real_up, root
from dpnoise._types import Integer

STEPS: Final = range(1, 2**20 + 1)
_DISTANCES: Final = range(1, 2**53 + 1)


class OneEvent:
    """All participations of an example are within one event."""

    @property
    def sample_rate(self) -> float:
        """The sampling rate of an event: 1, since nothing is sampled."""
        return 1.0

    def events(self, steps: Integer) -> int:
        """Return the number of Gaussian releases that a run costs: 1.

        Parameters
        ----------
        steps : int
            The number of steps of the run, from 1 to 2**20.
        """
        integer(steps, "steps", STEPS)
        return 1


@dataclass(frozen=True)
class SingleEpoch(OneEvent):
    """Each example takes part in at most one step of the run.

    Which step that is may depend on the example itself, but not on the data of other examples.

    Notes
    -----
    ``sample_rate`` is 1 and there is one event: the whole run costs as much as one Gaussian release of its
    ``noise_multiplier``, without amplification by sampling.

    Examples
    --------
    >>> from dpnoise.sgd import BandedToeplitz, SingleEpoch
    >>> BandedToeplitz([1.0, 0.5], steps=100).sensitivity(SingleEpoch()) ** 2
    1.2500000000000002
    """

    def _pattern(self, bands: int) -> tuple[int, int]:
        """Return the smallest separation and the largest number of an event's participations."""
        return 1, 1


@dataclass(frozen=True)
class MinSeparation(OneEvent):
    """Any two steps that an example takes part in are some number of steps apart, or more.

    The steps of an example must not depend on the data of other examples. Batches in a fixed order, the same in all
    epochs, have the number of steps of an epoch as their separation. Examples shuffled anew for each epoch have
    separation 1, since the last example of an epoch may be the first of the next.

    Parameters
    ----------
    separation : int
        The smallest difference between the numbers of two steps of an example, from 1 (any steps) to 2**53.
    max_participations : int, optional
        The largest number of steps of an example, from 1 to 2**53. Without it, as many as the separation allows.

    Notes
    -----
    ``sample_rate`` is 1 and there is one event: all participations of an example are within the sensitivity of the
    strategy, and the whole run costs as much as one Gaussian release of its ``noise_multiplier``.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> from dpnoise.sgd import BandedToeplitz, MinSeparation
    >>> BandedToeplitz([1.0, 0.0], steps=100).sensitivity(MinSeparation(25))
    2.0
    """

    separation: int
    max_participations: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the separation and the number of participations."""
        object.__setattr__(self, "separation", integer(self.separation, "separation", _DISTANCES))
        if self.max_participations is not None:
            most = integer(self.max_participations, "max_participations", _DISTANCES)
            object.__setattr__(self, "max_participations", most)

    def _pattern(self, bands: int) -> tuple[int, int]:
        return self.separation, self.max_participations or len(STEPS)


@dataclass(frozen=True)
class CyclicPoisson:
    """Poisson subsampling from groups of examples that take turns.

    The examples are divided into ``cycle`` groups, without looking at the data of other examples. Step t, counted from
    0, draws its batch from group t mod ``cycle`` by `poisson_sample`.

    Parameters
    ----------
    cycle : int
        The number of groups, from 1 to 2**53. A strategy must not have more bands.
    sample_rate : float
        The probability of an example to be in the batch of a step of its group; above 0 and at most 1, rounded up to a
        float. For batches of an average size B from n examples it is ``cycle * B / n``.

    Notes
    -----
    Each participation of an example changes no more than ``bands`` steps of the product of C and the gradients, and
    they are ``cycle`` steps apart or more, so that they do not overlap. The run costs as much as ``events(steps)``
    steps of DP-SGD with this sampling rate.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> from dpnoise.sgd import CyclicPoisson
    >>> CyclicPoisson(8, sample_rate=0.1).events(1000)
    125
    """

    cycle: int
    sample_rate: float = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the cycle and the sample rate."""
        object.__setattr__(self, "cycle", integer(self.cycle, "cycle", _DISTANCES))
        rate = real_up(self.sample_rate, "sample_rate")
        if not 0 < rate <= 1:
            raise ParameterError(f"sample_rate must be above 0 and at most 1, got {rate!r}")
        object.__setattr__(self, "sample_rate", rate)

    def events(self, steps: Integer) -> int:
        """Return the number of steps that an example may take part in: a ``cycle``-th of ``steps``, rounded up.

        Parameters
        ----------
        steps : int
            The number of steps of the run, from 1 to 2**20.
        """
        return -(-integer(steps, "steps", STEPS) // self.cycle)

    def _pattern(self, bands: int) -> tuple[int, int]:
        if bands > self.cycle:
            raise ParameterError(
                f"strategy must have no more bands than the cycle of CyclicPoisson, {self.cycle}, got {bands}"
            )
        return 1, 1


Participation = SingleEpoch | MinSeparation | CyclicPoisson


_Floats = NDArray[np.float64]

# The loss is found to far less than what the rounding of the coefficients changes it by.
_OPTIONS = {"ftol": 1e-12, "gtol": 1e-12, "maxiter": 1000}


def optimal_coefficients(bands: int, weights: _Floats) -> _Floats:
    """Return the coefficients with the smallest sum of squared errors times squared sensitivity.

    The variables are the logarithms of the ratios of neighbouring coefficients, at most 0. So all matrices on the way
    have coefficients that do not increase: inverses of others can grow exponentially with the steps.

    Parameters
    ----------
    bands : int
        The number of coefficients.
    weights : ndarray of float64, shape (steps,)
        The weight, in the sum of the squared errors, of the square of each number of the first column of B, the
        product of the inverse of C and the matrix of ones on and below the diagonal.
    """
    optimize = require("scipy.optimize", "accounting")
    if bands == 1:  # nothing to choose, which SciPy refuses
        return np.ones(1)

    def logarithm(ratios: _Floats) -> tuple[float, _Floats]:
        coefficients = np.cumprod(np.exp(np.append(0.0, ratios)))
        value, slopes = _loss(coefficients, weights)
        return np.log(value), np.cumsum((coefficients * slopes)[:0:-1])[::-1] / value

    odd = 2.0 * np.arange(1, bands) - 1
    start = np.log(odd / (odd + 1))  # of binomial(2j, j) / 4**j, the best for as many bands as steps
    found = optimize.minimize(
        logarithm, start, jac=True, method="L-BFGS-B", bounds=optimize.Bounds(-np.inf, 0.0), options=_OPTIONS
    )
    coefficients: _Floats = np.cumprod(np.exp(np.append(0.0, found.x)))
    return coefficients


def _loss(coefficients: _Floats, weights: _Floats) -> tuple[float, _Floats]:
    """Return the loss, and its derivatives by the coefficients."""
    signal = require("scipy.signal", "accounting")
    steps = len(weights)
    column = signal.lfilter([1.0], coefficients, np.ones(steps))
    # C B = 1 for the first column, so that a change dC changes it by -C^-1 dC B. The transposed inverse is applied to
    # the weighted column once, for all coefficients.
    adjoint = signal.lfilter([1.0], coefficients, (weights * column)[::-1])[::-1]
    shifted = signal.correlate(adjoint, column)[steps - 1 : steps - 1 + len(coefficients)]
    error, square = weights @ column**2, coefficients @ coefficients
    return error * square, 2 * (error * coefficients - square * shifted)


ONE: Final = 2**12  # the numerator of 1: coefficients are multiples of 2**-12


class BandedToeplitz:
    """A lower triangular Toeplitz matrix C with few bands, which says how the noise of steps is correlated.

    ``C[t, t - j]`` is ``coefficients[j]`` for j below ``bands``, and zero for all others. The noise of the steps is the
    product of the inverse of C and independent noise: each step takes back some of the noise of the steps before it, so
    that sums over many steps, which a model trained by gradient descent is made of, have less noise.

    Parameters
    ----------
    coefficients : array_like of float, shape (bands,)
        The first column of C, down to its last number that is not zero. The first is 1, and the others are from 0 to 1
        and do not increase. Each is rounded to a multiple of 2**-12 (a tie to an even multiple), and zeros at the end
        are dropped.
    steps : int
        The number of rows and columns, which is the number of steps of the run; from 1 to 2**20, and at least the
        number of bands.

    Attributes
    ----------
    coefficients : ndarray of float64, shape (bands,)
        The rounded coefficients, read-only.
    bands : int
        The number of coefficients: a step depends on the noise of ``bands - 1`` steps before it.

    Notes
    -----
    The errors are errors of sums of the gradients of the first steps. With one band the noise of the steps is
    independent, as in DP-SGD.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training"; McKenna (2024), "Scaling up the banded matrix factorization mechanism for
    differentially private ML".

    Examples
    --------
    >>> from dpnoise.sgd import BandedToeplitz, SingleEpoch
    >>> strategy = BandedToeplitz([1.0, 0.5, 0.375], steps=100)
    >>> independent = BandedToeplitz([1.0], steps=100)
    >>> round(strategy.max_error(SingleEpoch()), 1), independent.max_error(SingleEpoch())
    (6.4, 10.0)
    """

    __slots__ = ("_numerators", "_steps")

    _numerators: tuple[int, ...]
    _steps: int

    def __init__(self, coefficients: ArrayLike, *, steps: Integer) -> None:
        self._steps = integer(steps, "steps", STEPS)
        given = _checked(coefficients)
        numerators = np.rint(given * ONE).astype(np.int64)
        bands = np.count_nonzero(numerators)  # the zeros are at the end
        if bands > self._steps:
            raise ParameterError(f"coefficients must be at most steps={self._steps} numbers, got {bands}")
        self._numerators = tuple(numerators[:bands].tolist())

    @classmethod
    def optimal(cls, *, steps: Integer, bands: Integer, error: Literal["mean", "max"] = "mean") -> Self:
        """Return the strategy with the least error for a number of bands.

        Parameters
        ----------
        steps : int
            The number of steps of the run, from 1 to 2**20.
        bands : int
            The number of coefficients, from 1 to ``steps``. There are fewer when the last are rounded to zero.
        error : {"mean", "max"}, default "mean"
            Minimize `root_mean_squared_error` or `max_error`, for examples that participate once, or at least ``bands``
            steps apart. (The truncation of a last participation at the end of the run is not taken into account.)

        Notes
        -----
        More bands give less error, but need a larger separation, or make the groups of `CyclicPoisson` smaller and
        their sampling rate larger. Each step reads the noise of ``bands - 1`` steps before it.

        The optimizer starts from the coefficients that have the least largest error when there are as many bands as
        steps. With up to 1,000 bands, rounding the coefficients was found to increase the error by about one part in a
        million at most.

        References
        ----------
        McKenna (2024), "Scaling up the banded matrix factorization mechanism for differentially private ML", for the
        optimization; Fichtenberger, Henzinger and Upadhyay (2023), "Constant matters: fine-grained error bound on
        differentially private continual observation", for the start.

        Examples
        --------
        >>> from dpnoise.sgd import BandedToeplitz, SingleEpoch
        >>> BandedToeplitz.optimal(steps=100, bands=3).coefficients
        array([1.        , 0.73950195, 0.62207031])
        """
        count = integer(steps, "steps", STEPS)
        width = integer(bands, "bands", range(1, count + 1))
        check_word(error, "error", "mean", "max")
        # The square of the error of a sum is that of one more number of a column of B than for the sum before it.
        weights = np.arange(count, 0, -1) / count if error == "mean" else np.ones(count)
        return cls(optimal_coefficients(width, weights), steps=count)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """The first column of C, without the zeros at its end."""
        found = np.array(self._numerators) / ONE
        found.flags.writeable = False
        return found

    @property
    def bands(self) -> int:
        """The number of coefficients."""
        return len(self._numerators)

    @property
    def steps(self) -> int:
        """The number of steps of the run."""
        return self._steps

    def sensitivity(self, participation: Participation) -> float:
        """Return the most by which one example can change the product of C and the gradients, clipped to norm 1.

        Parameters
        ----------
        participation : SingleEpoch, MinSeparation or CyclicPoisson
            In which steps an example may take part. The cycle of `CyclicPoisson` is not below the number of bands.

        Returns
        -------
        float
            The largest L2 norm, over all steps and coordinates, of ``C @ u``, for an example whose gradients, the rows
            of u, have L2 norms of at most 1; computed exactly, and rounded up to a float. For `CyclicPoisson` it is the
            norm for one participation.

        Notes
        -----
        Coefficients that are not negative and do not increase attain the largest norm with the same gradient in all
        participations, the first in the first step and the others as close as they may be.

        References
        ----------
        Kalinin and Lampert (2024), "Banded square root matrix factorization for differentially private model
        training".
        """
        if not isinstance(participation, Participation):
            raise TypeError(
                "participation must be a SingleEpoch, MinSeparation or CyclicPoisson, got "
                f"{type(participation).__name__}"
            )
        separation, count = participation._pattern(self.bands)
        separation = min(separation, self.steps)
        column = np.zeros(-(-self.steps // separation) * separation, np.int64)
        column[: self.bands] = self._numerators
        total = column.reshape(-1, separation).cumsum(axis=0)  # as if there were no limit on participations
        total[count:] -= total[:-count].copy()  # the parts of those beyond the limit
        changes = total.ravel()[: self.steps].tolist()  # integers of Python: the squares may not fit into 64 bits
        return root(Fraction(sum(change * change for change in changes), ONE**2))

    def errors(self) -> NDArray[np.float64]:
        """Return the standard deviation of the noise in the sums of the first gradients, for independent noise of 1.

        Returns
        -------
        ndarray of float64, shape (steps,)
            The standard deviation of each coordinate of the noise in the sum of the first t + 1 gradients, for each
            step t, when the noise that the inverse of C is applied to has standard deviation 1. It increases with t and
            is at most ``sqrt(t + 1)``, the value for independent noise.
        """
        return np.sqrt(np.cumsum(self._sums() ** 2))

    def root_mean_squared_error(self, participation: Participation) -> float:
        """Return the root of the mean of the squared errors, for noise that hides an example.

        Parameters
        ----------
        participation : SingleEpoch, MinSeparation or CyclicPoisson
            In which steps an example may take part. The cycle of `CyclicPoisson` is not below the number of bands.

        Returns
        -------
        float
            The root of the mean over all steps of the squares of `errors`, times the `sensitivity` for
            ``participation``. Times ``noise_multiplier * clip_norm`` it is the standard deviation of the noise in a sum
            of the gradients of the first steps, before these are divided by the expected batch size.
        """
        return self.sensitivity(participation) * math.sqrt(np.mean(self.errors() ** 2))

    def max_error(self, participation: Participation) -> float:
        """Return the largest error, in the sum over all steps: the last of `errors`, times the `sensitivity`.

        Its unit is the unit of `root_mean_squared_error`.

        Parameters
        ----------
        participation : SingleEpoch, MinSeparation or CyclicPoisson
            In which steps an example may take part. The cycle of `CyclicPoisson` is not below the number of bands.
        """
        return self.sensitivity(participation) * float(self.errors()[-1])

    def _sums(self) -> NDArray[np.float64]:
        """Return the sums of the first numbers of the first column of the inverse of C.

        The generating function of the coefficients is (1 - F(x)) / (1 - x), where the coefficients of F are their
        decreases, which are not negative and have the sum 1. The sums have its inverse over 1 - x, 1 / (1 - F(x)), as
        their generating function: they are the probabilities that a renewal process with these increments reaches a
        step, from 0 to 1, and their recursion has no cancellation: after t steps of at most b products, each sum has a
        relative error of about t b 2**-53 at most.
        """
        bands = self.bands
        decreases = -np.diff(self.coefficients, append=0.0)[::-1]
        found = np.zeros(bands + self.steps)
        found[bands] = 1.0
        for t in range(1, self.steps):
            found[bands + t] = decreases @ found[t : t + bands]
        return found[bands:]

    def _gain(self) -> float:
        """Return the largest L2 norm of a row of the inverse of C, which the last row has, rounded up."""
        sums = self._sums()
        # A difference is off by less than steps * bands * 2**-51, twice the error of a sum (above) and some, hence
        # their norm by sqrt(steps) times that. As much again is more than the rounding of the norm, at most
        # sqrt(steps), and of this sum.
        slack = math.sqrt(self.steps) * self.steps * self.bands * 2.0**-50
        return float(np.linalg.norm(np.diff(sums, prepend=0.0))) + slack

    def __repr__(self) -> str:
        """Show the call that makes this strategy, with the first coefficients."""
        return f"BandedToeplitz({reprlib.repr(self.coefficients.tolist())}, steps={self.steps})"

    def __eq__(self, other: object) -> bool:
        """Compare the matrices."""
        return type(other) is type(self) and (self._numerators, self._steps) == (other._numerators, other._steps)

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((type(self), self._numerators, self._steps))


def _checked(coefficients: ArrayLike) -> NDArray[np.float64]:
    """Return coefficients of a strategy as they were given, or refuse them."""
    given = doubles(reals_of(coefficients, "coefficients"))
    if given.ndim != 1 or not given.size:
        raise ParameterError(f"coefficients must be of shape (bands,), with one or more, got shape {given.shape}")
    wrong = np.flatnonzero(~(given[1:] <= given[:-1]))  # NaN included
    if given[0] != 1:
        raise ParameterError(f"coefficients must start with 1, got {given[0]}")
    if wrong.size:
        j = int(wrong[0]) + 1
        raise ParameterError(f"coefficients must not increase, got {given[j]} after {given[j - 1]} at index {j}")
    if given[-1] < 0:
        raise ParameterError(f"coefficients must be from 0 to 1, got {given[-1]}")
    return given
