"""RAPPOR over texts in Arrow: client and server beside vectorised NumPy, which remembers no permanent rows."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import local
from dpnoise.local import _inputs

COLUMNS = {f"num_bloombits = {bits}": bits for bits in (128, 1024)}
COHORTS, HASHES = 64, 2
F, P, Q = 0.5, 0.5, 0.75
TEXTS = [f"https://example.org/{i}" for i in range(1000)]
N = 100_000
BY_NUMPY = 20_000


@cache
def rappor(bits: int) -> local.Rappor:
    return local.Rappor(num_bloombits=bits, num_hashes=HASHES, num_cohorts=COHORTS, f=F, p=P, q=Q)


@cache
def filters(bits: int) -> np.ndarray:
    """Give the bits that are set in the Bloom filter of every text, by text and cohort."""
    table = np.empty((len(TEXTS), COHORTS, HASHES), np.int64)
    rappor(bits)._native.bloom_bits(_inputs.fingerprints(TEXTS, "texts"), table)
    return table


@cache
def values() -> np.ndarray:
    return np.random.default_rng(1).integers(0, len(TEXTS), N)


@cache
def texts() -> pa.Array:
    return pa.array(TEXTS).take(pa.array(values()))


@cache
def memo() -> local.ClientMemo:
    return local.ClientMemo.generate(N)


def perturb(bits: int, threads: int) -> np.ndarray:
    return rappor(bits).perturb(texts(), memo(), question=f"page, {bits}", threads=threads)


def numpy_perturb(generator: np.random.Generator, bits: int) -> np.ndarray:
    reports = np.empty((BY_NUMPY, 2 + bits // 8), np.uint8)
    cohorts = generator.integers(0, COHORTS, BY_NUMPY)
    reports[:, :2] = cohorts.astype("<u2").view(np.uint8).reshape(-1, 2)
    for first in range(0, BY_NUMPY, 1000):  # in blocks that fit the cache
        part = slice(first, first + 1000)
        rows = np.zeros((1000, bits), bool)
        set_ = filters(bits)[values()[:BY_NUMPY][part], cohorts[part]]
        rows[np.arange(1000)[:, None], set_] = True
        rows = generator.random(rows.shape) < np.where(rows, 1 - F / 2, F / 2)
        rows = generator.random(rows.shape) < np.where(rows, Q, P)
        reports[part, 2:] = np.packbits(rows, axis=1, bitorder="little")
    return reports


def check_reports(reports: np.ndarray, bits: int) -> None:
    """Few people for so many texts: what is counted are those whose Bloom filter has a bit, over all texts."""
    counters, n, _ = rappor(bits)._collected(reports, threads=1)._state.counters()
    by_cohort = counters.reshape(COHORTS, -1).astype(float)
    shares = np.zeros((COHORTS, bits))
    frequencies = np.bincount(values()[: len(reports)], minlength=len(TEXTS)) / len(reports)
    for cohort in range(COHORTS):
        pairs = np.unique(np.arange(len(TEXTS))[:, None] * bits + filters(bits)[:, cohort])
        np.add.at(shares[cohort], pairs % bits, frequencies[pairs // bits])
    told = F / 2 * Q + (1 - F / 2) * P
    expected = by_cohort[:, :1] * (told + shares * (1 - F) * (Q - P))
    assert n == len(reports)
    assert np.all(np.abs(by_cohort[:, 1:] - expected) < 7 * np.sqrt(by_cohort[:, :1] / 4))


@pytest.mark.parametrize("column", COLUMNS)
def test_client(race: Any, ours: Any, column: str) -> None:
    bits = COLUMNS[column]
    check = partial(check_reports, bits=bits)
    entrants = [
        *ours(partial(perturb, bits), check, N),
        *(
            Entrant(f"NumPy, {name}", partial(numpy_perturb, generator, bits), check, BY_NUMPY)
            for name, generator in GENERATORS.items()
        ),
    ]
    race("RAPPOR, client", column, "ns per report", entrants)


@lru_cache(maxsize=1)
def reports_of(bits: int) -> np.ndarray:
    return perturb(bits, 1)


def count(bits: int, threads: int) -> Any:
    accumulator = rappor(bits).accumulator()
    accumulator.add(reports_of(bits), threads=threads)
    return accumulator


def numpy_count(bits: int) -> np.ndarray:
    reports = reports_of(bits)
    cohorts = np.ascontiguousarray(reports[:, :2]).view("<u2").ravel()
    counts = np.zeros((COHORTS, 1 + bits), np.uint64)
    counts[:, 0] = np.bincount(cohorts, minlength=COHORTS)
    for cohort in range(COHORTS):
        rows = np.unpackbits(reports[cohorts == cohort, 2:], axis=1, bitorder="little")
        counts[cohort, 1:] = rows.sum(axis=0, dtype=np.uint64)
    return counts.ravel()


@lru_cache(maxsize=1)
def numpy_counts(bits: int) -> np.ndarray:
    return numpy_count(bits)


def check_counts(found: np.ndarray, bits: int) -> None:
    np.testing.assert_array_equal(found, numpy_counts(bits))


def check_ours(found: Any, bits: int) -> None:
    check_counts(found._state.counters()[0], bits)


@pytest.mark.parametrize("column", COLUMNS)
def test_server(race: Any, ours: Any, column: str) -> None:
    bits = COLUMNS[column]
    entrants = [
        *ours(partial(count, bits), partial(check_ours, bits=bits), N),
        Entrant("NumPy", partial(numpy_count, bits), partial(check_counts, bits=bits), N),
    ]
    race("RAPPOR, server", column, "ns per report", entrants)
