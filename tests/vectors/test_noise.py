"""Bit-for-bit equality of the native samplers with the specification, fed the same words."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from vectors.noise_spec import (
    TAIL,
    Digits,
    Pages,
    Trials,
    Truncated,
    Words,
    exp_neg,
    negative_binomial_share,
    noise,
    shift_for,
    skellam,
    staircase,
)

from dpnoise import Laplace, _native, hazmat

# `make statistical` draws more.
N = 100_000 if "DPNOISE_TEST_SAMPLES" in os.environ else 2_000
SCALES = [
    Fraction(1, 1000),
    Fraction(1, 2**40),
    Fraction(1, 3),
    Fraction(1),
    Fraction(126, 89),  # the largest with one digit
    Fraction(2),
    Fraction(20, 3),  # the largest of a Gaussian
    Fraction(10),
    Fraction(7812, 89),  # the largest with two digits
    Fraction(0.1) * 100,  # the double 0.1, exactly
    Fraction(1000),
    Fraction(492156, 89),  # the largest with three digits
    Fraction(492156, 89) + Fraction(1, 2**40),
    Fraction(10**6),
    Fraction(2**31 - 1),  # offsets of 32 bits
    Fraction(2**35 + 1, 3),  # offsets of 64 bits
    Fraction(2**40),
]


SHAPES = ["laplace", "gaussian", "geometric"]
NATIVE = {
    "laplace": partial(_native.Sampler, "discrete_laplace"),
    "gaussian": partial(_native.Sampler, "discrete_gaussian"),
    "geometric": partial(_native.Sampler, "geometric"),
}
# The discrete Gaussian begins at 2^-20.
CASES = [(shape, scale) for shape in SHAPES for scale in SCALES if shape != "gaussian" or scale >= Fraction(1, 2**20)]


# Laws of pages, with a scale and further parameters: 4, 16 and 63 pages, and what none has as likely as it may be.
PAGED = [
    ("skellam", Fraction(1), None),
    ("skellam", Fraction(1, 2**40), None),
    ("skellam", Fraction(386), None),
    ("skellam", Fraction(1000), None),
    ("negative_binomial_share", Fraction(1), 1),
    ("negative_binomial_share", Fraction(11, 2), 2),
    ("negative_binomial_share", Fraction(5), 1000),
    ("negative_binomial_share", Fraction(10), 7),
    ("staircase", Fraction(1), (5, 2)),
    ("staircase", Fraction(1, 3), (1, 1)),
    ("staircase", Fraction(1), (20, 20)),
    ("staircase", Fraction(1), (88, 30)),
    # Two and four entries of the second page have half and a quarter of it but for exp(-500): whole numbers of words.
    ("staircase", Fraction(500), (70, 65)),
    ("staircase", Fraction(500), (70, 67)),
]
LAWS = {"skellam": skellam, "negative_binomial_share": negative_binomial_share, "staircase": staircase}


@lru_cache
def paged(name: str, *parameters: object) -> Pages:
    return Pages(LAWS[name](*(parameter for parameter in parameters if parameter is not None)))


def stream(label: str, size: int) -> bytes:
    return hashlib.shake_256(label.encode()).digest(size)


def with_rests(stream: bytes, digits: int) -> bytes:
    """Make a third of the entries of the first block, by chance, the one of probability 2^-56."""
    data = bytearray(stream)
    for digit in range(digits):
        for i in range(64):
            if data[-64 * digit - i - 1] < 85:
                head = 512 * digit + 64 * 7 + i
                data[head] |= TAIL
                data[512 * digit + i : head : 64] = bytes(7)
    return bytes(data)


def compare(
    sampler: Digits | Trials | Pages, native: _native.Sampler, n: int, data: bytes = b""
) -> tuple[int, int, int]:
    data = data or stream(str(n), 512 * n + 2048)
    rng = hazmat.ScriptedRng(data)
    out = np.empty(n, np.int64)
    counts = native.fill_counted(out, rng)
    words = Words(data)
    expected = np.array(sampler.samples(words, n), np.int64)
    assert np.array_equal(out, expected)
    assert rng.remaining == len(data) - words.position, "both took the same words"
    assert counts[0] >= n
    return counts


@pytest.mark.parametrize(("shape", "scale"), CASES, ids=str)
def test_the_sampler_equals_its_specification(shape: str, scale: Fraction) -> None:
    compare(noise(shape, scale), NATIVE[shape](scale), N)


@pytest.mark.parametrize("law", PAGED, ids=str)
def test_pages_equal_their_specification(law: tuple[str, Fraction, object]) -> None:
    compare(paged(*law), _native.Sampler(*law), N)


@pytest.mark.parametrize("law", PAGED, ids=str)
def test_the_rest_of_pages_equals_the_specification(law: tuple[str, Fraction, object]) -> None:
    sampler, native = paged(*law), _native.Sampler(*law)
    beyond = 0
    for turn in range(N // 400):
        data = with_rests(stream(f"rest {law} {turn}", 1 << 18), 2)
        assert compare(sampler, native, 64, data)[2] > 0
        beyond += max(map(abs, sampler.samples(Words(data), 64))) >= TAIL * sampler.pages
    assert beyond > 0 or law[1] != 386


@pytest.mark.parametrize("law", PAGED, ids=str)
def test_the_rest_of_pages_is_as_rare_as_promised(law: tuple[str, Fraction, object]) -> None:
    sampler = paged(*law)
    assert sampler.p[TAIL] * 2**62 < 1
    assert all(1 <= counts[TAIL] <= 96 for counts in (sampler.counts, *sampler.entry_counts))


@pytest.mark.parametrize("scales", [1, 4, 40])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(40), Fraction(10**6)], ids=str)
def test_a_truncated_distribution_equals_its_specification(shape: str, scale: Fraction, scales: int) -> None:
    radius, n = int(scales * scale), N + 100  # more than a chunk
    data = stream(f"{shape} {scale} {scales}", 512 * n + 2048)
    rng, out, words = hazmat.ScriptedRng(data), np.empty(n, np.int64), Words(data)
    NATIVE[shape](scale, radius).fill(out, 1, rng)
    assert np.array_equal(out, Truncated(noise(shape, scale), radius).samples(words, n))
    assert rng.remaining == len(data) - words.position
    assert np.abs(out).max() <= radius


def test_the_counts_of_a_truncated_distribution_add_up() -> None:
    # The tail begins at 216, and what is beyond the radius is drawn again.
    native = _native.Sampler("discrete_laplace", 40, 300, design=(4, 0))
    trials, refinements, tails = native.fill_counted(np.empty(5000, np.int64), hazmat.SeededRng(1))
    assert 20 * tails < 5000 < trials < 50_000
    assert trials / 16 < refinements < trials < 2000 * tails


@pytest.mark.parametrize(("shape", "scale"), CASES, ids=str)
def test_the_rest_equals_the_specification(shape: str, scale: Fraction) -> None:
    # Blocks in which a third of the entries, by chance, are the one of probability 2^-56.
    sampler = noise(shape, scale)
    if isinstance(sampler, Trials):
        assert scale > 492156 // 89 or shape == "gaussian"
        return
    for turn in range(N // 400):
        data = with_rests(stream(f"rest {shape} {scale} {turn}", 1 << 16), len(sampler.steps))
        assert compare(sampler, NATIVE[shape](scale), 64, data)[2] > 0


def around(threshold: mpmath.mpf | Fraction) -> list[bytes]:
    """The words of uniform numbers on either side of a threshold: they agree with it to ever more words."""
    found = []
    for bits in (63, 127, 191, 319):
        for digits in (int(threshold * 2**bits) + side for side in (-1, 1)):
            words = [(digits >> bits - 63) << 1, *(digits >> shift & 2**64 - 1 for shift in range(bits - 127, -1, -64))]
            found += [b"".join(word.to_bytes(8, "little") for word in words)] if 0 <= digits < 2**bits else []
    return found


def with_rest(digits: int, digit: int) -> bytes:
    """A block whose first number has the columns 1, but for one digit with the entry of probability 2^-56."""
    return b"".join(bytes(448) + bytes([TAIL if d == digit else 1]) + bytes(63) for d in range(digits))


# Of smaller scales, numbers of 600 bits do not tell P(0) from 1.
@pytest.mark.parametrize(("shape", "scale"), [case for case in CASES if case[1] > Fraction(1, 100)], ids=str)
def test_every_threshold_of_rare_paths(shape: str, scale: Fraction) -> None:
    """However far uniform numbers agree with it: in the rest and beyond it, or in the tail of trials."""
    sampler, native, more = noise(shape, scale), NATIVE[shape](scale), stream("more", 4096)
    if isinstance(sampler, Trials):
        tail = (TAIL << 26).to_bytes(4, "little") + bytes(60 + (64 if sampler.shift <= 29 else 128))
        for words in around(sampler.threshold(TAIL, sampler.starts[TAIL])):
            assert compare(sampler, native, 1, tail + words[:8] + bytes(120) + words[8:] + more)[2] == 1
        return
    digits = len(sampler.steps)
    further = exp_neg(TAIL / scale**2) if shape == "gaussian" else sampler.f(sampler.steps[-1])
    drawn = [(digits - 1, TAIL.to_bytes(8, "little") + bytes(8) + words) for words in around(further)]
    for digit, entry in itertools.product(range(digits), (0, 1, 40)):
        rest = sampler.p[digit][entry] * 2**62 - sampler.counts[digit][entry]
        drawn += [(digit, entry.to_bytes(8, "little") + words) for words in around(rest)]
    for digit, words in drawn:
        assert compare(sampler, native, 1, with_rest(digits, digit) + words + more)[2] == 1


def test_a_threshold_that_256_bits_do_not_tell_from_a_half() -> None:
    # Two entries of the second page have half of it each, but for exp(-250).
    law = ("staircase", Fraction(250), (70, 65))
    sampler, native = paged(*law), _native.Sampler(*law)
    threshold = (sampler.entries[1][0] * 2**62 - sampler.entry_counts[1][0]) / 2
    assert 0 < Fraction(1, 2) - threshold < 2.0**-280
    for words in around(threshold):
        assert compare(sampler, native, 1, with_rest(2, 1) + bytes(8) + words + stream("more", 4096))[2] == 1


@pytest.mark.parametrize("n", [8, 9, 255, 256])
def test_few_samples_and_many_equal_the_specification(n: int) -> None:
    # The further words of tails follow those of all blocks that are taken together.
    compare(Trials("laplace", Fraction(400), 2), NATIVE["laplace"](400, design=(29, 2)), n, stream("few", 1 << 18))


@pytest.mark.parametrize(("shape", "scale"), CASES, ids=str)
def test_the_slow_path_equals_the_specification(shape: str, scale: Fraction) -> None:
    # With an allowance of 2^-4 about an eighth of the trials is decided by the exact comparison.
    shift = shift_for(shape, scale)
    trials, refinements, _ = compare(Trials(shape, scale, shift), NATIVE[shape](scale, design=(4, shift)), N // 5)
    assert refinements > trials / 16


@pytest.mark.parametrize("eta_bits", [29, 4])
@pytest.mark.parametrize(
    ("shape", "scale", "shift"),
    [
        ("laplace", Fraction(40), 0),
        ("laplace", Fraction(400), 2),
        ("gaussian", Fraction(100), 0),
        ("gaussian", Fraction(400), 2),
        ("geometric", Fraction(40), 0),
        ("geometric", Fraction(400), 2),
    ],
    ids=str,
)
def test_a_heavy_tail_equals_the_specification(shape: str, scale: Fraction, shift: int, eta_bits: int) -> None:
    trials, _, tails = compare(
        Trials(shape, scale, shift), NATIVE[shape](scale, design=(eta_bits, shift)), min(N // 2, 4_000)
    )
    assert tails > trials / 2000


# --- how rare the slow paths are -------------------------------------------------------------------------------------

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


def test_the_tail_is_as_rare_as_promised() -> None:
    promise = " ".join(SECURITY.read_text().split())
    assert "with a probability of at most 2^-64." in promise
    assert "with a probability of at most 3 * 2^-56 per number." in promise
    for scale in SCALES:
        sampler = noise("laplace", scale)
        if isinstance(sampler, Digits):
            assert sampler.p[-1][TAIL] * 2**64 < 1.17
            assert len(sampler.steps) <= 3
            assert all(1 <= counts[TAIL] <= 64 for counts in sampler.counts)
        else:
            assert 2 * sampler.f(sampler.starts[TAIL]) / (1 + sampler.f(1)) * 2**64 < 0.961


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 4), Fraction(22, 25), 1, Fraction(20, 3), 7, 10])
def test_the_tail_of_a_gaussian_is_rarer(scale: Fraction) -> None:
    sampler = noise("gaussian", Fraction(scale))
    start, reach = TAIL if isinstance(sampler, Digits) else sampler.starts[TAIL], range(math.ceil(40 * scale))
    total = 2 * sum(map(sampler.f, reach)) - 1
    share = 2 * sum(sampler.f(start + k) for k in reach) / total
    assert share <= sampler.f(start) * (1 + 1 / total)
    assert (share < sampler.f(start)) == (scale > Fraction(4, 5))
    assert share * 2**64 < 1


def undecided(sampler: Trials, h: int, x: int) -> int:
    """Count the prefixes (but the last) that the comparison in doubles leaves open, with the best double for f(x)."""
    f = float(mpmath.mpf(sampler.f(x)) * sampler.copies(h) * 2 ** (sampler.exponents[h] + 63))
    lower, upper = (f * (sampler.amplitude * (1 + side * 2.0**-28)) for side in (-1, 1))
    weight = float(sampler.weights[h])
    prefixes = range(2**63 - 1)
    accepted = bisect_left(prefixes, True, key=lambda u: float(u) * weight + weight >= lower)
    return bisect_left(prefixes, True, key=lambda u: upper < float(u) * weight) - accepted


@pytest.mark.parametrize(("shape", "slack"), [("laplace", 16), ("gaussian", 15)])
def test_refinement_is_as_rare_as_the_proof_says(shape: str, slack: int) -> None:
    beyond_ideal = 0
    for scale in (Fraction(10), Fraction(1000)):
        sampler = Trials(shape, scale, shift_for(shape, scale))
        for h in range(TAIL):
            refined = mpmath.mpf(undecided(sampler, h, sampler.starts[h])) / 2**63
            ideal = sampler.threshold(h, sampler.starts[h]) * mpmath.mpf(2) ** -27
            assert refined <= ideal * (1 + mpmath.mpf(2) ** -slack) + mpmath.mpf(2) ** -62
            beyond_ideal += refined > ideal + mpmath.mpf(2) ** -62
    assert beyond_ideal > TAIL / 2, "the roundings count"


@pytest.mark.parametrize("exponent", [-51, -48, -41])
def test_a_release_on_a_fine_grid_is_the_rounded_sum(exponent: int) -> None:
    # Scales beyond those of the samplers, for which noise is added in two parts.
    step, n = Fraction(2) ** exponent, 1000
    x = np.ldexp(np.cos(np.arange(n)), np.arange(n) % 120 - 60)
    scale = 1 / step + n - 1
    sampler = noise("laplace", scale)
    words = Words(stream("fine", 512 * n))
    steps = [math.floor(Fraction(value) / step + Fraction(1, 2)) for value in x.tolist()]
    expected = [float((a + b) * step) for a, b in zip(steps, sampler.samples(words, n), strict=True)]
    mechanism = Laplace(epsilon=1.0, granularity=float(step))
    assert np.array_equal(mechanism.release(x, rng=hazmat.ScriptedRng(stream("fine", 512 * n))), expected)
    assert mechanism.scale_for(n) == scale * step


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrong_specification_is_seen(shape: str) -> None:
    # Positive control: the specification for a scale that is off by a relative 2^-10.
    off = Fraction(10) * Fraction(2**10 + 1, 2**10)
    with pytest.raises(AssertionError):
        compare(noise(shape, off), NATIVE[shape](10), 10_000)


@pytest.mark.parametrize(("name", "more"), [("skellam", None), ("negative_binomial_share", 7), ("staircase", (5, 2))])
def test_a_wrong_law_of_pages_is_seen(name: str, more: object) -> None:
    with pytest.raises(AssertionError):
        compare(paged(name, Fraction(2**10 + 1, 2**10), more), _native.Sampler(name, 1, more), 10_000)
