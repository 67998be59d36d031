"""The Laplace mechanism, and its truncated, folded and snapping variants."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpnoise
from dpnoise._errors import ParameterError
from dpnoise._parameters import reals_of
from dpnoise.backends.diffprivlib._bounds import fold
from dpnoise.backends.diffprivlib._exact import pure_epsilon
from dpnoise.backends.diffprivlib._host import mechanisms
from dpnoise.backends.diffprivlib._mechanism import NoiseForArrays

# `patched` replaces its name in the host.
_randomise_of_host: Final = mechanisms.Snapping.randomise


class RealNoise(NoiseForArrays):
    """A mechanism that adds noise to real values."""

    _example = 0.0
    _kinds = "iufb"
    _kinds_refused = "Value to be randomised must be a number"

    def randomise(self, value: float) -> float:
        """Randomise a value.

        NaN and infinities are returned unchanged, as by the host. A ValueError says that a parameter has been set to an
        invalid value, or that a float does not hold the value exactly.
        """
        self._check_all(value)  # type: ignore[attr-defined]
        noise = self._noise()
        exact = as_float(value)
        if noise is None or not math.isfinite(exact):
            return exact
        return float(noise.release(exact, rng=self._test_rng))

    def _array_of(self, values: ArrayLike) -> NDArray[Any]:
        given = super()._array_of(values)
        # NumPy rounds large integers that stand in a list with others, and they would be rounded when made floats.
        return reals_of(values, "values") if given.size and given.dtype.kind != "b" else given

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        noise = self._noise()
        floats = values.astype(np.float64)
        finite = np.isfinite(floats)
        if noise is None:
            return floats
        if finite.all():
            return np.asarray(noise.release(as_numbers(values), rng=self._test_rng))
        floats[finite] = noise.release(values[finite], rng=self._test_rng)
        return floats


class Laplace(RealNoise, mechanisms.Laplace):
    """The noise has a scale of ``sensitivity / (epsilon - log(1 - delta))``, for the sensitivity on the grid."""

    def _noise(self) -> Any:
        if noiseless(self) or self.delta == 1:
            return None
        return _laplace(self.epsilon, self.delta, self.sensitivity)


class LaplaceTruncated(Laplace, mechanisms.LaplaceTruncated):
    """A release of `Laplace`, clamped to the bounds."""

    def randomise(self, value: float) -> float:
        bounded: float = self._truncate(super().randomise(value))
        return bounded

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.clip(super()._randomise_array(values), self.lower, self.upper))


class LaplaceFolded(Laplace, mechanisms.LaplaceFolded):
    """A release of `Laplace` outside of the bounds is reflected at them until it lies between them."""

    def randomise(self, value: float) -> float:
        noisy = super().randomise(value)
        if self.lower <= noisy <= self.upper:
            return noisy
        return float(fold(np.array(noisy), self.lower, self.upper))

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        return fold(super()._randomise_array(values), self.lower, self.upper)


class Snapping(LaplaceTruncated, mechanisms.Snapping):
    """A release of `Laplace`, for ``effective_epsilon()``, is rounded and truncated as the host does.

    The value is truncated before noise is added, too. Rounding is not needed for privacy here, but keeps the host's
    distribution.
    """

    def _noise(self) -> Any:
        if noiseless(self):
            return None
        return _laplace(self.effective_epsilon(), 0.0, self.sensitivity)

    def randomise(self, value: float) -> float:
        self._check_all(value)
        if self.sensitivity == 0:
            snapped: float = _randomise_of_host(self, value)  # which draws nothing
            return snapped
        exact = as_float(value)
        return self._snap(Laplace.randomise(self, exact if math.isnan(exact) else self._between_bounds(exact)))

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.sensitivity == 0:
            return np.array([_randomise_of_host(self, value) for value in values.flat]).reshape(values.shape)
        noisy = Laplace._randomise_array(self, np.clip(values.astype(np.float64), self.lower, self.upper))
        return np.array([self._snap(value) for value in noisy.flat], np.float64).reshape(values.shape)

    def _between_bounds(self, value: float) -> float:
        return float(min(max(value, self.lower), self.upper))

    def _snap(self, noisy: float) -> float:
        step = self._get_nearest_power_of_2(1.0 / self.effective_epsilon())
        rounded = self._round_to_nearest_power_of_2(self._scale_and_offset_value(noisy), step)
        return float(self._reverse_scale_and_offset_value(self._truncate(rounded)))


def noiseless(mechanism: Any) -> bool:
    """Whether the host adds no noise: the sensitivity is 0, or the parameters allow the exact value."""
    return bool(mechanism.sensitivity == 0 or math.isinf(mechanism.epsilon))


@lru_cache(maxsize=256)
def _laplace(epsilon: float, delta: float, sensitivity: float) -> dpnoise.Laplace:
    return dpnoise.Laplace(epsilon=pure_epsilon(epsilon, delta), sensitivity=sensitivity)


def as_float(value: Any) -> float:
    """Return a number as a float, if it is one; no message may show it."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isnan(found) or bool(found == value):
        return found
    raise ParameterError("value must be a number that a float holds exactly")


def as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array for mechanisms of dpnoise: they refuse booleans, which the host takes as 0 and 1."""
    return values.astype(np.int8) if values.dtype.kind == "b" else values
