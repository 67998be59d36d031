"""Mechanisms of the central model: a query's value in, a differentially private release out.

A mechanism is immutable and checks its parameters when it is made. Every one has ``epsilon``, ``delta``, ``cost`` and
``release``.
"""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import _native
from dpnoise._arrays import array_of
from dpnoise._native import ParameterError, ScriptedRng, SeededRng
from dpnoise.accounting import PrivacyCost

__all__ = ["DiscreteLaplace", "Laplace"]

Rng = SeededRng | ScriptedRng | None

# Integers up to here are exact as float64.
_EXACT = 2**53


class _Mechanism:
    """What mechanisms have in common: parameters that say all, and pure differential privacy."""

    __slots__ = ("_native",)

    _native: _native.Laplace | _native.DiscreteLaplace
    _parameters: ClassVar[tuple[str, ...]]

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return self._native.epsilon

    @property
    def delta(self) -> float:
        """The privacy parameter delta: 0."""
        return 0.0

    @property
    def cost(self) -> PrivacyCost:
        """What a release costs, of one value or of an array of the stated sensitivity."""
        return PrivacyCost(self.epsilon, self.delta)

    @property
    def scale(self) -> float:
        """The scale of the noise of a single value: P(noise) is proportional to exp(-abs(noise) / scale)."""
        return self._native.scale

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameters}

    def __repr__(self) -> str:
        """Show the call that makes this mechanism."""
        parameters = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({parameters})"

    def __eq__(self, other: object) -> bool:
        """Compare kind and parameters."""
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((type(self), *self._values().values()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters; there is no other state."""
        return _make, (type(self), self._values())


def _make(kind: type[_Mechanism], parameters: dict[str, Any]) -> _Mechanism:
    return kind(**parameters)


class Laplace(_Mechanism):
    """The Laplace mechanism for real values, exact and safe in floating point.

    Values are rounded to a grid of multiples of ``granularity`` (half up); exact discrete Laplace noise is added, and
    the exact sum is rounded once to a double. The release is epsilon-differentially private for neighbouring data sets
    whose values differ by at most ``sensitivity`` in the L1 norm, in floating point as on paper.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    sensitivity : float, default 1.0
        The L1 sensitivity of what is released, in its own unit; positive and finite.
    granularity : float, optional
        The step of the grid, a power of two. By default ``2**ceil(log2(sensitivity / epsilon) - 40)``, the finest one
        that is allowed: it adds less than 2**-40 of the noise's scale to the error.

    Attributes
    ----------
    sensitivity, granularity : float
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    An array of ``n`` values is released with a sensitivity of ``ceil(sensitivity / granularity) + n - 1`` steps, since
    rounding may push each value a little: for the default grid that widens the noise by less than ``n * 2**-39 /
    epsilon``, relatively.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis"; Mironov
    (2012), "On significance of the least significant bits for differential privacy", for what the grid prevents.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> mechanism = Laplace(epsilon=0.5, sensitivity=1.0)
    >>> released = mechanism.release(37.2)
    >>> low, high = mechanism.confidence_interval(released)
    """

    __slots__ = ()

    _native: _native.Laplace
    _parameters = ("epsilon", "sensitivity", "granularity")

    def __init__(self, *, epsilon: float, sensitivity: float = 1.0, granularity: float | None = None) -> None:
        self._native = _native.Laplace(epsilon=epsilon, sensitivity=sensitivity, granularity=granularity)

    @property
    def sensitivity(self) -> float:
        """The L1 sensitivity, in the values' unit."""
        return self._native.sensitivity

    @property
    def granularity(self) -> float:
        """The step of the grid, in the values' unit."""
        return self._native.granularity

    @overload
    def release(self, x: float, *, threads: int | None = None, rng: Rng = None) -> float: ...
    @overload
    def release(self, x: ArrayLike, *, threads: int | None = None, rng: Rng = None) -> Any: ...
    def release(self, x: Any, *, threads: int | None = None, rng: Rng = None) -> Any:
        """Release a value, or an array of values whose joint L1 sensitivity is ``sensitivity``.

        Parameters
        ----------
        x : float or array_like
            Finite real values; integers up to 2**53 in magnitude. Any shape and memory layout.
        threads : int, optional
            How many threads to use for an array; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        float or ndarray of float64
            Multiples of ``granularity`` as far as a double can hold them, of the shape of ``x``; magnitudes beyond the
            largest double saturate.

        Raises
        ------
        ParameterError
            When a value is not finite, or an integer too large to be exact as a float. Nothing has been drawn then.
        TypeError
            When ``x`` is not made of real numbers.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        if isinstance(x, float):
            return self._native.release_one(x, threads, rng)
        values = _reals(x)
        if values.ndim == 0 and not isinstance(x, np.ndarray):
            return self._native.release_one(values.item(), threads, rng)
        self._native.release(values, threads, rng)
        return values

    def error(self, level: float = 0.95) -> float:
        """Bound the error of a single release.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.

        Returns
        -------
        float
            The smallest multiple of the granularity, plus half a step for the rounding, that the error does not exceed
            with probability ``level`` or more; in the values' unit.

        Raises
        ------
        ParameterError
            When ``level`` is out of range.
        """
        return self._native.error(level, 1)

    def confidence_interval(self, released: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
        """Bracket the true value of each release.

        Parameters
        ----------
        released : float or array_like
            What `release` returned: the whole array, since its length counts.
        level : float, default 0.95
            The probability, for each value, that it lies in its interval.

        Returns
        -------
        lower, upper : float or ndarray of float64
            ``released`` minus and plus the error.

        Raises
        ------
        ParameterError
            When ``level`` is out of range.
        """
        values = _released(released)
        error = self._native.error(level, values.size)
        return values - error, values + error


class DiscreteLaplace(_Mechanism):
    """The discrete Laplace mechanism for integers, also called the geometric mechanism.

    Adds exact discrete Laplace noise of scale ``sensitivity / epsilon``. The release is epsilon-differentially private
    for neighbouring data sets whose values differ by at most ``sensitivity`` in the L1 norm.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    sensitivity : int, default 1
        The L1 sensitivity of what is released; positive.

    Attributes
    ----------
    sensitivity : int
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range, or ``sensitivity / epsilon`` is not from 2**-40 to 2**40.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".

    Examples
    --------
    >>> from dpnoise import DiscreteLaplace
    >>> counts = DiscreteLaplace(epsilon=1.0).release([120, 5, 0])
    """

    __slots__ = ()

    _native: _native.DiscreteLaplace
    _parameters = ("epsilon", "sensitivity")

    def __init__(self, *, epsilon: float, sensitivity: int = 1) -> None:
        if not isinstance(sensitivity, numbers.Integral) or isinstance(sensitivity, bool | np.timedelta64):
            raise TypeError(f"sensitivity must be a positive integer, got {sensitivity!r}")
        if not 0 < sensitivity < 2**63:
            raise ParameterError(f"sensitivity must be a positive integer below 2**63, got {sensitivity}")
        self._native = _native.DiscreteLaplace(epsilon=epsilon, sensitivity=int(sensitivity))

    @property
    def sensitivity(self) -> int:
        """The L1 sensitivity."""
        return self._native.sensitivity

    @overload
    def release(self, x: int, *, threads: int | None = None, rng: Rng = None) -> int: ...
    @overload
    def release(self, x: ArrayLike, *, threads: int | None = None, rng: Rng = None) -> Any: ...
    def release(self, x: Any, *, threads: int | None = None, rng: Rng = None) -> Any:
        """Release an integer, or an array of integers whose joint L1 sensitivity is ``sensitivity``.

        Parameters
        ----------
        x : int or array_like of int
            In the range of int64. Any shape, memory layout and integer dtype.
        threads : int, optional
            How many threads to use for an array; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        int or ndarray of int64
            Of the shape of ``x``. Sums beyond the range of int64 saturate.

        Raises
        ------
        ParameterError
            When a value is outside the range of int64. Nothing has been drawn then.
        TypeError
            When ``x`` is not made of integers.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        values = _integers(x)
        if values.ndim == 0 and not isinstance(x, np.ndarray):
            return self._native.release_one(values.item(), threads, rng)
        self._native.release(values, threads, rng)
        return values

    def error(self, level: float = 0.95) -> float:
        """Bound the error of each released value.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.

        Returns
        -------
        float
            The smallest whole number that the error does not exceed with probability ``level`` or more.

        Raises
        ------
        ParameterError
            When ``level`` is out of range.
        """
        return self._native.error(level)

    def confidence_interval(self, released: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
        """Bracket the true value of each release.

        Parameters
        ----------
        released : int or array_like of int
            What `release` returned.
        level : float, default 0.95
            The probability, for each value, that it lies in its interval.

        Returns
        -------
        lower, upper : float or ndarray of float64
            ``released`` minus and plus the error.

        Raises
        ------
        ParameterError
            When ``level`` is out of range.
        """
        error = self.error(level)
        values = _released(released)
        return values - error, values + error


def _released(released: Any) -> NDArray[np.float64]:
    values = array_of(released, "released")
    if values.dtype.kind not in "iuf":
        raise TypeError(f"released must be real numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def _reals(x: Any) -> NDArray[np.float64]:
    """Copy ``x`` to a new float64 array, exactly; no message may show a value."""
    given = array_of(x, "x")
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        if np.any(given > _EXACT) | np.any(given < -_EXACT):
            raise ParameterError("x must have integers of at most 2**53 in magnitude, or use DiscreteLaplace")
    elif given.dtype.kind == "f" and isinstance(x, list | tuple) and _has_large_integers(x):
        raise ParameterError("x must have integers of at most 2**53 in magnitude, or use DiscreteLaplace")
    elif given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise TypeError(f"x must be real numbers of at most 64 bits, got dtype {given.dtype}")
    return np.array(given, np.float64, order="C")


def _has_large_integers(x: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list that NumPy makes floats of has integers that this would round."""
    return any(isinstance(item, numbers.Integral) and abs(int(item)) > _EXACT for item in np.array(x, object).flat)


def _integers(x: Any) -> NDArray[np.int64]:
    """Copy ``x`` to a new int64 array, exactly; no message may show a value."""
    if isinstance(x, numbers.Integral) and not isinstance(x, bool) and not -(2**63) <= int(x) < 2**63:
        raise ParameterError("x must be in the range of int64")
    given = array_of(x, "x")
    if given.size == 0 and not isinstance(x, np.ndarray):
        given = given.astype(np.int64)  # an empty list has no dtype of its own
    if given.dtype.kind not in "iu":
        raise TypeError(f"x must be integers, got dtype {given.dtype}: round them, or use Laplace")
    if given.dtype.kind == "u" and given.dtype.itemsize == 8 and np.any(given > np.uint64(2**63 - 1)):
        raise ParameterError("x must be in the range of int64")
    return np.array(given, np.int64, order="C")
