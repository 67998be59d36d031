"""Planning: which protocol to choose before a collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Final, cast, overload

from dpnoise._display import Column, Tabular, progress
from dpnoise._errors import ParameterError
from dpnoise._numbers import fraction_of, real_down
from dpnoise._types import Integer, Number
from dpnoise.local._attributes import AttributesProtocol, Sampled, Split
from dpnoise.local._estimate import significance_threshold
from dpnoise.local._families import FAMILIES
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._unary_encoding import OptimizedUnaryEncoding

_LEVEL: Final = 0.95

_COSTS: Final = ("n", "n + K + k q t", "n k bits", "n + k**2", "n + k log k")
"""The cheaper ones first: the plan has equally accurate protocols in this order."""


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
        values for each of its reports), and ``"n + k log k"`` transforms the counts of all reports
        once, and so does ``"n + K + k q t"``, for the K points of a space of dimension t over q elements.
    shuffled_epsilon : float, optional
        The epsilon of the n reports together once they are shuffled, which `Protocol.shuffled_cost` gives for the
        ``shuffled_delta`` of the plan. None if the plan has no ``shuffled_delta``.
    bound : str, optional
        The name of the bound that gave ``shuffled_epsilon``. None if the plan has no ``shuffled_delta``.
    """

    protocol: FrequencyProtocol
    standard_deviation: float
    smallest_detectable_count: float
    report_bytes: int
    server_cost: str
    shuffled_epsilon: float | None = None
    bound: str | None = None


@dataclass(frozen=True, repr=False)
class Plan(Tabular, Sequence[Candidate]):
    """The protocols that `plan` compares, as a sequence, the most accurate first.

    As a table it has the columns protocol (the name of the class), standard_deviation, smallest_detectable_count
    (float64), report_bytes (int64) and server_cost; with a ``shuffled_delta`` also shuffled_epsilon (float64) and
    bound.

    Attributes
    ----------
    candidates : tuple of Candidate
        The protocols, each with its accuracy and cost.
    n : int
        The number of people.
    k : int
        The number of possible values.
    epsilon : float
        The requested privacy parameter.
    shuffled_delta : float, optional
        The delta of the shuffled reports; None where the reports are not compared shuffled.
    """

    candidates: tuple[Candidate, ...]
    n: int
    k: int
    epsilon: float
    shuffled_delta: float | None = None

    def __len__(self) -> int:
        """Count the protocols."""
        return len(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, index: int | slice) -> Candidate | tuple[Candidate, ...]:
        """Return one protocol, or several."""
        return self.candidates[index]

    def _columns(self) -> dict[str, Column]:
        first, *others = (field.name for field in fields(Candidate) if getattr(self[0], field.name) is not None)
        protocols = [type(candidate.protocol).__name__ for candidate in self]
        return {first: protocols, **{name: [getattr(candidate, name) for candidate in self] for name in others}}


def plan(n: Integer, k: Integer, epsilon: Number, *, shuffled_delta: Number | None = None) -> Plan:
    """Compare the protocols for one of k values.

    Parameters
    ----------
    n : int
        The number of people who will report, from 1 to 2**64 - 1.
    k : int
        The number of possible values, from 2 to 2**24.
    epsilon : float
        The privacy parameter of a report, from 2**-20 to 32.
    shuffled_delta : float, optional
        The delta, above 0 and below 1, for which to add the epsilon of all n reports together once a shuffler has
        removed their senders and their order. That takes up to a second for each protocol.

    Returns
    -------
    Plan
        A sequence of `Candidate`, which prints as a table: the most accurate first, and among equals the one that costs
        the collector least. Protocols that do not take this k and epsilon are left out; `RandomizedResponse` takes only
        k = 2.

    Notes
    -----
    Estimated counts are taken to be normal, which is a good approximation when the standard deviation is large compared
    with ``1 / (p - q)``.

    Examples
    --------
    >>> from dpnoise import local
    >>> plan = local.plan(n=1_000_000, k=1000, epsilon=4.0)
    >>> plan[0].protocol
    SubsetSelection(k=1000, epsilon=4.0, omega=18)
    >>> round(plan[0].smallest_detectable_count)
    1512
    >>> plan = local.plan(n=1_000_000, k=1000, epsilon=4.0, shuffled_delta=1e-9)
    >>> round(plan[0].shuffled_epsilon, 4), plan[0].bound
    (0.0346, 'blanket')
    """
    OptimizedUnaryEncoding(k=k, epsilon=epsilon)  # it takes every k and epsilon in range, so it checks them for all
    candidates = []
    for family in FAMILIES.values():
        sized = {"k": k} if any(parameter.name == "k" for parameter in family.parameters) else {}
        if family.server_cost is None or not (sized or k == 2):
            continue
        make = cast("Callable[..., FrequencyProtocol]", family.protocol)
        try:
            protocol = make(**sized, epsilon=epsilon)
        except ParameterError:
            continue
        candidates.append(_candidate(protocol, family.server_cost, n))
    candidates.sort(key=lambda candidate: (candidate.standard_deviation, _COSTS.index(candidate.server_cost)))
    if shuffled_delta is not None:
        shuffled_delta = real_down(shuffled_delta, "shuffled_delta")
        if not 0 < shuffled_delta < 1:
            raise ParameterError(f"shuffled_delta must be between 0 and 1, both excluded, got {shuffled_delta!r}")
        with progress("shuffling", len(candidates), "protocols") as advance:
            for i, candidate in enumerate(candidates):
                candidates[i] = _shuffled(candidate, n, shuffled_delta)
                advance(1)
    return Plan(tuple(candidates), int(n), int(k), float(epsilon), shuffled_delta)


def _candidate(protocol: FrequencyProtocol, server_cost: str, n: Integer) -> Candidate:
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


def _shuffled(candidate: Candidate, n: Integer, delta: float) -> Candidate:
    cost = candidate.protocol.shuffled_cost(n=n, delta=delta)
    return replace(candidate, shuffled_epsilon=cost.epsilon, bound=cost.bound)


@dataclass(frozen=True)
class AttributesCandidate:
    """A way to collect several attributes with its accuracy and cost, as `plan_attributes` predicts them.

    Attributes
    ----------
    protocol : Sampled or Split
        The attributes with the most accurate protocol for each.
    standard_deviations : dict of str to float
        For each attribute the standard deviation of the estimated count of a rare value, in people.
    report_bytes : int
        The size of a report.
    """

    protocol: AttributesProtocol
    standard_deviations: dict[str, float]
    report_bytes: int


@dataclass(frozen=True, repr=False)
class AttributesPlan(Tabular):
    """The ways to collect several attributes that `plan_attributes` compares, the most accurate first.

    As a table it has the columns collection (Sampled or Split), attribute, protocol (the name of the class) and
    standard_deviation (float64).

    Attributes
    ----------
    candidates : tuple of AttributesCandidate
        `Sampled` and `Split`, or `Sampled` alone, each with its accuracy and cost.
    n : int
        The number of people.
    epsilon : float
        The requested privacy parameter of a report.
    """

    candidates: tuple[AttributesCandidate, ...]
    n: int
    epsilon: float

    def _columns(self) -> dict[str, Column]:
        rows = [
            (type(candidate.protocol).__name__, name, type(protocol).__name__, candidate.standard_deviations[name])
            for candidate in self.candidates
            for name, protocol in candidate.protocol.attributes.items()
        ]
        names = ("collection", "attribute", "protocol", "standard_deviation")
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def plan_attributes(n: Integer, attributes: Mapping[str, Integer], epsilon: Number) -> AttributesPlan:
    """Compare `Sampled` and `Split` for several attributes that are counted by value.

    Parameters
    ----------
    n : int
        The number of people who will report, from 1 to 2**64 - 1.
    attributes : mapping of str to int
        From 2 to 256 attributes: their names, and for each the number of possible values, from 2 to 2**24.
    epsilon : float
        The privacy parameter of a report for all attributes together: with `Sampled` each attribute has it, and with
        `Split` the attributes share it equally. From 2**-20 to 32.

    Returns
    -------
    AttributesPlan
        `Sampled` and `Split`, each with the most accurate protocol for each attribute as `plan` finds it; `Split` is
        left out where its shares are below 2**-20. The candidate with the smaller sum of variances is first.

    Examples
    --------
    >>> from dpnoise import local
    >>> local.plan_attributes(n=30_000, attributes={"occupation": 15, "age": 8, "income": 2}, epsilon=1.0)
    AttributesPlan(n=30000, epsilon=1.0)
    collection  attribute   protocol            standard_deviation
    Sampled     occupation  SubsetSelection                 526.75
    Sampled     age         SubsetSelection                 481.09
    Sampled     income      RandomizedResponse              288.02
    Split       occupation  SubsetSelection                 963.87
    Split       age         SubsetSelection                 903.10
    Split       income      RandomizedResponse              517.54
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a mapping of names to numbers, got {type(attributes).__name__}")
    plan(n, 2, epsilon)  # refuses invalid n and epsilon, which belong to no attribute
    candidates = [_most_accurate(Sampled, n, attributes, epsilon)]
    share = real_down(fraction_of(epsilon) / len(attributes), "epsilon")
    # All other errors were raised for Sampled.
    with suppress(ParameterError):
        candidates.append(_most_accurate(Split, n, attributes, share))
    candidates.sort(key=lambda candidate: math.fsum(error**2 for error in candidate.standard_deviations.values()))
    return AttributesPlan(tuple(candidates), int(n), float(epsilon))


def _most_accurate(
    make: Callable[..., AttributesProtocol], n: Integer, attributes: Mapping[str, Integer], epsilon: Number
) -> AttributesCandidate:
    chosen = {}
    for name, k in attributes.items():
        try:
            chosen[name] = plan(n, k, epsilon)[0].protocol
        except (ParameterError, TypeError) as error:
            raise type(error)(f"attributes[{name!r}]: {error}") from None
    protocol = make(attributes=chosen)
    deviations = {name: math.sqrt(protocol.variance(name, n)) for name in attributes}
    return AttributesCandidate(protocol, deviations, protocol.report_bytes)
