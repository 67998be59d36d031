"""Zero-concentrated differential privacy (zCDP), the cost of Gaussian noise, and conversions to epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from sys import float_info
from typing import Literal

from dpnoise._errors import ParameterError
from dpnoise._numbers import check_word, checked_delta, real_down
from dpnoise._types import Number
from dpnoise.accounting._cost import QUICK, above, finite, precise

Method = Literal["tight", "simple"]


def pure_zcdp_rho(epsilon: Number) -> float:
    """Return the smallest rho that holds for every epsilon-differentially private mechanism, rounded up.

    It is ``epsilon * tanh(epsilon / 2)``: below ``epsilon**2 / 2``, and below ``epsilon``.

    Parameters
    ----------
    epsilon : float
        The epsilon of the mechanism: zero or more, and finite.

    References
    ----------
    Bun and Steinke (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds",
    proposition 1.4, for ``epsilon**2 / 2``; the proof page "Accounting" for the smaller one.

    Examples
    --------
    >>> from dpnoise.accounting import pure_zcdp_rho
    >>> round(pure_zcdp_rho(0.5), 4), round(pure_zcdp_rho(5.0), 4)
    (0.1225, 4.9331)
    """
    loss = Decimal(finite(epsilon, "epsilon"))
    with precise(QUICK):
        if loss < Decimal("1e-20"):
            return above(loss * loss / 2)  # tanh is below its argument
        shrunk = (-loss).exp()
        return min(above(loss * (1 - shrunk) / (1 + shrunk)), float_info.max)  # tanh is below 1


def zcdp_epsilon(rho: Number, *, delta: Number, method: Method = "tight") -> float:
    """Return an epsilon, rounded up, such that rho-zCDP implies (epsilon, delta)-differential privacy.

    The neighbouring relation is the same for both.

    Parameters
    ----------
    rho : float
        The parameter of zero-concentrated differential privacy: zero or more, and finite. The rhos of several releases
        from the same data add up.
    delta : float
        The delta of the guarantee, above 0 and at most 1; also 0 for a rho of 0.
    method : {"tight", "simple"}, default "tight"
        By the conversion of Canonne, Kamath and Steinke, or by the looser ``epsilon = rho + 2 sqrt(rho ln(1/delta))``.

    Notes
    -----
    The tight conversion is the minimum over alpha > 1 of ``alpha rho + ln(1 / (alpha delta)) / (alpha - 1) +
    ln(1 - 1/alpha)``. Every alpha gives a valid bound; the best alpha is found in floating point, and its bound is
    computed with 400 digits.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", corollary 13; Bun and Steinke
    (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds", proposition 1.3, for the
    simple one.

    Examples
    --------
    >>> from dpnoise.accounting import zcdp_epsilon
    >>> round(zcdp_epsilon(0.1, delta=1e-6), 4), round(zcdp_epsilon(0.1, delta=1e-6, method="simple"), 4)
    (2.1419, 2.4508)
    """
    rho, delta = finite(rho, "rho"), real_down(delta, "delta")
    _check_method(method)
    if not 0 <= delta <= 1 or (delta == 0 and rho):
        raise ParameterError(f"delta must be above 0 and at most 1, got {delta!r}")
    if rho == 0 or delta == 1:
        return 0.0
    with precise():
        divergence, target = Decimal(rho), Decimal(delta)
        if method == "simple":
            return above(divergence + 2 * (-divergence * target.ln()).sqrt())
        # The derivative has the sign of (alpha - 1)^2 rho + ln(alpha delta).
        excess = Decimal(_root(lambda t: t * t * rho + math.log1p(t) + math.log(delta)))
        alpha = 1 + excess
        bound = alpha * divergence - (alpha * target).ln() / excess + (excess / alpha).ln()
        return above(max(bound, Decimal(0)))


def zcdp_delta(rho: Number, *, epsilon: Number, method: Method = "tight") -> float:
    """Return a delta, rounded up, such that rho-zCDP implies (epsilon, delta)-differential privacy.

    It is 1 if no smaller bound is known.

    Parameters
    ----------
    rho : float
        The parameter of zero-concentrated differential privacy: zero or more, and finite. The rhos of several releases
        from the same data add up.
    epsilon : float
        The epsilon of the guarantee: zero or more, and finite.
    method : {"tight", "simple"}, default "tight"
        By the conversion of Canonne, Kamath and Steinke, or by the looser ``epsilon = rho + 2 sqrt(rho ln(1/delta))``.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", corollary 13; Bun and Steinke
    (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds", proposition 1.3, for the
    simple one.

    Examples
    --------
    >>> from dpnoise.accounting import zcdp_delta
    >>> round(zcdp_delta(0.1, epsilon=2.5), 9)
    1.6e-08
    """
    rho, epsilon = finite(rho, "rho"), finite(epsilon, "epsilon", real_down)
    _check_method(method)
    if rho == 0:
        return 0.0
    with precise():
        divergence, loss = Decimal(rho), Decimal(epsilon)
        if method == "simple":
            spare = loss - divergence
            exponent = -spare * spare / (4 * divergence) if spare > 0 else Decimal(0)
        else:
            # The derivative of the exponent is (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha), which grows with alpha.
            excess = Decimal(_root(lambda t: (2 * t + 1) * rho - epsilon - math.log1p(1 / t)))
            alpha = 1 + excess
            exponent = excess * (alpha * divergence - loss) + excess * excess.ln() - alpha * alpha.ln()
        # Not `above`: the exponential may be so small that even the decimal number is 0.
        return math.nextafter(float(exponent.exp()), 1.0) if exponent < 0 else 1.0


def zcdp_rho(*, epsilon: Number, delta: Number, method: Method = "tight") -> float:
    """Return the largest rho, rounded down, for which rho-zCDP is known to imply (epsilon, delta)-differential privacy.

    So ``zcdp_epsilon(rho, delta=delta)`` is at most ``epsilon``. It can be the budget of a `Ledger`: the decimal number
    that it is read as is no larger, either.

    Parameters
    ----------
    epsilon : float
        The epsilon of the guarantee: zero or more, and finite.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.
    method : {"tight", "simple"}, default "tight"
        By the conversion of Canonne, Kamath and Steinke, or by the looser ``epsilon = rho + 2 sqrt(rho ln(1/delta))``.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", corollary 13; Bun and Steinke
    (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds", proposition 1.3, for the
    simple one.

    Examples
    --------
    >>> from dpnoise.accounting import zcdp_rho
    >>> round(zcdp_rho(epsilon=1.0, delta=1e-6), 4)
    0.0244
    """
    epsilon, delta = finite(epsilon, "epsilon", real_down), checked_delta(delta)
    _check_method(method)
    # A rho of 40 more is too large, as ln(1/delta) is at least 2**-53: see the proof page.
    low, high = 0.0, min(epsilon + 40.0, float_info.max)
    while (middle := low + (high - low) / 2) not in (low, high):
        if zcdp_epsilon(middle, delta=delta, method=method) <= epsilon:
            low = middle
        else:
            high = middle
    return math.nextafter(low, 0.0)  # the decimal number that it stands for may be above the float


def _root(function: Callable[[float], float]) -> float:
    """Return where an increasing function of t > 0 becomes positive, by exponents first, as t may be tiny or huge."""
    low, high = 2.0**-500, 2.0**500
    for _ in range(200):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return high


def _check_method(method: str) -> None:
    check_word(method, "method", "tight", "simple")
