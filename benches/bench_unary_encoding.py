"""Unary encoding over a million reports of 128 bits: client and server, beside vectorised NumPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpnoise import local

N, K = 1_000_000, 128
PROTOCOL = local.OptimizedUnaryEncoding(k=K, epsilon=1.0)
VALUES = np.random.default_rng(1).integers(0, K, N)
# What NumPy's generator, which is not secure, needs less than a 32-bit threshold for.
THRESHOLDS = np.uint32(PROTOCOL.q * 2**32), np.uint32(PROTOCOL.p * 2**32)


def numpy_perturb(block: int = 10_000) -> np.ndarray:
    """Perturb with 32-bit thresholds and packbits, in blocks that fit the cache."""
    rng = np.random.default_rng()
    reports = np.empty((N, K // 8), np.uint8)
    for first in range(0, N, block):
        values = VALUES[first : first + block]
        uniform = rng.integers(0, 2**32, (values.size, K), dtype=np.uint32)
        bits = uniform < THRESHOLDS[0]
        rows = np.arange(values.size)
        bits[rows, values] = uniform[rows, values] < THRESHOLDS[1]
        reports[first : first + block] = np.packbits(bits, axis=1, bitorder="little")
    return reports


def numpy_aggregate(reports: np.ndarray, block: int = 10_000) -> np.ndarray:
    counts = np.zeros(K, np.int64)
    for first in range(0, N, block):
        counts += np.unpackbits(reports[first : first + block], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return counts


WAYS = {
    "1 thread": lambda: PROTOCOL.perturb(VALUES, threads=1),
    "all threads": lambda: PROTOCOL.perturb(VALUES),
    "numpy": numpy_perturb,
}


@pytest.mark.items(N * K, "bit")
@pytest.mark.benchmark(group="perturb 10^6 x 128 bits")
@pytest.mark.parametrize("way", WAYS)
def test_perturb(benchmark: Any, way: str) -> None:
    reports = benchmark.pedantic(WAYS[way], rounds=7, warmup_rounds=1)
    errors = PROTOCOL.aggregate(reports).counts - np.bincount(VALUES, minlength=K)
    assert np.abs(errors).max() < 8 * np.sqrt(PROTOCOL.variance(N))


def aggregate(reports: np.ndarray, threads: int | None) -> np.ndarray:
    accumulator = PROTOCOL.accumulator()
    accumulator.add(reports, threads=threads)
    estimate = accumulator.estimate()
    return np.rint(estimate.counts * (PROTOCOL.p - PROTOCOL.q) + N * PROTOCOL.q).astype(np.int64)


SUMS = {
    "1 thread": lambda reports: aggregate(reports, 1),
    "all threads": lambda reports: aggregate(reports, None),
    "numpy": numpy_aggregate,
}


@pytest.mark.items(N * K, "bit")
@pytest.mark.benchmark(group="aggregate 10^6 x 128 bits")
@pytest.mark.parametrize("way", SUMS)
def test_aggregate(benchmark: Any, way: str) -> None:
    reports = PROTOCOL.perturb(VALUES)
    counts = benchmark.pedantic(SUMS[way], (reports,), rounds=7, warmup_rounds=1)
    assert np.array_equal(counts, numpy_aggregate(reports))


# The high-water mark of the process's own memory (ru_maxrss would include that of the process it was forked from).
PEAK = """
import re, numpy as np
from dpnoise import local
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
protocol = local.OptimizedUnaryEncoding(k=128, epsilon=1.0)
before = peak()
values = np.arange(10**6) % 128
accumulator = protocol.accumulator()
{work}
assert accumulator.n == 10**6
print((peak() - before) // 1024)
"""
WORK = {
    "at once": "accumulator.add(protocol.perturb(values))",
    "streamed": "[accumulator.add(protocol.perturb(values[i:i + 10**4])) for i in range(0, 10**6, 10**4)]",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.benchmark(group="perturb and aggregate 10^6 x 128 bits in a new process")
@pytest.mark.parametrize("way", WORK)
def test_peak_memory(benchmark: Any, way: str) -> None:
    command = [sys.executable, "-c", PEAK.format(work=WORK[way])]
    peak = benchmark.pedantic(
        lambda: subprocess.run(command, check=True, capture_output=True, text=True).stdout, rounds=1
    )
    benchmark.extra_info["who"] = f"{way}, peak memory {peak.strip()} MiB beyond the interpreter"
    assert 0 < int(peak) <= 48
