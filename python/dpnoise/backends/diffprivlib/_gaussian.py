from __future__ import annotations

from functools import lru_cache
from typing import Any

import dpnoise
from dpnoise.backends._gaussian import gaussian, with_scale
from dpnoise.backends.diffprivlib._geometric import IntegerNoise
from dpnoise.backends.diffprivlib._host import mechanisms
from dpnoise.backends.diffprivlib._laplace import RealNoise, noiseless


class Gaussian(RealNoise, mechanisms.Gaussian):
    """The noise has the host's scale, for the sensitivity on the grid; or the least that suffices, if that is more."""

    def _noise(self) -> Any:
        if noiseless(self):
            return None
        return gaussian(self.epsilon, self.delta, self.sensitivity, float(self._scale))


class GaussianAnalytic(Gaussian, mechanisms.GaussianAnalytic):
    """The noise has the host's scale, for the sensitivity on the grid; or the least that suffices, if that is more."""


class GaussianDiscrete(IntegerNoise, mechanisms.GaussianDiscrete):
    """The noise has the host's scale, or the least that suffices, if that is more: the host rounds its scale."""

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
