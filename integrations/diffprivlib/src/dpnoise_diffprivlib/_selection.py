"""Choices: yes or no, and among candidates by their utilities."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from diffprivlib import mechanisms
from numpy.typing import NDArray

import dpnoise
from dpnoise import ParameterError, samplers
from dpnoise.extend import reals_of
from dpnoise_diffprivlib._laplace import noiseless
from dpnoise_diffprivlib._mechanism import NoiseForArrays, SecureNoise, flip_probability


class Binary(NoiseForArrays, mechanisms.Binary):
    """The label is flipped with a probability of ``1 / (1 + exp(epsilon))``, rounded up in its last digits."""

    _kinds = "U"
    _kinds_refused = "Value to be randomised must be a string"

    @property
    def _example(self) -> str:
        label: str = self.value0
        return label

    def _noise(self) -> float:
        return flip_probability(self.epsilon)

    def randomise(self, value: str) -> str:
        """Randomise one of the two labels; another value raises a ValueError."""
        self._check_all(value)
        flip = samplers.bernoulli(self._noise(), rng=self._test_rng)
        return str(self.value1 if (value == self.value1) != flip else self.value0)

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        second = values == self.value1
        if not np.all(second | (values == self.value0)):
            raise ValueError(f'Values to be randomised must be in the domain {{"{self.value0}", "{self.value1}"}}')
        flips = samplers.bernoulli(self._noise(), size=values.shape, rng=self._test_rng)
        randomised: NDArray[Any] = np.array([self.value0, self.value1])[(second != flips).astype(np.intp)]
        return randomised


# The remaining part of epsilon if a weight and the sum of all weights have an error of two steps of the grid each; a
# step is at most 2**-20 of the scale, and of the scale times epsilon.
_KEPT: Final = 1 - 2.0**-18
_LEAST_EPSILON: Final = 2.0**-20
# The sum of two integers up to here is exact as a float.
_EXACT: Final = 2.0**52


class Exponential(SecureNoise, mechanisms.Exponential):
    """The choice is made by `dpnoise.Exponential`.

    With a ``measure``, epsilon must be at least 2**-20: utilities and the logarithms of weights are rounded to a grid,
    and the cost of rounding weights is subtracted from epsilon first, since weights may depend on the data.
    """

    def _noise(self) -> Any:
        if self.measure and self.epsilon < _LEAST_EPSILON:
            raise ParameterError(f"epsilon must be at least 2**-20 with a measure, got {self.epsilon}")
        return self._mechanism(dpnoise.Exponential)

    def _mechanism(self, kind: Any) -> Any:
        if noiseless(self):
            return None
        return _mechanism(kind, self.epsilon, self.sensitivity, self.monotonic)

    def randomise(self, value: None = None) -> Any:
        """Choose a candidate, and return it, or its index when there are no names.

        The ``value`` must be None, as by the host. A ValueError says that a value was given, or that a utility is not a
        number or too large to be exact.
        """
        self._check_all(value)
        floats = all(isinstance(number, float) for number in self.utility)
        utility = reals_of(np.array(self.utility) if floats else self.utility, "utility")
        index = self._choose_weighed(utility) if self.measure else self._choose(utility)
        return self.candidates[index] if self.candidates else index

    def _choose(self, utility: NDArray[Any]) -> int:
        mechanism = self._noise()
        if mechanism is None:
            best = np.flatnonzero(utility == utility.max())
            return int(best[dpnoise.Exponential(epsilon=1.0).release(np.zeros(best.size), rng=self._test_rng)])
        return int(mechanism.release(utility, rng=self._test_rng))

    def _choose_weighed(self, utility: NDArray[Any]) -> int:
        measure = np.array(self.measure, np.float64)
        allowed = measure > 0
        if not (measure >= 0).all() or not allowed.any():
            raise ParameterError("measure must have no negative numbers and not only zeros")
        if noiseless(self):
            # Only the weights decide among the best.
            allowed &= utility == utility[allowed].max()
            epsilon, sensitivity, monotonic, utility = 1.0, 1.0, True, np.zeros(utility.size)
        else:
            epsilon, sensitivity, monotonic = self.epsilon * _KEPT, self.sensitivity, self.monotonic
        width = sensitivity * (2 - monotonic) / epsilon * min(epsilon, 1.0)
        step = 2.0 ** (math.floor(math.log2(width)) - 20)  # about 2**-20 of the width
        # On the grid a utility changes by whole steps.
        steps = math.ceil(Fraction(sensitivity) / Fraction(step))
        mechanism = _mechanism(dpnoise.Exponential, epsilon, steps * step, monotonic)
        places = np.floor(utility[allowed] / step) + np.floor(mechanism.scale * np.log(measure[allowed]) / step)
        if not (np.abs(places) < _EXACT).all():
            raise ParameterError("utility must be numbers below 2**30 times sensitivity in magnitude")
        return int(np.flatnonzero(allowed)[mechanism.release(places * step, rng=self._test_rng)])


class PermuteAndFlip(Exponential, mechanisms.PermuteAndFlip):
    """The choice is made by `dpnoise.PermuteAndFlip`, with the host's distribution."""

    def _noise(self) -> Any:
        return self._mechanism(dpnoise.PermuteAndFlip)


@lru_cache(maxsize=256)
def _mechanism(kind: Any, epsilon: float, sensitivity: float, monotonic: bool) -> Any:
    return kind(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic)
