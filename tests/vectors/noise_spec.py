"""The noise samplers as a short, slow specification: the same words must give the same samples.

It is written from rust/core/src/samplers, alias.md, pages.md and discrete_laplace.md, and shares no code with the
implementation. Numbers are Python ints, fractions, and mpmath floats of 600 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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


def reach(shape: str, scale: Fraction) -> Fraction:
    """Where the density falls below 2^-64 of its maximum."""
    return (Fraction(189, 20) if shape == "gaussian" else Fraction(89, 2)) * scale


def shift_for(shape: str, scale: Fraction) -> int:
    """Binary logarithm of the first bin's width."""
    shift = 0
    while 216 * 2**shift < reach(shape, scale):
        shift += 1
    return shift


def noise(shape: str, scale: Fraction) -> Digits | Trials:
    """The sampler for a distribution: digits if they suffice."""
    first = 63 if shape == "geometric" else 62
    steps = [1] if shape == "gaussian" else [1, first, first * 63]
    enough = [63 * step >= reach(shape, scale) for step in steps]
    if any(enough):
        return Digits(shape, scale, steps[: enough.index(True) + 1])
    return Trials(shape, scale, shift_for(shape, scale))


def alias_table(weights: list[int], capacity: int) -> list[tuple[int, int]]:
    """For each column a threshold and an alias."""
    rest = list(weights)
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


def exp_neg(exponent: Fraction) -> mpmath.mpf | Fraction:
    """exp(-exponent); exact where it is rational."""
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) if exponent else Fraction(1)


def is_below(words: Words, uniform: int, threshold: mpmath.mpf | Fraction) -> bool:
    """Whether U < threshold, for a U whose first 63 bits are given."""
    bits = 63
    while True:
        assert bits < 400, "more bits than the precision allows for"
        scaled = threshold * 2**bits
        floor = int(scaled)
        if uniform != floor or floor == scaled:
            return uniform < floor
        uniform = uniform << 64 | words.take(8)
        bits += 64


def bernoulli(words: Words, probability: mpmath.mpf | Fraction) -> bool:
    return is_below(words, words.take(8) >> 1, probability)


def counts_of(counts: list[int]) -> list[int]:
    """Of 2^62 words those that are given, and for entry 63 the others."""
    counts += [0] * (TAIL - len(counts))
    return [*counts, 2**62 - sum(counts)]


def rest(words: Words, probabilities: list[mpmath.mpf], counts: list[int], most: int) -> int:
    """Draw an entry with the probabilities that the counts fall short of, by so many words at most."""
    while True:
        entry = words.take(8) % BINS
        count = counts[entry] if entry < TAIL else 0
        if bernoulli(words, (probabilities[entry] * 2**62 - count) / most):
            return entry


def by_blocks(words: Words, n: int, digits: int, number: Callable[[Words, list[tuple[int, int]]], int]) -> list[int]:
    """Draw ``n`` numbers, each from the fraction and the byte with column and sign of so many digits."""
    values: list[int] = []
    while (missing := n - len(values)) > 0:
        blocks = []
        for _ in range(4 if missing >= 256 else 1):
            planes = [[[words.take(1) for _ in range(64)] for _ in range(8)] for _ in range(digits)]
            blocks += [
                [(sum(plane[i] << 8 * j for j, plane in enumerate(digit[:7])), digit[7][i]) for digit in planes]
                for i in range(64)
            ]
        values += [number(words, block) for block in blocks]
    return values[:n]


@dataclass
class Digits:
    """The alias tables for a shape ("laplace", "gaussian" or "geometric"), a scale and the steps of its digits."""

    shape: str
    scale: Fraction
    steps: list[int]

    def __post_init__(self) -> None:
        self.signed = self.shape != "geometric"
        self.p = [self.probabilities(i) for i in range(len(self.steps))]
        self.counts = [counts_of([int(mpmath.ceil(p * 2**62)) - 1 for p in ps[:TAIL]]) for ps in self.p]
        self.tables = [alias_table(counts, 2**56) for counts in self.counts]

    def f(self, x: int) -> mpmath.mpf:
        exponent = Fraction(x * x) / (2 * self.scale**2) if self.shape == "gaussian" else Fraction(x) / self.scale
        return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)

    def probabilities(self, digit: int) -> list[mpmath.mpf]:
        """Of the entries below 63, and of all others together."""
        step, last = self.steps[digit], digit == len(self.steps) - 1
        folded = self.signed and digit == 0
        # All values of |x| or x that have an entry, in their order; further ones are below 2^-600.
        count = 63 if not last else max(64, 600 * math.ceil(self.scale / step) + 64)
        weights = [(2 if folded and e else 1) * self.f(step * e) for e in range(count)]
        if folded and not last:
            weights[0] = 1 - self.f(62)  # P(0), where the others have the sum 2 f(1) (1 - f(62)) / (1 - f(1))
        total = mpmath.fsum(weights)
        return [w / total for w in weights[:TAIL]] + [mpmath.fsum(weights[TAIL:]) / total]

    def entry(self, words: Words, digit: int, fraction: int, column: int) -> int:
        threshold, alias = self.tables[digit][column]
        entry = column if fraction < threshold else alias
        if entry < TAIL:
            return entry
        entry = rest(words, self.p[digit], self.counts[digit], 1)
        return entry if entry < TAIL else self.tail(words, self.steps[digit])

    def tail(self, words: Words, step: int) -> int:
        gaussian = self.shape == "gaussian"
        heads = mpmath.exp(-TAIL / mpmath.mpf(self.scale.numerator) ** 2 * self.scale.denominator**2)
        while True:
            beyond = 0
            while bernoulli(words, heads if gaussian else self.f(step)):
                beyond += 1
            if not gaussian or bernoulli(words, self.f(beyond)):
                return TAIL + beyond

    def number(self, words: Words, digits: list[tuple[int, int]]) -> int:
        value = 0
        for i, (fraction, head) in enumerate(digits):
            value += self.steps[i] * self.entry(words, i, fraction, head % BINS)
            if self.signed and value == 0:
                break
        return -value if self.signed and digits[0][1] >= 128 else value

    def samples(self, words: Words, n: int) -> list[int]:
        return by_blocks(words, n, len(self.steps), self.number)


def difference(pmf: list[mpmath.mpf], bits: int) -> list[mpmath.mpf]:
    """The probabilities that two variables differ by 0, 1, 2, ..., to so many binary places."""
    # All sums of products at once, as the digits of one product of integers.
    size, parts = (2 * bits + 16) // 8, [int(p * 2**bits) for p in pmf]
    forward, reverse = (
        int.from_bytes(b"".join(part.to_bytes(size, "little") for part in order), "little")
        for order in (parts, parts[::-1])
    )
    product = (forward * reverse).to_bytes(2 * size * len(parts), "little")
    digits = [product[size * i : size * (i + 1)] for i in range(len(parts) - 1, 2 * len(parts) - 1)]
    return [mpmath.ldexp(int.from_bytes(digit, "little"), -2 * bits) for digit in digits]


def skellam(mu: Fraction) -> list[mpmath.mpf]:
    mean = mpmath.mpf(mu.numerator) / mu.denominator
    pmf = [mpmath.exp(-mean)]
    for k in range(1, 400 + math.ceil(mu + 50 * mu**0.5)):
        pmf.append(pmf[-1] * mean / k)
    # The last entries of the fourth page have probabilities of about mu^252 / 252!.
    return difference(pmf, 1100 + max(0, 1653 - int(252 * math.log2(mu))))


def negative_binomial_share(scale: Fraction, parties: int) -> list[mpmath.mpf]:
    q, r = exp_neg(1 / scale), mpmath.mpf(1) / parties
    pmf = [(1 - q) ** r]
    for k in range(math.ceil(490 * scale)):
        pmf.append(pmf[-1] * q * (k + r) / (k + 1))
    return difference(pmf, 1100 + math.ceil(400 / scale))


def staircase(epsilon: Fraction, widths: tuple[int, int]) -> list[mpmath.mpf]:
    width, inner = widths
    steps = [mpmath.mpf(1) * exp_neg(epsilon * k) for k in range(math.ceil(max(420 / epsilon, 256 / width)) + 2)]
    return [steps[(x + width - inner) // width] for x in range(width * (len(steps) - 1))]


class Pages:
    """The pages of 63 magnitudes each for a symmetric law, given by weights of 0, 1, 2, ..."""

    def __init__(self, law: list[mpmath.mpf]) -> None:
        self.masses = [law[0], *(2 * weight for weight in law[1:])]
        for self.pages in (4, 16, 63):
            count = TAIL * self.pages
            self.masses += [mpmath.mpf(0)] * (count - len(self.masses))
            pages = [self.masses[first : first + TAIL] for first in range(0, count, TAIL)]
            sums, beyond = [mpmath.fsum(page) for page in pages], mpmath.fsum(self.masses[count:])
            total = mpmath.fsum([*sums, beyond])
            self.p = [s / total for s in sums] + [mpmath.mpf(0)] * (TAIL - self.pages) + [beyond / total]
            if self.p[TAIL] < mpmath.mpf(2) ** -62:
                break
        self.counts = self.of(self.p)
        self.entries = [[*(m / s for m in page), mpmath.mpf(0)] for page, s in zip(pages, sums, strict=True)]
        self.entry_counts = [self.of(p) for p in self.entries]
        self.table = alias_table(self.counts, 2**56)
        self.tables = [alias_table(counts, 2**56) for counts in self.entry_counts]

    def of(self, probabilities: list[mpmath.mpf]) -> list[int]:
        return counts_of([max(0, int(mpmath.floor(p * 2**62 - mpmath.mpf(1) / 2))) for p in probabilities[:TAIL]])

    def choose(self, table: list[tuple[int, int]], fraction: int, head: int) -> int:
        threshold, alias = table[head % BINS]
        return head % BINS if fraction < threshold else alias

    def number(self, words: Words, digits: list[tuple[int, int]]) -> int:
        value = self.magnitude(words, *digits)
        return -value if digits[1][1] >= 128 else value

    def magnitude(self, words: Words, first: tuple[int, int], second: tuple[int, int]) -> int:
        page = self.choose(self.table, *first)
        if page == TAIL:
            page = rest(words, self.p, self.counts, 2)
        if page == TAIL:
            value = TAIL * self.pages
            while not bernoulli(words, self.masses[value] / mpmath.fsum(self.masses[value:])):
                value += 1
            return value
        entry = self.choose(self.tables[page], *second)
        if entry == TAIL:
            entry = rest(words, self.entries[page], self.entry_counts[page], 2)
        return TAIL * page + entry

    def samples(self, words: Words, n: int) -> list[int]:
        return by_blocks(words, n, 2, self.number)


@dataclass
class Trials:
    """The tables of the histogram for a shape, a scale and the binary logarithm of the first bin's width."""

    shape: str
    scale: Fraction
    shift: int
    thresholds: dict[tuple[int, int], mpmath.mpf | Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folded = self.shift == 0 and self.shape != "geometric"
        self.exponents = [0] * 32 + [2] * 16 + [3] * 16
        self.starts = [sum(2**e for e in self.exponents[:h]) * 2**self.shift for h in range(BINS)]
        sizes = [2**e for e in self.exponents]
        slope = Fraction(self.starts[TAIL], math.ceil(self.scale) ** 2) if self.shape == "gaussian" else 1 / self.scale
        sizes[TAIL] = math.ceil(Fraction(math.ceil(1 / slope) + 1, 2**self.shift))
        relative = [self.copies(h) * sizes[h] * self.f(self.starts[h]) for h in range(BINS)]
        self.amplitude = int(
            mpmath.floor((2 * (2**32 - BINS) - 1) / (2 * sum(relative[1:], relative[0] * mpmath.mpf(1))))
        )
        self.weights = [self.amplitude] + [int(mpmath.ceil(self.amplitude * weight)) for weight in relative[1:]]
        self.weights[0] += 2**32 - sum(self.weights)
        self.alias = alias_table(self.weights, 2**26)

    def copies(self, h: int) -> int:
        return 2 if self.folded and h > 0 else 1

    def f(self, x: int) -> mpmath.mpf | Fraction:
        if self.shape == "gaussian":
            return exp_neg(Fraction(x * x) / (2 * self.scale**2))
        return exp_neg(Fraction(x) / self.scale)

    def decay(self, k: int) -> mpmath.mpf | Fraction:
        """How f falls from the tail's start on, at least."""
        if self.shape == "gaussian":
            return exp_neg(Fraction(self.starts[TAIL] * k) / self.scale**2)
        return exp_neg(Fraction(k) / self.scale)

    def bin(self, word: int) -> int:
        column, fraction = word >> 26, word % 2**26
        own, alias = self.alias[column]
        return column if fraction < own else alias

    def threshold(self, h: int, x: int) -> mpmath.mpf | Fraction:
        """The acceptance probability of a proposal; of the tail's, without what lies beyond its start."""
        if (h, x) not in self.thresholds:
            amplitude = self.amplitude * self.copies(h) * (1 if h == TAIL else 2 ** self.exponents[h])
            mass = 2**self.shift * (1 - self.decay(1)) if h == TAIL else 1
            self.thresholds[h, x] = self.f(x) * amplitude / (self.weights[h] * mass)
        return self.thresholds[h, x]

    def trial(self, words: Words, bin_word: int, offset: int, accept: int) -> int | None:
        h, negative, uniform = self.bin(bin_word), accept % 2 == 1 and self.shape != "geometric", accept >> 1
        width = 1 if h == TAIL else 2 ** (self.shift + self.exponents[h])
        x = self.starts[h] + offset % width
        if not is_below(words, uniform, self.threshold(h, x)):
            return None
        if h == TAIL:
            beyond = self.beyond(words)
            if self.shape == "gaussian" and not bernoulli(words, self.f(beyond)):
                return None
            x += beyond
        if x == 0 and negative and not self.folded:
            return None
        return -x if negative else x

    def beyond(self, words: Words) -> int:
        """Draw a geometric value for the tail, lower bits first."""
        size = 2**self.shift
        low = words.take(8) % size
        while not bernoulli(words, self.decay(low)):
            low = words.take(8) % size
        high = 0
        while bernoulli(words, self.decay(size)):
            high += 1
        return size * high + low

    def read(self, words: Words, count: int) -> list[tuple[int, int, int]]:
        size = 4 if self.shift + 3 <= 32 else 8
        bins = [words.take(4) for _ in range(count)]
        offsets = [words.take(size) for _ in range(count)]
        accepts = [words.take(8) for _ in range(count)]
        return list(zip(bins, offsets, accepts, strict=True))

    def samples(self, words: Words, n: int) -> list[int]:
        """Draw ``n`` samples, block after block."""
        values: list[int] = []
        while (missing := n - len(values)) > 0:
            # Further words come after those of all blocks that are read together.
            trials = 64 if missing > 8 else 16
            blocks = [self.read(words, trials) for _ in range(4 if missing >= 256 else 1)]
            outcomes = [self.trial(words, *trial) for block in blocks for trial in block]
            values += [value for value in outcomes if value is not None]
        return values[:n]


@dataclass
class Truncated:
    """A distribution under the condition that the magnitude is at most a radius."""

    whole: Digits | Trials
    radius: int

    def samples(self, words: Words, n: int) -> list[int]:
        """Draw ``n`` samples, 2048 at a time, and those beyond the radius again."""
        values: list[int] = []
        for end in range(2048, n + 2048, 2048):
            while (missing := min(end, n) - len(values)) > 0:
                values += [value for value in self.whole.samples(words, missing) if abs(value) <= self.radius]
        return values
