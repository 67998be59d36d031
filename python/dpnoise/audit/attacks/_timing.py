"""The timing attack: the time of a release reveals the noise, if large noise takes longer to draw."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._display import progress
from dpnoise._numbers import integer
from dpnoise._types import Integer, Real
from dpnoise.audit._report import Report

_COUNTS: Final = range(100, 2**40)
_KEPT: Final = 0.99  # other work of the machine interrupted the slowest calls
_LEAK: Final = 4.5  # standard deviations, as usual in tests of side channels
_GROUPS: Final = 10


@dataclass(frozen=True)
class Timing(Report):
    """What the time of a release reveals about the noise.

    Attributes
    ----------
    suspicious : bool
        Whether one of the two figures is more than 4.5 standard deviations from its value without a leak. A busy
        machine can cause that, too, and a short measurement can miss a leak: this is a measurement and not a proof.
    n : int
        The number of releases that were timed. The slowest in a hundred are left out of the figures.
    welch_t : float
        The statistic of Welch's test between the times of the smaller and of the larger half of the noise, in standard
        deviations; positive if large noise takes longer.
    spearman : float
        The rank correlation of time and absolute noise, from -1 to 1.
    spearman_z : float
        The rank correlation in standard deviations.
    mean_small, mean_large : float
        The mean times of the smaller and of the larger half of the noise, in nanoseconds.
    noise : tuple of float
        The mean absolute noise of ten groups of equal size, from small to large noise.
    times : tuple of float
        The mean times of these groups, in nanoseconds.
    """

    suspicious: bool
    n: int
    welch_t: float
    spearman: float
    spearman_z: float
    mean_small: float
    mean_large: float
    noise: tuple[float, ...]
    times: tuple[float, ...]

    def __str__(self) -> str:
        """Say whether the time depends on the noise, and how strongly."""
        verdict = "time seems to depend on the noise" if self.suspicious else "no sign that time depends on the noise"
        return (
            f"{verdict}: {self.n:,} releases\n"
            f"mean time {self.mean_small:,.0f} ns for the smaller half of the noise, {self.mean_large:,.0f} ns for the "
            f"larger (Welch t = {self.welch_t:+.2f})\n"
            f"rank correlation of time and |noise| (Spearman) = {self.spearman:+.4f}, "
            f"{self.spearman_z:+.2f} standard deviations"
        )

    def _draw(self, axes: Any) -> None:
        axes.plot(self.noise, self.times, marker="o")
        axes.set_ylim(0, 1.2 * max(self.times))
        axes.set_xlabel("|noise|, means of ten groups")
        axes.set_ylabel("time of a release, ns")
        axes.set_title(f"Welch t = {self.welch_t:+.2f}, Spearman = {self.spearman:+.4f}")


def timing(
    mechanism: Any, x: Real = 0.0, *, n: Integer = 20_000, clock: Callable[[], int] = time.perf_counter_ns
) -> Timing:
    """Attack a mechanism by the time of its releases.

    Parameters
    ----------
    mechanism : callable or object with a method ``release``
        A mechanism of any library that is called with a number and returns one. It is called again and again.
    x : float, default 0.0
        The input.
    n : int, default 20000
        The number of releases that are timed, from 100 to 2**40 - 1.
    clock : callable, default time.perf_counter_ns
        A function that returns the time in nanoseconds, an int.

    Returns
    -------
    Timing
        What was measured; as text, as JSON and as a picture.

    References
    ----------
    Jin, McMurtry, Rubinstein and Ohrimenko (2022), "Are we there yet? Timing and floating-point attacks on differential
    privacy systems". For the threshold: Goodwill, Jun, Jaffe and Rohatgi (2011), "A testing methodology for
    side-channel resistance validation".

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> from dpnoise.audit import attacks
    >>> report = attacks.timing(Laplace(epsilon=0.1), n=1000)
    >>> report.n
    1000
    """
    n = integer(n, "n", _COUNTS)
    release = getattr(mechanism, "release", mechanism)
    if not callable(release):
        raise TypeError(f"mechanism must be callable, or have a method release, got {type(mechanism).__name__}")
    times, noise = np.empty(n), np.empty(n)
    with progress("timing", n, "releases") as advance:
        for i in range(n):
            begun = clock()
            released = release(x)
            times[i] = clock() - begun
            if not isinstance(released, numbers.Real):
                raise TypeError(f"mechanism must return a number, got {type(released).__name__}")
            noise[i] = abs(float(released) - x)
        advance(n)
    return _compare(times, noise)


def _compare(times: NDArray[np.float64], noise: NDArray[np.float64]) -> Timing:
    n = times.size
    kept = times <= np.quantile(times, _KEPT)
    times, noise = times[kept], noise[kept]
    is_large = noise > np.median(noise)
    small, large = times[~is_large], times[is_large]
    difference = float(large.mean() - small.mean()) if large.size else 0.0
    error = math.sqrt(small.var() / small.size + large.var() / large.size) if large.size else 0.0
    # Without variance, every difference is infinitely many standard deviations.
    welch = difference / error if error else math.copysign(math.inf, difference) if difference else 0.0
    spearman = _correlation(_ranks(times), _ranks(noise))
    spearman_z = spearman * math.sqrt(times.size - 1)
    groups = np.array_split(np.argsort(noise, kind="stable"), _GROUPS)
    return Timing(
        suspicious=max(abs(welch), abs(spearman_z)) > _LEAK,
        n=n,
        welch_t=welch,
        spearman=spearman,
        spearman_z=spearman_z,
        mean_small=float(small.mean()),
        mean_large=float(large.mean()) if large.size else math.nan,
        noise=tuple(float(noise[group].mean()) for group in groups),
        times=tuple(float(times[group].mean()) for group in groups),
    )


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / spread if spread else 0.0
