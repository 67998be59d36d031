"""A million samples at several scales, beside NumPy's insecure samplers, and the latency of single calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpnoise import Laplace, samplers

N = 1_000_000
OUT = np.empty(N, np.int64)
GENERATOR = np.random.default_rng()


def difference_of_geometrics(scale: float) -> np.ndarray:
    p = -np.expm1(-1 / scale)
    return GENERATOR.geometric(p, N) - GENERATOR.geometric(p, N)


# Ours, NumPy's nearest sampler, and the mean magnitude to expect, which tells a fast wrong answer. NumPy's samplers are
# neither exact nor secure.
DISTRIBUTIONS = {
    "discrete Laplace": (
        samplers.discrete_laplace,
        difference_of_geometrics,
        lambda scale: 2 * np.exp(-1 / scale) / -np.expm1(-2 / scale),
    ),
    "discrete Gaussian": (
        samplers.discrete_gaussian,
        lambda sigma: GENERATOR.normal(0, sigma, N),
        lambda sigma: np.sqrt(2 / np.pi) * sigma if sigma > 2 else None,
    ),
    "geometric": (
        samplers.geometric,
        lambda scale: GENERATOR.geometric(-np.expm1(-1 / scale), N) - 1,
        lambda scale: np.exp(-1 / scale) / -np.expm1(-1 / scale),
    ),
}


@pytest.mark.items(N, "sample")
@pytest.mark.parametrize("who", ["1 thread", "all threads", "numpy"])
@pytest.mark.parametrize("scale", [0.01, 1, 10, 1000, 1e6, 2**40])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_noise(benchmark: Any, distribution: str, scale: float, who: str) -> None:
    benchmark.group = f"{distribution}, scale {scale:g}"
    benchmark.extra_info["who"] = who
    ours, numpys, expected = DISTRIBUTIONS[distribution]
    threads = 1 if who == "1 thread" else None
    draw = numpys if who == "numpy" else lambda scale: ours(scale, out=OUT, threads=threads)
    samples = benchmark.pedantic(draw, (scale,), rounds=7, warmup_rounds=1)
    mean = expected(scale)
    if mean is not None:
        assert np.abs(samples).mean() == pytest.approx(mean, rel=0.02, abs=1e-5)


@pytest.mark.items(N, "sample")
@pytest.mark.benchmark(group="float Laplace, scale 10")
@pytest.mark.parametrize("who", ["1 thread", "all threads", "numpy"])
def test_laplace_mechanism(benchmark: Any, who: str) -> None:
    mechanism, zeros = Laplace(epsilon=0.1), np.zeros(N)
    threads = 1 if who == "1 thread" else None
    draw = (
        (lambda: GENERATOR.laplace(0, 10, N)) if who == "numpy" else lambda: mechanism.release(zeros, threads=threads)
    )
    assert np.abs(benchmark.pedantic(draw, rounds=7, warmup_rounds=1)).mean() == pytest.approx(10, rel=0.02)


@pytest.mark.items(2**24, "byte")
@pytest.mark.benchmark(group="random bytes, 1 core")
@pytest.mark.parametrize("who", ["dpnoise", "numpy"])
def test_random_bytes(benchmark: Any, who: str) -> None:
    draw = GENERATOR.bytes if who == "numpy" else samplers.random_bytes
    assert len(benchmark.pedantic(draw, (2**24,), rounds=7, warmup_rounds=1)) == 2**24


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
