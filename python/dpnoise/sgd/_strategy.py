"""Strategies of correlated noise: banded Toeplitz matrices."""

from __future__ import annotations

import math
import reprlib
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._errors import ParameterError
from dpnoise._parameters import ByName, doubles, integer, reals_of, root
from dpnoise.sgd._optimum import optimal_coefficients
from dpnoise.sgd._participation import STEPS, Participation

if TYPE_CHECKING:
    from typing_extensions import Self

ONE: Final = 2**12  # the numerator of 1: coefficients are multiples of 2**-12


class BandedToeplitz(ByName):
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
        Rounded; read-only.
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

    def __init__(self, coefficients: ArrayLike, *, steps: int) -> None:
        self._steps = integer(steps, "steps", STEPS)
        given = _checked(coefficients)
        numerators = np.rint(given * ONE).astype(np.int64)
        bands = np.count_nonzero(numerators)  # the zeros are at the end
        if bands > self._steps:
            raise ParameterError(f"coefficients must be at most steps={self._steps} numbers, got {bands}")
        self._numerators = tuple(numerators[:bands].tolist())

    @classmethod
    def optimal(cls, *, steps: int, bands: int, error: Literal["mean", "max"] = "mean") -> Self:
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
        if error not in ("mean", "max"):
            raise ParameterError(f'error must be "mean" or "max", got {error!r}')
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
