"""Memory: what a specification may ask for, and what happens where there is too little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpnoise import ParameterError, local

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors" / "local.json").read_text())
HUGE = (
    '{"dimension":2,"epsilon":1.0,"k":3,"keep":1,"planes":29,"prime":134217689,'
    '"protocol":"projective_geometry_response","version":1}'
)
LARGE = local.HadamardCountMeanSketch(epsilon=1.0, rows=16, width=2**20)  # whose counters have 256 MiB


def test_a_prime_that_makes_many_counters_is_refused() -> None:
    wanted = "prime must be a prime number for which the smallest space of k = 3 points has at most 12 of them"
    for make in (
        lambda: local.protocol_from_json(HUGE, limit=None),
        lambda: local.ProjectiveGeometryResponse(k=3, epsilon=1.0, prime=134_217_689),
    ):
        with pytest.raises(ParameterError, match=wanted):
            make()


@pytest.mark.parametrize("family", local.FAMILIES)
def test_the_limit_is_on_the_bytes_of_counters(family: str) -> None:
    texts = [one["specification"] for one in VECTORS if json.loads(one["specification"])["protocol"] == family]
    for text in texts:
        protocol = local.protocol_from_json(text)
        needed = protocol.counter_bytes
        state = protocol.accumulator().to_bytes()
        assert needed == 8 * protocol._native.counters <= len(state)
        assert local.protocol_from_json(text, limit=needed) == protocol
        assert local.Accumulator.from_bytes(state, limit=needed) == protocol.accumulator()
        for read, given in ((local.protocol_from_json, text), (local.Accumulator.from_bytes, state)):
            with pytest.raises(
                ParameterError, match=rf"^limit must be at least {needed}, the bytes of the counters of"
            ):
                read(given, limit=needed - 1)  # type: ignore[operator] # of its own kind
    assert texts


def test_the_limit_of_several_attributes_is_on_their_sum() -> None:
    both = local.Split(attributes={name: local.OptimizedUnaryEncoding(k=100, epsilon=1.0) for name in ("a", "b")})
    assert both.counter_bytes == 1600
    state = both.accumulator().to_bytes()
    for read, given in ((local.Split.from_json, both.to_json()), (local.AttributesAccumulator.from_bytes, state)):
        read(given, limit=1600)  # type: ignore[operator] # of its own kind
        with pytest.raises(ParameterError, match=r"^limit must be at least 1600, the bytes of the counters of all"):
            read(given, limit=1599)  # type: ignore[operator] # of its own kind


def test_the_default_limit_is_128_mib_and_none_is_none() -> None:
    assert local.OptimizedUnaryEncoding(k=2**24, epsilon=1.0).counter_bytes == 2**27
    local.protocol_from_json(local.OptimizedUnaryEncoding(k=2**24, epsilon=1.0).to_json())
    with pytest.raises(ParameterError, match=r"limit must be at least 268435456, .*, got 134217728"):
        local.protocol_from_json(LARGE.to_json())
    assert local.protocol_from_json(LARGE.to_json(), limit=None) == LARGE
    several = local.Split(attributes=dict.fromkeys(("a", "b"), local.OptimizedUnaryEncoding(k=2**24, epsilon=1.0)))
    with pytest.raises(ParameterError, match=r"limit must be at least 268435456, .*, got 134217728"):
        local.Split.from_json(several.to_json())
    for limit, error in ((-1, ParameterError), (2**64, ParameterError), (1.0, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="limit must be"):
            local.protocol_from_json(LARGE.to_json(), limit=limit)  # type: ignore[arg-type] # it is wrong


SHORT_OF_MEMORY = """
import resource
import numpy as np
import dpnoise
from dpnoise import hazmat, local, samplers, sgd, stability

protocol = local.OptimizedUnaryEncoding(k=2**23, epsilon=1.0)  # 64 MiB of counters
points = local.ProjectiveGeometryResponse(k=2**22, epsilon=1.0)
counts, others, of_points = protocol.accumulator(), protocol.accumulator(), points.accumulator()
report = np.zeros((1, protocol.report_bytes), np.uint8)
state, messages = counts.to_bytes(), protocol.messages(report)
memo = local.ClientMemo.generate(2**21)
saved = memo.to_bytes()
gradients = np.zeros((2, 2**23))
mean, scores = np.empty(2**23), np.zeros(2**23)
codes = np.zeros(2**23, np.uint32)
noisy = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0)
chooser = dpnoise.Exponential(epsilon=1.0, sensitivity=1.0)
native = protocol._native
supports = np.zeros(2**23, np.uint64)
calls = {
    "accumulator": protocol.accumulator,
    "from_bytes": lambda: local.Accumulator.from_bytes(state),
    "to_bytes": counts.to_bytes,
    "add": lambda: counts.add(report, threads=1),
    "add_messages": lambda: counts.add_messages(messages, threads=1),
    "merge": lambda: counts.merge(others),
    "estimate": counts.estimate,
    "estimate of points": of_points.estimate,
    "estimate_supports": lambda: native.estimate_supports(1, supports),
    "perturb": lambda: local.SummationHistogramEncoding(k=2**24, epsilon=1.0).perturb([0], threads=1),
    "generate": lambda: local.ClientMemo.generate(2**21),
    "memo to_bytes": memo.to_bytes,
    "memo from_bytes": lambda: local.ClientMemo.from_bytes(saved),
    "slice of a memo": lambda: memo[::-1],
    "samples": lambda: samplers.discrete_laplace(1.0, size=2**23, threads=1),
    "clip_and_sum": lambda: sgd.clip_and_sum(gradients, clip_norm=1.0, threads=1),
    "gradient": lambda: noisy.release(gradients, out=mean, threads=1),
    "scores": lambda: chooser.release(scores),
    "votes": lambda: dpnoise._native.SubsetVotes.mode(codes, 1, 0.1, 1),
    "subsets": lambda: dpnoise._native.Subsets(2**24, 0.1),
}
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[0])
used = pages * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, resource.RLIM_INFINITY))
for name, call in calls.items():
    try:
        call()
    except MemoryError:
        print(name)
assert counts.n == of_points.n == 0 and len(memo) == 2**21
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
counts.add(report)
assert counts.n == 1 and local.ClientMemo.from_bytes(saved) == memo
print(len(calls))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_calls_for_which_there_is_no_memory_raise_and_change_nothing() -> None:
    """All calls whose memory grows with what they are given; those of other families fail alike in the core."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    ran = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    *failed, calls = ran.stdout.splitlines()
    assert len(failed) == int(calls), failed
