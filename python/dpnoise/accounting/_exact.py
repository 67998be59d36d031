"""Arithmetic that cannot lose privacy: exact sums, and results that are rounded up.

In compositions a float stands for the decimal number that Python prints for it, so 0.1 is one tenth: ten times 0.1 is
exactly 1.0. Elsewhere a float has its exact value. `docs/proofs/accounting.md` has the consequences, and the bounds on
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, Overflow, localcontext
from typing import Final

_EXACT: Final = Context(prec=1100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, Overflow])
"""Room for every sum of fewer than 10**400 floats, from 1e-340 to 1e309: an inexact one would raise."""

_PRECISE: Final = Context(prec=400, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Overflow])
"""Enough to tell 1 + x from 1 for every float x, with 60 digits to spare."""


def decimal_of(value: float) -> Decimal:
    """Return the decimal number that a float stands for."""
    return Decimal(repr(value))


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    """Add without rounding, so that the order does not matter."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    return total


def exact_difference(first: Decimal, second: Decimal) -> Decimal:
    return _EXACT.subtract(first, second)


def exact_product(factor: int, value: Decimal) -> Decimal:
    return _EXACT.multiply(Decimal(factor), value)


def precise() -> AbstractContextManager[Context]:
    """Compute with 400 digits within this context."""
    return localcontext(_PRECISE)


def up(exact: Decimal) -> float:
    """Return the smallest float that stands for `exact` or more; infinity when there is none."""
    nearest = float(exact)
    if math.isinf(nearest) or decimal_of(nearest) >= exact:
        return nearest
    return math.nextafter(nearest, math.inf)


def down(exact: Decimal) -> float:
    """Return the largest float that stands for `exact` or less, for an `exact` that is not negative."""
    nearest = float(exact)
    return nearest if decimal_of(nearest) <= exact else math.nextafter(nearest, 0.0)


def above(approximate: Decimal) -> float:
    """Return a float above the number whose first 60 digits or more are `approximate`; zero for zero."""
    return math.nextafter(float(approximate), math.inf) if approximate else 0.0
