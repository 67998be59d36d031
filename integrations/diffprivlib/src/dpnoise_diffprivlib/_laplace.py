"""The Laplace mechanism, and its truncated, folded, snapping and bounded variants."""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
from diffprivlib import mechanisms
from numpy.typing import ArrayLike, NDArray

import dpnoise
from dpnoise import ParameterError, samplers
from dpnoise.extend import reals_of
from dpnoise_diffprivlib._mechanism import NoiseForArrays, fold, pure_epsilon

# `patched` replaces its name in the host.
_randomise_of_host: Final = mechanisms.Snapping.randomise


class RealNoise(NoiseForArrays):
    """A mechanism that adds noise to real values."""

    _example = 0.0
    _kinds = "iufb"
    _kinds_refused = "Value to be randomised must be a number"

    def randomise(self, value: float) -> float:
        """Randomise a value.

        NaN is returned unchanged, as by the host, and so are infinities, unless bounds clamp them. A ValueError says
        that a parameter has been set to an invalid value, or that a float does not hold the value exactly.

        Parameters
        ----------
        value : float
            The private value: a number that a float holds exactly.

        Returns
        -------
        float
            The noisy value, within the bounds if the mechanism has any.
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
        floats = as_floats(values)
        finite = np.isfinite(floats)
        if noise is None:
            return floats
        if finite.all():
            return np.asarray(noise.release(as_numbers(values), rng=self._test_rng))
        floats[finite] = noise.release(values[finite], rng=self._test_rng)
        return floats


class Laplace(RealNoise, mechanisms.Laplace):
    """The noise has a scale of ``sensitivity / (epsilon - log(1 - delta))``, for the sensitivity on the grid.

    A release is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: not negative, and positive where ``delta`` is 0. Infinite for no noise.
    delta : float, default 0.0
        The privacy parameter: from 0 to 1. With 1 there is no noise.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with ``sensitivity /
        (epsilon - log(1 - delta))`` below 2**940. Zero for no noise.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Holohan, Leith and Mason (2015), "Differential privacy in metric spaces: numerical, categorical and functional data
    under the one roof".
    """

    def _noise(self) -> Any:
        if noiseless(self) or self.delta == 1:
            return None
        return _laplace(self.epsilon, self.delta, self.sensitivity)


class LaplaceTruncated(Laplace, mechanisms.LaplaceTruncated):
    """A release of `Laplace`, clamped to the bounds.

    A release is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: not negative, and positive where ``delta`` is 0. Infinite for no noise.
    delta : float, default 0.0
        The privacy parameter: from 0 to 1. With 1 there is no noise.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with ``sensitivity /
        (epsilon - log(1 - delta))`` below 2**940. Zero for no noise.
    lower, upper : float
        The smallest and the largest release, the smaller one first: a release outside is clamped to them. Infinite for
        no bound. Never take them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.
    """

    def randomise(self, value: float) -> float:
        bounded: float = self._truncate(super().randomise(value))
        return bounded

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.clip(super()._randomise_array(values), self.lower, self.upper))


class LaplaceFolded(Laplace, mechanisms.LaplaceFolded):
    """A release of `Laplace` outside of the bounds is reflected at them until it lies between them.

    A release is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: not negative, and positive where ``delta`` is 0. Infinite for no noise.
    delta : float, default 0.0
        The privacy parameter: from 0 to 1. With 1 there is no noise.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with ``sensitivity /
        (epsilon - log(1 - delta))`` below 2**940. Zero for no noise.
    lower, upper : float
        The smallest and the largest release, the smaller one first. Infinite for no bound. Never take them from the
        data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.
    """

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
    distribution. A release is epsilon-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: above 2**-52. Infinite for no noise.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative, with ``sensitivity /
        epsilon`` below 2**940. Zero for no noise.
    lower, upper : float
        The smallest and the largest release, both finite, the smaller one first: values and releases outside are
        clamped to them. Never take them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Mironov (2012), "On significance of the least significant bits for differential privacy".
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
        snap: Any = partial(_randomise_of_host, self)  # which draws nothing
        if self.sensitivity != 0:
            snap = self._snap
            values = Laplace._randomise_array(self, np.clip(as_floats(values), self.lower, self.upper))
        # Python's floats, since NumPy's warn of what becomes of a value.
        return np.array([snap(value) for value in values.ravel().tolist()], np.float64).reshape(values.shape)

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
    """Return a value as a float, if it is a number; no message may show it."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isnan(found) or bool(found == value):
        return found
    raise ParameterError("value must be a number that a float holds exactly")


def as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a copy of an array as float64."""
    with np.errstate(all="ignore"):  # a warning would tell of a signalling NaN
        return values.astype(np.float64)


def as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array for mechanisms of dpnoise: they refuse booleans, which the host takes as 0 and 1."""
    return values.astype(np.int8) if values.dtype.kind == "b" else values


# A scale of 2**39 steps leaves the sampler room for wider noise; the range must be counted in 64 bits.
_FINENESS: Final = 39
_MOST_STEPS: Final = 2**61
_FEWEST_STEPS: Final = 2**10
_LARGEST: Final = 2**63 - 1
# Sums of four numbers up to 1 that may cancel down to 2**-62.
_DIGITS: Final = Context(prec=80, traps=[])
_ROUNDING: Final = Decimal("1e-40")


class _Grid(NamedTuple):
    """The grid of possible releases, counted from a finite bound inward, and the noise on it."""

    granularity: float
    origin: int
    """The first point, in steps; those after it lie above."""
    last: int | None
    """The number of the last one; None when there is none."""
    scale: float
    """The scale of the noise, in steps."""


class LaplaceBoundedDomain(LaplaceTruncated, mechanisms.LaplaceBoundedDomain):
    """The noise is discrete Laplace noise on the grid, given that the release lies between the bounds.

    Its scale is the host's, widened until the privacy loss is at most what the parameters allow; the loss is known
    exactly on a grid, and the bounds add to it. The number of redraws depends on the value, as by the host. A release
    is (epsilon, delta)-differentially private for values that differ by at most ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: not negative, and positive where ``delta`` is 0. Infinite for no noise.
    delta : float, default 0.0
        The privacy parameter: from 0 to 1. With 1 there is no noise.
    sensitivity : float
        The most that the value changes between neighbours, in its unit: finite and not negative. Zero for no noise.
    lower, upper : float
        The smallest and the largest release, the smaller one first: at least one is finite, and finite ones are equal,
        for no noise, or from 2**-29 to 2**50 scales of the noise apart. Values outside are clamped to them. Never take
        them from the data.
    random_state : generator of `dpnoise.hazmat`, optional
        For tests only: makes the mechanism reproducible. Who knows its seed can subtract the noise. By default each
        call draws a fresh key from the operating system. A seed raises a ValueError.

    References
    ----------
    Holohan, Antonatos, Braghin and Mac Aonghusa (2020), "The bounded Laplace mechanism in differential privacy".
    """

    def _noise(self) -> Any:
        if noiseless(self) or self.delta == 1 or self.lower == self.upper:
            return None
        return _grid(self.epsilon, self.delta, self.sensitivity, *self._inward(), self._host_scale())

    def randomise(self, value: float) -> float:
        self._check_all(value)
        return float(self._randomise_array(np.array(as_float(value))))

    def _randomise_array(self, values: NDArray[Any]) -> NDArray[Any]:
        grid = self._noise()
        bounded = np.array(np.clip(as_floats(values), self.lower, self.upper))
        numbers = ~np.isnan(bounded)
        if grid is not None and numbers.any():
            bounded[numbers] = self._from_inside(self._release(grid, self._from_inside(bounded[numbers])))
        return bounded

    def _host_scale(self) -> float:
        if self._scale is None:
            self._scale: Any = self._find_scale()
        return float(self._scale)

    def _release(self, grid: _Grid, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # Python's integers, since bounds and values may be many steps away from zero.
        step, per_step = grid.granularity.as_integer_ratio()
        largest = int(np.finfo(float).max) * per_step // step
        furthest = largest if grid.last is None else grid.last
        ratios = [value.as_integer_ratio() for value in np.minimum(values, np.finfo(float).max).tolist()]
        places = [up * per_step // (down * step) - grid.origin for up, down in ratios]
        places = [min(max(place, 0), furthest) for place in places]
        starts = np.array([min(place, _LARGEST) for place in places], np.int64)
        moves = _moves(starts, grid, self._test_rng).tolist()
        ends = [grid.origin + place + move for place, move in zip(places, moves, strict=True)]
        return np.array([min(end, largest) * step / per_step for end in ends])

    def _inward(self) -> tuple[float, float]:
        lower, upper = float(self.lower), float(self.upper)
        for name, bound in (("lower", lower), ("upper", upper)):
            if math.isnan(bound):
                raise ParameterError(f"{name} must be a number, got NaN")
        if math.isinf(lower) and math.isinf(upper):
            raise ParameterError("lower or upper must be finite, got two infinite bounds: use Laplace")
        return (-upper, -lower) if math.isinf(lower) else (lower, upper)

    def _from_inside(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return -values if math.isinf(self.lower) else values


@lru_cache(maxsize=256)
def _grid(epsilon: float, delta: float, sensitivity: float, lower: float, upper: float, scale: float) -> _Grid:
    for name, given in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        if not math.isfinite(given):
            raise ParameterError(f"{name} must be finite, got {given!r}")
    allowed = pure_epsilon(epsilon, delta)
    if not 0 < scale < math.inf:  # if the host finds none
        scale = sensitivity / allowed
    # The smallest normal number if there is no finer grid, which is then refused.
    granularity = max(2.0 ** (math.ceil(math.log2(scale)) - _FINENESS), sys.float_info.min)
    if math.isfinite(upper):
        granularity = max(granularity, 2.0 ** math.ceil(math.log2((upper - lower) / _MOST_STEPS)))
    step = Fraction(granularity)
    origin = math.ceil(Fraction(lower) / step)
    last = math.floor(Fraction(upper) / step) - origin if math.isfinite(upper) else None
    steps = scale / granularity
    if steps < _FEWEST_STEPS or (last is not None and last < _FEWEST_STEPS):
        raise ParameterError(
            "upper - lower must be from 2**-29 to 2**50 times the noise's scale for a release on a grid, got "
            f"{upper - lower!r} with a scale of {scale!r}"
        )
    return _Grid(granularity, origin, last, scale_for(allowed, math.ceil(Fraction(sensitivity) / step), last, steps))


def scale_for(epsilon: float, sensitivity: int, last: int | None, at_least: float) -> float:
    """Return a scale, in steps, for which noise within ``0, ..., last`` loses at most epsilon."""
    scale, more = at_least, 2.0**-40
    with localcontext(_DIGITS):
        allowed = Decimal(epsilon) - _ROUNDING
        while _loss(Decimal(scale), sensitivity, last) > allowed:
            scale, more = at_least * (1 + more), 2 * more
    return scale


def _loss(scale: Decimal, sensitivity: int, last: int | None) -> Decimal:
    """Return the largest log-ratio of probabilities: at the bound, for the furthest neighbour."""
    far = sensitivity if last is None else min(sensitivity, last)
    weight = (-1 / scale).exp()
    beyond = [(-Decimal(far + 1) / scale).exp()]
    beyond += [] if last is None else [(-Decimal(last - far + 1) / scale).exp()]
    all_points = 0 if last is None else (-Decimal(last + 1) / scale).exp()
    return far / scale + ((1 + weight - sum(beyond)) / (1 - all_points)).ln()


def _moves(starts: NDArray[np.int64], grid: _Grid, rng: Any) -> NDArray[np.int64]:
    """Draw discrete Laplace noise for each position, given that the sum is on the grid."""
    moves = np.empty_like(starts)
    pending = np.arange(starts.size)
    while pending.size:
        start = starts[pending]
        size = samplers.geometric(grid.scale, size=pending.size, rng=rng)
        if grid.last is not None:
            # The remainder of geometric noise is geometric noise below the divisor: no further than the further bound.
            size %= np.maximum(start, grid.last - start) + 1
        down = samplers.bernoulli(0.5, size=pending.size, rng=rng)
        # Zero has one sign. No noise is larger than the largest start, which may stand for one that is further away.
        fits = ~down | ((size > 0) & (size <= start))
        if grid.last is not None:
            fits &= down | (size <= grid.last - start)
        moves[pending[fits]] = np.where(down, -size, size)[fits]
        pending = pending[~fits]
    return moves
