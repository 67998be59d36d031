"""The sparse vector technique."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import doubles, reals_of
from dpnoise._calls import hot
from dpnoise._errors import ParameterError
from dpnoise._numbers import checked_level, integer
from dpnoise._types import Integer, Number, Real, Reals, Rng
from dpnoise.mechanisms._mechanism import Mechanism


class AboveThreshold(Mechanism):
    r"""The sparse vector technique: which of a stream of values are above a threshold.

    A run of the mechanism costs ``epsilon`` for any number of values: it halts after ``max_positives`` positive
    answers, and negative ones are free. Values may be chosen adaptively, depending on earlier answers. A run
    is epsilon-differentially private for neighbouring data sets between which each value changes by at most
    ``sensitivity``.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    threshold : float
        The threshold, in the values' unit: finite, and public.
    sensitivity : float, default 1.0
        The most that a value changes between neighbours, in the values' unit: positive and finite, with ``sensitivity /
        epsilon`` below 2**900.
    max_positives : int, default 1
        The number of positive answers after which a run halts, from 1 to 2**32 - 1.
    monotonic : bool, default False
        Whether between neighbours all values rise or all fall, as counts do when a person is added or removed. The
        noise of values is half as large then.

    Notes
    -----
    With c for ``max_positives``, the threshold gets discrete Laplace noise of scale ``sensitivity / epsilon1``, once
    for the run, and each value fresh noise of scale ``2 * c * sensitivity / epsilon2`` (without the 2 when monotonic),
    on a grid. The ratio of epsilon1 to epsilon2 is 1 to ``(2 * c)**(2/3)``, which minimises the noise in the comparison
    (Lyu, Su and Li 2017, section 4.2), rounded to 1024ths of epsilon.

    Several published variants are not private. In the numbering of Lyu, Su and Li (2017), this is Algorithm 1 with the
    split of Algorithm 7 and without its numeric answers. Of the others, Algorithm 2 (Dwork and Roth 2014) is private,
    with more noise; Algorithm 3 releases the noisy value that was compared, which reveals the noise of the threshold;
    Algorithm 4 has noise for the values that does not grow with ``max_positives``; Algorithm 5 adds no noise to values;
    Algorithm 6 gives any number of positive answers with the same noise. Release the value of a positive answer by
    another mechanism, with a budget of its own.

    References
    ----------
    Dwork, Naor, Reingold, Rothblum and Vadhan (2009), "On the complexity of differentially private data release"; Lyu,
    Su and Li (2017), "Understanding the sparse vector technique for differential privacy".

    Examples
    --------
    >>> from dpnoise import AboveThreshold
    >>> run = AboveThreshold(epsilon=1.0, threshold=1000, max_positives=2).start()
    >>> for visitors in (40, 30_000, 50, 20_000, 60):
    ...     if run.halted:
    ...         break
    ...     crowded = run.is_above(visitors)
    """

    __slots__ = ()

    _native: _native.AboveThreshold

    _parameters = ("epsilon", "threshold", "sensitivity", "max_positives", "monotonic")

    def __init__(
        self,
        *,
        epsilon: Number,
        threshold: Number,
        sensitivity: Number = 1.0,
        max_positives: Integer = 1,
        monotonic: bool = False,
    ) -> None:
        self._native = _native.AboveThreshold(
            epsilon=epsilon,
            threshold=threshold,
            sensitivity=sensitivity,
            max_positives=max_positives,
            monotonic=monotonic,
        )

    @property
    def threshold(self) -> float:
        """The threshold."""
        return self._native.threshold

    @property
    def sensitivity(self) -> float:
        """The most that a value changes between neighbours."""
        return self._native.sensitivity

    @property
    def max_positives(self) -> int:
        """The number of positive answers after which a run halts."""
        return self._native.max_positives

    @property
    def monotonic(self) -> bool:
        """Whether all values change in the same direction."""
        return self._native.monotonic

    @property
    def granularity(self) -> float:
        """The step of the grid that values and the threshold are rounded to, a power of two."""
        return self._native.granularity

    @property
    def threshold_scale(self) -> float:
        """The scale of the noise of the threshold, in the values' unit."""
        return self._native.scales[0]

    @property
    def scale(self) -> float:
        """The scale of the noise of each value, in their unit."""
        return self._native.scales[1]

    def error(self, count: Integer, level: Number = 0.95) -> float:  # type: ignore[override]
        """Bound how far from the threshold values are whose answers are wrong.

        With probability ``level`` or more all answers of a run are right for the values that are further from the
        threshold, in the values' unit: ``threshold_scale * ln(2 / (1 - level))`` for the noise of the threshold,
        ``scale * ln(2 * count / (1 - level))`` for the noise of the values, and three steps of the grid for rounding.

        Parameters
        ----------
        count : int
            About how many values a run is asked: from 1 to 2**53 - 1.
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.

        References
        ----------
        Dwork and Roth (2014), "The algorithmic foundations of differential privacy", theorem 3.24, for other scales.
        """
        each = math.log(2.0) - math.log1p(-checked_level(level))  # half of what may fail is for the threshold
        most = each + math.log(integer(count, "count", range(1, 2**53)))
        return (self.threshold_scale * each + self.scale * most + 3 * self.granularity) * (1 + 2.0**-40)

    def start(self, *, rng: Rng = None) -> AboveThresholdRun:
        """Start a run, which compares one value at a time and costs epsilon in all.

        Parameters
        ----------
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.
        """
        return AboveThresholdRun(self._native.start(rng))

    def release(self, values: Reals, *, rng: Rng = None) -> NDArray[np.bool_]:
        """Start a run and give its answers for an array of values.

        Parameters
        ----------
        values : array_like
            Finite real numbers, of one dimension. Integers up to 2**53 in magnitude.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of bool
            The answers, up to the last positive one that the run gives: as many as there are values, or fewer.
        """
        given = reals_of(values, "values", tables=False)
        if given.ndim != 1:
            raise ParameterError(f"values must have one dimension, got {given.ndim}")
        given = doubles(given)
        if not np.isfinite(given).all():
            raise ParameterError("values must be finite: no NaN and no infinity")
        run, answers = self.start(rng=rng), []
        for value in given.tolist():
            if run.halted:
                break
            answers.append(run.is_above(value, rng=rng))
        return np.array(answers, np.bool_)


class AboveThresholdRun:
    """One pass over a stream of values, made by `AboveThreshold.start`.

    It can be neither copied nor pickled, and a forked child cannot continue it, since the noise of the threshold must
    be used once. (A snapshot of a virtual machine that is restored twice uses it twice, which cannot be detected.)
    Threads may share a run.

    Parameters
    ----------
    native : object
        The state of the run, which `AboveThreshold.start` makes; no other way to make one is public.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.AboveThresholdRun) -> None:
        self._native = native

    @property
    def positives(self) -> int:
        """The number of positive answers so far."""
        return self._native.positives

    @property
    def halted(self) -> bool:
        """Whether the run has given all of its positive answers."""
        return self._native.halted

    @hot
    def is_above(self, value: Real, *, rng: Rng = None) -> bool:
        """Answer whether a value is above the threshold, with noise added to both.

        A positive answer may be the last one: see `halted`.

        Parameters
        ----------
        value : float
            The value to compare, in the unit of the threshold: finite; an integer of at most 2**53 in magnitude.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        bool
            Whether the noisy value is at or above the noisy threshold.

        Raises
        ------
        HaltedError
            When the run is halted, or another process started it.
        """
        given = reals_of(value, "value")
        if given.ndim != 0:
            raise ParameterError(f"value must be a single number, got {given.ndim} dimensions")
        return self._native.is_above(float(given), rng)

    def __repr__(self) -> str:
        return f"<AboveThresholdRun, positives={self.positives}{', halted' if self.halted else ''}>"

    def __reduce__(self) -> Any:
        return self._native.__reduce__()
