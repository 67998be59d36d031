"""The attack of Haney, Desfontaines, Hartman, Shrestha and Hay (2022): a sum has the precision of its larger term."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from dpnoise._errors import ParameterError
from dpnoise._numbers import real
from dpnoise._types import Integer, Number
from dpnoise.audit._check import Check, claim_of, held_against
from dpnoise.audit._lower_bound import open_share
from dpnoise.audit._outcomes import Outcomes
from dpnoise.audit._statistics import Statistic, log_ratio, lowest_set_bit

_MAGNITUDES: Final = (0, 1, 2**10, 2**30, 2**50)


def precision(
    mechanism: Any,
    *,
    n: Integer = 100_000,
    sensitivity: Number | None = None,
    magnitudes: Sequence[Number] = _MAGNITUDES,
    epsilon: Number | None = None,
    delta: Number | None = None,
    level: Number = 0.999999,
    vectorized: bool = False,
) -> Check:
    """Attack a mechanism by the precision of its outcomes.

    The sum of two floating-point numbers is a multiple of the last bit of the larger one. So noise that was added to 0
    has bits that a sum with 1 cannot have, even if the noise itself is exact. The attack uses the lowest set bit of an
    outcome, for pairs of neighbours near 0 and at larger magnitudes, where rounding may even remove the noise.

    Parameters
    ----------
    mechanism : callable or object with a method ``release``
        A mechanism of any library that is called with a number and returns one.
    n : int, default 100000
        The number of releases of each input, from 100 to 2**40 - 1, at each magnitude.
    sensitivity : float, optional
        The distance of neighbours: positive and finite. By default the attribute ``sensitivity`` of the mechanism, or 1
        if it has none.
    magnitudes : sequence of float, default (0, 1, 1024, 1073741824, 1125899906842624)
        The magnitudes of the inputs, in sensitivities; by default 0, 1, 2**10, 2**30 and 2**50.
    epsilon : float, optional
        The claimed epsilon: zero or more, and finite. By default the attribute ``epsilon`` of the mechanism.
    delta : float, optional
        The claimed delta, from 0 up to, but not including, 1. By default the attribute ``delta`` of the mechanism, or 0
        if it has none.
    level : float, default 0.999999
        The probability with which the attack does not succeed on a mechanism that keeps its claim: between 0 and 1,
        both excluded. The bounds at all magnitudes hold together.
    vectorized : bool, default False
        Whether the mechanism takes an array and adds independent noise to each element.

    Returns
    -------
    Check
        The verdict and its evidence at the magnitude that shows most, which the event names; as text, as JSON
        (``to_json``) and as a picture (``plot``).

    Notes
    -----
    Neighbours are whole multiples of the largest power of two that is at most the sensitivity, so that they are exact;
    whole sensitivities lead to int inputs.

    References
    ----------
    Haney, Desfontaines, Hartman, Shrestha and Hay (2022), "Precision-based attacks and interval refining: how to break,
    then fix, differential privacy on finite computers".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import Laplace
    >>> from dpnoise.audit import attacks
    >>> attacks.precision(Laplace(epsilon=0.5), n=10_000).refuted
    False
    >>> attacks.precision(lambda x: x + np.random.laplace(0, 2), epsilon=0.5, n=10_000).refuted
    True
    """
    claimed = claim_of(mechanism, epsilon, delta)
    sensitivity = getattr(mechanism, "sensitivity", 1.0) if sensitivity is None else sensitivity
    if not 0 < real(sensitivity, "sensitivity") < math.inf:
        raise ParameterError(f"sensitivity must be positive and finite, got {sensitivity!r}")
    if not len(magnitudes):
        raise ParameterError("magnitudes must have at least one number, got none")
    # All bounds must hold jointly.
    alarm = (1.0 - open_share(level, "level")) / len(magnitudes)
    neighbours = [_neighbours(real(magnitude, "every magnitude"), sensitivity) for magnitude in magnitudes]
    options = {"n": n, "level": 1.0 - alarm, "vectorized": vectorized}
    checks = [
        held_against(claimed, mechanism, *pair, **options, fit=partial(_fit, pair[0]), task=f"precision at {pair[0]:g}")
        for pair in neighbours
    ]
    most = max(checks, key=lambda check: check.bound.epsilon)
    return replace(most, bound=replace(most.bound, level=float(level)))


def _neighbours(magnitude: float, sensitivity: Number) -> tuple[float, float]:
    whole = isinstance(sensitivity, int)
    step = 1 << (int(sensitivity).bit_length() - 1) if whole else math.ldexp(1.0, math.frexp(sensitivity)[1] - 1)
    x = round(magnitude) * step
    return x, x + step


def _fit(near: float, x: Outcomes, x_prime: Outcomes) -> Iterator[Statistic]:
    name = f"the lowest set bit near {near:g}"
    yield Statistic(f"the exponent of {name}", lambda y: lowest_set_bit(y.column(0)).astype(np.float64))
    yield log_ratio(f"the log-likelihood ratio of {name}", lambda y: lowest_set_bit(y.column(0)), x, x_prime)
