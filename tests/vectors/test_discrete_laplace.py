"""Bit-for-bit equality of the native sampler with the specification, fed the same words."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest
from vectors.discrete_laplace_spec import Sampler, Words, shift_for

from dpnoise import _native, hazmat

SCALES = [
    Fraction(1, 1000),
    Fraction(1, 2**40),
    Fraction(1, 3),
    Fraction(1),
    Fraction(126, 89),  # the largest with single bins
    Fraction(2),
    Fraction(432, 89),  # the largest with a first width of 1
    Fraction(10),
    Fraction(0.1) * 100,  # the double 0.1, exactly
    Fraction(1000),
    Fraction(10**6),
    Fraction(2**31 - 1),  # offsets of 32 bits
    Fraction(2**35 + 1, 3),  # offsets of 64 bits
    Fraction(2**40),
]


def stream(label: str, size: int) -> bytes:
    return hashlib.shake_256(label.encode()).digest(size)


def compare(scale: Fraction, shift: int | None, native: _native.DiscreteLaplaceSampler, n: int) -> tuple[int, int, int]:
    data = stream(f"{scale} {shift}", 64 * n + 4096)
    rng = hazmat.ScriptedRng(data)
    out = np.empty(n, np.int64)
    counts = native.fill_counted(out, rng)
    words = Words(data)
    expected = np.fromiter(itertools.islice(Sampler(scale, shift).samples(words), n), np.int64)
    assert np.array_equal(out, expected)
    assert rng.remaining == len(data) - words.position, "both took the same words"
    return counts


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_sampler_equals_its_specification(scale: Fraction) -> None:
    compare(scale, shift_for(scale), _native.DiscreteLaplaceSampler(scale), 20_000)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_slow_path_equals_the_specification(scale: Fraction) -> None:
    # With an allowance of 2^-4 about an eighth of the trials is decided by the exact comparison.
    native = _native.DiscreteLaplaceSampler.with_design(scale, 4, shift_for(scale))
    trials, refinements, _ = compare(scale, shift_for(scale), native, 2_000)
    assert refinements > trials / 16


@pytest.mark.parametrize(("scale", "shift"), [(Fraction(40), 0), (Fraction(400), 2), (Fraction(300, 7), None)], ids=str)
def test_a_heavy_tail_equals_the_specification(scale: Fraction, shift: int | None) -> None:
    trials, _, tails = compare(scale, shift, _native.DiscreteLaplaceSampler.with_design(scale, 29, shift), 4_000)
    assert tails > trials / 2000


def test_a_wrong_specification_is_seen() -> None:
    # Positive control: the specification for a scale that is off by a relative 2^-10.
    scale = Fraction(10)
    with pytest.raises(AssertionError):
        compare(scale * Fraction(2**10 + 1, 2**10), 2, _native.DiscreteLaplaceSampler(scale), 20_000)
