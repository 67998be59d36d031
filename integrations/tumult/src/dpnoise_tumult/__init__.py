"""Tumult Core with secure and fast noise: functions of its `tmlt.core.random`, by the same names and arguments.

`patched` and `install` make Tumult Core's measurements use them, on the workers of Spark, too. Its checks, errors and
privacy functions do not change: Tumult Core states the cost of a release, for the neighbours of its metrics.

If a parameter is out of dpnoise's range, Tumult Core draws itself, which is exact but slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import tmlt.core.measurements.base as _base
import tmlt.core.measurements.noise_mechanisms as _noise
import tmlt.core.measurements.pandas_measurements.series as _series
import tmlt.core.random.continuous_gaussian as _continuous
import tmlt.core.random.discrete_gaussian as _discrete
import tmlt.core.random.inverse_cdf as _inverse_cdf
import tmlt.core.random.laplace as _laplace
import tmlt.core.random.rng as _rng
from numpy.typing import NDArray

import dpnoise
from dpnoise import SecureBitGenerator, samplers
from dpnoise.extend import Patch

__all__ = ["install", "laplace", "patched", "prng", "sample_dgauss"]

# The host's own functions, for parameters out of our range.
_host_prng, _host_laplace, _host_sample_dgauss = _rng.prng, _laplace.laplace, _discrete.sample_dgauss
_host_calls: Final = {
    kind: kind.__call__
    for kind in (
        _noise.AddLaplaceNoise,
        _noise.AddGeometricNoise,
        _noise.AddDiscreteGaussianNoise,
        _noise.AddGaussianNoise,
        _series.AddNoiseToSeries,
    )
}

# The coin of `_onto_grid` needs the upper bound.
_LAPLACE_SCALES: Final = 2.0**-900, 2.0**90
_GEOMETRIC_SCALES: Final = 2.0**-40, 2.0**40
_GAUSSIAN_SQUARES: Final = 2.0**-40, 2.0**80

_generator: Final = np.random.Generator(SecureBitGenerator())


def prng() -> np.random.Generator:
    """Return a NumPy generator with the bits of `dpnoise.SecureBitGenerator`, in this process and after a fork."""
    return _generator


def sample_dgauss(sigma_squared: float | Fraction) -> int:
    """Draw from the discrete Gaussian distribution.

    The scale is the root of ``sigma_squared``, rounded up to a multiple of 2**-79.

    Parameters
    ----------
    sigma_squared : int, float or Fraction
        The square of the scale: not negative and finite. dpnoise draws for values from 2**-40 to 2**80.

    Returns
    -------
    int
        The noise.

    Examples
    --------
    >>> from dpnoise_tumult import sample_dgauss
    >>> noisy = 120 + sample_dgauss(sigma_squared=100)
    """
    if not isinstance(sigma_squared, int | float | Fraction) or not _within(sigma_squared, _GAUSSIAN_SQUARES):
        return int(_host_sample_dgauss(sigma_squared))
    return samplers.discrete_gaussian(_root(sigma_squared))


def laplace(u: float, b: float, step_size: int = 63) -> float:
    """Draw from the Laplace distribution around a value: the value with noise.

    The value is rounded to one of its two neighbours on a grid, at random and without a bias, and gets noise there.
    That is ``d / b``-differentially private for values that differ by ``d``, for every ``d``, in floating point as on
    paper.

    The result is a multiple of the grid's step, which is 2**-39 to 2**-38 of the scale, as far as a double can hold it.
    The scale is ``b`` and up to two steps more.

    Parameters
    ----------
    u : float
        The private value, in the unit of the result; finite.
    b : float
        The scale of the noise; positive and finite. dpnoise draws for scales from 2**-900 to 2**90.
    step_size : int, default 63
        The number of bits that Tumult Core draws at a time; positive. It has no effect where dpnoise draws.

    Returns
    -------
    float
        The value with noise.

    Examples
    --------
    >>> from dpnoise_tumult import laplace
    >>> noisy = laplace(u=37.2, b=2.0)
    """
    value, scale = _as_float(u), _as_float(b)
    if value is None or scale is None or not _within(scale, _LAPLACE_SCALES) or step_size < 1:
        return float(_host_laplace(u, b, step_size))
    return _add_laplace(value, scale)


def patched() -> AbstractContextManager[None]:
    """Let Tumult Core's measurements use the functions of this module, within a ``with`` block.

    If a measurement is sent to another process within the block, as Spark does, unpickling it there calls `install`.
    Names that were imported before are not replaced. The patch holds for the whole process until the last block in any
    thread ends, also by an exception.

    Laplace, geometric and discrete Gaussian noise is drawn by dpnoise, for a whole series at once. `AddGaussianNoise`
    draws around the value with Tumult Core's function and so rounds once; without the patch it adds a rounded sample to
    the value, which reveals low-order bits. Tumult Core's own draws get their random bits from
    `dpnoise.SecureBitGenerator`.

    Examples
    --------
    >>> from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise
    >>> from dpnoise_tumult import patched
    >>> add_noise = AddGeometricNoise(alpha=2)
    >>> with patched():
    ...     noisy = add_noise(120)
    """
    return _PATCH.within()


def install() -> None:
    """Do what `patched` does, for as long as the process runs. Calling it again changes nothing."""
    _PATCH.enter()


# --- one value ---------------------------------------------------------------------------------------------------


def _call_laplace(measurement: Any, val: Any) -> float:
    b = _as_float(_rounded_up(measurement.scale))
    if b is None or not _within(b, _LAPLACE_SCALES) or not isinstance(val, float) or not math.isfinite(val):
        return float(_host_calls[_noise.AddLaplaceNoise](measurement, val))
    return _add_laplace(float(val), b)


def _call_geometric(measurement: Any, value: Any) -> int:
    alpha = _rounded_up(measurement.alpha)
    if not _within(alpha, _GEOMETRIC_SCALES) or not isinstance(value, int | np.int64):
        return int(_host_calls[_noise.AddGeometricNoise](measurement, value))
    return int(value) + samplers.discrete_laplace(alpha)


def _call_discrete_gaussian(measurement: Any, value: Any) -> int:
    sigma_squared = _rounded_up(measurement.sigma_squared)
    if not _within(sigma_squared, _GAUSSIAN_SQUARES) or not isinstance(value, int | np.int64):
        return int(_host_calls[_noise.AddDiscreteGaussianNoise](measurement, value))
    return int(value) + samplers.discrete_gaussian(_root(sigma_squared))


def _call_gaussian(measurement: Any, value: Any) -> float:
    """Draw around the value, where the host adds a rounded sample to it."""
    sigma_squared = _rounded_up(measurement.sigma_squared)
    if not 0 < sigma_squared < math.inf or not isinstance(value, float) or not math.isfinite(value):
        return float(_host_calls[_noise.AddGaussianNoise](measurement, value))
    return float(_continuous.gaussian(sigma_squared=sigma_squared, u=float(value)))


# --- a series ----------------------------------------------------------------------------------------------------


def _call_series(measurement: Any, values: Any) -> Any:
    """Add noise to all values at once if they have the type of the domain; otherwise let the host do it."""
    add = _ADD_TO_COLUMN.get(type(measurement.noise_measurement))
    noisy = None
    if add and isinstance(values, _series.pd.Series) and len(values):
        noisy = add(measurement.noise_measurement, values.to_numpy())
    if noisy is None:
        return _host_calls[_series.AddNoiseToSeries](measurement, values)
    return _series.pd.Series(noisy, values.index, name=values.name)


def _add_laplace_to_column(measurement: Any, values: NDArray[Any]) -> NDArray[Any] | None:
    b = _as_float(_rounded_up(measurement.scale))
    if b is None or not _within(b, _LAPLACE_SCALES) or values.dtype != np.float64 or not np.isfinite(values).all():
        return None
    mechanism = _laplace_mechanism(b)
    return np.asarray(mechanism.release(_onto_grid(values, mechanism.granularity), threads=1))


def _add_geometric_to_column(measurement: Any, values: NDArray[Any]) -> NDArray[Any] | None:
    alpha = _rounded_up(measurement.alpha)
    if not _within(alpha, _GEOMETRIC_SCALES) or values.dtype != np.int64:
        return None
    return _sum(values, samplers.discrete_laplace(alpha, size=values.size, threads=1))


def _add_discrete_gaussian_to_column(measurement: Any, values: NDArray[Any]) -> NDArray[Any] | None:
    sigma_squared = _rounded_up(measurement.sigma_squared)
    if not _within(sigma_squared, _GAUSSIAN_SQUARES) or values.dtype != np.int64:
        return None
    return _sum(values, samplers.discrete_gaussian(_root(sigma_squared), size=values.size, threads=1))


_ADD_TO_COLUMN: Final = {
    _noise.AddLaplaceNoise: _add_laplace_to_column,
    _noise.AddGeometricNoise: _add_geometric_to_column,
    _noise.AddDiscreteGaussianNoise: _add_discrete_gaussian_to_column,
}


def _sum(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[Any]:
    """Add as the host does: sums beyond 64 bits are Python's integers."""
    total = values + noise
    if (((values ^ total) & (noise ^ total)) < 0).any():
        return np.asarray(values.astype(object) + noise.astype(object))
    return total


# --- arithmetic --------------------------------------------------------------------------------------------------


def _add_laplace(value: float, b: float) -> float:
    mechanism = _laplace_mechanism(b)
    return mechanism.release(float(_onto_grid(value, mechanism.granularity)))


@lru_cache(maxsize=256)
def _laplace_mechanism(b: float) -> dpnoise.Laplace:
    granularity = math.ldexp(1.0, math.frexp(b)[1] - 39)
    # Rounding at random needs a scale of half a step more than b.
    return dpnoise.Laplace(epsilon=1.0, sensitivity=b + granularity, granularity=granularity)


def _onto_grid(x: Any, granularity: float) -> Any:
    """Round a float or an array to the grid, towards zero or away from it, at random, exactly and without a bias."""
    beyond = np.fmod(x, granularity)
    unit = granularity * 2.0**-53
    # This difference is exact where it matters, from 0 to the unit.
    excess = abs(beyond) - granularity * _generator.random(np.shape(x) or None)
    away, tied = excess >= unit, (excess > 0) & (excess < unit)
    if tied.any():  # at most once in 2**53 values
        away = away | np.vectorize(samplers.bernoulli, otypes=[bool])(np.where(tied, excess / unit, 0.0))
    return (x - beyond) + np.copysign(granularity, x) * away


@lru_cache(maxsize=256)
def _root(square: float | Fraction) -> Fraction:
    """Return the square root, rounded up to a multiple of 2**-79."""
    return Fraction(math.isqrt(math.ceil(Fraction(square) * 2**158) - 1) + 1, 2**79)


@lru_cache(maxsize=256)
def _rounded_up(parameter: Any) -> float:
    """Return the number that the host draws with; the host takes longer to compute it than to draw."""
    number: float = parameter.to_float(round_up=True)
    return number


def _as_float(x: Any) -> float | None:
    """Return the float that is exactly this finite number, if there is one."""
    if isinstance(x, int):
        return float(x) if abs(x) <= 2**53 else None
    return float(x) if isinstance(x, float) and math.isfinite(x) else None


def _within(x: float | Fraction, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= x <= bounds[1]


# --- the patch ---------------------------------------------------------------------------------------------------


def _reduce_ex(measurement: Any, protocol: Any) -> tuple[Any, ...]:
    """Pickle as the measurement's class does, but unpickle by `_unpickle`."""
    reduced: Any = object.__reduce_ex__(measurement, protocol)
    make, arguments, *state = reduced
    return _unpickle, (make, arguments), *state


def _unpickle(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Install the patch, and make the measurement that was pickled under it."""
    if _rng.prng is not prng:
        install()
    return make(*arguments)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    functions: dict[Callable[..., Any], Callable[..., Any]] = {
        _host_prng: prng,
        _host_laplace: laplace,
        _host_sample_dgauss: sample_dgauss,
    }
    for module in (_noise, _series, _discrete, _laplace, _inverse_cdf, _rng):
        for name, value in vars(module).items():
            if callable(value) and value in functions:
                yield module, name, functions[value]
    calls = (_call_laplace, _call_geometric, _call_discrete_gaussian, _call_gaussian, _call_series)
    for kind, call in zip(_host_calls, calls, strict=True):
        yield kind, "__call__", call
    yield _base.Measurement, "__reduce_ex__", _reduce_ex


_PATCH: Final = Patch(_replacements)
