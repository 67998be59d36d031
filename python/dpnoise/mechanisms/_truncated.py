"""The mechanisms that add bounded noise to integers."""

from __future__ import annotations

from typing import Any

from dpnoise._errors import ParameterError
from dpnoise._numbers import integer
from dpnoise._types import Integer, Number
from dpnoise.mechanisms._mechanism import COUNTS
from dpnoise.mechanisms._noise import IntegerNoise, checked_sensitivity, native


class TruncatedNoise(IntegerNoise):
    """A mechanism that adds integers of bounded magnitude."""

    __slots__ = ()

    @property
    def delta(self) -> float:
        """The privacy parameter delta: the given delta, or the one that follows from scale and radius."""
        return float(self._native.delta or 0.0)

    @property
    def radius(self) -> int:
        """The largest magnitude of the noise of a single value.

        ``release(x) + radius`` is never below ``x``, and ``release(x) - radius`` never above: noise of one sign.
        """
        return int(self._native.radius_for(1) or 0)


class TruncatedDiscreteLaplace(TruncatedNoise):
    """The discrete Laplace mechanism with bounded noise.

    Adds discrete Laplace noise of scale ``sensitivity / epsilon``, under the condition that it is at most ``radius`` in
    magnitude, exactly. The release is (epsilon, delta)-differentially private for neighbouring data sets whose values
    differ by at most ``sensitivity`` in the L1 norm.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    delta : float, optional
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people. With it the radius is the smallest one that suffices. Give either `delta` or `radius`.
    sensitivity : int, default 1
        The L1 sensitivity of the values: positive and at most 2**61, with ``sensitivity / epsilon`` from 2**-40 to
        2**40.
    radius : int, optional
        The largest magnitude of the noise: at least `sensitivity` and ``sensitivity / epsilon``, and at most 2**62.

    Notes
    -----
    `delta` is that of the radius: the probability that the noise is above ``radius - sensitivity``, rounded up. No
    smaller one is true of this noise and this epsilon.

    Noise of one sign, as padding needs it, is post-processing: ``release(x) + radius`` has noise from 0 to ``2 *
    radius``, at no cost.

    References
    ----------
    Geng, Ding, Guo and Kumar (2020), "Tight analysis of privacy and utility tradeoff in approximate differential
    privacy", for continuous noise.

    Examples
    --------
    >>> from dpnoise import TruncatedDiscreteLaplace
    >>> mechanism = TruncatedDiscreteLaplace(epsilon=1.0, delta=1e-6)
    >>> mechanism.radius
    14
    >>> padded = mechanism.release([120, 5, 0]) + mechanism.radius
    >>> bool((padded < [120, 5, 0]).any())
    False
    """

    __slots__ = ()

    _parameters = ("epsilon", "sensitivity", "radius")

    def __init__(
        self, *, epsilon: Number, delta: Number | None = None, sensitivity: Integer = 1, radius: Integer | None = None
    ) -> None:
        _check_given(delta, radius=radius)
        whole = checked_sensitivity(sensitivity)
        self._native = native(
            "truncated_discrete_laplace", epsilon=epsilon, delta=delta, sensitivity=whole, radius=radius
        )


class TruncatedDiscreteGaussian(TruncatedNoise):
    """The discrete Gaussian mechanism with bounded noise.

    Adds noise n with probability proportional to exp(-n^2 / (2 scale^2)), for n at most ``radius`` in magnitude,
    exactly. The release is (epsilon, delta)-differentially private for neighbouring data sets whose values differ by at
    most ``sensitivity`` in the L2 norm.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    delta : float, optional
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people. With it the scale is the least one for 15/16 of it, and the radius the smallest one that suffices then.
        Give either `delta`, or `scale` and `radius`.
    sensitivity : float, default 1
        The L2 sensitivity of the values, from 1 to 2**40; for k counts that change by 1 each it is ``sqrt(k)``.
    scale : float, optional
        The scale of the noise before it is truncated, about its standard deviation: from 2**-20 to 2**40.
    radius : int, optional
        The largest magnitude of the noise: at least `scale` and `sensitivity`, and at most 2**62.

    Notes
    -----
    Where scale and radius are given, `delta` is rounded up: it is the least one for a sensitivity of 1, and otherwise a
    bound that holds for any number of values. With a given delta the noise of several values is calibrated as that of
    `DiscreteGaussian`; `scale` and `radius` are those of a single one, and `radius_for` has those of several.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", for the whole distribution.

    Examples
    --------
    >>> from dpnoise import TruncatedDiscreteGaussian
    >>> mechanism = TruncatedDiscreteGaussian(epsilon=1.0, delta=1e-6)
    >>> mechanism.radius
    23
    >>> f"{TruncatedDiscreteGaussian(epsilon=1.0, scale=4.5, radius=25).delta:.2e}"
    '2.72e-07'
    """

    __slots__ = ("_by_delta",)

    _parameters = ("epsilon", "delta", "sensitivity", "scale", "radius")

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        sensitivity: Number = 1,
        scale: Number | None = None,
        radius: Integer | None = None,
    ) -> None:
        _check_given(delta, scale=scale, radius=radius)
        self._by_delta = delta is not None
        self._native = native(
            "truncated_discrete_gaussian",
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            scale=scale,
            radius=radius,
        )

    def radius_for(self, count: Integer) -> int:
        """Return the largest magnitude of the noise of each value in a release of several.

        Parameters
        ----------
        count : int
            The number of values in the release, which is the size of the array, from 1 to 2**60 - 1.
        """
        return int(self._native.radius_for(integer(count, "count", COUNTS)) or 0)

    def delta_for(self, epsilon: Number, count: Integer = 1) -> float:
        """Return a delta for which a release is (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float
            The privacy parameter: zero or more, and finite.
        count : int, default 1
            The number of values that are released at once, from 1 to 2**60 - 1.

        Returns
        -------
        float
            From 0 to 1, never too small. For one integer and a whole sensitivity, and for a sensitivity of 1, at most
            1e-12 too large, relatively.
        """
        return self._native.delta_for(epsilon, integer(count, "count", COUNTS))

    def _values(self) -> dict[str, Any]:
        derived = ("scale", "radius") if self._by_delta else ("delta",)
        return {name: value for name, value in super()._values().items() if name not in derived}


def _check_given(delta: Number | None, **others: Number | None) -> None:
    """Refuse what is neither a delta nor all of the others."""
    names = " and ".join(others)
    for name, value in others.items():
        if delta is None and value is None:
            raise ParameterError(f"{name} must be given, got None: give delta, or {names}")
        if delta is not None and value is not None:
            raise ParameterError(f"{name} must be None when delta is given, got {value!r} and delta={delta!r}")
