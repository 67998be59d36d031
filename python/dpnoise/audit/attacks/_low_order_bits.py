"""The attack of Mironov (2012): floating-point noise reaches few of the numbers, and different ones for each input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._numbers import real
from dpnoise._types import Integer, Number, Real
from dpnoise.audit import _statistics
from dpnoise.audit._check import Check, claim_of, held_against
from dpnoise.audit._outcomes import Outcomes
from dpnoise.audit._statistics import Statistic

_NEAR: Final = range(-3, 4)  # rounding moves the uniform number by less than three of its steps
_log = np.frompyfunc(math.log, 1, 1)  # NumPy's logarithm may differ in the last bit from the one that made the noise


def low_order_bits(
    mechanism: Any,
    x: Real = 0.0,
    x_prime: Real = 1.0,
    *,
    n: Integer = 100_000,
    epsilon: Number | None = None,
    delta: Number | None = None,
    scale: Number | None = None,
    level: Number = 0.999999,
    vectorized: bool = False,
) -> Check:
    """Attack a mechanism by the low-order bits of its releases.

    Laplace noise is usually computed as +-scale log(u) of a uniform u that has at most 2^53 values. The possible sums
    with ``x`` and with ``x_prime`` are different sets of numbers, so a release often reveals its input. For each
    outcome the attack decides whether such noise can lead to it from ``x``, and from ``x_prime``. It also uses the
    lowest set bit and the eight low-order bits, for noise of any kind.

    Parameters
    ----------
    mechanism : callable or object with a method ``release``
        A mechanism of any library that is called with a number and returns one.
    x : float, default 0.0
        An input.
    x_prime : float, default 1.0
        A neighbouring input.
    n : int, default 100000
        The number of releases of each input, from 100 to 2**40 - 1.
    epsilon : float, optional
        The claimed epsilon: zero or more, and finite. By default the attribute ``epsilon`` of the mechanism.
    delta : float, optional
        The claimed delta, from 0 up to, but not including, 1. By default the attribute ``delta`` of the mechanism, or 0
        if it has none.
    scale : float, optional
        The scale of Laplace noise: positive and finite. By default the attribute ``scale`` of the mechanism. Without a
        scale, supports are not compared.
    level : float, default 0.999999
        The probability with which the attack does not succeed on a mechanism that keeps its claim: between 0 and 1,
        both excluded.
    vectorized : bool, default False
        Whether the mechanism takes an array and adds independent noise to each element.

    Returns
    -------
    Check
        The verdict and its evidence; as text, as JSON (``to_json``) and as a picture (``plot``).

    References
    ----------
    Mironov (2012), "On significance of the least significant bits for differential privacy"; Jin, McMurtry, Rubinstein
    and Ohrimenko (2022), "Are we there yet? Timing and floating-point attacks on differential privacy systems", for
    Gaussian and discrete noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import Laplace
    >>> from dpnoise.audit import attacks
    >>> attacks.low_order_bits(Laplace(epsilon=0.5), n=10_000).refuted
    False
    >>> attacks.low_order_bits(lambda x: x + np.random.laplace(0, 2), epsilon=0.5, scale=2, n=10_000).refuted
    True
    """
    claimed = claim_of(mechanism, epsilon, delta)
    given = getattr(mechanism, "scale", None) if scale is None else scale
    scale = None if given is None else real(given, "scale")
    if scale is not None and not 0 < scale < math.inf:
        raise ParameterError(f"scale must be positive and finite, got {scale!r}")

    def fit(to_fit: Outcomes, to_fit_prime: Outcomes) -> Iterator[Statistic]:
        if scale is not None:
            yield _statistics.log_ratio(
                "the log-likelihood ratio of supports", lambda y: _supports(y, x, x_prime, scale), to_fit, to_fit_prime
            )
        yield from _statistics.low_order_bits(to_fit, to_fit_prime)

    return held_against(
        claimed, mechanism, x, x_prime, n=n, level=level, vectorized=vectorized, fit=fit, task="low-order bits"
    )


def _supports(outcomes: Outcomes, x: Real, x_prime: Real, scale: float) -> NDArray[np.int64]:
    """Code which inputs can lead to an outcome: x, x_prime, both or neither."""
    released = outcomes.column(0).astype(np.float64)
    return _is_reachable(released, x, scale) + 2 * _is_reachable(released, x_prime, scale)


def _is_reachable(released: NDArray[np.float64], x: Real, scale: float) -> NDArray[np.int64]:
    """Say whether a release can be ``x +- scale log(k 2^-53)`` for an integer k, with each step rounded."""
    noise = released - x
    nearest = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**53)
    found = np.zeros(len(released), bool)
    for step in _NEAR:
        uniform = np.clip(nearest + step, 1, 2.0**53) * 2.0**-53
        magnitude = scale * -_log(uniform).astype(np.float64)
        found |= x + np.copysign(magnitude, noise) == released
    return found.astype(np.int64)
