"""The bases of the mechanisms: the source of randomness, pickling, and arrays.

Also folding into bounds without the host's recursion, whose depth grows with the noise; and numbers derived from the
host's parameters, rounded in the private direction.
"""

from __future__ import annotations

import inspect
import math
import secrets
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import ParameterError
from dpnoise.bit_generator import SecureBitGenerator
from dpnoise.extend import array_of
from dpnoise.hazmat import ScriptedRng, SeededRng

# So many digits that a logarithm near 1 keeps enough of them for the smallest double; what overflows is infinite.
_DIGITS: Final = Context(prec=400, traps=[])


def pure_epsilon(epsilon: float, delta: float) -> float:
    """Return the epsilon of the pure mechanism that the host uses: ``epsilon - log(1 - delta)``, rounded down."""
    if delta == 0:
        return epsilon
    with localcontext(_DIGITS):
        exact = Decimal(epsilon) - (1 - Decimal(delta)).ln()
    return math.nextafter(float(exact), 0.0)


@lru_cache(maxsize=256)
def flip_probability(epsilon: float) -> float:
    """Return the probability of a false answer in randomised response: ``1 / (1 + exp(epsilon))``, rounded up."""
    if math.isinf(epsilon):
        return 0.0
    with localcontext(_DIGITS):
        exact = 1 / (1 + Decimal(epsilon).exp())
    return min(math.nextafter(float(exact), 1.0), 0.5)


_LARGEST: Final = 2**61


def fold(values: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Reflect each value at the bounds until it lies between them. Infinite values stay if both bounds are infinite."""
    with np.errstate(all="ignore"):  # a warning would tell of a value
        if not (np.isfinite(lower) and np.isfinite(upper)):
            values = np.where(values < lower, 2 * lower - values, values)
            return np.where(values > upper, 2 * upper - values, values)
        if lower == upper:
            return np.full_like(values, lower)
        # Differences of eighths are finite for all values and bounds; eighths of small bounds would lose digits.
        unit = 8.0 if max(abs(lower), abs(upper)) > 1 else 1.0
        first, period = lower / unit, 2 * (upper / unit - lower / unit)
        finite = np.isfinite(values)
        into = np.mod(np.where(finite, values, lower) / unit - first, period)
        return np.where(finite, np.clip(unit * (first + np.minimum(into, period - into)), lower, upper), values)


def fold_integers(values: NDArray[np.int64], lower: Any, upper: Any) -> NDArray[np.int64]:
    """Reflect integers at bounds that are multiples of a half, exactly."""
    twice_lower, twice_upper = (bound if np.isinf(bound) else round(2 * bound) for bound in (lower, upper))
    if not (np.isfinite(lower) and np.isfinite(upper)):
        # Saturated values are as far away as they can be, on either side.
        values = np.where(values < lower, _reflect(values, twice_lower), values)
        return np.where(values > upper, _reflect(values, twice_upper), values)
    period = twice_upper - twice_lower
    if period == 0:
        return np.full_like(values, -(-twice_lower // 2))
    first = -(-twice_lower // 2)
    # The first integer lies half a step above the bound, or on it.
    half = twice_lower % 2
    into = np.mod(np.mod(values, period) - first % period, period)
    folded: NDArray[np.int64] = first + np.minimum(into, np.mod(period - half - into, period))
    return folded


def check_integer_bounds(lower: Any, upper: Any) -> None:
    """Refuse bounds that `fold_integers` cannot double in 64 bits."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if np.isfinite(bound) and abs(bound) >= _LARGEST:
            raise ParameterError(f"{name} must be infinite or below 2**61 in magnitude, got {bound!r}")


def _reflect(values: NDArray[np.int64], twice_bound: Any) -> NDArray[np.int64]:
    if np.isinf(twice_bound):
        return values
    reflected: NDArray[np.int64] = np.int64(twice_bound) - np.clip(values, -(2**62), 2**62)
    return reflected


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
        elif "__init__" in vars(cls):  # a user's own constructor
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
    """The host's error message for other values."""

    def randomise_many(self, values: ArrayLike) -> NDArray[Any]:
        """Randomise each value of an array, much faster than by calls of ``randomise``.

        Each value costs as much as a call. The whole array costs as much as one call if the sensitivity bounds the
        change of all values together: in the L1 norm for Laplace and geometric noise, in the L2 norm for `Gaussian` and
        `GaussianAnalytic`. That does not hold for `LaplaceBoundedDomain`, nor for a `GaussianDiscrete` of a sensitivity
        above 1.

        Parameters
        ----------
        values : array_like
            The private values, in any shape: numbers, integers or labels, whatever ``randomise`` takes.

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
