"""Planning: which protocol to choose before a collection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from dpnoise._errors import ParameterError
from dpnoise.local._categories import (
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
)
from dpnoise.local._estimate import significance_threshold
from dpnoise.local._protocol import FrequencyProtocol
from dpnoise.local._unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding

_LEVEL: Final = 0.95

_COUNTER: Final = "n"
_BITS: Final = "n k bits"

_OTHERS: Final[tuple[tuple[Callable[..., FrequencyProtocol], str], ...]] = (
    (SymmetricUnaryEncoding, _BITS),
    (SubsetSelection, _BITS),
    (LocalHashing, "n + k**2"),
    (HadamardResponse, "n + k log k"),
    (GeneralizedRandomizedResponse, _COUNTER),
)


@dataclass(frozen=True)
class Candidate:
    """A protocol with its accuracy and cost, as `plan` predicts them.

    Attributes
    ----------
    protocol : FrequencyProtocol
        The protocol.
    standard_deviation : float
        The standard deviation of the estimated count of a rare value, in people.
    smallest_detectable_count : float
        How many people must have a value for its estimate to be significant with a probability of 95 %: above the
        threshold of ``post="base-cut"``, which all k counts of absent values stay below together with a probability of
        95 %. Infinite if n people are not enough.
    report_bytes : int
        The size of a report.
    server_cost : str
        The order of the collector's work: ``"n"`` is one counter for each report, ``"n k bits"`` sums k packed bits of
        each report, ``"n + k**2"`` tabulates hash functions once for each batch (or, where that is less, hashes all k
        values for each of its reports), and ``"n + k log k"`` transforms once for each batch.
    """

    protocol: FrequencyProtocol
    standard_deviation: float
    smallest_detectable_count: float
    report_bytes: int
    server_cost: str


def plan(n: int, k: int, epsilon: float) -> list[Candidate]:
    """Compare the protocols for one of k values.

    Parameters
    ----------
    n : int
        The number of people who will report, from 1 to 2**64 - 1.
    k : int
        The number of possible values, from 2 to 2**24.
    epsilon : float
        The privacy parameter of a report, from 2**-20 to 32.

    Returns
    -------
    list of Candidate
        The most accurate first. Protocols that do not take this k and epsilon are left out; `RandomizedResponse` takes
        only k = 2.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    TypeError
        When a parameter is of the wrong type.

    Notes
    -----
    Estimated counts are taken to be normal, which is a good approximation when the standard deviation is large compared
    with ``1 / (p - q)``.

    Examples
    --------
    >>> from dpnoise import local
    >>> best = local.plan(n=1_000_000, k=1000, epsilon=4.0)[0]
    >>> type(best.protocol).__name__
    'SubsetSelection'
    """
    # This protocol takes every k and epsilon in range, so it checks them for all.
    candidates = [_candidate(OptimizedUnaryEncoding(k=k, epsilon=epsilon), _BITS, n)]
    if k == 2:
        candidates.append(_candidate(RandomizedResponse(epsilon=epsilon), _COUNTER, n))
    for make, cost in _OTHERS:
        try:
            protocol = make(k=k, epsilon=epsilon)
        except ParameterError:
            continue
        candidates.append(_candidate(protocol, cost, n))
    return sorted(candidates, key=lambda candidate: candidate.standard_deviation)


def _candidate(protocol: FrequencyProtocol, server_cost: str, n: int) -> Candidate:
    absent = protocol.variance(n)
    if n < 1:
        raise ParameterError(f"n must be an integer from 1 to 2**64 - 1, got {n!r}")
    # The variance of a count c is absent + slope c; c is what solves c - z sqrt(absent + slope c) = threshold.
    slope = (protocol.variance(n, 1.0) - absent) / n
    threshold = significance_threshold(protocol.k, _LEVEL) * math.sqrt(absent)
    z = NormalDist().inv_cdf(_LEVEL)
    linear = threshold + z**2 * slope / 2
    square = linear**2 - threshold**2 + z**2 * absent
    detectable = linear + math.sqrt(square) if square >= 0 else math.inf
    return Candidate(
        protocol, math.sqrt(absent), detectable if detectable <= n else math.inf, protocol.report_bytes, server_cost
    )
