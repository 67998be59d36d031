"""The parameters that the mechanisms of DP-SGD share, and the one of independent noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._numbers import checked_delta, checked_level, fraction_of, integer, root
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.accounting import DiscreteGaussianLoss, PrivacyLoss, zcdp_epsilon
from dpnoise.mechanisms import Mechanism
from dpnoise.sensitivity import Relation
from dpnoise.sgd._gradients import Floats, clipped_steps, gradients_of, output_for

_STEPS: Final = 2.0**31  # the sensitivity has so many steps of the noise's grid, or more


class GradientPrivacy(Mechanism):
    """A mechanism that clips gradients, adds them up with noise, and divides."""

    __slots__ = ("_delta", "_epsilon")

    _native: Any
    _delta: float | None
    _epsilon: float | None

    @property
    def clip_norm(self) -> float:
        """The norm that gradients are clipped to."""
        return float(self._native.clip_norm)

    @property
    def noise_multiplier(self) -> float:
        """The ratio of the noise to the sensitivity."""
        return float(self._native.noise_multiplier)

    @property
    def expected_batch_size(self) -> float:
        """The divisor of the noisy sum."""
        return float(self._native.expected_batch_size)

    @property
    def granularity(self) -> float:
        """The step of the grid that clipped gradients are rounded to."""
        return float(self._native.granularity)

    @property
    def epsilon(self) -> float | None:  # type: ignore[override]
        """The privacy parameter epsilon; None without a ``delta``."""
        return self._epsilon

    @property
    def delta(self) -> float | None:  # type: ignore[override]
        """The privacy parameter delta, when that was given."""
        return self._delta

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: one example, added or removed."""
        return "add/remove"

    def _loss_of_noise(self) -> PrivacyLoss:
        """Return the loss of a release of the noise multiplier on all data."""
        return DiscreteGaussianLoss(self.noise_multiplier * _STEPS, _STEPS, rounded=True)


_ROUNDED: Final = 1 + 2.0**-30  # far above the rounding errors of a normal quantile and its factors


class NoisyGradient(GradientPrivacy):
    """The mean of clipped gradients, with discrete Gaussian noise on their sum.

    One step of DP-SGD. On all data it is (alpha, alpha / (2 * noise_multiplier**2))-Rényi differentially private for
    every alpha above 1, that is 1/(2 noise_multiplier**2)-zCDP, for neighbours that differ by one example, added or
    removed. With Poisson subsampling (`poisson_sample`) steps cost less: `epsilon_spent` computes their cost.

    Parameters
    ----------
    clip_norm : float
        The largest L2 norm of a clipped gradient, from 2**-80 to 2**80: a gradient above it is scaled down to it.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    expected_batch_size : float
        The divisor of the noisy sum: the average size of a batch, which is the sampling rate times the number of
        examples. From 2**-32 to 2**53. It is a public constant: the actual size of a batch is private, and a mean over
        it would reveal it.
    delta : float, optional
        The delta of a step on all data: between 0 and 1, both excluded. Choose it much smaller than one over the number
        of examples. It determines the epsilon of a step on all data, and so its `cost`. Without it `cost` raises an
        error, since a step has an epsilon for every delta.

    Notes
    -----
    Epsilon follows from `dpnoise.accounting.zcdp_epsilon` for a step on all data. A `Ledger` charges it for every step.
    For many steps on samples an `Accountant` finds a far smaller cost, which can be spent at once as a `PrivacyCost`.

    The clipped gradients are added up on a grid, as `clip_and_sum` says, and noise is added there, exactly; only then
    is the sum divided. The sensitivity on the grid is ``clip_norm`` and half a step of the grid for the rounding
    of each of the d coordinates, or ``sqrt(d) / 2`` steps in all, less than 5e-7 of ``clip_norm`` for a million
    coordinates.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), "Deep learning with differential privacy",
    algorithm 1; Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import NoisyGradient, poisson_sample
    >>> data, weights = np.ones((1000, 3)), np.zeros(3)
    >>> noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=1.1, expected_batch_size=100)
    >>> batch = data[poisson_sample(1000, 0.1)]
    >>> weights -= 0.5 * noisy.release(batch * (batch @ weights - 1)[:, np.newaxis])
    """

    __slots__ = ()

    _native: _native.NoisyGradient
    _parameters = ("clip_norm", "noise_multiplier", "expected_batch_size", "delta")

    def __init__(
        self, *, clip_norm: Number, noise_multiplier: Number, expected_batch_size: Number, delta: Number | None = None
    ) -> None:
        self._native = _native.NoisyGradient(
            clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=expected_batch_size
        )
        self._delta = None if delta is None else checked_delta(delta)
        self._epsilon = None if self._delta is None else zcdp_epsilon(self.rho, delta=self._delta)

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated differential privacy of a step on all data, rounded up."""
        return self._loss_of_noise().rho

    def release(
        self, gradients: Values, *, out: Floats | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[Any]:
        """Clip the gradient of each example of a batch, add them up, add noise, and divide.

        Parameters
        ----------
        gradients : array_like of float32 or float64, shape (n, d)
            A row for each example, with all parameters of the model: d is at least 1, and n may be 0. C-contiguous
            arrays of these dtypes are read in place and must not be changed meanwhile, and so are tensors on the CPU of
            other libraries (DLPack); others are converted, float16, bfloat16 and smaller floats of ml_dtypes to
            float32, and integers to float64. An empty batch, n = 0, makes a step of noise alone: skipping it would
            reveal that it was empty.
        out : ndarray, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of shape (d,) and of the dtype of
            the result. It shares no memory with ``gradients``.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray, shape (d,)
            The noisy sum, divided by ``expected_batch_size``: float32 for gradients of at most 32 bits, else float64.
        """
        rows = gradients_of(gradients)
        array = output_for(rows, out)
        self._native.step(rows, array, threads, rng)
        return array

    def clipped_sum(self, gradients: Sequence[NDArray[Any]], *, threads: int | None = None) -> NDArray[np.int64]:
        """Clip the gradient of each example, over all arrays together, and add the gradients up on the grid.

        The result is **not private**. Such sums, of parts of a batch or on several machines, can be added up, modulo
        2**64; their noise comes from `add_noise`.

        Parameters
        ----------
        gradients : list or tuple of ndarray, real numbers of at most 64 bits, shape (n, ...)
            An array for each parameter of the model; all have a row for each example, and n may be 0. C-contiguous
            arrays of one dtype, float32 or float64, are read in place and must not be changed meanwhile.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        ndarray of int64, shape (d,)
            The sums of all numbers of the arrays, one array after the other, in steps of ``granularity``. One example
            changes them by at most `sensitivity`.
        """
        return clipped_steps(gradients, self.clip_norm, threads)

    def add_noise(
        self, sums: NDArray[np.int64], *, dtype: DTypeLike = np.float32, threads: int | None = None, rng: Rng = None
    ) -> NDArray[Any]:
        """Add noise to the sum of the clipped gradients of a batch, and divide, as `release` does.

        Parameters
        ----------
        sums : ndarray of int64, shape (d,)
            The result of `clipped_sum`, or the sum of several results.
        dtype : float32 or float64, default numpy.float32
            The dtype of the step; the noisy sum is rounded to it once.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray, shape (d,)
            The step.
        """
        sums = np.asarray(sums) if isinstance(sums, np.ndarray) else sums  # no subclass
        if not isinstance(sums, np.ndarray) or sums.dtype != np.int64:
            found = f"dtype {sums.dtype}" if isinstance(sums, np.ndarray) else type(sums).__name__
            raise TypeError(f"sums must be an array of int64, as clipped_sum returns, got {found}")
        if sums.ndim != 1:
            raise ParameterError(f"sums must have one dimension, got {sums.ndim}")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise TypeError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
        out = np.empty(sums.shape, dtype)
        self._native.release(np.ascontiguousarray(sums), out, threads, rng)
        return out

    def sensitivity(self, d: Integer) -> float:
        """Bound how far one example changes the sum of the clipped gradients on the grid, in the L2 norm.

        Parameters
        ----------
        d : int
            The number of coordinates of a gradient.

        Returns
        -------
        float
            In the unit of the gradients; a multiple of ``granularity``.
        """
        return self._native.sensitivity(integer(d, "d", range(2**53)))

    def error(self, d: Integer, level: Number = 0.95) -> float:  # type: ignore[override]
        """Bound the noise of each coordinate of a release, in its unit.

        Parameters
        ----------
        d : int
            The number of coordinates of a gradient, at least 1.
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        sensitivity = self.sensitivity(integer(d, "d", range(1, 2**53)))
        # A discrete Gaussian variable reaches m steps with at most the probability that a continuous one reaches m - 1
        # steps (Canonne, Kamath and Steinke 2020, on tails).
        quantile = -NormalDist().inv_cdf((1 - checked_level(level)) / 2)
        noise = quantile * self.noise_multiplier * sensitivity + self.granularity
        return noise / self.expected_batch_size * _ROUNDED

    def _loss(self) -> PrivacyLoss:
        return self._loss_of_noise()


def noise_multipliers(clip_norms: Sequence[Number], widths: Sequence[Integer], noise_multiplier: Number) -> list[float]:
    """Find the noise multiplier of each part of a gradient whose parts are clipped to norms of their own.

    All parts get noise of the same standard deviation: ``noise_multiplier`` times the joint sensitivity, which is the
    root of the sum of the squares of the parts' sensitivities.

    Parameters
    ----------
    clip_norms : sequence of float
        The largest L2 norm of each part, such as the parameters of a layer; each from 2**-80 to 2**80.
    widths : sequence of int
        The number of coordinates of each part; as many as there are norms.
    noise_multiplier : float
        The multiplier of the whole gradient; from 2**-20 to 2**11.

    Returns
    -------
    list of float
        A multiplier for the `NoisyGradient` of each part, rounded up. The releases of all parts together are
        1/(2 noise_multiplier**2)-zero-concentrated differentially private.

    Raises
    ------
    ParameterError
        When `NoisyGradient` refuses a norm, the multiplier, or the multiplier of a part; when there are more norms than
        widths, or fewer.

    Examples
    --------
    >>> from dpnoise.sgd import noise_multipliers
    >>> noise_multipliers([1.0, 1.0], [10, 10], noise_multiplier=1.0)
    [1.4142135623730951, 1.4142135623730951]
    """

    def mechanism(norm: Number, multiplier: Number) -> NoisyGradient:
        return NoisyGradient(clip_norm=norm, noise_multiplier=multiplier, expected_batch_size=1.0)

    if len(clip_norms) != len(widths):
        raise ParameterError(
            f"widths must be as many as clip_norms, got {len(widths)} widths and {len(clip_norms)} norms"
        )
    squares = [
        Fraction(mechanism(norm, noise_multiplier).sensitivity(width)) ** 2
        for norm, width in zip(clip_norms, widths, strict=True)
    ]
    found = [root(fraction_of(noise_multiplier) ** 2 * sum(squares) / square) for square in squares]
    for norm, multiplier in zip(clip_norms, found, strict=True):
        mechanism(norm, multiplier)
    return found
