"""Numbers that follow from the host's parameters, rounded in the private direction."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Final

# So many digits that a logarithm near 1 keeps enough of them for the smallest double; what overflows is infinite.
_DIGITS: Final = Context(prec=400, traps=[])


def pure_epsilon(epsilon: float, delta: float) -> float:
    """Return the epsilon of the pure mechanism that the host uses: ``epsilon - log(1 - delta)``, rounded down."""
    if delta == 0:
        return epsilon
    with localcontext(_DIGITS):
        exact = Decimal(epsilon) - (1 - Decimal(delta)).ln()
    return math.nextafter(float(exact), 0.0)


@lru_cache(maxsize=256)
def flip_probability(epsilon: float) -> float:
    """Return the probability of a false answer in randomised response: ``1 / (1 + exp(epsilon))``, rounded up."""
    if math.isinf(epsilon):
        return 0.0
    with localcontext(_DIGITS):
        exact = 1 / (1 + Decimal(epsilon).exp())
    return min(math.nextafter(float(exact), 1.0), 0.5)
