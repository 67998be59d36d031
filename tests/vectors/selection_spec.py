"""Selection as a short, slow specification: the same words must give the same choice.

It is written from rust/core/src/samplers/selection.md and shares no code with the implementation. Weights are doubles,
by the operations that the page lists; everything else is ints, fractions, and mpmath floats of 600 bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
from vectors.noise_spec import Words, exp_neg, is_below

C = 2**51
FURTHEST = 2**51
LOWEST = 2**50
COEFFICIENTS = [
    1.0000000000000127,
    -0.693147180559871,
    0.24022650695649653,
    -0.05550410866868558,
    0.009618129192067202,
    -0.0013333557617609879,
    0.00015403434948081424,
    -1.5252984835578367e-05,
    1.3259405611204192e-06,
    -1.0150337260976417e-07,
]

LOG2 = [
    0.5849625007211562,
    0.4808983466568745,
    -0.08014972439878602,
    0.017811058429040114,
    -0.004452765123858411,
    0.00118733558376331,
    -0.0003298132262000356,
    9.446689382949975e-05,
    -2.7557127878825978e-05,
    7.774356779156329e-06,
    -2.3284887900334942e-06,
    1.0180536358097047e-06,
    -3.1234753837082036e-07,
]


def to_grid(score: float, granularity: Fraction) -> int:
    """Steps of the grid, half up."""
    return math.floor(Fraction(score) / granularity + Fraction(1, 2))


def weight(depth: int, rate: float) -> int:
    """A, in double precision, operation by operation."""
    t = min(depth * rate, 1000.0)
    k = round(t)  # half to even
    r = t - k
    even = odd = 0.0
    for n in range(8, -1, -2):
        even = even * (r * r) + COEFFICIENTS[n]
        odd = odd * (r * r) + COEFFICIENTS[n + 1]
    scaled = 2.0 ** (51 - k) * (odd * r + even) * (1 + 2.0**-40)
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
    """A scale in steps of the grid, and the scores of the candidates in steps; None for one that is gone."""

    scale: Fraction
    steps: Sequence[int | None]

    def __post_init__(self) -> None:
        self.rate = 1.4426950408889634 * (float(self.scale.denominator) / float(self.scale.numerator))
        self.block = min(2048, -(-len(self.steps) // 8) * 8)
        padded = [*self.steps, *[None] * (-len(self.steps) % self.block)]
        self.depths = below(padded)
        self.weights = self.weigh(self.depths)
        self.blocks = [padded[first : first + self.block] for first in range(0, len(padded), self.block)]
        self.weights_in_block = [self.weigh(below(steps)) for steps in self.blocks]
        bests = [max((step for step in steps if step is not None), default=None) for steps in self.blocks]
        self.lengths = [
            -(-weight * sum(weights) // C)
            for weight, weights in zip(self.weigh(below(bests)), self.weights_in_block, strict=True)
        ]
        self.order_in_block = [8 * row + column for column in range(8) for row in range(self.block // 8)]
        self.order = [first + place for first in range(0, len(padded), self.block) for place in self.order_in_block]
        self.attempts = 2 if len(padded) <= 2**17 else 3

    def weigh(self, depths: Sequence[int | None]) -> list[int]:
        return [0 if depth is None else weight(depth, self.rate) for depth in depths]

    def exact(self, index: int) -> mpmath.mpf | Fraction:
        """Return C w."""
        depth = self.depths[index]
        assert depth is not None
        if depth == 0:
            return Fraction(C)
        return C * mpmath.exp(-mpmath.mpf(depth * self.scale.denominator) / self.scale.numerator)

    def threshold(self, index: int) -> mpmath.mpf | Fraction:
        """With what probability a candidate is accepted by permute-and-flip."""
        return self.exact(index) / self.weights[index]

    def threshold_in_block(self, index: int) -> mpmath.mpf | Fraction:
        """With what probability one is accepted by the exponential mechanism."""
        block, place = divmod(index, self.block)
        weights = self.weights_in_block[block]
        return self.exact(index) * sum(weights) / (self.lengths[block] * weights[place])

    def first_accepted(self, words: Words, candidates: Iterator[int | None], threshold: Any) -> int:
        while True:
            accepted = []
            for _ in range(self.attempts):
                index = next(candidates)
                prefix = words.take(8) >> 1
                if is_below(words, prefix, Fraction(1) if index is None else threshold(index)) and index is not None:
                    accepted.append(index)
            if accepted:
                return accepted[0]

    def softmax(self, words: Words) -> int:
        def candidates() -> Iterator[int | None]:
            while True:
                block = located(uniform_below(words, sum(self.lengths)), self.lengths, range(len(self.blocks)))
                weights = self.weights_in_block[block]
                yield self.block * block + located(uniform_below(words, sum(weights)), weights, self.order_in_block)

        return self.first_accepted(words, candidates(), self.threshold_in_block)

    def permute_and_flip(self, words: Words) -> int:
        coins = [int(words.take(8) >> 13 < weight) for weight in self.weights]
        heads = [index for index in self.order if coins[index]]

        def candidates() -> Iterator[int | None]:
            while True:
                number = uniform_below(words, len(heads))
                yield heads.pop(number) if heads else None

        return self.first_accepted(words, candidates(), self.threshold)


def located(number: int, lengths: Sequence[int], order: Sequence[int]) -> int:
    """Return the item that a number falls on."""
    for index in order:
        if number < lengths[index]:
            return index
        number -= lengths[index]
    raise AssertionError("the number is too large")


def below(steps: Sequence[int | None]) -> list[int | None]:
    """Return the depths below the best of these."""
    best = max((step for step in steps if step is not None), default=0)
    return [None if step is None else min(best - step, FURTHEST) for step in steps]


@dataclass
class Runs:
    """A scale in steps of the grid, and the scores, in steps, and lengths of runs of candidates."""

    scale: Fraction
    steps: Sequence[int]
    lengths: Sequence[int]

    def __post_init__(self) -> None:
        padding = -len(self.steps) % 8
        self.lengths = [*self.lengths, *[0] * padding]
        steps = [max(step, -LOWEST) for step in [*self.steps, *[0] * padding]]
        self.raises = [self.raise_of(length) if length else 0 for length in self.lengths]
        raised = [
            step + up if length else -LOWEST for step, up, length in zip(steps, self.raises, self.lengths, strict=True)
        ]
        self.selection = Selection(self.scale, raised)

    def raise_of(self, length: int) -> int:
        """Return delta, in double precision, operation by operation."""
        significand, exponent = math.frexp(length)
        z, log2 = 2 * (2 * significand) - 3, 0.0
        for coefficient in reversed(LOG2):
            log2 = log2 * z + coefficient
        doubling = math.log(2) * (float(self.scale.numerator) / float(self.scale.denominator))
        return int((exponent - 1 + log2 + 1.5 * 2.0**-35) * doubling) + 2

    def threshold(self, run: int) -> mpmath.mpf | Fraction:
        """With what probability a run is accepted."""
        return self.lengths[run] * exp_neg(self.raises[run] / self.scale)

    def choose(self, words: Words) -> tuple[int, int]:
        """Return a run and a place within it."""
        while True:
            accepted = []
            for _ in range(2):
                run = self.selection.softmax(words)
                if is_below(words, words.take(8) >> 1, self.threshold(run)):
                    accepted.append(run)
            if accepted:
                return accepted[0], uniform_below(words, self.lengths[accepted[0]])


@dataclass
class Quantile:
    """A q-quantile between two ends, in steps; it is written from rust/core/src/mechanisms/quantile.md."""

    q: Fraction
    ends: tuple[int, int]

    def runs(self, values: Sequence[int | None], reach: int = 2**60) -> list[tuple[int, int, int]]:
        """Return the score, the first candidate and the length of each run, in order.

        Of more gaps than those that reach is for, those beyond are a run on either side, with the best of their scores.
        """
        present = [value for value in values if value is not None]
        first, last = self.ends
        missing = len(values) - len(present)
        share = 2**62 * self.q.numerator // self.q.denominator
        below = sum(values[place::8].count(None) * share >> 62 for place in range(8))
        order = [first, *[first] * below, *sorted(present), *[last] * (missing - below), last]
        target = self.q.numerator * len(present) + self.q.denominator * below
        excesses = [self.q.denominator * gap - target for gap in range(-1, len(order))]
        gaps = excesses[1:-1]
        if self.is_window(len(values), reach):
            middle = self.q.numerator * len(values) // self.q.denominator
            low, high = max(middle - reach - 16, 0), min(middle + reach, len(values))
            order, gaps = [first, *order[low : high + 2], last], excesses[low : high + 3]
        runs = [
            (-abs(excess), low + (excess > 0), high - low)
            for excess, low, high in zip(gaps, order, order[1:], strict=False)
        ]
        return [*runs, (0, order[sum(excess <= 0 for excess in gaps)], 1)]

    def is_window(self, rows: int, reach: int) -> bool:
        return rows > 2 * reach + 16

    def score(self, values: Sequence[int | None], candidate: int) -> int:
        """Return the score by its definition."""
        present = [value for value in values if value is not None]
        below, above = (sum(sign * (value - candidate) > 0 for value in present) for sign in (-1, 1))
        part, whole, n = self.q.numerator, self.q.denominator, len(present)
        return -max(0, whole * below - part * n, part * n - whole * (n - above))

    def choose(
        self, scale: Fraction, granularity: Fraction, values: Sequence[int | None], words: Words, reach: int = 2**60
    ) -> int:
        """Return the candidate that is released, for scores on a grid of this granularity."""
        runs = self.runs(values, reach)
        steps = [max(to_grid(score, granularity), -LOWEST) for score, _, _ in runs]
        law = Runs(scale, steps, [length for _, _, length in runs])
        while True:
            run, place = law.choose(words)
            candidate = runs[run][1] + place
            if not (self.is_window(len(values), reach) and run in (0, len(runs) - 2)):
                return candidate
            own = max(to_grid(self.score(values, candidate), granularity), -LOWEST)
            if is_below(words, words.take(8) >> 1, exp_neg((steps[run] - own) / scale)):
                return candidate


class Node(Quantile):
    """One of several quantiles, by the values in order; missing values are those of other nodes, too."""

    def runs(self, values: Sequence[int | None], reach: int = 2**60) -> list[tuple[int, int, int]]:
        present = sorted(value for value in values if value is not None)
        target, (first, last) = self.q.numerator * len(present), self.ends
        gaps = range(len(values) + 1)
        if self.is_window(len(values), reach):
            middle = len(present) * (2**62 * self.q.numerator // self.q.denominator) >> 62
            gaps = range(middle - reach - 14, middle + reach + 3)
        order = [self.value(present, index) for index in range(gaps.start, gaps.stop + 1)]
        if self.is_window(len(values), reach):
            gaps, order = range(gaps.start - 1, gaps.stop + 1), [first, *order, last]
        excesses = [self.q.denominator * gap - target for gap in gaps]
        runs = [
            (-abs(excess), low + (excess > 0), high - low)
            for excess, (low, high) in zip(excesses, itertools.pairwise(order), strict=True)
        ]
        return [*runs, (0, order[sum(excess <= 0 for excess in excesses)], 1)]

    def value(self, present: Sequence[int], index: int) -> int:
        """Return a value in order, from 1 on, or an end."""
        return self.ends[0] if index < 1 else self.ends[1] if index > len(present) else present[index - 1]


Place = int | None
Choice = Callable[[Fraction, tuple[int, int], Any, Sequence[Place]], Mapping[int, Any]]


@dataclass
class Quantiles:
    """Several quantiles between two ends, in steps; it is written from rust/core/src/mechanisms/quantiles.md."""

    asked: Sequence[Fraction]
    ends: tuple[int, int]
    bits: int | None = None

    def __post_init__(self) -> None:
        self.ranks = sorted(set(self.asked))
        if self.bits is None:
            steps = self.ends[1] - self.ends[0]
            self.bits = min(20, 52 - (steps - 1).bit_length()) if len(self.ranks) > 1 else 0
        self.places = (0, ((self.ends[1] - self.ends[0] + 1) << self.bits) - 1)

    def place(self, value: int | None, fraction: int) -> Place:
        """Return the place of a row with a random fraction."""
        return None if value is None else (value - self.ends[0] << (self.bits or 0)) | fraction

    def answers(self, places: Sequence[int]) -> list[int]:
        """Return the answers as they were asked, for the places of the ranks in order."""
        return [(places[self.ranks.index(rank)] >> (self.bits or 0)) + self.ends[0] for rank in self.asked]

    def law(self, choose: Choice, rows: Sequence[Place], epsilon: Any) -> dict[tuple[int, ...], Any]:
        """Return the probabilities of all places of the ranks, in order, by those of a single choice."""
        return self.descend(choose, rows, self.places, self.ranks, (Fraction(0), Fraction(1)), epsilon)

    def descend(
        self,
        choose: Choice,
        rows: Sequence[Place],
        span: tuple[int, int],
        ranks: Sequence[Fraction],
        outer: tuple[Fraction, Fraction],
        left: Any,
    ) -> dict[tuple[int, ...], Any]:
        if not ranks:
            return {(): 1}
        middle, found = len(ranks) // 2, {}
        rank = ranks[middle]
        share, rest = self.share(left, len(ranks))
        for place, weight in self.chosen(choose, rank, outer, span, share, rows).items():
            below, above = self.sides(rows, place)
            parts = [
                self.descend(choose, below, (span[0], place), ranks[:middle], (outer[0], rank), rest),
                self.descend(choose, above, (place, span[1]), ranks[middle + 1 :], (rank, outer[1]), rest),
            ]
            for (before, first), (after, second) in itertools.product(*(part.items() for part in parts)):
                found[(*before, place, *after)] = weight * first * second
        return found

    def share(self, left: Any, ranks: int) -> tuple[Any, Any]:
        """Return the epsilon of a choice, and what is left after it."""
        share = left / ranks.bit_length()
        rest = left - share
        return share, math.nextafter(rest, 0) if Fraction(rest) > Fraction(left) - Fraction(share) else rest

    def chosen(
        self,
        choose: Choice,
        rank: Fraction,
        outer: tuple[Fraction, Fraction],
        span: tuple[int, int],
        epsilon: Any,
        rows: Sequence[Place],
    ) -> Mapping[int, Any]:
        """Return the probabilities of the place of a rank."""
        if span[0] == span[1]:
            return {span[0]: 1}
        q = (rank - outer[0]) / (outer[1] - outer[0])
        if q.denominator > 10**6:
            q = Fraction(min(max(math.floor(q * 10**6 + Fraction(1, 2)), 1), 10**6 - 1), 10**6)
        return choose(q, span, epsilon, rows)

    def sides(self, rows: Sequence[Place], place: int) -> tuple[list[Place], list[Place]]:
        below = [row if row is not None and row < place else None for row in rows]
        return below, [row if row is not None and row >= place else None for row in rows]
