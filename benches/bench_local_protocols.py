"""The local protocols but for unary encoding: client and server beside vectorised NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from benches import peers
from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import local

COLUMNS = {f"k = {k}": k for k in (15, 128, 1024)}
N = 1_000_000
BY_PEER = 500  # other libraries make and read reports one by one


def errors_of_counts(protocol: Any, reports: np.ndarray, values: np.ndarray) -> np.ndarray:
    n = values.size
    errors = protocol.estimate(reports).counts - np.bincount(values, minlength=protocol.k)
    return errors / np.sqrt(protocol.variance(n, 1.0) + protocol.variance(n))


def errors_of_halves(protocol: Any, reports: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = protocol.estimate(reports).range(0, protocol.k // 2)
    return np.array([(found.count - np.count_nonzero(values <= protocol.k // 2)) / found.standard_error])


class Case(NamedTuple):
    """A protocol, and how NumPy does it."""

    make: Callable[[int], Any]
    """Makes the protocol for k values."""
    perturb: Callable[[np.random.Generator, Any, np.ndarray], np.ndarray]
    """What clients do, with a generator that is not secure and probabilities that are rounded."""
    count: Callable[[Any, np.ndarray], np.ndarray]
    """How many reports support each value."""
    by_numpy: int = N
    """The reports that NumPy is measured with."""
    n: int = N
    """The reports that we are measured with."""
    errors: Callable[[Any, np.ndarray, np.ndarray], np.ndarray] = errors_of_counts
    """The errors of what reports on values say, in standard deviations."""


def mix(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    keep = generator.random(values.size) < protocol.p - protocol.q
    reports = np.where(keep, values, generator.integers(0, protocol.k, values.size))
    return reports.astype(numbers(protocol)).view(np.uint8).reshape(values.size, -1)


def count_values(protocol: Any, reports: np.ndarray) -> np.ndarray:
    return np.bincount(reports.view(numbers(protocol)).ravel(), minlength=protocol.k)


def numbers(protocol: Any) -> str:
    return f"<u{protocol.report_bytes}"


def hash_with_numpy(protocol: Any, values: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    prime = json.loads(protocol.to_json())["prime"]
    return (a * values + b) % prime * protocol.g // prime


def hash_and_mix(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec, g, n = json.loads(protocol.to_json()), protocol.g, values.size
    a, b = generator.integers(0, spec["prime"], (2, n))
    keep = generator.random(n) * 2 ** spec["planes"] < spec["keep"]
    told = np.where(keep, hash_with_numpy(protocol, values, a, b), generator.integers(0, g, n))
    return to_rows(protocol, (a * spec["prime"] + b) * g + told)


def count_hashes(protocol: Any, reports: np.ndarray) -> np.ndarray:
    seeds, told = np.divmod(from_rows(protocol, reports), protocol.g)
    a, b = np.divmod(seeds, json.loads(protocol.to_json())["prime"])
    counts = np.zeros(protocol.k, np.int64)
    for first in range(0, seeds.size, 1000):  # in blocks that fit the cache
        part = slice(first, first + 1000)
        hashes = hash_with_numpy(protocol, np.arange(protocol.k), a[part, None], b[part, None])
        counts += (hashes == told[part, None]).sum(axis=0)
    return counts


def parity(numbers: np.ndarray) -> np.ndarray:
    for shift in (8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1


def entry_and_mix(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    columns = generator.integers(0, json.loads(protocol.to_json())["order"], values.size)
    flip = generator.random(values.size) >= protocol.p
    return to_rows(protocol, 2 * columns + (parity(columns & values) ^ flip))


def transform_counts(protocol: Any, reports: np.ndarray) -> np.ndarray:
    order = json.loads(protocol.to_json())["order"]
    counts = np.bincount(from_rows(protocol, reports), minlength=2 * order)
    balance = counts[0::2] - counts[1::2]
    half = 1
    while half < order:
        pairs = balance.reshape(-1, 2, half)
        balance = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return (len(reports) + balance.ravel()[: protocol.k]) // 2


def point_and_mix(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec, q, t, n = json.loads(protocol.to_json()), protocol.prime, protocol.dimension, values.size
    powers = q ** np.arange(t + 1)
    offsets = (powers - 1) // (q - 1)
    numbers = generator.integers(0, offsets[t - 1], n)
    places, places_of_numbers = (np.searchsorted(offsets, points, side="right") - 1 for points in (values, numbers))
    lower_digits, digits = values - offsets[places], numbers - offsets[places_of_numbers] + powers[places_of_numbers]
    total = sum((lower_digits // powers[i] % q) * (digits // powers[t - 2 - i] % q) for i in range(t - 1))
    head, tail = np.divmod(digits, powers[t - 1 - places])
    forced = (q * head + -total % q) * powers[t - 1 - places] + tail
    places_of_forced = np.searchsorted(powers, forced, side="right") - 1
    keep = generator.random(n) * 2 ** spec["planes"] < spec["keep"]
    others = generator.integers(0, offsets[t], n)
    return to_rows(protocol, np.where(keep, forced - powers[places_of_forced] + offsets[places_of_forced], others))


def count_points(protocol: Any, reports: np.ndarray) -> np.ndarray:
    points = (protocol.prime**protocol.dimension - 1) // (protocol.prime - 1)
    return np.bincount(from_rows(protocol, reports), minlength=points)


def select_and_force(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    rows = np.empty((values.size, protocol.report_bytes), np.uint8)
    for first in range(0, values.size, 1000):  # in blocks that fit the cache
        part = values[first : first + 1000]
        order = generator.random((part.size, protocol.k))
        inside = generator.random(part.size) < protocol.p
        order[np.arange(part.size), part] = np.where(inside, -1, 2)
        members = np.argpartition(order, protocol.omega - 1, axis=1)[:, : protocol.omega]
        bits = np.zeros((part.size, protocol.k), bool)
        np.put_along_axis(bits, members, True, axis=1)
        rows[first : first + part.size] = np.packbits(bits, axis=1, bitorder="little")
    return rows


def count_members(protocol: Any, reports: np.ndarray) -> np.ndarray:
    counts = np.zeros(protocol.k, np.int64)
    for first in range(0, len(reports), 1000):
        bits = np.unpackbits(reports[first : first + 1000], axis=1, bitorder="little", count=protocol.k)
        counts += bits.sum(axis=0, dtype=np.int64)
    return counts


def in_blocks(values: np.ndarray, width: int, rows_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Pack rows of bits, made for some values at a time, so that they fit the cache."""
    packed = np.empty((values.size, width), np.uint8)
    for first in range(0, values.size, 1000):
        part = slice(first, first + 1000)
        packed[part] = np.packbits(rows_of(values[part]), axis=1, bitorder="little")
    return packed


def flip_bits(generator: np.random.Generator, bits: np.ndarray, spec: dict[str, Any], round_: str = "") -> np.ndarray:
    p, q = (spec[round_ + name] / 2 ** spec[round_ + "planes"] for name in ("p", "q"))
    return generator.random(bits.shape) < np.where(bits, p, q)


def flip_twice(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec = json.loads(protocol.to_json())

    def rows(part: np.ndarray) -> np.ndarray:
        permanent = flip_bits(generator, part[:, None] == np.arange(protocol.k), spec, "permanent_")
        return flip_bits(generator, permanent, spec, "instantaneous_")

    return in_blocks(values, protocol.report_bytes, rows)


def hash_and_mix_twice(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec, g, n = json.loads(protocol.to_json()), protocol.g, values.size
    a, b = generator.integers(0, spec["prime"], (2, n))
    told = hash_with_numpy(protocol, values, a, b)
    for round_ in ("permanent_", "instantaneous_"):
        keep = generator.random(n) * 2 ** spec[round_ + "planes"] < spec[round_ + "keep"]
        told = np.where(keep, told, generator.integers(0, g, n))
    return to_rows(protocol, (a * spec["prime"] + b) * g + told)


def sample_and_flip(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec = json.loads(protocol.to_json())

    def rows(part: np.ndarray) -> np.ndarray:
        order = generator.random((part.size, protocol.k))
        chosen = np.argpartition(order, protocol.d - 1, axis=1)[:, : protocol.d]
        bits = np.zeros((part.size, protocol.k), bool)
        np.put_along_axis(bits, chosen, flip_bits(generator, chosen == part[:, None], spec), axis=1)
        return bits

    return in_blocks(values, protocol.report_bytes, rows)


def to_rows(protocol: Any, numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 8)[:, : protocol.report_bytes])


def from_rows(protocol: Any, reports: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(reports), 8), np.uint8)
    whole[:, : protocol.report_bytes] = reports
    return whole.view(np.int64).ravel()


def add_noise(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec = json.loads(protocol.to_json())
    unit, bound = spec["unit"], spec["bound"]
    rows = np.empty((values.size, protocol.k), np.uint32)
    for first in range(0, values.size, 1000):  # in blocks that fit the cache
        part = values[first : first + 1000]
        sums = np.rint(generator.laplace(scale=2 * unit / protocol.epsilon, size=(part.size, protocol.k)))
        sums[np.arange(part.size), part] += unit
        rows[first : first + part.size] = np.clip(sums, -bound, bound) + bound
    return rows.view(np.uint8)


def add_up(_: Any, reports: np.ndarray) -> np.ndarray:
    return reports.view(np.uint32).sum(axis=0, dtype=np.uint64)


def node_and_mix(generator: np.random.Generator, protocol: Any, values: np.ndarray) -> np.ndarray:
    spec, depth = json.loads(protocol.to_json()), (protocol.k - 1).bit_length()
    steps = generator.integers(0, -(-depth // (protocol.branching.bit_length() - 1)), values.size)
    up = steps * (protocol.branching.bit_length() - 1)
    columns = generator.integers(0, 1 << depth - up)
    keep = generator.random(values.size) * 2 ** spec["planes"] < spec["keep"]
    told = np.where(keep, parity(columns & values >> up), generator.integers(0, 2, values.size))
    return to_rows(protocol, 2 * ((1 << depth - up) + columns) + told)


def count_reports(protocol: Any, reports: np.ndarray) -> np.ndarray:
    return np.bincount(from_rows(protocol, reports), minlength=4 << (protocol.k - 1).bit_length())


CASES = {
    "Generalised randomised response": Case(
        lambda k: local.GeneralizedRandomizedResponse(k=k, epsilon=1.0), mix, count_values
    ),
    "Local hashing": Case(lambda k: local.LocalHashing(k=k, epsilon=1.0), hash_and_mix, count_hashes, 20_000),
    "Hadamard response": Case(lambda k: local.HadamardResponse(k=k, epsilon=1.0), entry_and_mix, transform_counts),
    "Projective geometry response": Case(
        lambda k: local.ProjectiveGeometryResponse(k=k, epsilon=1.0), point_and_mix, count_points
    ),
    "Subset selection": Case(
        lambda k: local.SubsetSelection(k=k, epsilon=1.0), select_and_force, count_members, 20_000, 100_000
    ),
    "Longitudinal unary encoding": Case(
        lambda k: local.LongitudinalUnaryEncoding(k=k, epsilon_permanent=2.0, epsilon_first=1.0),
        flip_twice,
        count_members,
        20_000,
        100_000,
    ),
    "LOLOHA": Case(
        lambda k: local.LOLOHA(k=k, epsilon_permanent=2.0, epsilon_first=1.0),
        hash_and_mix_twice,
        count_hashes,
        20_000,
        100_000,
    ),
    "dBitFlip": Case(lambda k: local.DBitFlip(k=k, d=4, epsilon=1.0), sample_and_flip, count_members, 20_000, 100_000),
    "Summation with histogram encoding": Case(
        lambda k: local.SummationHistogramEncoding(k=k, epsilon=1.0), add_noise, add_up, 20_000, 50_000
    ),
    "Hierarchical ranges": Case(
        lambda k: local.HierarchicalRange(k=k, epsilon=1.0), node_and_mix, count_reports, errors=errors_of_halves
    ),
}


@cache
def protocol_of(name: str, k: int) -> Any:
    return CASES[name].make(k)


@cache
def values_of(k: int, n: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, k, n)


@cache
def memo_of(n: int) -> local.ClientMemo:
    return local.ClientMemo.generate(n)


def perturb(name: str, k: int, threads: int) -> np.ndarray:
    protocol, values = protocol_of(name, k), values_of(k, CASES[name].n)
    if isinstance(protocol, local.LongitudinalProtocol):
        return protocol.perturb(values, memo_of(len(values)), question=f"{name}, {k}", threads=threads)
    return protocol.perturb(values, threads=threads)


def numpy_perturb(generator: np.random.Generator, name: str, k: int) -> np.ndarray:
    return CASES[name].perturb(generator, protocol_of(name, k), values_of(k, CASES[name].by_numpy))


def check_reports(reports: np.ndarray, name: str, k: int) -> None:
    errors = CASES[name].errors(protocol_of(name, k), reports, values_of(k, len(reports)))
    assert np.abs(errors).max() < 8


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_client(race: Any, ours: Any, name: str, column: str) -> None:
    k = COLUMNS[column]
    check = partial(check_reports, name=name, k=k)
    entrants = [
        *ours(partial(perturb, name, k), check, CASES[name].n),
        *(
            Entrant(f"NumPy, {bits}", partial(numpy_perturb, generator, name, k), check, CASES[name].by_numpy)
            for bits, generator in GENERATORS.items()
        ),
    ]
    for library, peer in peers.local_peers(name).items():
        work, accept = partial(peer_perturb, peer, k), partial(check_peer_reports, peer=peer, k=k)
        entrants.append(Entrant(library, work, accept, BY_PEER))
    race(f"{name}, client", column, "ns per report", entrants)


def peer_perturb(peer: peers.LocalPeer, k: int) -> list[Any]:
    return [peer.client(value, k) for value in values_of(k, BY_PEER).tolist()]


def check_peer_reports(reports: list[Any], peer: peers.LocalPeer, k: int) -> None:
    check_frequencies(peer.server(reports, k), k)


def check_frequencies(frequencies: np.ndarray, k: int) -> None:
    # Of so few reports they are mostly noise, and some libraries clip and scale it.
    assert np.shape(frequencies) == (k,)
    assert np.isfinite(frequencies).all()


@lru_cache(maxsize=1)
def reports_of(name: str, k: int) -> np.ndarray:
    return perturb(name, k, threads=1)


@lru_cache(maxsize=2)
def counts_of(name: str, k: int, n: int) -> np.ndarray:
    return numpy_count(name, k, n)


def count(name: str, k: int, threads: int) -> np.ndarray:
    accumulator = protocol_of(name, k).accumulator()
    accumulator.add(reports_of(name, k), threads=threads)
    return accumulator._state.counters()[0]


def numpy_count(name: str, k: int, n: int) -> np.ndarray:
    return CASES[name].count(protocol_of(name, k), reports_of(name, k)[:n])


def check_counts(counts: np.ndarray, name: str, k: int, n: int) -> None:
    np.testing.assert_array_equal(counts, counts_of(name, k, n))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_server(race: Any, ours: Any, name: str, column: str) -> None:
    k, n, whole = COLUMNS[column], CASES[name].by_numpy, CASES[name].n
    entrants = [
        *ours(partial(count, name, k), partial(check_counts, name=name, k=k, n=whole), whole),
        Entrant("NumPy", partial(numpy_count, name, k, n), partial(check_counts, name=name, k=k, n=n), n),
    ]
    for library, peer in peers.local_peers(name).items():
        work = partial(peer.server, peer_perturb(peer, k), k)
        entrants.append(Entrant(library, work, partial(check_frequencies, k=k), BY_PEER))
    race(f"{name}, server", column, "ns per report", entrants)
