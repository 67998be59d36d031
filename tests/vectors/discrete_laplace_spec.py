"""The discrete Laplace sampler as a short, slow specification: the same words must give the same samples.

It is written from rust/core/src/samplers/discrete_laplace.md and shares no code with the implementation. Numbers are
Python ints, fractions, and mpmath floats of 600 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import mpmath

mpmath.mp.prec = 600
BINS = 64
TAIL = BINS - 1


class Words:
    """A stream of bytes, read as little-endian words."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> int:
        word = self.data[self.position : self.position + size]
        assert len(word) == size, "the stream is at its end"
        self.position += size
        return int.from_bytes(word, "little")


def shift_for(scale: Fraction) -> int | None:
    """Binary logarithm of the first bin's width, None for single bins."""
    if Fraction(89, 2) * scale <= 63:
        return None
    shift = 0
    while 216 * 2**shift < Fraction(89, 2) * scale:
        shift += 1
    return shift


@dataclass
class Sampler:
    """The tables for a scale."""

    scale: Fraction
    shift: int | None
    thresholds: dict[tuple[int, int, int], mpmath.mpf | Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shift = self.shift or 0
        self.folded = shift == 0
        exponents = [0] * BINS if self.shift is None else [0] * 32 + [2] * 16 + [3] * 16
        self.exponents = exponents
        self.starts = [sum(2**e for e in exponents[:h]) * 2**shift for h in range(BINS)]
        tail_size = math.ceil(Fraction(math.ceil(self.scale + 1), 2**shift))
        relative = []
        for h in range(BINS):
            size = tail_size if h == TAIL else 2 ** exponents[h]
            relative.append(self.copies(h) * size * self.f(self.starts[h]))
        self.amplitude = int(mpmath.floor((2 * (2**32 - BINS) - 1) / (2 * sum(relative))))
        self.weights = [int(mpmath.ceil(self.amplitude * weight)) for weight in relative]
        self.weights[0] += 2**32 - sum(self.weights)
        self.alias = self.alias_table()

    def copies(self, h: int) -> int:
        return 2 if self.folded and h > 0 else 1

    def f(self, x: int) -> mpmath.mpf:
        exponent = Fraction(x) / self.scale
        return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)

    def alias_table(self) -> list[tuple[int, int]]:
        capacity = 2**26
        rest = list(self.weights)
        table = [(0, h) for h in range(BINS)]
        short = [h for h in range(BINS) if rest[h] < capacity]
        long = [h for h in range(BINS) if rest[h] >= capacity]
        while short:
            h, donor = short.pop(), long[-1]
            table[h] = (rest[h], donor)
            rest[donor] -= capacity - rest[h]
            if rest[donor] < capacity:
                short.append(long.pop())
        return table

    def bin(self, word: int) -> int:
        column, fraction = word >> 26, word % 2**26
        own, alias = self.alias[column]
        return column if fraction < own else alias

    def is_below(self, words: Words, uniform: int, key: tuple[int, int, int], tail: bool) -> bool:
        """Whether U < threshold, for a U whose first 63 bits are given."""
        x, amplitude, weight = key
        if key not in self.thresholds:
            if x == 0:
                self.thresholds[key] = Fraction(amplitude, weight)
            else:
                mass = 2 ** (self.shift or 0) * (1 - self.f(1)) if tail else 1
                self.thresholds[key] = amplitude * self.f(x) / (weight * mass)
        threshold = self.thresholds[key]
        bits = 63
        while True:
            assert bits < 400, "more bits than the precision allows for"
            below, above = Fraction(uniform, 2**bits), Fraction(uniform + 1, 2**bits)
            if not isinstance(threshold, Fraction):
                below, above = (mpmath.mpf(side.numerator) / side.denominator for side in (below, above))
            if above <= threshold:
                return True
            if below >= threshold:
                return False
            uniform = uniform << 64 | words.take(8)
            bits += 64

    def trial(self, words: Words, bin_word: int, offset: int, accept: int) -> int | None:
        h, negative, uniform = self.bin(bin_word), accept % 2 == 1, accept >> 1
        amplitude = self.amplitude * self.copies(h)
        if h == TAIL:
            start = self.starts[TAIL]
            if not self.is_below(words, uniform, (start, amplitude, self.weights[TAIL]), tail=True):
                return None
            further = None
            while further is None or further < 0:
                further = self.trial(words, *self.read(words, 1)[0])
            return -(start + further) if negative else start + further
        width = 2 ** ((self.shift or 0) + self.exponents[h])
        x = self.starts[h] + (offset % width)
        amplitude *= 2 ** self.exponents[h]
        if not self.is_below(words, uniform, (x, amplitude, self.weights[h]), tail=False):
            return None
        if x == 0 and negative and not self.folded:
            return None
        return -x if negative else x

    def read(self, words: Words, count: int) -> list[tuple[int, int, int]]:
        if self.shift is None:
            size = 0
        elif self.shift + 3 <= 32:
            size = 4
        else:
            size = 8
        bins = [words.take(4) for _ in range(count)]
        offsets = [words.take(size) if size else 0 for _ in range(count)]
        accepts = [words.take(8) for _ in range(count)]
        return list(zip(bins, offsets, accepts, strict=True))

    def samples(self, words: Words) -> Iterator[int]:
        """Yield samples, block after block of 64 trials."""
        while True:
            # A block's rare trials read their further words right after the block.
            outcomes = [self.trial(words, *trial) for trial in self.read(words, 64)]
            yield from (value for value in outcomes if value is not None)
