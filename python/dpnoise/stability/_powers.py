"""Intervals of the logarithm of a positive number, to any base and cut in two ways, with exact limits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, real
from dpnoise._types import Number

BASES: Final = (1 + 2.0**-6, 2.0**10)

DISCRETIZATIONS: Final = range(1, 3)

_SMALLEST: Final = math.ulp(0.0)

# Doubles near a limit have 53 binary digits, and a limit is computed with at least so many.
_DIGITS: Final = 60


def checked_base(base: Number) -> float:
    found = real(base, "base")
    if not BASES[0] <= found <= BASES[1]:
        raise ParameterError(f"base must be from 1 + 2**-6 to 2**10, got {base!r}")
    return found


def half_steps(x: float, base: float) -> int:
    """Return the largest integer h for which ``base ** (h / 2)`` is at most ``x``, which is positive and finite."""
    h = math.floor(2 * math.log2(x) / math.log2(base))
    while limit(base, h) > x:
        h -= 1
    while limit(base, h + 1) <= x:
        h += 1
    return h


def interval(x: float, base: float, discretization: int) -> tuple[float, float | None]:
    """Return the smallest double of the interval that ``x`` is in, and the smallest one above it, if there is one.

    The intervals are ``[base**k, base**(k + 1))`` for integers k in discretization 1, ``[base**(k - 1/2), base**(k +
    1/2))`` in 2; 0 and infinity have intervals of their own.
    """
    odd = discretization - 1
    if x == 0 or math.isinf(x):
        return x, None if x else _SMALLEST
    lower = (half_steps(x, base) - odd) // 2 * 2 + odd
    return limit(base, lower), limit(base, lower + 2)


@lru_cache(maxsize=256)
def limit(base: float, h: int) -> float:
    """Return the smallest double that is at least ``base ** (h / 2)``; infinity if that is beyond the largest."""
    numerator, denominator = (part ** abs(h) for part in base.as_integer_ratio())
    if h < 0:
        numerator, denominator = denominator, numerator
    # The limit lies between 2**_DIGITS and 2**(_DIGITS + 2) steps of a finer grid than that of the doubles around it.
    step = (numerator.bit_length() - denominator.bit_length() - 1) // 2 - _DIGITS
    square = -((-numerator << max(-2 * step, 0)) // (denominator << max(2 * step, 0)))
    return at_least((math.isqrt(square - 1) + 1) * Fraction(2) ** step)
