"""How far counts may be off from the truth by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

FALSE_ALARM = 1e-9


def bounds(truth: Sequence[int], p: float, q: float) -> list[float]:
    """Return for each count how far its estimate may be off; a test of all of them gives a false alarm of 1e-9.

    Bernstein's inequality for the reports that support a value, which are independent and have together the variance v:
    P(|sum| > t) <= 2 exp(-t^2 / (2 v + 2 t/3)). An estimate is off by 1/(p - q) for each of them.
    """
    n, logarithm = sum(truth), math.log(2 * len(truth) / FALSE_ALARM)
    variances = [m * p * (1 - p) + (n - m) * q * (1 - q) for m in truth]
    return [(logarithm / 3 + math.sqrt((logarithm / 3) ** 2 + 2 * v * logarithm)) / (p - q) for v in variances]
