"""The local protocols for numbers: client and server beside vectorised NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import local

COLUMNS = {f"epsilon = {epsilon:g}": epsilon for epsilon in (1.0, 4.0)}
N = 1_000_000
NUMBERS = np.random.default_rng(1).beta(2, 5, N)

Reports = np.ndarray


class Case(NamedTuple):
    """A protocol, and how NumPy does it."""

    make: Callable[[float], Any]
    """Makes the protocol for an epsilon."""
    perturb: Callable[[np.random.Generator, dict[str, Any]], Reports]
    """What clients do, with a generator that is not secure and probabilities that are rounded."""


def slide(generator: np.random.Generator, positions: np.ndarray, k: int, width: int, keep: float) -> Reports:
    inside = positions + generator.integers(0, width, N)
    anywhere = generator.integers(0, k + width - 1, N)
    return np.where(generator.random(N) < keep, inside, anywhere)


def round_and_slide(generator: np.random.Generator, k: int, width: int, keep: float) -> Reports:
    positions = np.floor(NUMBERS * (k - 1) + generator.random(N)).astype(np.int64)
    return slide(generator, positions, k, width, keep)


def mean(generator: np.random.Generator, spec: dict[str, Any]) -> Reports:
    return round_and_slide(generator, spec["k"], spec["width"], spec["keep"] / 2 ** spec["planes"])


def hybrid(generator: np.random.Generator, spec: dict[str, Any]) -> Reports:
    duchi = round_and_slide(generator, 2, 1, spec["duchi_keep"] / 2 ** spec["duchi_planes"])
    is_piecewise = generator.random(N) < spec["alpha"] / 2**24
    return np.where(is_piecewise, mean(generator, spec), spec["k"] + spec["width"] - 1 + duchi)


def wave(generator: np.random.Generator, spec: dict[str, Any]) -> Reports:
    bins = np.minimum(NUMBERS * spec["k"], spec["k"] - 1).astype(np.int64)
    return slide(generator, bins, spec["k"], spec["width"], spec["keep"] / 2 ** spec["planes"])


CASES = {
    "Duchi mean": Case(lambda epsilon: local.DuchiMean(epsilon=epsilon), mean),
    "Piecewise mean": Case(lambda epsilon: local.PiecewiseMean(epsilon=epsilon), mean),
    "Hybrid mean": Case(lambda epsilon: local.HybridMean(epsilon=epsilon), hybrid),
    "Square wave": Case(lambda epsilon: local.SquareWave(k=256, epsilon=epsilon), wave),
}


@cache
def protocol_of(name: str, epsilon: float) -> Any:
    return CASES[name].make(epsilon)


def values_of(protocol: Any) -> np.ndarray:
    return NUMBERS if isinstance(protocol, local.SquareWave) else 2 * NUMBERS - 1


def perturb(name: str, epsilon: float, threads: int) -> Reports:
    protocol = protocol_of(name, epsilon)
    return protocol.perturb(values_of(protocol), threads=threads)


def numpy_perturb(generator: np.random.Generator, name: str, epsilon: float) -> Reports:
    protocol = protocol_of(name, epsilon)
    reports = CASES[name].perturb(generator, json.loads(protocol.to_json()))
    return reports.astype(f"<u{protocol.report_bytes}").view(np.uint8).reshape(N, -1)


def check_reports(reports: Reports, name: str, epsilon: float) -> None:
    protocol = protocol_of(name, epsilon)
    estimate = protocol.estimate(reports)
    if isinstance(protocol, local.SquareWave):
        assert abs(estimate.mean() - NUMBERS.mean()) < 0.01
    else:
        assert abs(estimate.mean - values_of(protocol).mean()) < 8 * estimate.standard_error


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_client(race: Any, ours: Any, name: str, column: str) -> None:
    epsilon = COLUMNS[column]
    check = partial(check_reports, name=name, epsilon=epsilon)
    entrants = [
        *ours(partial(perturb, name, epsilon), check, N),
        *(
            Entrant(f"NumPy, {bits}", partial(numpy_perturb, generator, name, epsilon), check, N)
            for bits, generator in GENERATORS.items()
        ),
    ]
    race(f"{name}, client", column, "ns per report", entrants)


@cache
def reports_of(name: str, epsilon: float) -> Reports:
    return perturb(name, epsilon, threads=1)


def count(name: str, epsilon: float, threads: int) -> bytes:
    accumulator = protocol_of(name, epsilon).accumulator()
    accumulator.add(reports_of(name, epsilon), threads=threads)
    return accumulator.to_bytes()


def numpy_count(name: str, epsilon: float) -> np.ndarray:
    width = protocol_of(name, epsilon).report_bytes
    return np.bincount(reports_of(name, epsilon).view(f"<u{width}").ravel())


def check_state(state: bytes, name: str, epsilon: float) -> None:
    counters, n, rejected = local.Accumulator.from_bytes(state)._state.counters()
    assert (n, rejected) == (N, 0)
    np.testing.assert_array_equal(np.trim_zeros(counters, "b"), numpy_count(name, epsilon))


def check_counts(counts: np.ndarray) -> None:
    assert counts.sum() == N


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_server(race: Any, ours: Any, name: str, column: str) -> None:
    epsilon = COLUMNS[column]
    entrants = [
        *ours(partial(count, name, epsilon), partial(check_state, name=name, epsilon=epsilon), N),
        Entrant("NumPy", partial(numpy_count, name, epsilon), check_counts, N),
    ]
    race(f"{name}, server", column, "ns per report", entrants)
