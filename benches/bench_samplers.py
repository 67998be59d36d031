"""A million samples at several scales, beside NumPy's insecure samplers, and the latency of single calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpnoise import Laplace, samplers

N = 1_000_000
OUT = np.empty(N, np.int64)
GENERATOR = np.random.default_rng()


def numpy_discrete(scale: float) -> np.ndarray:
    """Take the difference of two geometric variables."""
    p = -np.expm1(-1 / scale)
    return GENERATOR.geometric(p, N) - GENERATOR.geometric(p, N)


WAYS = {
    "1 thread": lambda scale: samplers.discrete_laplace(scale, out=OUT, threads=1),
    "all threads": lambda scale: samplers.discrete_laplace(scale, out=OUT),
    "numpy laplace": lambda scale: GENERATOR.laplace(0, scale, N),
    "numpy": numpy_discrete,
}


@pytest.mark.items(N, "sample")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", [0.01, 1, 10, 1000, 1e6, 2**40])
def test_discrete_laplace(benchmark: Any, scale: float, way: str) -> None:
    benchmark.group = f"discrete Laplace, scale {scale:g}"
    benchmark.extra_info["who"] = way
    samples = benchmark.pedantic(WAYS[way], (scale,), rounds=7, warmup_rounds=1)
    # The mean magnitude, 2 q / (1 - q^2), tells a fast wrong answer.
    q = np.exp(-1 / scale)
    mean = 2 * q / (1 - q * q) if way != "numpy laplace" else scale
    assert np.abs(samples).mean() == pytest.approx(mean, rel=0.02, abs=1e-5)


MECHANISM = Laplace(epsilon=1.0)
CALLS = {
    "Laplace.release(float)": lambda: MECHANISM.release(1.0),
    "discrete_laplace(10.0)": lambda: samplers.discrete_laplace(10.0),
    "numpy": lambda: GENERATOR.laplace(0.0, 1.0),
}


@pytest.mark.items(1, "call")
@pytest.mark.benchmark(group="one sample")
@pytest.mark.parametrize("call", CALLS)
def test_latency(benchmark: Any, call: str) -> None:
    assert np.isfinite(benchmark(CALLS[call]))
