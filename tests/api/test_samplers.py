"""The face of the samplers: shapes, arguments, and the message for every kind of bad input."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import hazmat, samplers

MORE = {"staircase": {"width": 1, "inner": 1}, "negative_binomial_share": {"parties": 3}}


def of_type(kind: type) -> list[Any]:
    """Find the samplers whose samples are of this type."""
    draws = [
        partial(draw, **MORE[name]) if name in MORE else draw
        for name in samplers.__all__
        if (draw := getattr(samplers, name))
    ]
    return [draw for draw in draws if type(draw(1)) is kind]


INTEGER, REAL = of_type(int), of_type(float)


def test_sizes_follow_numpy() -> None:
    assert type(samplers.discrete_laplace(10.0)) is int
    assert any(samplers.discrete_laplace(2**40) for _ in range(3))
    assert samplers.discrete_laplace(10.0, size=5).shape == (5,)
    assert samplers.discrete_laplace(10.0, size=(2, 3)).shape == (2, 3)
    assert samplers.discrete_laplace(10.0, size=()).shape == ()
    assert samplers.discrete_laplace(10.0, size=0).shape == (0,)
    assert samplers.discrete_laplace(10.0, size=np.int64(4)).dtype == np.int64


def test_the_other_distributions_have_the_same_face() -> None:
    for draw in INTEGER:
        assert type(draw(10.0)) is int
        out = np.empty((2, 3), np.int64)
        assert draw(Fraction(7, 2), out=out) is out
        with pytest.raises(dpnoise.ParameterError, match="must be a rational number"):
            draw(0.0)
    assert samplers.geometric(3, size=1000).min() >= 0
    with pytest.raises(TypeError, match="sigma must be an int, float or Fraction, got str"):
        samplers.discrete_gaussian("1")  # type: ignore[call-overload]
    with pytest.raises(dpnoise.ParameterError, match=r"sigma must be from 2\*\*-20 to 2\*\*40, got"):
        samplers.discrete_gaussian(2.0**-21)


def test_the_ranges_of_tables() -> None:
    """The largest parameters have room for nearly all numbers, and others are refused."""
    for call in (
        lambda: samplers.skellam(90_000),
        lambda: samplers.negative_binomial_share(88, 2**32),
        lambda: samplers.negative_binomial_share(88, 1),
        lambda: samplers.staircase(1, 88, 1),
        lambda: samplers.staircase(1, 88, 88),
        lambda: samplers.staircase(0.03, 2, 2),
        lambda: samplers.staircase(2**40, 3968, 3968),
        lambda: samplers.staircase(2**40, 70, 65),
    ):
        assert abs(call()) < 10_000
    for call, message in (
        (lambda: samplers.skellam(90_000 + Fraction(1, 2**30)), "mu must be at most 90000, got 90000"),
        (lambda: samplers.skellam(0), "mu must be a rational number"),
        (lambda: samplers.negative_binomial_share(89, 2), "scale must be at most 88, got 89"),
        (lambda: samplers.negative_binomial_share(1, 0), r"parties must be from 1 to 2\*\*32, got 0"),
        (lambda: samplers.negative_binomial_share(1, -1), r"parties must be an integer from 1 to 2\*\*32, got -1"),
        (lambda: samplers.negative_binomial_share(1, 2**32 + 1), r"parties must be from 1 to 2\*\*32, got"),
        (lambda: samplers.staircase(1, 89, 1), "width must be from 1 to .*, which is 88 for epsilon = 1, got 89"),
        (lambda: samplers.staircase(1, 0, 0), "width must be from 1 to .*, got 0"),
        (lambda: samplers.staircase(1, 5, 0), "inner must be from 1 to the width, 5, got 0"),
        (lambda: samplers.staircase(1, 5, 6), "inner must be from 1 to the width, 5, got 6"),
        (lambda: samplers.staircase(0.01, 1, 1), "width must be .* which is 0 for epsilon = 0.01, got 1"),
    ):
        with pytest.raises(dpnoise.ParameterError, match=message):
            call()
    with pytest.raises(TypeError, match="parties must be an int, got float"):
        samplers.negative_binomial_share(1, 2.0)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="width must be an int, got str"):
        samplers.staircase(1, "2", 1)  # type: ignore[call-overload]


@pytest.mark.parametrize("draw", REAL)
@pytest.mark.parametrize(
    ("scale", "granularity"), [(0.3, 0.25), (10, 2.0**-30), (1e-300, 2.0**-1019), (Fraction(1, 3), 2.0**-10)]
)
def test_real_samples_are_multiples_of_the_granularity(draw: Any, scale: Any, granularity: float) -> None:
    samples = draw(scale, size=(50, 2), granularity=granularity)
    assert samples.dtype == np.float64
    assert samples.shape == (50, 2)
    assert np.all(samples / granularity % 1 == 0)
    assert samples.any()
    assert type(draw(scale, granularity=granularity)) is float
    out = np.empty(7)
    assert draw(scale, out=out, threads=1) is out


@pytest.mark.parametrize("draw", REAL)
@pytest.mark.parametrize("scale", [1e-290, 0.7, 2**70, Fraction(10**30, 7), 1e280])
def test_the_default_grid_has_2_to_the_38_steps_or_more(draw: Any, scale: Any) -> None:
    samples = draw(scale, size=1000)
    # The granularity is the power of two in (2^-40, 2^-38] scales, so all samples are multiples of the smallest.
    finest = 2.0 ** (math.floor(math.log2(scale)) - 40)
    assert np.all(samples / finest % 1 == 0)
    assert np.any(samples / finest % 2**6 != 0)
    assert 0.5 < np.abs(samples).mean() / float(scale) < 1.5


@pytest.mark.parametrize("draw", REAL)
def test_bad_real_scales_and_granularities_are_refused(draw: Any) -> None:
    name = "scale" if draw is samplers.laplace else "sigma"
    for bad in (0, -1.0, float("nan"), float("inf"), 10**400):
        with pytest.raises(dpnoise.ParameterError, match=f"^{name} must be a positive finite rational number"):
            draw(bad, size=3)
    for bad in (0.3, -1.0, 0.0, float("nan"), float("inf")):
        with pytest.raises(dpnoise.ParameterError, match="granularity must be a power of two"):
            draw(1.0, size=3, granularity=bad)
    with pytest.raises(dpnoise.ParameterError, match=rf"granularity must be such that {name} is from 2\*\*-40"):
        draw(1.0, size=3, granularity=2.0**-41)
    for bad in (1e300, 5e-324):
        with pytest.raises(
            dpnoise.ParameterError, match=rf"{name} must be from .* when granularity is None, got {bad}"
        ):
            draw(bad, size=3)
    with pytest.raises(TypeError, match=f"{name} must be an int, float or Fraction, got str"):
        draw("1", size=3)
    with pytest.raises(TypeError, match="out must be a NumPy array of dtype float64, got int64"):
        draw(1.0, out=np.empty(3, np.int64))


def test_real_samples_are_the_integers_times_the_granularity() -> None:
    for real, integer in (
        (samplers.laplace, samplers.discrete_laplace),
        (samplers.gaussian, samplers.discrete_gaussian),
    ):
        given = real(5.0, size=1000, granularity=0.125, rng=hazmat.SeededRng(4))  # type: ignore[operator]
        assert np.array_equal(given * 8, integer(40, size=1000, rng=hazmat.SeededRng(4)))  # type: ignore[operator]


def test_coins() -> None:
    assert type(samplers.bernoulli(0.5)) is bool
    assert samplers.bernoulli(1)
    assert samplers.bernoulli(0.5, size=(3, 4)).dtype == np.bool_
    assert not samplers.bernoulli(0, size=1000).any()
    assert samplers.bernoulli(1, size=1000).all()
    assert samplers.bernoulli(np.float32(0.5), out=np.empty(3, bool)).shape == (3,)
    assert not samplers.bernoulli(5e-324, size=1000).any()
    assert samplers.bernoulli(1 - 2**-53, size=1000).all()


def test_bad_coins_are_refused() -> None:
    for bad in (-0.1, 1.1, float("nan"), float("inf"), 10**400):
        with pytest.raises(dpnoise.ParameterError, match="p must be"):
            samplers.bernoulli(bad, size=3)
    with pytest.raises(dpnoise.ParameterError, match="p must be a number that a float holds exactly, got 1/3"):
        samplers.bernoulli(Fraction(1, 3))  # type: ignore[call-overload]
    assert samplers.bernoulli(Fraction(1, 4), size=3).shape == (3,)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="p must be a number, got str"):
        samplers.bernoulli("0.5", size=3)  # type: ignore[call-overload]
    out = np.ones(5000, bool)
    with pytest.raises(dpnoise.RandomnessError):
        samplers.bernoulli(0.9, out=out, rng=hazmat.ScriptedRng(bytes(5000)))
    assert not out.any()


def test_out_is_filled_in_place() -> None:
    out = np.full((2, 500), 2**62)
    assert samplers.discrete_laplace(3, out=out) is out
    assert np.abs(out).max() < 1000
    assert samplers.discrete_laplace(3, size=(2, 500), out=out) is out


@pytest.mark.parametrize("scale", [2, 2.0, Fraction(2), np.float64(2), np.float32(2), np.int64(2), np.uint8(2)])
def test_a_scale_counts_by_its_value(scale: Any) -> None:
    expected = samplers.discrete_laplace(2, size=100, rng=hazmat.SeededRng(3))
    assert np.array_equal(samplers.discrete_laplace(scale, size=100, rng=hazmat.SeededRng(3)), expected)


@pytest.mark.parametrize("scale", [2.0**-40, Fraction(1, 3), 1e-3, 2**40])
def test_the_ends_of_the_range(scale: Any) -> None:
    samples = samplers.discrete_laplace(scale, size=10_000)
    mean = np.abs(samples).mean()
    assert mean <= 1.2 * float(scale)  # ten standard deviations at least, whatever the scale
    assert mean >= 0.8 * float(scale) or scale < 1


@pytest.mark.parametrize(
    "scale",
    [0, -1, 0.0, -0.0, -2.5, float("nan"), float("inf"), 5e-324, 2.0**-41, 2.0**40 * (1 + 2**-52), 2**41, 10**400,
     Fraction(-1, 2), Fraction(2**121 + 1, 2**121 - 1)],
)  # fmt: skip
def test_a_scale_out_of_range_is_refused(scale: Any) -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"^scale must be a rational number from 2\*\*-40 to 2\*\*40"):
        samplers.discrete_laplace(scale, size=3)


@pytest.mark.parametrize("scale", ["1", None, True, 1j, [1.0], np.array([1.0, 2.0])])
def test_a_scale_of_another_type_is_refused(scale: Any) -> None:
    with pytest.raises(TypeError, match="scale must be an int, float or Fraction, got "):
        samplers.discrete_laplace(scale, size=3)


@pytest.mark.parametrize(
    ("size", "message"),
    [(-1, "size must not be negative, got -1"), ((2, -3), r"size must not be negative, got \(2, -3\)")],
)
def test_a_negative_size_is_refused(size: Any, message: str) -> None:
    with pytest.raises(dpnoise.ParameterError, match=message):
        samplers.discrete_laplace(1.0, size=size)


@pytest.mark.parametrize("size", [1.5, "3", "", b"12", (1, 2.0)])
def test_a_size_of_another_type_is_refused(size: Any) -> None:
    with pytest.raises(TypeError, match="size must be None, an int or a tuple of ints"):
        samplers.discrete_laplace(1.0, size=size)


@pytest.mark.parametrize("size", [2**58, (2**29, 2**29), 2**60, 2**63, 2**70, (2**40, 2**40)])
def test_memory_that_is_not_there_is_an_error(size: Any) -> None:
    with pytest.raises(MemoryError, match=r"Unable to allocate 2.00 EiB|there is no room for an array of size"):
        samplers.discrete_laplace(1.0, size=size)


@pytest.mark.parametrize("size", [(0, 2**70), (1,) * 65])
def test_a_size_that_no_array_can_have_is_refused(size: Any) -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"size must be the shape of an array, got \(.*\): "):
        samplers.discrete_laplace(1.0, size=size)


def read_only() -> np.ndarray:
    array = np.zeros(4, np.int64)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros(4), TypeError, "out must be a NumPy array of dtype int64, got float64"),
        (np.zeros(4, ">i8"), TypeError, "out must be a NumPy array of dtype int64, got >i8"),
        ([0, 0], TypeError, "out must be a NumPy array of dtype int64, got list"),
        (np.zeros(8, np.int64)[::2], ValueError, "out must be C-contiguous"),
        (np.asfortranarray(np.zeros((2, 3), np.int64)), ValueError, "out must be C-contiguous"),
        (read_only(), ValueError, "out must be writable"),
        (np.zeros(5, np.int64), ValueError, r"out must have the shape of size \(4,\), got \(5,\)"),
    ],
)
def test_an_unfit_out_is_refused(out: Any, error: type[Exception], message: str) -> None:
    size = 4 if isinstance(out, np.ndarray) and out.size == 5 else None
    with pytest.raises(error, match=message):
        samplers.discrete_laplace(1.0, size=size, out=out)


@pytest.mark.parametrize("draw", [samplers.discrete_laplace, samplers.gaussian, samplers.bernoulli])
@pytest.mark.parametrize("rng", [None, hazmat.SeededRng(1)])
def test_threads_must_be_positive(draw: Any, rng: Any) -> None:
    for size in (None, 3):
        for threads in (0, -1, 2**70):
            message = rf"threads must be None or a positive integer below 2\*\*64, got {threads}"
            with pytest.raises(dpnoise.ParameterError, match=message):
                draw(1.0, size=size, threads=threads, rng=rng)
        for other in (1.0, "2", True):
            with pytest.raises(TypeError, match=r"threads must be an int, got (float|str|bool)"):
                draw(1.0, size=size, threads=other, rng=rng)
        draw(1.0, size=size, threads=np.int8(2), rng=rng)
        draw(1.0, size=size, threads=2**64 - 1, rng=rng)


def test_a_foreign_generator_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rng must be None .* or a generator of dpnoise.hazmat, got Generator"):
        samplers.discrete_laplace(1.0, size=3, rng=np.random.default_rng(1))  # type: ignore[call-overload]


def test_an_exhausted_script_leaves_no_noise_behind() -> None:
    out = np.full(1000, 7)
    with pytest.raises(dpnoise.RandomnessError, match="nothing was released: the scripted generator has no bytes left"):
        samplers.discrete_laplace(1.0, out=out, rng=hazmat.ScriptedRng(bytes(2000)))
    assert not out.any()


# A change of these values is a change for every user who pinned a seed: it belongs in the changelog.
@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (1e-3, [0, 0, 0, 0, 0, 0]),
        (1, [-1, 0, 2, 0, -1, -3]),
        (10, [-4, 1, 12, -21, -3, -13]),
        (1e3, [-1035, 1079, 245, -21, -1031, -494]),
        (1e6, [-457036, 292756, -759505, -1210995, -861559, 519727]),
        (2**40, [329250416245, 350720915348, -513415477875, 619420839471, -1128229808201, 1282934706164]),
    ],
)
def test_seeded_values_are_stable(scale: float, expected: list[int]) -> None:
    assert samplers.discrete_laplace(scale, size=6, rng=hazmat.SeededRng(2026)).tolist() == expected


# Few samples, some and many take their words in different groupings.
@pytest.mark.parametrize(("n", "expected"), [(100, "1b08dd928b365944"), (1000, "75d0772de3959297")])
def test_longer_seeded_draws_are_stable(n: int, expected: str) -> None:
    samples = samplers.discrete_laplace(10**6, size=n, rng=hazmat.SeededRng(2026))
    assert hashlib.sha256(samples.astype("<i8").tobytes()).hexdigest()[:16] == expected


def test_random_bytes() -> None:
    assert samplers.random_bytes(0) == b""
    assert len(samplers.random_bytes(1000)) == 1000
    assert samplers.random_bytes(32) != samplers.random_bytes(32)
    for bad in (-1, 2**63, 2**70):
        with pytest.raises(dpnoise.ParameterError, match=rf"n must be an integer from 0 to 2\*\*63 - 1, got {bad}"):
            samplers.random_bytes(bad)
    with pytest.raises(TypeError, match="n must be an int, got float"):
        samplers.random_bytes(1.0)  # type: ignore[arg-type]
    with pytest.raises(MemoryError, match="there is no room for n = "):
        samplers.random_bytes(2**60)
    with pytest.raises(MemoryError, match="there is no room for n = "):
        samplers.random_bytes(2**63 - 1)


def test_the_backend_is_one_of_three() -> None:
    assert dpnoise.instruction_set() in {"portable", "avx2", "avx512", "neon"}
