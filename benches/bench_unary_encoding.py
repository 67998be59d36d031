"""Unary encoding: client and server beside vectorised NumPy, at widths that fill whole words and at others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benches import peers
from benches.machine import OURS
from benches.noise import GENERATORS
from benches.record import Record
from benches.targets import OF_VALUES
from benches.timing import Entrant
from dpnoise import local

WIDTHS = {f"k = {k}": k for k in (15, 100, 128, 1000, 1024, 4096)}
# Bits of all reports. NumPy is measured with fewer, as it takes a hundred times as long.
PERTURBED = 2**26
IN_CACHE, TIMES = 2**22, 32
IN_MEMORY = 2**30
BY_NUMPY = 2**23
BY_PEER = 200  # reports, one by one


@cache
def protocol_of(k: int) -> local.OptimizedUnaryEncoding:
    return local.OptimizedUnaryEncoding(k=k, epsilon=1.0)


@cache
def values_of(k: int, bits: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, k, bits // k)


def perturb(k: int, threads: int) -> np.ndarray:
    return protocol_of(k).perturb(values_of(k, PERTURBED), threads=threads)


def numpy_perturb(generator: np.random.Generator, k: int, block: int = 2**20) -> np.ndarray:
    """Perturb with 32-bit thresholds and packbits, in blocks of bits that fit the cache."""
    protocol, values = protocol_of(k), values_of(k, BY_NUMPY)
    q, p = np.uint32(protocol.q * 2**32), np.uint32(protocol.p * 2**32)
    reports = np.empty((values.size, protocol.report_bytes), np.uint8)
    for first in range(0, values.size, block // k):
        part = values[first : first + block // k]
        uniform = generator.integers(0, 2**32, (part.size, k), dtype=np.uint32)
        bits = uniform < q
        rows = np.arange(part.size)
        bits[rows, part] = uniform[rows, part] < p
        reports[first : first + part.size] = np.packbits(bits, axis=1, bitorder="little")
    return reports


def check_reports(reports: np.ndarray, k: int, bits: int) -> None:
    protocol, values = protocol_of(k), values_of(k, bits)
    errors = protocol.estimate(reports).counts - np.bincount(values, minlength=k)
    assert np.abs(errors).max() < 8 * np.sqrt(protocol.variance(values.size))


@pytest.mark.parametrize("column", WIDTHS)
def test_client(race: Any, ours: Any, column: str) -> None:
    k = WIDTHS[column]
    entrants = [
        *ours(partial(perturb, k), partial(check_reports, k=k, bits=PERTURBED), PERTURBED),
        *(
            Entrant(
                f"NumPy, {bits}",
                partial(numpy_perturb, generator, k),
                partial(check_reports, k=k, bits=BY_NUMPY),
                BY_NUMPY,
            )
            for bits, generator in GENERATORS.items()
        ),
    ]
    for library, peer in peers.local_peers("Unary encoding").items():
        entrants.append(Entrant(library, partial(peer_perturb, peer, k), check_bits, BY_PEER * k))
    race("Unary encoding, client", column, "ns per bit", entrants)


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "packed": partial(np.packbits, axis=1, bitorder="little"),
    "bytes": np.asarray,
    "bool": partial(np.asarray, dtype=bool),
    "int64": partial(np.asarray, dtype=np.int64),
    "data frame": partial(pd.DataFrame, dtype=bool),
}
"""How rows of bits, a byte for each, become those of another form."""


@pytest.mark.parametrize("k", [15, 128, 1024])
@pytest.mark.parametrize("form", FORMS)
def test_client_of_rows(race: Any, form: str, k: int) -> None:
    protocol, bits = protocol_of(k), PERTURBED // 4
    rows = FORMS[form](protocol.bits(protocol.encode(values_of(k, bits))))
    check = partial(check_reports, k=k, bits=bits)
    values = partial(protocol.perturb, values_of(k, bits), threads=1)
    entrants = [
        Entrant(OURS, partial(protocol.perturb_encoded, rows, threads=1), check, bits),
        Entrant(OF_VALUES, values, check, bits),
    ]
    race("Unary encoding, client, of rows", f"{form}, k = {k}", "ns per bit", entrants)


def peer_perturb(peer: peers.LocalPeer, k: int) -> np.ndarray:
    return np.array([peer.client(value, k) for value in values_of(k, BY_PEER * k).tolist()])


def check_bits(bits: np.ndarray) -> None:
    assert abs(bits.mean() - 0.27) < 0.05


@lru_cache(maxsize=1)
def reports_of(k: int, bits: int) -> np.ndarray:
    return protocol_of(k).perturb(values_of(k, bits))


@lru_cache(maxsize=1)
def counts_of(k: int, bits: int) -> np.ndarray:
    return numpy_aggregate(k, reports_of(k, bits))


def aggregate(k: int, bits: int, times: int, threads: int) -> np.ndarray:
    """Count the ones in every column, from the estimates that they are turned into."""
    protocol, reports = protocol_of(k), reports_of(k, bits)
    accumulator = protocol.accumulator()
    for _ in range(times):
        accumulator.add(reports, threads=threads)
    return np.rint(accumulator.estimate().counts * (protocol.p - protocol.q) + accumulator.n * protocol.q)


def numpy_aggregate(k: int, reports: np.ndarray, block: int = 2**20) -> np.ndarray:
    counts = np.zeros(k, np.int64)
    for first in range(0, len(reports), block // k):
        bits = np.unpackbits(reports[first : first + block // k], axis=1, bitorder="little", count=k)
        counts += bits.sum(axis=0, dtype=np.int64)
    return counts


def check_counts(counts: np.ndarray, k: int, bits: int, times: int) -> None:
    np.testing.assert_array_equal(counts, times * counts_of(k, bits))


def numpy_entrant(k: int, bits: int, items: int) -> Entrant:
    few = reports_of(k, bits)[: BY_NUMPY // k]
    expected = numpy_aggregate(k, few)
    work = partial(numpy_aggregate, k, few)
    return Entrant("NumPy", work, partial(np.testing.assert_array_equal, desired=expected), items)


@pytest.mark.parametrize("column", WIDTHS)
def test_server_from_cache(race: Any, ours: Any, column: str) -> None:
    k = WIDTHS[column]
    check = partial(check_counts, k=k, bits=IN_CACHE, times=TIMES)
    entrants = [
        *ours(partial(aggregate, k, IN_CACHE, TIMES), check, TIMES * IN_CACHE),
        numpy_entrant(k, IN_CACHE, IN_CACHE),
    ]
    race("Unary encoding, server, from cache", column, "ns per bit", entrants)


@pytest.mark.parametrize("column", WIDTHS)
def test_server_from_memory(race: Any, ours: Any, column: str) -> None:
    k = WIDTHS[column]
    reports = reports_of(k, IN_MEMORY)
    words = reports.reshape(-1)[: reports.nbytes // 8 * 8].view(np.uint64)
    largest = words.max()
    check = partial(check_counts, k=k, bits=IN_MEMORY, times=1)
    entrants = [
        *ours(partial(aggregate, k, IN_MEMORY, 1), check, reports.nbytes),
        Entrant("reading the memory", words.max, partial(np.testing.assert_equal, desired=largest), words.nbytes),
        numpy_entrant(k, IN_MEMORY, BY_NUMPY // k * protocol_of(k).report_bytes),
    ]
    race("Unary encoding, server, from memory", column, "GB/s", entrants, rate=True)


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
print((peak() - before) / 1024)
"""
WAYS = {
    "at once": "accumulator.add(protocol.perturb(values))",
    "streamed": "[accumulator.add(protocol.perturb(values[i:i + 10**4])) for i in range(0, 10**6, 10**4)]",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize("way", WAYS)
def test_peak_memory(record: Record, way: str) -> None:
    command = [sys.executable, "-c", PEAK.format(work=WAYS[way])]
    peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    record.table("Peak memory", "MiB beyond the interpreter, 10^6 x 128 bits perturbed and counted").add(
        way, {OURS: peak}
    )
    assert peak > 0
