"""Mechanisms on integers, and the Gaussian ones."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from diffprivlib import mechanisms
from numpy.typing import NDArray

import dpnoise
from dpnoise import ParameterError
from dpnoise.extend import gaussian, with_scale
from dpnoise_diffprivlib._laplace import RealNoise, as_numbers, noiseless
from dpnoise_diffprivlib._mechanism import NoiseForArrays, check_integer_bounds, fold_integers


class IntegerNoise(NoiseForArrays):
    """A mechanism that adds whole noise to integers."""

    _example = 0
    _kinds = "iub"
    _kinds_refused = "Value to be randomised must be an integer"

    def randomise(self, value: int) -> int:
        """Randomise an integer.

        A ValueError says that a parameter has been set to an invalid value, or that the value is out of range.

        Parameters
        ----------
        value : int
            The private value, in the range of int64. Sums with noise beyond that range saturate.

        Returns
        -------
        int
            The noisy value, within the bounds if the mechanism has any.
        """
        self._check_all(value)  # type: ignore[attr-defined]
        noise = self._noise()
        if noise is not None:
            return int(noise.release(int(value), rng=self._test_rng))
        if not -(2**63) <= value < 2**63:
            raise ParameterError("value must be in the range of int64")
        return int(value)

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        noise = self._noise()
        integers = as_numbers(values) if values.size else values.astype(np.int64)
        if noise is not None:
            return np.asarray(noise.release(integers, rng=self._test_rng))
        if integers.dtype == np.uint64 and (integers > np.iinfo(np.int64).max).any():
            raise ParameterError("values must be in the range of int64")
        return integers.astype(np.int64)


class Geometric(IntegerNoise, mechanisms.Geometric):
    """The noise is discrete Laplace noise of scale ``sensitivity / epsilon``.

    A release is epsilon-differentially private for integers that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for no noise.
    sensitivity : int, default 1
        The most that the value changes between neighbours: not negative, with ``sensitivity / epsilon`` from 2**-40 to
        2**40. Zero for no noise.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".
    """

    def _noise(self) -> Any:
        return None if noiseless(self) else _discrete_laplace(self.epsilon, int(self.sensitivity))


class GeometricTruncated(Geometric, mechanisms.GeometricTruncated):
    """A release of `Geometric`, clamped to the bounds.

    A release is epsilon-differentially private for integers that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for no noise.
    sensitivity : int, default 1
        The most that the value changes between neighbours: not negative, with ``sensitivity / epsilon`` from 2**-40 to
        2**40. Zero for no noise.
    lower, upper : int
        The smallest and the largest release, the smaller one first: a release outside is clamped to them. An infinite
        float for no bound. Never take them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.
    """

    def randomise(self, value: int) -> int:
        return int(self._truncate(super().randomise(value)))

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        # Integer bounds beyond int64 have no effect, and those within must not be rounded to floats.
        lower, upper = (bound if math.isinf(bound) else int(bound) for bound in (self.lower, self.upper))
        noisy = super()._randomise_array(values)
        limits = np.iinfo(np.int64)
        return np.asarray(np.clip(noisy, int(max(lower, limits.min)), int(min(upper, limits.max))))


class GeometricFolded(Geometric, mechanisms.GeometricFolded):
    """A release of `Geometric` outside of the bounds is reflected at them until it lies between them.

    A release is epsilon-differentially private for integers that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for no noise.
    sensitivity : int, default 1
        The most that the value changes between neighbours: not negative, with ``sensitivity / epsilon`` from 2**-40 to
        2**40. Zero for no noise.
    lower, upper : int or float
        The smallest and the largest release, the smaller one first: multiples of 1/2, infinite for no bound or below
        2**61 in magnitude. Never take them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.
    """

    def _noise(self) -> Any:
        check_integer_bounds(self.lower, self.upper)
        return super()._noise()

    def randomise(self, value: int) -> int:
        noisy = super().randomise(value)
        if self.lower <= noisy <= self.upper:
            return noisy
        return int(fold_integers(np.array(noisy), self.lower, self.upper))

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        return fold_integers(super()._randomise_array(values), self.lower, self.upper)


@lru_cache(maxsize=256)
def _discrete_laplace(epsilon: float, sensitivity: int) -> dpnoise.DiscreteLaplace:
    return dpnoise.DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)


class Gaussian(RealNoise, mechanisms.Gaussian):
    """The noise has the host's scale, for the sensitivity on the grid; or the least that suffices, if that is more.

    A release is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and at most 1. `GaussianAnalytic` takes larger ones.
    delta : float
        The privacy parameter: above 0 and at most 1. Choose it much smaller than one over the number of people.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with a scale of the
        noise below 2**939. Zero for no noise.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", for the host's scale; Balle and Wang
    (2018), "Improving the Gaussian mechanism for differential privacy", theorem 8, for the least.
    """

    def _noise(self) -> Any:
        if noiseless(self):
            return None
        return gaussian(self.epsilon, self.delta, self.sensitivity, float(self._scale))


class GaussianAnalytic(Gaussian, mechanisms.GaussianAnalytic):
    """The noise has the host's scale, for the sensitivity on the grid; or the least that suffices, if that is more.

    A release is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for no noise.
    delta : float
        The privacy parameter: above 0 and at most 1. Choose it much smaller than one over the number of people.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with a scale of the
        noise below 2**939. Zero for no noise.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy", theorem 8.
    """


class GaussianDiscrete(IntegerNoise, mechanisms.GaussianDiscrete):
    """The noise has the host's scale, or the least that suffices, if that is more: the host rounds its scale.

    A release is (epsilon, delta)-differentially private for integers that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for no noise.
    delta : float
        The privacy parameter: above 0 and at most 1. Choose it much smaller than one over the number of people.
    sensitivity : int, default 1
        The most that the value changes between neighbours: not negative. Zero for no noise.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".
    """

    def _noise(self) -> Any:
        if noiseless(self):
            return None
        return _discrete_gaussian(self.epsilon, self.delta, int(self.sensitivity), float(self._scale))


@lru_cache(maxsize=256)
def _discrete_gaussian(epsilon: float, delta: float, sensitivity: int, scale: float) -> Any:
    # A delta of 1 needs no noise, but the host adds noise.
    least = 0.0 if delta == 1 else dpnoise.DiscreteGaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity).scale
    # A sensitivity of 1, since each integer of an array gets the noise of a single one.
    return with_scale(dpnoise.DiscreteGaussian, 1, max(least, scale))
