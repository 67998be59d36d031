"""Choices: yes or no, and among candidates by their utilities."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NoReturn

import numpy as np
from diffprivlib import mechanisms
from numpy.typing import NDArray

import dpnoise
from dpnoise import ParameterError, samplers
from dpnoise.extend import reals_of
from dpnoise_diffprivlib._laplace import noiseless
from dpnoise_diffprivlib._mechanism import NoiseForArrays, SecureNoise, flip_probability


class Binary(NoiseForArrays, mechanisms.Binary):
    """The label is flipped with a probability of ``1 / (1 + exp(epsilon))``, rounded up in its last digits.

    A release is epsilon-differentially private for neighbours that have either label.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for labels that are never flipped.
    value0, value1 : str
        The two labels, which differ. Never take them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can undo the flip. By default each call
        draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Holohan, Leith and Mason (2017), "Optimal differentially private mechanisms for randomised response".
    """

    _kinds = "U"
    _kinds_refused = "Value to be randomised must be a string"

    @property
    def _example(self) -> str:
        label: str = self.value0
        return label

    def _noise(self) -> float:
        return flip_probability(self.epsilon)

    def _check_all(self, value: Any) -> bool:
        if isinstance(value, str) and value not in (self.value0, self.value1):
            self._refuse()
        checked: bool = super()._check_all(value)
        return checked

    def _refuse(self) -> NoReturn:  # the host's message shows the value
        raise ValueError(f'Value to be randomised is not in the domain {{"{self.value0}", "{self.value1}"}}')

    def randomise(self, value: str) -> str:
        """Randomise one of the two labels; another value raises a ValueError.

        Parameters
        ----------
        value : str
            The private label: ``value0`` or ``value1``.

        Returns
        -------
        str
            The same label or the other one.
        """
        self._check_all(value)
        flip = samplers.bernoulli(self._noise(), rng=self._test_rng)
        return str(self.value1 if (value == self.value1) != flip else self.value0)

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        second = values == self.value1
        if not np.all(second | (values == self.value0)):
            self._refuse()
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

    A release is epsilon-differentially private for neighbours between which each utility changes by at most
    ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive, and at least 2**-20 with a ``measure``. Infinite for the best candidate,
        without noise.
    sensitivity : float
        The most that a utility changes between neighbours, in the utilities' unit: finite and not negative, with
        ``sensitivity / epsilon`` below 2**900. Zero for the best candidate, without noise.
    utility : list of float
        The private utility of each candidate: at least one, all finite.
    monotonic : bool, default False
        Whether between neighbours all utilities rise or all fall, as counts do when a person is added or removed. The
        scale is ``sensitivity / epsilon`` then, and ``2 * sensitivity / epsilon`` otherwise.
    candidates : list, optional
        The public names of the candidates, one for each utility. By default an index is released.
    measure : list of float, optional
        The weight of each candidate, by which its probability is multiplied: one for each utility, finite, not negative
        and not all 0. By default all weights are equal.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can repeat the choice. By default each call
        draws a fresh key from the operating system. A seed raises a ValueError.

    Notes
    -----
    With a ``measure``, utilities and the logarithms of weights are rounded to a grid, and the cost of rounding weights
    is subtracted from epsilon first, since weights may depend on the data.

    References
    ----------
    McSherry and Talwar (2007), "Mechanism design via differential privacy".
    """

    @classmethod
    def _check_utility_candidates_measure(cls, utility: Any, candidates: Any, measure: Any) -> Any:
        if not isinstance(utility, list):  # the host's message shows the utilities
            raise TypeError(f"Utility must be a list, got a {type(utility)}.")
        return super()._check_utility_candidates_measure(utility, candidates, measure)

    @classmethod
    def _find_probabilities(cls, *_: Any) -> None:
        """Compute nothing: the host's probabilities overflow for some utilities, and NumPy warns of it."""

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

        A ValueError says that a value was given, or that a utility is not a number or too large to be exact.

        Parameters
        ----------
        value : None, optional
            Nothing: the host has this parameter in all mechanisms. The utilities are those of the constructor.

        Returns
        -------
        object
            The name of the candidate, or its index, an int.
        """
        if value is not None:  # the host's message shows it
            raise ValueError("Value to be randomised must be None")
        self._check_all(value)
        floats = all(isinstance(number, float) for number in self.utility)
        utility = reals_of(np.array(self.utility) if floats else self.utility, "utility")
        if np.isnan(utility).any():
            raise ParameterError("utility must have no NaN")
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
        with np.errstate(all="ignore"):  # a warning would tell of a utility
            places = np.floor(utility[allowed] / step) + np.floor(mechanism.scale * np.log(measure[allowed]) / step)
        if not (np.abs(places) < _EXACT).all():
            raise ParameterError("utility must be numbers below 2**30 times sensitivity in magnitude")
        return int(np.flatnonzero(allowed)[mechanism.release(places * step, rng=self._test_rng)])


class PermuteAndFlip(Exponential, mechanisms.PermuteAndFlip):
    """The choice is made by `dpnoise.PermuteAndFlip`, with the host's distribution.

    A release is epsilon-differentially private for neighbours between which each utility changes by at most
    ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive. Infinite for the best candidate, without noise.
    sensitivity : float
        The most that a utility changes between neighbours, in the utilities' unit: finite and not negative, with
        ``sensitivity / epsilon`` below 2**900. Zero for the best candidate, without noise.
    utility : list of float
        The private utility of each candidate: at least one, all finite.
    monotonic : bool, default False
        Whether between neighbours all utilities rise or all fall, as counts do when a person is added or removed. The
        scale is ``sensitivity / epsilon`` then, and ``2 * sensitivity / epsilon`` otherwise.
    candidates : list, optional
        The public names of the candidates, one for each utility. By default an index is released.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can repeat the choice. By default each call
        draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection".
    """

    def _noise(self) -> Any:
        return self._mechanism(dpnoise.PermuteAndFlip)


@lru_cache(maxsize=256)
def _mechanism(kind: Any, epsilon: float, sensitivity: float, monotonic: bool) -> Any:
    return kind(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic)
