"""What the local protocols do with random words, and what reports say, written from their definitions alone.

Nothing is shared with the library: a protocol is its JSON specification, randomness is bytes, and a report is bytes.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from tests.vectors import noise_spec
from tests.vectors.key_stream import chacha12

CHUNK = 1024
"""Protocols whose reports are numbers take the words for this many people at a time."""
TILE = 512
"""Protocols whose reports are bits take the words for this many bits at a time."""

HADAMARD_SKETCHES = ("hadamard_count_mean_sketch", "prefix_extension")
NUMBERS = (
    "generalized_randomized_response",
    "local_hashing",
    "hadamard_response",
    "loloha",
    "hierarchical_range",
    "projective_geometry_response",
    *HADAMARD_SKETCHES,
)
SKETCHES = ("count_mean_sketch", "hadamard_count_mean_sketch")
OF_TEXTS = (*SKETCHES, "rappor")
NOISY_MEANS = ("laplace_mean", "gaussian_mean")
SUMS = (*NOISY_MEANS, "summation_histogram_encoding")
WINDOWS = ("duchi_mean", "piecewise_mean", "hybrid_mean", "square_wave")
LONGITUDINAL = ("longitudinal_unary_encoding", "loloha", "d_bit_flip", "rappor")
GROUPS = {"count_mean_sketch": ("rows", "width"), "rappor": ("num_cohorts", "num_bloombits")}
"""Where reports are the number of a group and bits: how many groups there are, and bits."""
KEY_OF_ANSWERS = 2**32 - 1
"""The count of the block that is the key of permanent answers."""


class Words:
    """Random bytes, taken as little-endian words."""

    def __init__(self, stream: bytes) -> None:
        self.stream, self.taken = stream, 0

    def take(self, size: int) -> int:
        word = self.stream[self.taken : self.taken + size]
        self.taken += size
        assert len(word) == size, "there are enough words"
        return int.from_bytes(word, "little")


class DerivedWords(Words):
    """The words of a person, made as far as they are taken: blocks with a count and three words behind it."""

    def __init__(self, first: bytes, key: NDArray[np.uint32], last: NDArray[np.uint32]) -> None:
        super().__init__(first)
        self.key, self.last = key, last

    def take(self, size: int) -> int:
        while self.taken + size > len(self.stream):
            count = len(self.stream) // 64
            self.stream += derived_blocks(self.key[:, None], count, self.last[:, None]).T.astype("<u4").tobytes()
        return super().take(size)

    def numbers(self, drawn: list[tuple[int, int]]) -> list[int]:
        """Give a uniform number below k for each word of 32 bits and k; words behind all others replace some."""
        return [unbiased(word, k, 4, self) for word, k in drawn]


def derived_blocks(keys: NDArray[np.uint32], count: int, last: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Give the 16 words of a block of each person."""
    return chacha12(keys, np.vstack([np.full((1, keys.shape[1]), count, np.uint32), last]))


class Derivation:
    """What is permanent in people's answers to a question."""

    def __init__(self, spec: dict[str, Any], question: str, secrets: list[bytes]) -> None:
        asked = bare_digest(spec) + sha256(question.encode()).digest()
        context = np.frombuffer(sha256(b"dpnoise memo" + asked).digest(), "<u4").astype(np.uint32)
        context = np.repeat(context[:, None], len(secrets), axis=1)
        self.keys = chacha12(np.frombuffer(b"".join(secrets), "<u4").reshape(-1, 8).T, context[:4])[:8]
        self.last = context[4:7]

    def own(self, length: int) -> list[DerivedWords]:
        """Give each person's words that are for all values; about `length` of them are made at once."""
        return self.streams(self.keys, self.last, length)

    def answers(self, numbers: list[int], length: int) -> list[DerivedWords]:
        """Give the words for each person's answer to one value."""
        keys = derived_blocks(self.keys, KEY_OF_ANSWERS, self.last)[:8]
        halves = [[number % 2**32 for number in numbers], [number >> 32 for number in numbers]]
        return self.streams(keys, np.array([[0] * len(numbers), *halves], np.uint32), length)

    def streams(self, keys: NDArray[np.uint32], last: NDArray[np.uint32], length: int) -> list[DerivedWords]:
        blocks = [derived_blocks(keys, count, last) for count in range(-(-length // 16))]
        first = np.vstack(blocks).T.astype("<u4")
        return [DerivedWords(words.tobytes(), *own) for words, *own in zip(first, keys.T, last.T, strict=True)]


def below(k: int, count: int, words: Words) -> list[int]:
    """Uniform numbers below k: a word for each, then replacements of those that would make some k more likely."""
    size = 2 if k <= 256 else 4
    drawn = [words.take(size) for _ in range(count)]
    return [unbiased(word, k, size, words) for word in drawn]


def unbiased(word: int, k: int, size: int, words: Words) -> int:
    """Turn a word into a number below k (Lemire 2019)."""
    values = 2 ** (8 * size)
    while word * k % values < values % k:
        word = words.take(size)
    return word * k // values


def mixed(symbols: list[int], g: int, spec: dict[str, Any], words: Words, round_: str = "") -> list[int]:
    """Keep each symbol with probability keep / 2**planes, and else draw any of g."""
    keep, planes = spec[round_ + "keep"], spec[round_ + "planes"]
    size = next(size for size in (2, 4, 8) if 8 * size >= planes)
    coins = [words.take(size) >> 8 * size - planes for _ in symbols]
    others = below(g, len(symbols), words)
    return [symbol if coin < keep else other for symbol, coin, other in zip(symbols, coins, others, strict=True)]


def points(spec: dict[str, Any], dimension: int) -> int:
    """Give the number of vectors of so many digits whose highest digit that is not 0 is 1."""
    return int(sum(spec["prime"] ** place for place in range(dimension)))


def digits_of(spec: dict[str, Any], point: int, dimension: int) -> list[int]:
    """Give the digits of a point, lowest first; points are in the order of the numbers with these digits."""
    leading = 1
    while point >= leading:
        point -= leading
        leading *= spec["prime"]
    return [(leading + point) // spec["prime"] ** place % spec["prime"] for place in range(dimension)]


def point_with(spec: dict[str, Any], digits: list[int]) -> int:
    """Give the point with these digits."""
    highest = place_of(digits)
    return points(spec, highest) + sum(digit * spec["prime"] ** i for i, digit in enumerate(digits[:highest]))


def place_of(digits: list[int]) -> int:
    """Give the place of the highest digit that is not 0."""
    return max(i for i, digit in enumerate(digits) if digit)


def forced(spec: dict[str, Any], value: int, w: int) -> int:
    """Give number w of the reports that support a value."""
    own = digits_of(spec, value, spec["dimension"])
    row, place = digits_of(spec, w, spec["dimension"] - 1)[::-1], place_of(own)
    inserted = -sum(a * b for a, b in zip(own[:place], row[:place], strict=True)) % spec["prime"]
    return point_with(spec, [*row[:place], inserted, *row[place:]][::-1])


def depth(spec: dict[str, Any]) -> int:
    """Give the binary digits of the leaves of a tree."""
    return int(spec["k"] - 1).bit_length()


def levels(spec: dict[str, Any]) -> list[int]:
    """Give the binary digits of the nodes of every level, from the leaves up."""
    step = spec["branching"].bit_length() - 1
    return list(range(depth(spec), 0, -step))


def symbol(spec: dict[str, Any], seed: int, value: int) -> int:
    """Give the symbol that a seed makes of a value."""
    match spec["protocol"]:
        case "generalized_randomized_response":
            return value
        case "local_hashing" | "loloha":
            prime = spec["prime"]
            a, b = divmod(seed, prime)
            return spec["g"] * ((a * value + b) % prime) // prime
        case "hadamard_response":
            return (seed & value).bit_count() % 2
        case "hierarchical_range":
            bits = seed.bit_length() - 1
            node = value >> depth(spec) - bits
            return (seed - 2**bits & node).bit_count() % 2
        case "projective_geometry_response":
            return forced(spec, value, seed)
        case "hadamard_count_mean_sketch":
            row, column = divmod(seed, spec["width"])
            return (column & column_of(spec, row, value)).bit_count() % 2
        case "prefix_extension":
            row, column = divmod(seed, spec["width"])
            longer = (cells(spec) // spec["width"] - 1 - row) // spec["rows"]
            prefix = fingerprint((value >> spec["step"] * longer).to_bytes(8, "little"))
            return (column & column_of(spec, row, prefix)).bit_count() % 2
    raise AssertionError(spec["protocol"])


def symbols_and_seeds(spec: dict[str, Any]) -> tuple[int, int]:
    """Give the number of symbols and of seeds."""
    match spec["protocol"]:
        case "generalized_randomized_response":
            return spec["k"], 1
        case "local_hashing" | "loloha":
            return spec["g"], spec["prime"] ** 2
        case "hadamard_response":
            return 2, spec["order"]
        case "hierarchical_range":
            return 2, 2 ** (depth(spec) + 1)
        case "projective_geometry_response":
            return points(spec, spec["dimension"]), 1
        case "hadamard_count_mean_sketch" | "prefix_extension":
            return 2, cells(spec)
    raise AssertionError(spec["protocol"])


def seeds(spec: dict[str, Any], count: int, words: Words) -> list[int]:
    """Draw seeds."""
    match spec["protocol"]:
        case "local_hashing" | "loloha":
            factors = below(spec["prime"], count, words)
            return [a * spec["prime"] + b for a, b in zip(factors, below(spec["prime"], count, words), strict=True)]
        case "hadamard_response":
            return below(spec["order"], count, words)
        case "hadamard_count_mean_sketch" | "prefix_extension":
            return below(cells(spec), count, words)
        case "hierarchical_range":
            bits = levels(spec)
            drawn = [bits[up] for up in below(len(bits), count, words)]
            columns = below(2 ** depth(spec), count, words)
            return [2**level + column % 2**level for level, column in zip(drawn, columns, strict=True)]
        case "projective_geometry_response":
            return below(points(spec, spec["dimension"] - 1), count, words)
    return [0] * count


def fingerprint(text: bytes) -> int:
    """Give the number that stands for a text."""
    return int.from_bytes(sha256(b"dpnoise text" + text).digest()[:8], "little")


def cells(spec: dict[str, Any]) -> int:
    """Give the number of cells of a sketch, or of those of all lengths."""
    lengths = -(-spec["bits"] // spec["step"]) if spec["protocol"] == "prefix_extension" else 1
    return int(lengths * spec["rows"] * spec["width"])


def column_of(spec: dict[str, Any], row: int, value: int) -> int:
    """Give the column of the number that stands for a text in a row of a sketch."""
    return hashed(spec["seed"], row, value, spec["width"])


def hashed(seed: int, row: int, value: int, width: int) -> int:
    """Give the column of a number among so many."""
    key = sha256(b"dpnoise row" + struct.pack("<II", seed, row)).digest()
    a, b = int.from_bytes(key[:16], "little"), int.from_bytes(key[16:], "little")
    return (a * value + b) % 2**128 * width // 2**128


def bloom_filter(spec: dict[str, Any], cohort: int, value: int) -> list[bool]:
    """Give the bits that the hash functions of a cohort make of the number that stands for a text."""
    rows = range(cohort * spec["num_hashes"], (cohort + 1) * spec["num_hashes"])
    set_ = {hashed(0, row, value, spec["num_bloombits"]) for row in rows}
    return [bit in set_ for bit in range(spec["num_bloombits"])]


def flipped(bits: list[bool], spec: dict[str, Any], words: Words, round_: str = "") -> Iterator[bool]:
    """Flip bits, tile by tile; a digit of the numbers of all bits of a tile comes before the next digit."""
    p, q, planes = (spec[round_ + name] for name in ("p", "q", "planes"))
    for first in range(0, len(bits), TILE):
        numbers = np.zeros(TILE, np.uint64)
        for j in range(planes):
            digits = np.frombuffer(words.take(TILE // 8).to_bytes(TILE // 8, "little"), np.uint8)
            numbers |= np.unpackbits(digits, bitorder="little").astype(np.uint64) << np.uint64(j)
        for bit, number in zip(bits[first : first + TILE], numbers.tolist(), strict=False):
            yield number < (p if bit else q)


def selected(values: list[int], spec: dict[str, Any], words: Words) -> Iterator[int]:
    """Draw sets of omega values, as numbers whose bits are their members."""
    k, omega = spec["k"], spec["omega"]
    chunk = max(1, 4096 // (k + 1))
    for first in range(0, len(values), chunk):
        part = values[first : first + chunk]
        drawn = [[words.take(4) for _ in range(k + 1)] for _ in part]
        coins = [words.take(8) >> 64 - spec["planes"] for _ in part]
        ranges = [*range(k, 0, -1), omega]
        rows = [[unbiased(word, size, 4, words) for word, size in zip(row, ranges, strict=True)] for row in drawn]
        for value, numbers, coin in zip(part, rows, coins, strict=True):
            members: list[int] = []
            for i in range(k):
                if numbers[i] < omega - len(members):
                    members.append(i)
            if coin < spec["keep"] and value not in members:
                members[numbers[k]] = value
            yield sum(1 << member for member in members)


def permanent_rows(
    bits: list[list[bool]], spec: dict[str, Any], derivation: Derivation, numbers: list[int], round_: str = ""
) -> list[list[bool]]:
    """Flip people's rows, 32 bits at a time: a word has a digit of all their numbers, the lowest digit first."""
    p, q, planes = (spec[round_ + name] for name in ("p", "q", "planes"))
    if not bits:
        return []
    words = -(-len(bits[0]) // 32)
    rows = []
    for row, own in zip(bits, derivation.answers(numbers, words * planes), strict=True):
        drawn = np.array([own.take(4) for _ in range(words * planes)], np.uint64).reshape(words, planes)
        digits = drawn[:, :, None] >> np.arange(32, dtype=np.uint64) & np.uint64(1)
        uniform = (digits << np.arange(planes, dtype=np.uint64)[:, None]).sum(axis=1, dtype=np.uint64)
        rows.append([number < (p if bit else q) for bit, number in zip(row, uniform.ravel().tolist(), strict=False)])
    return rows


def of_rows(rows: list[list[bool]]) -> bytes:
    """Pack rows of bits."""
    return b"".join(sum(bit << i for i, bit in enumerate(row)).to_bytes(len(row) + 7 >> 3, "little") for row in rows)


def perturb_remembering(
    spec: dict[str, Any], values: list[int], secrets: list[bytes], question: str, stream: bytes
) -> tuple[bytes, int]:
    """Give the reports of the people with these secrets, and how much is left of the stream of random bytes."""
    words, width, k = Words(stream), report_bytes(spec), spec.get("k")
    chunk = min(1024, max(16, 4096 // width)) // 16 * 16
    reports = b""
    for first in range(0, len(values), chunk):
        part = values[first : first + chunk]
        derivation = Derivation(spec, question, secrets[first : first + chunk])
        if spec["protocol"] == "longitudinal_unary_encoding":
            rows = [[i == value for i in range(8 * width)] for value in part]
            permanent = permanent_rows(rows, spec, derivation, part, "permanent_")
            again = list(flipped([bit for row in permanent for bit in row], spec, words, "instantaneous_"))
            reports += of_rows([again[i : i + k] for i in range(0, len(again), 8 * width)])
        elif spec["protocol"] == "rappor":
            cohorts = [own.numbers([(own.take(4), spec["num_cohorts"])])[0] for own in derivation.own(1)]
            rows = [bloom_filter(spec, cohort, value) for cohort, value in zip(cohorts, part, strict=True)]
            permanent = permanent_rows(rows, spec, derivation, part, "permanent_")
            again = list(flipped([bit for row in permanent for bit in row], spec, words, "instantaneous_"))
            each = [again[i : i + spec["num_bloombits"]] for i in range(0, len(again), spec["num_bloombits"])]
            reports += b"".join(
                cohort.to_bytes(2, "little") + of_rows([row]) for cohort, row in zip(cohorts, each, strict=True)
            )
        elif spec["protocol"] == "loloha":
            told, drawn = [], []
            g, planes = spec["g"], spec["permanent_planes"]
            for value, own in zip(part, derivation.own(2 + 3 * g), strict=True):
                indices, coins = [(own.take(4), spec["prime"]) for _ in range(2)], []
                for _ in range(g):
                    coins.append(own.take(8) >> 64 - planes)
                    indices.append((own.take(4), g))
                a, b, *others = own.numbers(indices)
                drawn.append(a * spec["prime"] + b)
                hash_ = symbol(spec, drawn[-1], value)
                told.append(hash_ if coins[hash_] < spec["permanent_keep"] else others[hash_])
            told = mixed(told, g, spec, words, "instantaneous_")
            reports += b"".join((seed * g + s).to_bytes(width, "little") for seed, s in zip(drawn, told, strict=True))
        else:
            samples: list[list[int]] = []
            for own in derivation.own(k):
                sample: list[int] = []
                left = [(own.take(4), k - i) for i in range(k)]
                for i, number in enumerate(own.numbers(left)):
                    if number < spec["d"] - len(sample):
                        sample.append(i)
                samples.append(sample)
            people = list(zip(part, samples, strict=True))
            rows = [[i == value and i in sample for i in range(8 * width)] for value, sample in people]
            states = [value if value in sample else k for value, sample in people]
            told = zip(permanent_rows(rows, spec, derivation, states), samples, strict=True)
            reports += of_rows([[bit and i in sample for i, bit in enumerate(row)] for row, sample in told])
    return reports, len(stream) - words.taken


def sums(spec: dict[str, Any], values: list[Any], words: Words) -> Iterator[int]:
    """Give numbers with discrete noise, clamped, some at a time."""
    unit, bound = spec["unit"], spec["bound"]
    if spec["protocol"] == "gaussian_mean":
        shape, scale = "gaussian", Fraction(spec["sigma"])
    else:
        shape, scale = "laplace", Fraction(2 * unit) / Fraction(spec["epsilon"])
    sampler = noise_spec.noise(shape, scale)
    of_one = counters_of(spec)
    for first in range(0, len(values) * of_one, CHUNK):
        count = min(CHUNK, len(values) * of_one - first)
        if spec["protocol"] in NOISY_MEANS:
            numbers = [position - unit for position in rounded(values[first : first + count], spec["k"], words)]
        else:
            places = [divmod(i, of_one) for i in range(first, first + count)]
            numbers = [unit * (values[person] == column) for person, column in places]
        for number, noise in zip(numbers, sampler.samples(words, count), strict=True):
            yield max(-bound, min(bound, number + noise))


def outputs(spec: dict[str, Any]) -> int:
    """Give the number of reports that a protocol of windows has."""
    return spec["k"] + spec["width"] - 1 + (2 if spec["protocol"] == "hybrid_mean" else 0)


def moved(positions: list[int], k: int, width: int, spec: dict[str, Any], words: Words) -> list[int]:
    """Make a number of its window out of each position, or else any."""
    offsets = below(width, len(positions), words)
    inside = [position + offset for position, offset in zip(positions, offsets, strict=True)]
    return mixed(inside, k + width - 1, spec, words)


def rounded(numbers: list[float], k: int, words: Words) -> list[int]:
    """Put numbers from -1 to 1 on neighbouring ones of k positions, at random."""
    shares = [Fraction(words.take(8) >> 1, 2**63) for _ in numbers]
    exact = [(-1 if x < 0 else 1) * Fraction(math.floor(abs(Fraction(x)) * 2**62), 2**62) for x in numbers]
    return [math.floor((1 + x) / 2 * (k - 1) + share) for x, share in zip(exact, shares, strict=True)]


def windowed(spec: dict[str, Any], numbers: list[float], words: Words) -> list[int]:
    """Give the reports on some numbers."""
    k, width = spec["k"], spec["width"]
    if spec["protocol"] == "square_wave":
        bins = [math.floor(k * Fraction(math.floor(Fraction(x) * 2**62), 2**62)) for x in numbers]
        return moved([min(bin_, k - 1) for bin_ in bins], k, width, spec, words)
    told = moved(rounded(numbers, k, words), k, width, spec, words)
    if spec["protocol"] == "hybrid_mean":
        duchi = {"keep": spec["duchi_keep"], "planes": spec["duchi_planes"]}
        signs = moved(rounded(numbers, 2, words), 2, 1, duchi, words)
        coins = [words.take(4) >> 8 for _ in numbers]
        told = [
            one if coin < spec["alpha"] else k + width - 1 + sign
            for one, sign, coin in zip(told, signs, coins, strict=True)
        ]
    return told


def sketched(values: list[int], spec: dict[str, Any], words: Words) -> Iterator[bytes]:
    """Draw a row for each number, and flip a one-hot row of bits."""
    width = spec["width"]
    chunk = max(1, 4096 // (width // 8))
    for first in range(0, len(values), chunk):
        part = values[first : first + chunk]
        rows = below(spec["rows"], len(part), words)
        columns = [column_of(spec, row, value) for row, value in zip(rows, part, strict=True)]
        bits = list(flipped([i == column for column in columns for i in range(width)], spec, words))
        for i, row in enumerate(rows):
            number = sum(bit << j for j, bit in enumerate(bits[i * width : (i + 1) * width]))
            yield row.to_bytes(2, "little") + number.to_bytes(width // 8, "little")


def report_bytes(spec: dict[str, Any]) -> int:
    """Give the length of a report."""
    if spec["protocol"] == "count_mean_sketch":
        return 2 + spec["width"] // 8
    if spec["protocol"] == "rappor":
        return 2 + spec["num_bloombits"] // 8
    if spec["protocol"] in WINDOWS:
        return (outputs(spec) - 1).bit_length() + 7 >> 3
    if spec["protocol"] == "randomized_response":
        return 1
    if spec["protocol"] in SUMS:
        return 4 * counters_of(spec)
    if spec["protocol"] in NUMBERS:
        symbols, seeds_ = symbols_and_seeds(spec)
        return (symbols * seeds_ - 1).bit_length() + 7 >> 3
    return spec["k"] + 7 >> 3


def perturb(spec: dict[str, Any], values: list[Any], stream: bytes) -> tuple[bytes, int]:
    """Give the reports on values made with a stream of random bytes, and how much of it is left."""
    words, width = Words(stream), report_bytes(spec)
    if spec["protocol"] in NUMBERS:
        reports = b""
        g, _ = symbols_and_seeds(spec)
        for first in range(0, len(values), CHUNK):
            part = values[first : first + CHUNK]
            drawn = seeds(spec, len(part), words)
            own = [symbol(spec, seed, value) for seed, value in zip(drawn, part, strict=True)]
            told = mixed(own, g, spec, words)
            if spec["protocol"] == "projective_geometry_response":
                drawn = [0] * len(part)  # what was drawn is not reported
            reports += b"".join((seed * g + s).to_bytes(width, "little") for seed, s in zip(drawn, told, strict=True))
    elif spec["protocol"] in WINDOWS:
        parts = [values[first : first + CHUNK] for first in range(0, len(values), CHUNK)]
        reports = b"".join(told.to_bytes(width, "little") for part in parts for told in windowed(spec, part, words))
    elif spec["protocol"] == "count_mean_sketch":
        reports = b"".join(sketched(values, spec, words))
    elif spec["protocol"] == "subset_selection":
        reports = b"".join(members.to_bytes(width, "little") for members in selected(values, spec, words))
    elif spec["protocol"] in SUMS:
        reports = b"".join((spec["bound"] + number).to_bytes(4, "little") for number in sums(spec, values, words))
    elif spec["protocol"] == "randomized_response":
        reports = bytes(flipped([bool(value) for value in values], spec, words))
    else:
        rows = [[i == value for i in range(8 * width)] for value in values]
        bits = list(flipped([bit for row in rows for bit in row], spec, words))
        reports = bytes(sum(bit << i for i, bit in enumerate(bits[j : j + 8])) for j in range(0, len(bits), 8))
        last = 0xFF >> 8 * width - spec["k"]
        reports = bytes(byte & last if i % width == width - 1 else byte for i, byte in enumerate(reports))
    return reports, len(stream) - words.taken


def supports(spec: dict[str, Any], report: bytes) -> list[int] | None:
    """Give how much a report counts for each counter, or None when it is malformed.

    There is one for each value; for randomised response one, for yes; where numbers are reported, one for each report.
    """
    if spec["protocol"] in SUMS:
        numbers = [int.from_bytes(report[i : i + 4], "little") for i in range(0, len(report), 4)]
        return numbers if max(numbers) <= 2 * spec["bound"] else None
    number = int.from_bytes(report, "little")
    if spec["protocol"] in WINDOWS:
        return None if number >= outputs(spec) else [int(number == told) for told in range(outputs(spec))]
    if spec["protocol"] in (*HADAMARD_SKETCHES, "projective_geometry_response"):
        return [i == number for i in range(counters_of(spec))] if number < counters_of(spec) else None
    if spec["protocol"] in GROUPS:
        groups, width = (spec[name] for name in GROUPS[spec["protocol"]])
        own = [1] + [number >> 16 + i & 1 for i in range(width)]
        rows = [own if row == number % 2**16 else [0] * len(own) for row in range(groups)]
        return [bit for row in rows for bit in row] if number % 2**16 < groups else None
    if spec["protocol"] in NUMBERS:
        symbols, seeds_ = symbols_and_seeds(spec)
        if number >= symbols * seeds_:
            return None
        seed, told = divmod(number, symbols)
        if spec["protocol"] == "hierarchical_range":
            # Every report is counted by itself.
            is_level = seed.bit_length() - 1 in levels(spec)
            return [int(number == report) for report in range(symbols * seeds_)] if is_level else None
        return [symbol(spec, seed, value) == told for value in range(spec["k"])]
    if spec["protocol"] == "subset_selection" and number.bit_count() != spec["omega"]:
        return None
    if spec["protocol"] == "d_bit_flip" and number.bit_count() > spec["d"]:
        return None
    bits = 1 if spec["protocol"] == "randomized_response" else spec["k"]
    return None if number >> bits else [number >> i & 1 for i in range(bits)]


def ratio(spec: dict[str, Any]) -> Fraction:
    """Give the largest ratio of the probabilities of a report, of the protocols that are no noise alone."""

    def share(name: str) -> Fraction:
        prefix = name.rpartition("_")[0]
        return Fraction(spec[name], 2 ** spec[f"{prefix}_planes" if prefix else "planes"])

    def of_bits(p: Fraction, q: Fraction) -> Fraction:
        return p * (1 - q) / ((1 - p) * q)

    def of_symbols(g: int, keep: Fraction) -> Fraction:
        return 1 + g * keep / (1 - keep)

    name = spec["protocol"]
    symbols = {"generalized_randomized_response": "k", "local_hashing": "g"}
    match name:
        case "randomized_response" | "d_bit_flip" if spec.get("d", 1) == 1:
            p, q = share("p"), share("q")
            return max(p / q, (1 - q) / (1 - p))
        case "longitudinal_unary_encoding" | "rappor":
            return of_bits(share("permanent_p"), share("permanent_q")) ** spec.get("num_hashes", 1)
        case "loloha":
            return of_symbols(spec["g"], share("permanent_keep"))
        case "subset_selection":
            k, omega, keep = spec["k"], spec["omega"], share("keep")
            p = keep + (1 - keep) * Fraction(omega, k)
            return p * (k - omega) / ((1 - p) * omega)
        case "projective_geometry_response":
            count, width = (points(spec, spec["dimension"] - less) for less in (0, 1))
            return 1 + count * share("keep") / (width * (1 - share("keep")))
        case "piecewise_mean" | "square_wave" | "hybrid_mean":
            keep, numbers = share("keep"), spec["k"] + spec["width"] - 1
            window = 1 + numbers * keep / (spec["width"] * (1 - keep))
            return max(window, of_symbols(2, share("duchi_keep"))) if name == "hybrid_mean" else window
    if "p" in spec:
        return of_bits(share("p"), share("q"))
    return of_symbols(spec[symbols[name]] if name in symbols else 2, share("keep"))


def gaussian_delta(spec: dict[str, Any], sigma: int) -> mpmath.mpf:
    """Give the smallest delta of Gaussian noise for two numbers that differ by 2 (Balle and Wang 2018, theorem 8)."""
    epsilon, s = mpmath.mpf(spec["epsilon"]), mpmath.mpf(sigma) / (2 * spec["unit"])
    tail = [mpmath.erfc((epsilon * s + sign / (2 * s)) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
    return tail[0] - mpmath.exp(epsilon) * tail[1]


# --- what reports are about ------------------------------------------------------------------------------------------

ABOUT = {"labels": 32, "question": 255, "period": 63}
"""The fields that say what reports are about, and the most bytes of each."""
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def canonical(spec: dict[str, Any]) -> str:
    """Write a specification whose doubles Python writes as specifications do."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


def bare_digest(spec: dict[str, Any]) -> bytes:
    """Give the digest of how reports are made, whatever they are about."""
    return sha256(canonical({name: value for name, value in spec.items() if name not in ABOUT}).encode()).digest()


def labels_bytes(attributes: list[list[str]]) -> bytes:
    """Give what the digest of the labels of each attribute is made of, none where it has none."""
    hashed = b"dpnoise labels"
    for labels in attributes:
        texts = [label.encode() for label in labels]
        hashed += struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return hashed


def labels_digest(attributes: list[list[str]]) -> str:
    """Give the digest of the labels of each attribute."""
    return sha256(labels_bytes(attributes)).hexdigest()[:32]


def listed(domain: Any, names: list[str]) -> list[list[str]]:
    """Give the texts that a document lists for each of these attributes, or for the only one."""
    of_each = [domain.get(name, []) for name in names] if isinstance(domain, dict) else [domain]
    return [[x if isinstance(x, str) else shortest(x) for x in labels] for labels in of_each]


def shortest(number: float) -> str:
    """Write a double as specifications do: as Python, but for exponents without zeros, and none for 0.00001."""
    digits, _, exponent = repr(float(number)).partition("e")
    if exponent == "-05":
        sign, significant = "-" * (number < 0), digits.lstrip("-").replace(".", "")
        return f"{sign}0.0000{significant}"
    return digits + (f"e{int(exponent):{'+' if exponent[0] == '+' else ''}}" if exponent else "")


def may_be_asked(text: str, most: int) -> bool:
    """Tell whether a text may be a question, or a period, of at most so many bytes."""
    return 0 < len(text.encode()) <= most and text.strip(" ") == text and UNSEEN.search(text) is None


# --- messages and states ---------------------------------------------------------------------------------------------

_PAGE = (Path(__file__).parents[2] / "docs/reference/wire_format.md").read_text(encoding="utf-8")
(_ROW,) = re.findall(r"^\| 1 \| the protocol: .*$", _PAGE, re.MULTILINE)
CODES = {name: int(code) for code, name in re.findall(r"(\d+) `(\w+)`", _ROW)}
"""The numbers of protocols in messages, as the page on the wire format defines them."""
SCHEMES = {name: int(code) for name, code in re.findall(r"^\| `(sampled|split)` \| (\d+) \|", _PAGE, re.MULTILINE)}
"""The same of several attributes."""


def memo(secrets: list[bytes], answered: list[tuple[str, dict[str, Any]]] = []) -> bytes:  # noqa: B006 # is read
    """Give the bytes of a memo, whose people have answered these questions with these protocols."""
    whole = b"DPNM\2" + len(answered).to_bytes(3, "little") + struct.pack("<Q", len(secrets)) + b"".join(secrets)
    whole += b"".join(sha256(question.encode()).digest() + bare_digest(spec) for question, spec in answered)
    return whole + struct.pack("<I", crc32c(whole))


def message_header(specification: str) -> bytes:
    """Give what stands before the report in a message."""
    code = (CODES | SCHEMES)[json.loads(specification)["protocol"]]
    return b"DP" + bytes([1, code]) + sha256(specification.encode()).digest()[:8]


def state(specification: str, messages: list[bytes]) -> bytes:
    """Give the state of a collector that has received messages."""
    spec, header = json.loads(specification), message_header(specification)
    malformed = missing = wrong_length = wrong_header = n = 0
    counters = [0] * counters_of(spec)
    for message in messages:
        report = message.removeprefix(header)
        if not message.startswith(header):
            wrong_header += 1
        elif len(report) != report_bytes(spec):
            wrong_length += 1
        elif (supported := supports(spec, report)) is None:
            malformed += 1
        else:
            n += 1
            counters = [count + supports_it for count, supports_it in zip(counters, supported, strict=True)]
    text = specification.encode()
    numbers = [malformed, missing, wrong_length, wrong_header, *counters]
    body = struct.pack(f"<I{len(text)}s8sQI{len(numbers)}Q", len(text), text, header[4:], n, 4, *numbers)
    whole = struct.pack("<4sBBHQ", b"DPNA", 1, 1, 0, 16 + len(body) + 4) + body
    return whole + struct.pack("<I", crc32c(whole))


def counters_of(spec: dict[str, Any]) -> int:
    """Give the number of counters."""
    if spec["protocol"] == "hierarchical_range":
        return 4 * 2 ** depth(spec)
    if spec["protocol"] in GROUPS:
        groups, width = (spec[name] for name in GROUPS[spec["protocol"]])
        return int(groups * (1 + width))
    if spec["protocol"] in HADAMARD_SKETCHES:
        return 2 * cells(spec)
    if spec["protocol"] == "projective_geometry_response":
        return points(spec, spec["dimension"])
    if spec["protocol"] in WINDOWS:
        return outputs(spec)
    return 1 if spec["protocol"] in ("randomized_response", *NOISY_MEANS) else int(spec["k"])


def crc32c(data: bytes) -> int:
    """Give the Castagnoli checksum."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF
