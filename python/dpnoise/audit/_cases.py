"""The mechanisms of the self-audit: all noise, all local protocols of one epsilon, and a line for each other one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise import local, mechanisms, queries, samplers, stability


class Case(NamedTuple):
    name: str
    make: Callable[..., Any]
    """Called with ``epsilon=``; gives the mechanism, or a function that releases."""
    x: Any
    x_prime: Any
    vectorized: bool = False


def _sampler(draw: Callable[..., NDArray[Any]], *, epsilon: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda x: x + draw(1 / epsilon, size=x.shape)


def _numbers(make: Callable[..., local.SummationHistogramEncoding], *, epsilon: float) -> Callable[[Any], NDArray[Any]]:
    """Read the numbers in reports: single bytes carry less information."""
    protocol = make(epsilon=epsilon)
    return lambda x: protocol.perturb(x).view(np.dtype("<u4"))


def _local_case(family: local.Family) -> Case:
    required = {parameter.name: parameter.example for parameter in family.parameters if parameter.required}
    name, vectorized = family.protocol.__name__, False
    make: Callable[..., Any] = partial(family.protocol, **required)
    pair: tuple[Any, Any]
    match protocol := make():
        case local.CountMeanSketch() | local.HadamardCountMeanSketch():
            make, pair = partial(make, rows=1), ("a", "c")  # in two columns
        case local.MeanProtocol():
            pair = (-1.0, 1.0)
        case local.SquareWave():
            pair = (0.0, 1.0)
        case local.RandomizedResponse():
            pair = (False, True)
        case local.PrefixExtension():
            pair = (0, 2**protocol.bits - 1)
        case local.SummationHistogramEncoding():
            make, pair, vectorized = partial(_numbers, make), (0, 1), True
        case _:
            pair = (0, protocol.k - 1)
    return Case(name, make, pair[0], pair[1], vectorized)


def _two_answers(
    make: Callable[..., local.Sampled | local.Split], *, share: float, epsilon: float
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    answer = local.GeneralizedRandomizedResponse(k=4, epsilon=share * epsilon)
    protocol = make(attributes={"first": answer, "second": answer})
    return lambda x: protocol.perturb(dict(zip(protocol.attributes, x.T, strict=True)))


def _proposal(*, epsilon: float, delta: float) -> stability.ProposeTestRelease:
    """Release the first one of two numbers, of which the second one is the distance."""
    noise = mechanisms.Laplace(epsilon=epsilon / 2)
    return stability.ProposeTestRelease(
        propose=1.0,
        distance=lambda x, bound: x[1],
        answer=lambda x, bound, epsilon: noise.release(x[0]),
        epsilon=epsilon,
        delta=delta,
    )


def _of_persons(*, epsilon: float) -> queries.PerPerson:
    return queries.PerPerson(queries.Count(epsilon=epsilon), person="user", rows=3)


def _votes(*, epsilon: float) -> stability.SubsampleAndAggregate:
    return stability.SubsampleAndAggregate(
        f=lambda block: block[0], blocks=2, aggregate="noisy_max", candidates=["tea", "coffee"], epsilon=epsilon
    )


def _sum_of_three(make: Callable[..., Any], *, epsilon: float) -> SimpleNamespace:
    """Release the sum of three parties, of which one has a value."""
    mechanism = make(epsilon=epsilon, parties=3)

    def release(x: int) -> int:
        return sum(mechanism.release(value) for value in (x, 0, 0))

    return SimpleNamespace(release=release, epsilon=mechanism.epsilon, delta=mechanism.delta)


def _noise_case(kind: Any) -> Case:
    taken = signature(kind.__init__).parameters
    change = 5 if kind is mechanisms.Staircase else 1  # with a sensitivity of 1 it is discrete Laplace noise
    given = {"delta": 0.01, "sensitivity": change}
    make = partial(kind, **{name: value for name, value in given.items() if name in taken})
    return Case(kind.__name__, partial(_sum_of_three, make) if "parties" in taken else make, 0, change)


def _selection(*, epsilon: float, delta: float) -> SimpleNamespace:
    """Keep or drop a group."""
    selection = mechanisms.TruncatedGeometric(epsilon=epsilon, delta=delta)
    return SimpleNamespace(release=selection.should_keep, epsilon=epsilon, delta=delta)


def _best_run(*, epsilon: float) -> SimpleNamespace:
    """Release the best score of a number of runs."""
    noise = mechanisms.DiscreteLaplace(epsilon=epsilon / 2)
    selection = mechanisms.PrivateSelection(run_cost=noise, mean=2, stopping="geometric", most=20)

    def release(x: int) -> int:
        return int(selection.release(lambda: (noise.release(x), None))[0])

    return SimpleNamespace(release=release, epsilon=selection.epsilon)


def _sampled(*, epsilon: float, delta: float) -> SimpleNamespace:
    """Release the counts of rows, each of which is the number of people with a value of its own."""
    protocol = local.SampleAndThreshold(epsilon=epsilon, delta=delta, threshold=40)

    def release(x: NDArray[Any]) -> NDArray[Any]:
        found = protocol.release(np.repeat(np.arange(len(x)), x))
        counts = np.zeros(len(x), np.int64)
        counts[found.values] = found.reports
        return counts

    return SimpleNamespace(release=release, epsilon=epsilon, delta=protocol.delta)


# Unary encoding takes no epsilon, and the reports of people with a memo are not independent.
_FAMILIES: Final = [
    family for family in local.FAMILIES.values() if not (family.keeps_memo or family.protocol is local.UnaryEncoding)
]

_NOISE: Final = [kind for kind in map(vars(mechanisms).get, mechanisms.__all__) if hasattr(kind, "confidence_interval")]

CASES: Final = (
    *map(_noise_case, _NOISE),
    Case("Laplace of an array", mechanisms.Laplace, [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    Case("DiscreteLaplace of an array", partial(mechanisms.DiscreteLaplace, sensitivity=2), [5, 5], [4, 6]),
    Case("Gaussian of an array", partial(mechanisms.Gaussian, delta=0.01), [0.0, 0.0], [0.6, 0.8]),
    Case("Exponential", mechanisms.Exponential, [0.0] + 8 * [1.0], [1.0] + 8 * [0.0]),
    Case("ReportNoisyMax", mechanisms.ReportNoisyMax, [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]),
    Case("TopK", partial(mechanisms.TopK, k=2), 2 * [0.0] + 4 * [1.0], 2 * [1.0] + 4 * [0.0]),
    Case("AboveThreshold", partial(mechanisms.AboveThreshold, threshold=0.0), [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]),
    Case("PrivateSelection", _best_run, 0, 1),
    Case("TruncatedGeometric", partial(_selection, delta=0.01), 3, 4),
    Case("Count", queries.Count, [True], [True, True]),
    Case("Sum", partial(queries.Sum, bounds=(-1.0, 3.0)), [0.5], [0.5, 9.0]),
    Case("Mean", partial(queries.Mean, bounds=(0.0, 1.0)), [0.5], [0.5, 1.0]),
    *(
        Case(kind.__name__, partial(kind, bounds=(0.0, 1.0), relation="substitute"), [0.5, 0.5], [0.5, 1.0])
        for kind in (queries.Variance, queries.StandardDeviation)
    ),
    Case("Histogram", partial(queries.Histogram, edges=[0, 1, 2], relation="substitute"), [0.5], [1.5]),
    Case("StabilityHistogram", partial(queries.StabilityHistogram, delta=0.01), 6 * ["a"], 7 * ["a"]),
    Case("Median", partial(queries.Median, bounds=(0.0, 1.0), granularity=0.125), [0.5], [0.5, 1.0]),
    Case(
        "Quantile",
        partial(queries.Quantile, q=0.25, bounds=(0.0, 1.0), granularity=0.125),
        [0.5, 0.5, 0.5],
        [0.0, 0.5, 0.5, 0.5],
    ),
    Case(
        "Quantiles",
        partial(queries.Quantiles, q=[0.25, 0.5], bounds=(0.0, 1.0), granularity=0.125),
        [0.5],
        [0.0, 0.5],
    ),
    Case("PerPerson", _of_persons, ([True], ["b"]), ([True] * 5, ["a", "b", "a", "a", "a"])),
    Case("StableValue", partial(stability.StableValue, delta=0.01), ("plum", 2), ("plum", 3)),
    *(
        Case(
            kind.__name__,
            partial(kind, delta=0.01, relation="substitute"),
            8 * [0.0] + 3 * [1.0],
            9 * [0.0] + 2 * [1.0],
        )
        for kind in (stability.StableMedian, stability.StableMode)
    ),
    Case("ProposeTestRelease", partial(_proposal, delta=0.01), (0.0, 4), (1.0, 5)),
    # Their ranges are 1 and nearly 2, in one interval; their distances are 18 and 19.
    Case(
        "StableScale",
        partial(stability.StableScale, delta=0.01),
        42 * [0.0] + 18 * [1.0] + 20 * [1.9999],
        41 * [0.0] + 18 * [1.0] + 21 * [1.9999],
    ),
    Case("SubsampleAndAggregate", _votes, ["tea", "tea"], ["tea", "coffee"]),
    Case("samplers.laplace", partial(_sampler, samplers.laplace), 0.0, 1.0, vectorized=True),
    Case("samplers.discrete_laplace", partial(_sampler, samplers.discrete_laplace), 0, 1, vectorized=True),
    *map(_local_case, _FAMILIES),
    Case("SampleAndThreshold", partial(_sampled, delta=0.01), 40, 41, vectorized=True),
    Case("Sampled", partial(_two_answers, local.Sampled, share=1.0), (0, 0), (1, 1), vectorized=True),
    Case("Split", partial(_two_answers, local.Split, share=0.5), (0, 0), (1, 1), vectorized=True),
)
