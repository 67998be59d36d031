"""The bases of the mechanisms: the source of randomness, pickling, and arrays."""

from __future__ import annotations

import inspect
import secrets
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._parameters import array_of
from dpnoise.bit_generator import SecureBitGenerator
from dpnoise.hazmat import ScriptedRng, SeededRng

# diffprivlib's tools and models pass NumPy's global generator if no seed was set.
UNSEEDED: Final = np.random.mtrand._rand

SEEDS: Final = "since anybody who knows a seed can subtract the noise"


class SecureNoise:
    """A mechanism of the host whose noise is drawn by dpnoise. Comes before the host's class among the bases."""

    _rng: Any

    def __init_subclass__(cls) -> None:
        # The host shows and checks its parameters by the signature, which the constructor below hides.
        host = next((base for base in cls.__bases__ if base.__module__.startswith("diffprivlib.")), None)
        if host is not None:
            cls.__signature__ = inspect.signature(host)  # type: ignore[attr-defined]
        elif "__init__" in vars(cls):  # a user's own
            shown = inspect.signature(cls.__init__)
            cls.__signature__ = shown.replace(parameters=[*shown.parameters.values()][1:])  # type: ignore[attr-defined]

    def __init__(self, *, random_state: Any = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._rng = None  # so that the host's samplers cannot be used by mistake
        self.random_state = random_state
        self._noise()

    @property
    def random_state(self) -> Any:
        """None, or a value that stands for None, or a generator of `dpnoise.hazmat`."""
        return self._random_state

    @random_state.setter
    def random_state(self, given: Any) -> None:
        if not isinstance(given, SeededRng | ScriptedRng) and not is_secure(given):
            raise ValueError(
                f"random_state must be None, {SEEDS}, or for tests a generator of dpnoise.hazmat, "
                f"got {type(given).__name__}"
            )
        self._random_state = given

    @property
    def _test_rng(self) -> SeededRng | ScriptedRng | None:
        given = self._random_state
        return given if isinstance(given, SeededRng | ScriptedRng) else None

    def _noise(self) -> Any:
        """Return the mechanism for the current parameters, None for no noise, or raise a ParameterError."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_random_state": self._test_rng}


class NoiseForArrays(SecureNoise):
    """A mechanism that takes arrays, too."""

    _example: Any
    """A value that passes the host's checks where the parameters do."""
    _kinds: str
    """The kinds of the dtypes that are allowed."""
    _kinds_refused: str
    """What the host says of other values."""

    def randomise_many(self, values: ArrayLike) -> NDArray[Any]:
        """Randomise each value of an array, much faster than by calls of ``randomise``.

        Each value costs as much as a call. The whole array costs as much as one call if the sensitivity bounds the
        change of all values together: in the L1 norm for Laplace and geometric noise, in the L2 norm for `Gaussian` and
        `GaussianAnalytic`. That does not hold for `LaplaceBoundedDomain`, nor for a `GaussianDiscrete` of a sensitivity
        above 1.

        Parameters
        ----------
        values : array_like
            Values for ``randomise``, of any shape.

        Returns
        -------
        ndarray
            Of the shape of ``values``: float64, int64 or, for `Binary`, text.
        """
        self._check_all(self._example)  # type: ignore[attr-defined]
        return self._randomise_array(self._array_of(values))

    def _array_of(self, values: ArrayLike) -> NDArray[Any]:
        given = array_of(values, "values")
        if given.size and given.dtype.kind not in self._kinds:
            raise TypeError(f"{self._kinds_refused}, got an array of dtype {given.dtype}")
        return given

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError


def is_secure(state: Any) -> bool:
    """Whether the host's ``random_state`` is one for which it draws securely, or could."""
    if isinstance(state, np.random.RandomState):
        return state is UNSEEDED or isinstance(state._bit_generator, SecureBitGenerator)
    return state is None or isinstance(state, secrets.SystemRandom)
