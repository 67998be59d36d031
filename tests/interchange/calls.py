"""The public functions that take values, each as a function of the values alone, and values for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpnoise
from dpnoise import local, queries, sgd, stability
from dpnoise.hazmat import SeededRng
from dpnoise.mechanisms._noise import RealNoise
from tests import local_families, noise_kinds

Array = NDArray[Any]
Call = tuple[Callable[[Any], Any], Array]

N = 36
INTEGERS = np.arange(N) * 5 % 13
REALS = np.linspace(-40.0, 90.5, N) / 8
TRUTHS = INTEGERS % 3 == 0
TEXTS = np.array(["tea", "coffee", "", "Wasser", "tea", "\N{HOT BEVERAGE}"] * (N // 6), object)
MATRIX = np.outer(REALS, [1.0, -0.5, 0.0, 0.25])
STEADY = np.where(INTEGERS > 1, 3.0, 1.0)
MEMO = local.ClientMemo.generate(N)
BOUNDS = (-4.0, 9.0)
REPLACE: Any = "substitute"


def _seeded(release: Callable[..., Any], **options: Any) -> Callable[[Any], Any]:
    return lambda values: release(values, rng=SeededRng(8), **options)


NOISE: dict[str, Call] = {
    **{
        name: (_seeded(noise.release), REALS if isinstance(noise, RealNoise) else INTEGERS)
        for name, noise in noise_kinds.EXAMPLES.items()
    },
    "Laplace, integers": (_seeded(dpnoise.Laplace(epsilon=1.0).release), INTEGERS),
    "Laplace.confidence_interval": (dpnoise.Laplace(epsilon=1.0).confidence_interval, REALS),
    "DiscreteLaplace.confidence_interval": (dpnoise.DiscreteLaplace(epsilon=1.0).confidence_interval, INTEGERS),
    "Exponential": (_seeded(dpnoise.Exponential(epsilon=1.0).release), REALS),
    "ReportNoisyMax": (_seeded(dpnoise.ReportNoisyMax(epsilon=1.0).release), INTEGERS),
    "TopK": (_seeded(dpnoise.TopK(k=3, epsilon=1.0).release), REALS),
    "AboveThreshold": (_seeded(dpnoise.AboveThreshold(epsilon=1.0, threshold=3.0, max_positives=9).release), REALS),
}

QUERIES: dict[str, Call] = {
    "Count": (_seeded(queries.Count(epsilon=1.0).release), TRUTHS),
    "Sum": (_seeded(queries.Sum(bounds=BOUNDS, epsilon=1.0).release), REALS),
    "Sum, integers": (_seeded(queries.Sum(bounds=(2, 9), epsilon=1.0).release), INTEGERS),
    "Mean": (_seeded(queries.Mean(bounds=BOUNDS, epsilon=1.0).release), REALS),
    "Variance": (_seeded(queries.Variance(bounds=BOUNDS, epsilon=1.0).release), REALS),
    "Median": (_seeded(queries.Median(bounds=BOUNDS, epsilon=1.0).release), REALS),
    "Quantile": (_seeded(queries.Quantile(q=0.9, bounds=BOUNDS, epsilon=1.0).release), INTEGERS),
    "Quantiles": (_seeded(queries.Quantiles(q=[0.9, 0.5], bounds=BOUNDS, epsilon=1.0).release), REALS),
    "Histogram of bins": (_seeded(queries.Histogram(edges=[-5, 0, 5, 12], epsilon=1.0).release), REALS),
    "Histogram of categories": (_seeded(queries.Histogram(domain=[3, 0, 5], epsilon=1.0).release), INTEGERS),
    "StabilityHistogram": (_seeded(queries.StabilityHistogram(epsilon=9.0, delta=0.1).release), INTEGERS),
}

STABILITY: dict[str, Call] = {
    "median_distance": (stability.median_distance, REALS),
    "mode_distance": (stability.mode_distance, INTEGERS),
    "iqr_distance": (stability.iqr_distance, REALS),
    "StableMedian": (_seeded(stability.StableMedian(epsilon=9.0, delta=0.01, relation=REPLACE).release), STEADY),
    "StableMode": (
        _seeded(stability.StableMode(epsilon=9.0, delta=0.01, relation=REPLACE).release),
        np.minimum(INTEGERS, 1),
    ),
    "StableScale": (_seeded(stability.StableScale(epsilon=9.0, delta=0.01).release), REALS),
    "StableBootstrap": (
        _seeded(stability.StableBootstrap(f="median", epsilon=60.0, delta=0.01).attempt),
        STEADY,
    ),
}


def _protocol(protocol: Any) -> Call:
    def reports(values: Any) -> Array:
        return local_families.perturbed(protocol, values, MEMO, rng=SeededRng(8))

    return reports, local_families.values_for(protocol, N)


PROTOCOLS = {
    type(protocol).__name__: _protocol(protocol)
    for protocol in local_families.EXAMPLES.values()
    if not isinstance(protocol, local_families.OF_TEXTS)
}
LOCAL: dict[str, Call] = {
    **PROTOCOLS,
    "OptimizedUnaryEncoding.encode": (local.OptimizedUnaryEncoding(k=13, epsilon=1.0).encode, INTEGERS),
}

VECTORS = {**NOISE, **QUERIES, **STABILITY, **LOCAL}
"""Those of a column."""

SKETCH = local.CountMeanSketch(epsilon=1.0, rows=4, width=16)
RAPPOR = local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=4, f=0.5, p=0.5, q=0.75)

OF_TEXTS: dict[str, Call] = {
    **{
        type(protocol).__name__: (_protocol(protocol)[0], TEXTS)
        for protocol in local_families.EXAMPLES.values()
        if isinstance(protocol, local_families.OF_TEXTS)
    },
    "CountMeanSketch.estimate": (lambda texts: SKETCH.estimate(SKETCH.accumulator(), texts).candidates, TEXTS[:5]),
    "Histogram of categories": (_seeded(queries.Histogram(domain=["tea", ""], epsilon=1.0).release), TEXTS),
    "StabilityHistogram": (_seeded(queries.StabilityHistogram(epsilon=9.0, delta=0.1).release), TEXTS),
    "mode_distance": (stability.mode_distance, TEXTS),
}
"""Those of a column of texts."""

RESPONSE = local.OptimizedUnaryEncoding(k=30, epsilon=1.0)
ROWS = RESPONSE.bits(RESPONSE.encode(INTEGERS))
OF_COLUMNS = local.OptimizedUnaryEncoding(domain=[f"c{place}" for place in range(30)], epsilon=1.0)

MATRICES: dict[str, Call] = {
    "clip_and_sum": (lambda values: sgd.clip_and_sum(values, clip_norm=1.0), MATRIX),
    "clip_and_sum, float32": (lambda values: sgd.clip_and_sum(values, clip_norm=1.0), MATRIX.astype(np.float32)),
    "NoisyGradient": (
        _seeded(sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=9).release),
        MATRIX,
    ),
    "StableBootstrap": (
        _seeded(stability.StableBootstrap(f="argmax_column_sum", epsilon=60.0, delta=0.01).attempt),
        MATRIX,
    ),
    "perturb_encoded": (_seeded(OF_COLUMNS.perturb_encoded), ROWS),
    "aggregate": (lambda reports: RESPONSE.estimate(reports).counts, RESPONSE.perturb(INTEGERS, rng=SeededRng(8))),
}
"""Those of a matrix."""
