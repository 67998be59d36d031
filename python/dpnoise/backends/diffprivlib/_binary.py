from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import samplers
from dpnoise.backends.diffprivlib._exact import flip_probability
from dpnoise.backends.diffprivlib._host import mechanisms
from dpnoise.backends.diffprivlib._mechanism import NoiseForArrays


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
