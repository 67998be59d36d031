from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import dpnoise


@lru_cache(maxsize=256)
def gaussian(epsilon: float, delta: float, sensitivity: float, scale: float) -> Any:
    """Make a mechanism for real values with at least this scale, and enough noise for epsilon and delta."""
    # A delta of 1 needs no noise, but the hosts add noise.
    least = None if delta == 1 else dpnoise.Gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    return least if least and least.scale >= scale else with_scale(dpnoise.Gaussian, sensitivity, scale)


def with_scale(kind: type, sensitivity: float, scale: float) -> Any:
    """Make a mechanism whose scale is at least ``scale``, and as near to it as a rho can express."""
    rho = (sensitivity / scale) ** 2 / 2
    while (mechanism := kind(rho=rho, sensitivity=sensitivity)).scale < scale:
        rho = math.nextafter(rho, 0.0)
    return mechanism
