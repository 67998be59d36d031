"""Doubtful input: reports that honest devices of the protocol do not make, or only with a probability of 1e-12.

An estimate is given all the same, with a warning. docs/proofs/doubtful_input.md proves the bounds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise._calls import outside
from dpnoise._errors import DoubtfulInputWarning
from dpnoise.local._specification import Specification

FALSE_ALARM: Final = 1e-12
"""The largest probability of a warning about honest reports, for each of the rules by itself."""

_ROUNDING: Final = 1e-15  # more than the error of a divergence in floating-point arithmetic

_AT_ONCE: Final = 1 << 16


def warn(protocol: Specification, doubts: Iterable[str]) -> None:
    """Warn once of all doubts, if there are any."""
    found = "; ".join(doubts)
    if found:
        warnings.warn(
            f"some reports are of another protocol than {protocol!r}, not randomised, damaged or crafted: {found}",
            DoubtfulInputWarning,
            stacklevel=outside(),
        )


def of_malformed(reasons: Sequence[tuple[str, int]], counted: int, noun: str) -> list[str]:
    """Return the doubt about malformed reports, which honest devices do not make.

    A message of another collection has a wrong header, so that it says what it is, and casts no doubt on the others.
    """
    malformed = {reason: count for reason, count in reasons if reason != "wrong header"}
    number = sum(malformed.values())
    if not number:
        return []
    total, why = counted + number, ", ".join(f"{reason}: {count:,}" for reason, count in malformed.items())
    return [f"{number:,} of {total:,} {noun} ({100 * number / total:.3g} %) are malformed ({why})"]


def are_unlikely(counts: NDArray[Any], trials: ArrayLike, low: ArrayLike, high: ArrayLike) -> bool:
    """Tell whether some of the counts of independent events are too large or too small.

    Of as many ``trials`` each event has a chance from ``low`` to ``high``. All four are of one shape, or broadcast.
    """
    counts, *others = np.broadcast_arrays(counts, trials, low, high)
    rows = max(1, _AT_ONCE // max(1, counts[:1].size))
    for start in range(0, len(counts), rows):
        part, n, least, most = (one[start : start + rows].astype(float) for one in (counts, *others))
        shares = part / np.maximum(n, 1)
        exponents = n * (_divergence(shares, np.clip(shares, least, most)) - _ROUNDING)
        if is_rare(float(exponents.max()), counts.size):
            return True
    return False


def are_unlikely_bits(counters: NDArray[np.uint64], bits: int, q: float, p: float) -> bool:
    """Tell this of cohorts, each with the number of its reports and then, for each bit, of those in which it is set."""
    cohorts = counters.reshape(-1, 1 + bits)
    return are_unlikely(cohorts[:, 1:], cohorts[:, :1], q, p)


def are_unlikely_entries(counters: NDArray[np.uint64], fields: Mapping[str, Any]) -> bool:
    """Tell this of columns of Hadamard matrices, each with the numbers of its reports with either entry."""
    pairs, kept = counters.reshape(-1, 2), fields["keep"] / 2 ** fields["planes"]
    return are_unlikely(pairs[:, 0], pairs.sum(axis=1), (1 - kept) / 2, (1 + kept) / 2)


def is_rare(exponent: float, counters: int) -> bool:
    """Tell whether e**-exponent is so small that no counter is beyond it, in either direction, by chance."""
    return bool(exponent > math.log(2 * counters / FALSE_ALARM))


def _divergence(share: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Kullback-Leibler divergence of a coin from another one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(share > 0, share * np.log(share / chance), 0.0)
        zeros = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
    return ones + zeros


def laplace_exponent(excess: float, epsilon: float, unit: int) -> float:
    """Return the exponent, for each report, of the bound for the mean of the noise of Laplace sums to be so large."""
    scaled = max(0.0, excess) * epsilon / 2
    share = scaled / (1 + math.hypot(1, scaled))
    step = epsilon / (2 * unit)
    return share * scaled + math.log1p(-((math.sinh(share * step / 2) / math.sinh(step / 2)) ** 2))


def has_unlikely_bits(total: int, n: int, k: int, p: float, q: float) -> bool:
    """Tell whether rows of k bits, each of which had one set bit or none, have too many or too few set bits in all.

    These are a sum of independent bits, whatever the values: Bernstein's inequality.
    """
    excess = max(n * k * q - total, total - n * (p + (k - 1) * q), 0)
    variance = n * (max(p * (1 - p), q * (1 - q)) + (k - 1) * q * (1 - q))
    return excess**2 > 2 * math.log(2 / FALSE_ALARM) * (variance + excess / 3)
