"""The bases of mechanisms that add noise, to real values and to integers."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from fractions import Fraction
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import array_of, doubles, dtype_of, like, read_by, reals_of
from dpnoise._calls import REQUIRED, hot, misfit
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer
from dpnoise._types import AnySeries, Integer, Integers, ListedIntegers, ListedReals, Number, Real, Reals, Rng
from dpnoise.mechanisms._mechanism import COUNTS, Mechanism

_FLOAT64 = np.float64  # a name of this module is found faster; so is a type than a subclass


class Noise(Mechanism):
    """A mechanism that adds noise."""

    __slots__ = ()

    _native: _native.Additive

    @property
    def scale(self) -> float:
        """The scale of the noise of a single value, in the values' unit."""
        return self._native.scale

    @property
    def sensitivity(self) -> float:
        """The sensitivity, in the values' unit."""
        return self._native.sensitivity

    def error(self, level: Number = 0.95) -> float:
        """Bound the error of a single release by the smallest sufficient number, in the values' unit.

        For integers it is a whole number, for real values a multiple of the granularity and half a step for the
        rounding.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        return self._native.error(level, 1)

    @overload
    def confidence_interval(self, released: Real, level: Number = 0.95) -> tuple[float, float]: ...
    @overload
    def confidence_interval(self, released: AnySeries, level: Number = 0.95) -> tuple[AnySeries, AnySeries]: ...
    @overload
    def confidence_interval(
        self, released: ListedReals, level: Number = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    @overload
    def confidence_interval(self, released: Reals, level: Number = 0.95) -> tuple[Any, Any]: ...
    def confidence_interval(self, released: Any, level: Number = 0.95) -> tuple[Any, Any]:
        """Bracket the true value of each release.

        Parameters
        ----------
        released : float or array_like
            What `release` returned: the whole array, since its length may count.
        level : float, default 0.95
            The probability with which the interval of each value holds: between 0 and 1, both excluded.

        Returns
        -------
        lower, upper : float, ndarray or series of float64
            ``released`` minus and plus the error; series if ``released`` is one.
        """
        values = _real_numbers(released, "released")
        error = self._native.error(level, values.size)
        with np.errstate(all="ignore"):  # of infinities and NaN, which stay unchanged
            return like(released, values - error), like(released, values + error)


class RealNoise(Noise):
    """A mechanism that rounds real values to a grid and adds noise there."""

    __slots__ = ()

    @property
    def granularity(self) -> float:
        """The step of the grid for a single value, in the values' unit."""
        return self._native.granularity

    def scale_for(self, count: Integer) -> float:
        """Return the scale of the noise of each value in a release of several, in the values' unit.

        The scale is a little more than ``scale``, since the rounding of each value adds to the sensitivity.

        Parameters
        ----------
        count : int
            The number of values in the release, which is the size of the array, from 1 to 2**60 - 1.
        """
        return self._native.scale_for(integer(count, "count", COUNTS))

    def granularity_for(self, count: Integer) -> float:
        """Return the step of the grid for a release of several values, in the values' unit.

        It is the given `granularity`, or the default one for so many values.

        Parameters
        ----------
        count : int
            The number of values in the release, which is the size of the array, from 1 to 2**60 - 1.
        """
        return self._native.granularity_for(integer(count, "count", COUNTS))

    @overload
    def density(self, x: Real) -> float: ...
    @overload
    def density(self, x: AnySeries) -> AnySeries: ...
    @overload
    def density(self, x: ListedReals) -> NDArray[np.float64]: ...
    @overload
    def density(self, x: Reals) -> Any: ...
    def density(self, x: Any) -> Any:
        """Return the density of the continuous distribution that the noise of a single value has on paper, for plots.

        The noise that is drawn is discrete: each multiple of ``granularity`` has its own probability, which on the
        default grid is ``granularity`` times this density in all digits of a float. A release is distributed like its
        value plus the noise. Nothing is drawn or spent.

        Parameters
        ----------
        x : float or array_like
            The noise, in the values' unit: of a release its distance from the value.

        Returns
        -------
        float, ndarray or series of float64
            The density at each number, in one over the values' unit, of the shape of ``x``; NaN for NaN.
        """
        with np.errstate(all="ignore"):  # far out it is 0
            return like(x, self._density(_real_numbers(x, "x") / self.scale) / self.scale)

    @abstractmethod
    def _density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the density of noise of scale 1."""

    @overload
    def release(self, x: Real, *, threads: int | None = None, rng: Rng = None) -> float: ...
    @overload
    def release(self, x: AnySeries, *, threads: int | None = None, rng: Rng = None) -> AnySeries: ...
    @overload
    def release(self, x: ListedReals, *, threads: int | None = None, rng: Rng = None) -> NDArray[np.float64]: ...
    @overload
    def release(self, x: Reals, *, threads: int | None = None, rng: Rng = None) -> Any: ...
    @hot
    def release(self, x: Any, *given: NoReturn, threads: int | None = None, rng: Rng = None, **named: NoReturn) -> Any:
        """Release a value, or an array of values whose joint sensitivity is ``sensitivity``.

        An array so long that its noise would be out of range is refused.

        Parameters
        ----------
        x : float or array_like
            Finite real values; integers up to 2**53 in magnitude. No table: its columns have sensitivities of their
            own.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        float, ndarray of float64, or series of float64
            Multiples of ``granularity_for(x.size)`` as far as a double can hold them, of the shape of ``x``; magnitudes
            beyond the largest double saturate. A series of pandas or polars gives a series with the same name and
            index: **these labels are released as they are**, so they must be public. The index of ``value_counts()`` is
            not, nor is its order: it says which values occur, and which is the most frequent.
        """
        if (type(x) is float or type(x) is _FLOAT64) and not given and not named:
            return self._native.release_one(x, threads, rng)
        if x is REQUIRED or given or named:
            raise misfit(RealNoise.release, (self, x, *given), named)
        values = doubles(reals_of(x, "x", ", or use a discrete mechanism", tables=False), copy=True)
        if values.ndim == 0 and not isinstance(x, np.ndarray):
            return self._native.release_one(values.item(), threads, rng)
        self._native.release(values, threads, rng)
        return like(x, values)

    def _steps(self) -> int:
        """Count the steps of the sensitivity of one value; the rounding of each value of an array adds to it."""
        return math.ceil(Fraction(self.sensitivity) / Fraction(self.granularity))


class IntegerNoise(Noise):
    """A mechanism that adds whole noise to integers."""

    __slots__ = ()

    @overload
    def release(self, x: Integer, *, threads: int | None = None, rng: Rng = None) -> int: ...
    @overload
    def release(self, x: AnySeries, *, threads: int | None = None, rng: Rng = None) -> AnySeries: ...
    @overload
    def release(self, x: ListedIntegers, *, threads: int | None = None, rng: Rng = None) -> NDArray[np.int64]: ...
    @overload
    def release(self, x: Integers, *, threads: int | None = None, rng: Rng = None) -> Any: ...
    @hot
    def release(self, x: Any, *given: NoReturn, threads: int | None = None, rng: Rng = None, **named: NoReturn) -> Any:
        """Release an integer, or an array of integers whose joint sensitivity is ``sensitivity``.

        Parameters
        ----------
        x : int or array_like of int
            Integers in the range of int64, of any integer dtype. No table: its columns have sensitivities of their own.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        int, ndarray of int64, or series of int64
            The noisy integers, of the shape of ``x``. Sums beyond the range of int64 saturate, or with noise that
            several parties share wrap around. A series of pandas or polars gives a series with the same name and index:
            **these labels are released as they are**, so they must be public. The index of ``value_counts()`` is not,
            nor is its order: it says which values occur, and which is the most frequent.
        """
        if type(x) is int and not given and not named and -(2**63) <= x < 2**63:
            return self._native.release_one(x, threads, rng)
        if x is REQUIRED or given or named:
            raise misfit(IntegerNoise.release, (self, x, *given), named)
        values = _integers(x)
        if values.ndim == 0 and not isinstance(x, np.ndarray):
            return self._native.release_one(values.item(), threads, rng)
        self._native.release(values, threads, rng)
        return like(x, values)


def native(kind: str, **arguments: Number | str | None) -> _native.Additive:
    """Make a native mechanism of a kind whose parameters take each other's place: None is for one that does not."""
    return _native.Additive(kind, **{name: value for name, value in arguments.items() if value is not None})


def checked_sensitivity(sensitivity: Integer) -> int:
    """Return a positive integer below 2**63; refuse everything else."""
    if not isinstance(sensitivity, numbers.Integral) or isinstance(sensitivity, bool | np.timedelta64):
        raise TypeError(f"sensitivity must be a positive integer, got {sensitivity!r}")
    if not 0 < sensitivity < 2**63:
        raise ParameterError(f"sensitivity must be a positive integer below 2**63, got {sensitivity}")
    return int(sensitivity)


def _real_numbers(given: Any, name: str) -> NDArray[np.float64]:
    values = array_of(given, name, tables=False)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got dtype {dtype_of(values)}")
    return doubles(values)


def _integers(x: Any) -> NDArray[np.int64]:
    """Copy ``x`` to a new int64 array, exactly; no message may show a value."""
    if isinstance(x, numbers.Integral) and not isinstance(x, bool):
        x = read_by(int, x, "x")
        if not -(2**63) <= x < 2**63:
            raise ParameterError("x must be in the range of int64")
    given = array_of(x, "x", tables=False)
    if given.size == 0 and isinstance(x, list | tuple):
        given = given.astype(np.int64)  # an empty list has no dtype of its own
    if given.dtype.kind not in "iu":
        raise TypeError(
            f"x must be integers, got dtype {dtype_of(given)}: round them, or use a mechanism for real values"
        )
    if given.dtype.kind == "u" and given.dtype.itemsize == 8 and np.any(given > np.uint64(2**63 - 1)):
        raise ParameterError("x must be in the range of int64")
    return np.array(given, np.int64, order="C")
