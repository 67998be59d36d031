"""Sketches over texts in Arrow: client and server beside vectorised NumPy, which looks hashes up in a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import local

COLUMNS = {f"width = {width}": width for width in (128, 1024)}
ROWS = 256
TEXTS = [f"https://example.org/{i}" for i in range(1000)]
N = 200_000
BY_NUMPY = 20_000


class Case(NamedTuple):
    """A sketch, and how NumPy does it."""

    make: Callable[..., Any]
    perturb: Callable[[np.random.Generator, int, np.ndarray], np.ndarray]
    """What clients do, with a generator that is not secure and probabilities that are rounded."""
    count: Callable[[int, np.ndarray], np.ndarray]
    """The collector's counters."""


@cache
def table(width: int) -> np.ndarray:
    """Give the column of every text in every row."""
    numbers = [int.from_bytes(sha256(b"dpnoise text" + text.encode()).digest()[:8], "little") for text in TEXTS]
    keys = [sha256(b"dpnoise row" + bytes(4) + row.to_bytes(4, "little")).digest() for row in range(ROWS)]
    pairs = [(int.from_bytes(key[:16], "little"), int.from_bytes(key[16:], "little")) for key in keys]
    return np.array([[(a * x + b) % 2**128 * width >> 128 for x in numbers] for a, b in pairs])


def flip(generator: np.random.Generator, width: int, values: np.ndarray) -> np.ndarray:
    p = np.exp(0.5) / (np.exp(0.5) + 1)
    reports = np.empty((values.size, 2 + width // 8), np.uint8)
    rows = generator.integers(0, ROWS, values.size)
    reports[:, :2] = rows.astype("<u2").view(np.uint8).reshape(-1, 2)
    for first in range(0, values.size, 1000):  # in blocks that fit the cache
        part = slice(first, first + 1000)
        bits = generator.random((rows[part].size, width)) < 1 - p
        own = generator.random(rows[part].size) < p
        bits[np.arange(own.size), table(width)[rows[part], values[part]]] = own
        reports[part, 2:] = np.packbits(bits, axis=1, bitorder="little")
    return reports


def count_bits(width: int, reports: np.ndarray) -> np.ndarray:
    rows = np.ascontiguousarray(reports[:, :2]).view("<u2").ravel()
    counts = np.zeros((ROWS, 1 + width), np.int64)
    counts[:, 0] = np.bincount(rows, minlength=ROWS)
    for row in range(ROWS):
        counts[row, 1:] = np.unpackbits(reports[rows == row, 2:], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return counts.ravel()


def parity(numbers: np.ndarray) -> np.ndarray:
    for shift in (8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1


def keep_entry(generator: np.random.Generator, width: int, values: np.ndarray) -> np.ndarray:
    rows, columns = generator.integers(0, ROWS, values.size), generator.integers(0, width, values.size)
    lie = generator.random(values.size) >= np.exp(1.0) / (np.exp(1.0) + 1)
    told = parity(table(width)[rows, values] & columns) ^ lie
    numbers = 2 * (rows * width + columns) + told
    return np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 8)[:, : bytes_of(width)])


def count_numbers(width: int, reports: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(reports), 8), np.uint8)
    whole[:, : bytes_of(width)] = reports
    return np.bincount(whole.view(np.int64).ravel(), minlength=2 * ROWS * width)


def bytes_of(width: int) -> int:
    return ((2 * ROWS * width - 1).bit_length() + 7) // 8


CASES = {
    "Count mean sketch": Case(local.CountMeanSketch, flip, count_bits),
    "Hadamard count mean sketch": Case(local.HadamardCountMeanSketch, keep_entry, count_numbers),
}


@cache
def sketch_of(name: str, width: int) -> Any:
    return CASES[name].make(epsilon=1.0, rows=ROWS, width=width)


@cache
def values() -> np.ndarray:
    return np.random.default_rng(1).integers(0, len(TEXTS), N)


@cache
def texts() -> pa.Array:
    return pa.array(TEXTS).take(pa.array(values()))


def perturb(name: str, width: int, threads: int) -> np.ndarray:
    return sketch_of(name, width).perturb(texts(), threads=threads)


def numpy_perturb(generator: np.random.Generator, name: str, width: int) -> np.ndarray:
    return CASES[name].perturb(generator, width, values()[:BY_NUMPY])


def check_reports(reports: np.ndarray, name: str, width: int) -> None:
    estimate = sketch_of(name, width).estimate(reports, TEXTS)
    truth = np.bincount(values()[: len(reports)], minlength=len(TEXTS))
    assert np.all(np.abs(estimate.counts - truth) < 8 * estimate.standard_errors)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_client(race: Any, ours: Any, name: str, column: str) -> None:
    width = COLUMNS[column]
    check = partial(check_reports, name=name, width=width)
    table(width)
    entrants = [
        *ours(partial(perturb, name, width), check, N),
        *(
            Entrant(f"NumPy, {bits}", partial(numpy_perturb, generator, name, width), check, BY_NUMPY)
            for bits, generator in GENERATORS.items()
        ),
    ]
    race(f"{name}, client", column, "ns per report", entrants)


@lru_cache(maxsize=1)
def reports_of(name: str, width: int) -> np.ndarray:
    return perturb(name, width, 1)


def count(name: str, width: int, threads: int) -> Any:
    accumulator = sketch_of(name, width).accumulator()
    accumulator.add(reports_of(name, width), threads=threads)
    return accumulator


@lru_cache(maxsize=2)
def numpy_counts(name: str, width: int) -> np.ndarray:
    return numpy_count(name, width)


def numpy_count(name: str, width: int) -> np.ndarray:
    return CASES[name].count(width, reports_of(name, width))


def check_counts(counts: np.ndarray, name: str, width: int) -> None:
    accumulator = count(name, width, 1)
    np.testing.assert_array_equal(counts, accumulator._state.counters()[0])


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_server(race: Any, ours: Any, name: str, column: str) -> None:
    width = COLUMNS[column]
    entrants = [
        *ours(partial(count, name, width), partial(check_ours, name=name, width=width), N),
        Entrant("NumPy", partial(numpy_count, name, width), partial(check_counts, name=name, width=width), N),
    ]
    race(f"{name}, server", column, "ns per report", entrants)


def check_ours(found: Any, name: str, width: int) -> None:
    np.testing.assert_array_equal(found._state.counters()[0], numpy_counts(name, width))
