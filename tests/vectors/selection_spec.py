"""Selection as a short, slow specification: the same words must give the same choice.

It is written from rust/core/src/samplers/selection.md and shares no code with the implementation. Weights are doubles,
by the operations that the page lists; everything else is ints, fractions, and mpmath floats of 600 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
from vectors.noise_spec import Words, is_below

C = 2**51
FURTHEST = 2**51
COEFFICIENTS = [1.0]
for n in range(1, 12):
    COEFFICIENTS.append(-COEFFICIENTS[-1] * math.log(2) / n)


def to_grid(score: float, granularity: Fraction) -> int:
    """Steps of the grid, half up."""
    return math.floor(Fraction(score) / granularity + Fraction(1, 2))


def weight(depth: int, rate: float) -> int:
    """A, in double precision, operation by operation."""
    t = min(depth * rate, 1000.0)
    k = round(t)  # half to even
    r = t - k
    even = odd = 0.0
    for n in range(10, -1, -2):
        even = even * (r * r) + COEFFICIENTS[n]
        odd = odd * (r * r) + COEFFICIENTS[n + 1]
    scaled = 2.0 ** (63 - k) * (odd * r + even) * ((1 + 2.0**-40) * 2.0**-12)
    return min(round(scaled) + 1, C)


def uniform_below(words: Words, n: int) -> int:
    """floor(U n) for a U whose digits are words of 128 bits, the most significant first."""
    bits, u = 0, 0
    while True:
        digit = int.from_bytes(words.data[words.position : words.position + 16], "big")
        words.take(16)
        u, bits = u << 128 | digit, bits + 128
        if bits >= 256 and (n == 0 or u * n >> bits == ((u + 1) * n - 1) >> bits):
            return u * n >> bits


@dataclass
class Selection:
    """A scale in steps of the grid, and the depths of the candidates; None for a retired one."""

    scale: Fraction
    depths: Sequence[int | None]

    def __post_init__(self) -> None:
        self.rate = 1.4426950408889634 * (float(self.scale.denominator) / float(self.scale.numerator))
        self.block = min(2048, -(-len(self.depths) // 8) * 8)
        padded = [*self.depths, *[None] * (-len(self.depths) % self.block)]
        self.weights = [0 if depth is None else weight(depth, self.rate) for depth in padded]
        self.order = [
            first + 8 * row + column
            for first in range(0, len(padded), self.block)
            for column in range(8)
            for row in range(self.block // 8)
        ]
        self.attempts = 2 if len(padded) <= 2**17 else 3

    def threshold(self, index: int) -> mpmath.mpf | Fraction:
        """With what probability a candidate is accepted."""
        depth = self.depths[index]
        assert depth is not None
        exact = (
            Fraction(1)
            if depth == 0
            else mpmath.exp(-mpmath.mpf(depth * self.scale.denominator) / self.scale.numerator)
        )
        return exact * C / self.weights[index]

    def located(self, number: int, lengths: Sequence[int]) -> int | None:
        """Return the candidate that a number falls on."""
        for index in self.order:
            if number < lengths[index]:
                return index
            number -= lengths[index]
        return None

    def first_accepted(self, words: Words, candidates: Iterator[int | None]) -> int:
        while True:
            accepted = []
            for _ in range(self.attempts):
                index = next(candidates)
                prefix = words.take(8) >> 1
                if (
                    is_below(words, prefix, Fraction(1) if index is None else self.threshold(index))
                    and index is not None
                ):
                    accepted.append(index)
            if accepted:
                return accepted[0]

    def softmax(self, words: Words) -> int:
        total = sum(self.weights)

        def candidates() -> Iterator[int | None]:
            while True:
                yield self.located(uniform_below(words, total), self.weights)

        return self.first_accepted(words, candidates())

    def permute_and_flip(self, words: Words) -> int:
        coins = [int(words.take(8) >> 13 < weight) for weight in self.weights]
        heads = [index for index in self.order if coins[index]]

        def candidates() -> Iterator[int | None]:
            while True:
                number = uniform_below(words, len(heads))
                yield heads.pop(number) if heads else None

        return self.first_accepted(words, candidates())


def depths(scores: Sequence[float], granularity: Fraction) -> list[int]:
    steps = [to_grid(score, granularity) for score in scores]
    return [min(max(steps) - step, FURTHEST) for step in steps]
