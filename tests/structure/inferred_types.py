"""What type checkers infer: `make lint` checks this file with mypy and pyright, and nothing runs it.

An ignored error that is none is reported as unused, so that each of them is a check, too.
"""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any, assert_type

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import dpnoise
from dpnoise import _types, local, mechanisms, queries, samplers, stability
from dpnoise.accounting import Ledger, PrivacyCost

floats = np.zeros(3)
integers = np.zeros(3, np.int64)
small = np.zeros(3, np.float32)
texts = ["red", "green"]


def noise(laplace: dpnoise.Laplace, discrete: dpnoise.DiscreteLaplace) -> None:
    assert_type(laplace.release(1.5), float)
    assert_type(laplace.release(1), float)
    assert_type(laplace.release(np.float64(1.5)), float)
    assert_type(laplace.release(np.int64(1)), float)
    for many in (floats, small, integers):
        assert_type(laplace.release(many), NDArray[np.float64])
    assert_type(laplace.release([1.0, 2.0]), NDArray[np.float64])
    assert_type(laplace.release((1, 2)), NDArray[np.float64])
    assert_type(laplace.release([[1.0], [2.0]]), NDArray[np.float64])
    assert_type(laplace.release([floats, floats]), NDArray[np.float64])
    assert_type(laplace.release(range(3)), NDArray[np.float64])
    laplace.release("1.5")  # type: ignore[call-overload]
    laplace.release(texts)  # type: ignore[arg-type]
    laplace.release(None)  # type: ignore[call-overload]
    laplace.release(b"12")  # type: ignore[call-overload]
    laplace.release({1.0, 2.0})  # type: ignore[call-overload]
    laplace.release(1j)  # type: ignore[call-overload]

    assert_type(discrete.release(1), int)
    assert_type(discrete.release(np.uint8(1)), int)
    assert_type(discrete.release(integers), NDArray[np.int64])
    assert_type(discrete.release([1, 2]), NDArray[np.int64])
    discrete.release(1.5)  # type: ignore[call-overload]
    discrete.release([1.5])  # type: ignore[list-item]

    assert_type(laplace.confidence_interval(1.5), tuple[float, float])
    assert_type(laplace.confidence_interval(floats), tuple[NDArray[np.float64], NDArray[np.float64]])
    assert_type(discrete.error(), float)
    assert_type(laplace.cost, PrivacyCost)


def other_mechanisms(
    choice: mechanisms.Exponential, top: mechanisms.TopK, histogram: queries.Histogram, ledger: Ledger
) -> None:
    assert_type(choice.release([1.0, 2.0]), int)
    assert_type(top.release(floats), NDArray[np.int64])
    assert_type(choice.release_best(texts, texts, lambda data, text: data.count(text)), Any)
    assert_type(top.release(floats, candidates=texts), list[Any])
    choice.release("12")  # type: ignore[call-overload]
    assert_type(queries.Count(epsilon=1.0).release([None, 1.0]), int)
    assert_type(queries.Histogram(domain=texts, epsilon=1.0).release(texts)["red"], int)
    assert_type(queries.Histogram(edges=[0, 1], epsilon=1.0).release(floats), NDArray[np.int64])
    assert_type(histogram.release(texts), Any)
    queries.Histogram(epsilon=1.0)  # type: ignore[call-overload]
    assert_type(queries.Median(bounds=(0, 1), epsilon=1.0).release(floats), float)
    assert_type(queries.Quantile(q=0.5, bounds=floats, epsilon=1.0).bounds, tuple[float, float])
    assert_type(queries.Median(bounds=(date(1990, 1, 1), date(2025, 1, 1)), epsilon=1.0).release([]), date)
    deciles = queries.Quantiles(q=floats, bounds=(date(1990, 1, 1), date(2025, 1, 1)), epsilon=1.0)
    assert_type(deciles.release([]), list[date])
    assert_type(queries.Quantiles(q=[0.5], bounds=(0, 1), epsilon=1.0).release(floats), NDArray[np.float64])
    queries.Histogram(edges=[date(1990, 1, 1), date(2025, 1, 1)], epsilon=1.0)
    queries.Median(bounds=("1990", "2025"), epsilon=1.0)  # type: ignore[arg-type]
    assert_type(queries.Mean(bounds=(0.0, 1.0), epsilon=1.0).release(floats), float)
    queries.Count(epsilon=1.0).release("abc")  # type: ignore[arg-type]
    ledger.release(choice, [1.0, 2.0])
    ledger.release(1.0, 2.0)  # type: ignore[arg-type]
    stability.StableMedian(epsilon=1.0, delta=1e-6).release([1.0, 2.0])


def parameters(number: Fraction | np.float32 | np.int64 | int, integer: np.int64, ledger: Ledger) -> None:
    dpnoise.Laplace(epsilon=number, sensitivity=number).error(number)
    dpnoise.Laplace(epsilon="1")  # type: ignore[arg-type]
    dpnoise.Laplace(epsilon=1.0).release(Fraction(1, 2))  # type: ignore[call-overload]
    dpnoise.DiscreteLaplace(epsilon=number, sensitivity=integer).error()
    dpnoise.DiscreteLaplace(epsilon=1.0, sensitivity=number)  # type: ignore[arg-type]
    local.OptimizedUnaryEncoding(k=integer, epsilon=number).variance(n=integer)
    samplers.laplace(number, granularity=number)
    ledger.spend(PrivacyCost(number, number))
    assert_type(PrivacyCost(number).epsilon, float)
    for bounds in ((0, number), [number, 1.0], floats):
        assert_type(queries.Mean(bounds=bounds, epsilon=number).bounds, tuple[float, float])
    queries.Mean(bounds={0, 1}, epsilon=1.0)  # type: ignore[arg-type]
    stability.ProposeTestRelease(
        propose=number, distance=lambda data, bound: integer, answer=max, epsilon=number, delta=1e-6
    )


def drawn() -> None:
    assert_type(samplers.laplace(1.0), float)
    assert_type(samplers.laplace(1.0, size=5), NDArray[np.float64])
    assert_type(samplers.laplace(1.0, out=floats), NDArray[np.float64])
    assert_type(samplers.discrete_laplace(Fraction(1, 2), size=(2, 3)), NDArray[np.int64])


def categories(unary: local.OptimizedUnaryEncoding, response: local.RandomizedResponse) -> None:
    reports = unary.perturb(integers)
    assert_type(reports, NDArray[np.uint8])
    unary.perturb([0, 1])
    unary.perturb(texts)
    unary.perturb([True, False])
    unary.perturb([np.int32(0)])
    unary.perturb(np.array(texts))
    unary.perturb("abc")
    unary.perturb(b"abc")  # type: ignore[arg-type]
    unary.perturb(1)
    unary.perturb(1.5)  # type: ignore[arg-type]
    unary.perturb([1.5])  # type: ignore[list-item]
    unary.perturb([None])  # type: ignore[list-item]
    unary.perturb([[1]])  # type: ignore[list-item]
    unary.perturb({"red"})  # type: ignore[arg-type]
    assert_type(response.perturb([True, False]), NDArray[np.bool_])
    assert_type(response.perturb(True), bool)

    estimate = unary.estimate(reports)
    assert_type(estimate, local.Estimate)
    assert_type(estimate.counts, NDArray[np.float64])
    assert_type(estimate.count("red"), local.CountEstimate)
    assert_type(estimate.plot(), Axes)
    unary.estimate("abc")  # type: ignore[arg-type]


def other_protocols(
    mean: local.HybridMean, sketch: local.CountMeanSketch, prefixes: local.PrefixExtension, memo: local.ClientMemo
) -> None:
    assert_type(mean.estimate(mean.perturb([0.5, 1])).mean, float)
    mean.perturb(0.5)  # type: ignore[arg-type]
    mean.perturb(["a"])  # type: ignore[arg-type]
    sketch.perturb(texts)
    sketch.perturb([b"red"])
    sketch.perturb("red")  # type: ignore[arg-type]
    sketch.perturb([1])  # type: ignore[arg-type]
    prefixes.perturb(integers)
    prefixes.perturb([1.5])  # type: ignore[list-item]
    local.LOLOHA(k=4, epsilon_permanent=1.0, epsilon_first=0.5).perturb("ab", memo, question="colour")


def plans() -> None:
    plan = local.plan(n=1000, k=10, epsilon=1.0)
    assert_type(plan[0], local.Candidate)
    assert_type(plan[:2], tuple[local.Candidate, ...])
    assert_type([candidate.report_bytes for candidate in plan], list[int])


class Series:
    """In place of those of pandas and polars, which are no requirement of `make lint`."""

    def __array__(self) -> NDArray[Any]:
        return floats

    def head(self, n: int = 5) -> Series:
        return self

    def to_frame(self, name: str | None = None) -> object:
        return name


def columns_of_libraries(
    series: Series, array: _types.ArrowArray, laplace: dpnoise.Laplace, discrete: dpnoise.DiscreteLaplace
) -> None:
    assert_type(laplace.release(series), Series)
    assert_type(laplace.confidence_interval(series), tuple[Series, Series])
    assert_type(discrete.release(series), Series)
    assert_type(laplace.release(array), NDArray[np.float64])
