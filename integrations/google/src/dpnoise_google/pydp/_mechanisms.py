from __future__ import annotations

import math
from functools import lru_cache
from numbers import Integral
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpnoise
from dpnoise import ParameterError
from dpnoise.extend import gaussian, real, reals_of, with_scale
from dpnoise_google.pydp import _host

# The increase over the host's noise, which covers the rounding: see the proofs.
WIDENING: Final = 1 + 2.0**-20
_LARGEST: Final = 2**53
_INT64: Final = np.iinfo(np.int64)


class GridNoise:
    """A mechanism of the host whose noise is drawn by dpnoise. Comes before the host's class among the bases."""

    _noise: Any

    @overload
    def add_noise(self, result: int) -> int: ...
    @overload
    def add_noise(self, result: float) -> float: ...
    @overload
    def add_noise(self, result: ArrayLike) -> Any: ...
    def add_noise(self, result: Any) -> Any:
        """Add noise to a number, or to each number of an array, which PyDP does not take.

        Each number costs as much as a call. All together cost as much as one call if the sensitivity bounds the change
        of all of them together, in the L1 norm for Laplace and the L2 norm for Gaussian noise.

        Parameters
        ----------
        result : int, float or array_like
            The private numbers. Integers have at most 2**53 in magnitude, since a float has to hold them.

        Returns
        -------
        int, float, or ndarray of int64 or float64
            An integer for an integer: the noisy number is rounded, as by PyDP. NaN and infinities give NaN, as by PyDP.
        """
        if isinstance(result, float):
            return self._noise.release(result) if math.isfinite(result) else math.nan
        if isinstance(result, int):
            return round(self._noise.release(_exact(result)))
        given = reals_of(result, "result")
        with np.errstate(all="ignore"):  # a warning about a signalling NaN
            floats = given.astype(np.float64)
        noisy = self._released(floats)
        if given.dtype.kind in "iu":
            # The largest double below 2**63 is 1024 less than that.
            noisy = np.clip(np.rint(noisy), _INT64.min, _INT64.max - 1023).astype(np.int64)
        return noisy.item() if given.ndim == 0 and not isinstance(result, np.ndarray) else noisy

    def noised_value_above_threshold(self, result: float, threshold: float) -> bool:
        """Say whether a number with noise is above a public threshold, which costs as much as the noisy number.

        Parameters
        ----------
        result : float
            The private number. An integer has at most 2**53 in magnitude.
        threshold : float
            The public threshold, in the unit of the number. Never take it from the data.

        Returns
        -------
        bool
            Whether the noisy number is larger; False where either number is NaN, as by PyDP.
        """
        value = _exact(result)
        return bool((self._noise.release(value) if math.isfinite(value) else value) > real(threshold, "threshold"))

    def noise_confidence_interval(self, confidence_level: float, noised_result: float) -> Any:
        """Bracket the true value of a release of ``add_noise``.

        Parameters
        ----------
        confidence_level : float
            The probability with which the interval holds: between 0 and 1, both excluded.
        noised_result : float
            The result of ``add_noise``. The interval includes the rounding of an integer, which PyDP's does not.

        Returns
        -------
        ConfidenceInterval
            PyDP's object, with ``lower_bound`` and ``upper_bound``.
        """
        found = super().noise_confidence_interval(confidence_level, noised_result)  # type: ignore[misc]
        error = self._noise.error(found.confidence_level)
        if isinstance(noised_result, Integral):
            error = math.floor(error + 0.5)
        found.lower_bound, found.upper_bound = float(noised_result) - error, float(noised_result) + error
        return found

    def _released(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        finite = np.isfinite(values)
        if finite.all():
            return np.asarray(self._noise.release(values))
        values[~finite] = np.nan
        values[finite] = self._noise.release(values[finite])
        return values


class LaplaceMechanism(GridNoise, _host.LaplaceMechanism):
    """The Laplace mechanism: epsilon-differentially private for values that differ by the sensitivity, in the L1 norm.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: finite, and at least 2**-50.
    sensitivity : float, default 1.0
        The L1 sensitivity of the values, in their unit: positive and finite, with ``sensitivity / epsilon`` below
        2**940.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis".

    Examples
    --------
    >>> from dpnoise_google.pydp import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=0.5)
    >>> released = mechanism.add_noise(37.2)
    >>> many = mechanism.add_noise([120, 5, 0])
    """

    def __init__(self, epsilon: float, sensitivity: float = 1.0) -> None:
        _host.LaplaceMechanism.__init__(self, epsilon, sensitivity)
        self._noise = laplace(self.epsilon, self.sensitivity)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters; there is no other state."""
        return type(self), (self.epsilon, self.sensitivity)


class GaussianMechanism(GridNoise, _host.GaussianMechanism):
    """The Gaussian mechanism: (epsilon, delta)-differentially private for values that differ by the L2 sensitivity.

    The noise has PyDP's standard deviation, or the least that suffices, if that is more.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.
    sensitivity : float, default 1.0
        The L2 sensitivity of the values, in their unit: positive and finite, with a standard deviation of the noise
        below 2**939.

    References
    ----------
    Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy", theorem 8.

    Examples
    --------
    >>> from dpnoise_google.pydp import GaussianMechanism
    >>> released = GaussianMechanism(epsilon=0.5, delta=1e-6).add_noise(37.2)
    """

    def __init__(self, epsilon: float, delta: float, sensitivity: float = 1.0) -> None:
        _host.GaussianMechanism.__init__(self, epsilon, delta, sensitivity)
        self._noise = gaussian(self.epsilon, self.delta, self.l2_sensitivity * WIDENING, self.std * WIDENING)

    @staticmethod
    def create_from_standard_deviation(std: float) -> GaussianMechanism:
        """Make a mechanism from a standard deviation; its epsilon, delta and sensitivity are unknown, and 0 here.

        Parameters
        ----------
        std : float
            The standard deviation of the noise, in the values' unit: positive and below 2**939. PyDP takes 0, too.

        Returns
        -------
        GaussianMechanism
            A mechanism with the attribute ``std``.
        """
        return _OfStandardDeviation(std)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters; there is no other state."""
        return type(self), (self.epsilon, self.delta, self.l2_sensitivity)


class _OfStandardDeviation(GaussianMechanism):
    epsilon = delta = l2_sensitivity = 0.0
    std = 0.0

    def __init__(self, std: float) -> None:
        made = _host.GaussianMechanism.create_from_standard_deviation(std)
        if made.std == 0:
            raise ParameterError("std must be positive, got 0.0")
        # The host's part of the object must be initialised, but is not used.
        _host.GaussianMechanism.__init__(self, 1.0, 0.5)
        self.std = made.std
        self._noise = _gaussian(self.std)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.std,)


def _exact(result: Any) -> float:
    if isinstance(result, int | Integral):  # int comes first, since its check is faster
        if abs(int(result)) > _LARGEST:
            raise ParameterError("result must have integers of at most 2**53 in magnitude")
        return float(result)
    return real(result, "result")


@lru_cache(maxsize=256)
def laplace(epsilon: float, sensitivity: float) -> dpnoise.Laplace:
    """Make the mechanism for PyDP's parameters."""
    return dpnoise.Laplace(epsilon=epsilon, sensitivity=sensitivity * WIDENING)


@lru_cache(maxsize=256)
def _gaussian(std: float) -> Any:
    return with_scale(dpnoise.Gaussian, std, std * WIDENING)
