"""The face of the samplers: shapes, arguments, and the message for every kind of bad input."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import hazmat, samplers


def test_sizes_follow_numpy() -> None:
    assert type(samplers.discrete_laplace(10.0)) is int
    assert samplers.discrete_laplace(10.0, 5).shape == (5,)
    assert samplers.discrete_laplace(10.0, (2, 3)).shape == (2, 3)
    assert samplers.discrete_laplace(10.0, ()).shape == ()
    assert samplers.discrete_laplace(10.0, 0).shape == (0,)
    assert samplers.discrete_laplace(10.0, np.int64(4)).dtype == np.int64


def test_the_other_distributions_have_the_same_face() -> None:
    for draw in (samplers.discrete_gaussian, samplers.geometric):
        assert type(draw(10.0)) is int
        out = np.empty((2, 3), np.int64)
        assert draw(Fraction(7, 2), out=out) is out
        with pytest.raises(dpnoise.ParameterError, match="must be an int, float or Fraction"):
            draw(0.0)
    assert samplers.geometric(3, 1000).min() >= 0
    with pytest.raises(TypeError, match="sigma must be an int, float or Fraction, got str"):
        samplers.discrete_gaussian("1")  # type: ignore[call-overload]
    with pytest.raises(dpnoise.ParameterError, match=r"sigma must be from 2\*\*-20 to 2\*\*40, got"):
        samplers.discrete_gaussian(2.0**-21)


def test_out_is_filled_in_place() -> None:
    out = np.full((2, 500), 2**62)
    assert samplers.discrete_laplace(3, out=out) is out
    assert np.abs(out).max() < 1000
    assert samplers.discrete_laplace(3, (2, 500), out=out) is out


@pytest.mark.parametrize("scale", [2, 2.0, Fraction(2), np.float64(2), np.float32(2), np.int64(2), np.uint8(2)])
def test_a_scale_counts_by_its_value(scale: Any) -> None:
    expected = samplers.discrete_laplace(2, 100, rng=hazmat.SeededRng(3))
    assert np.array_equal(samplers.discrete_laplace(scale, 100, rng=hazmat.SeededRng(3)), expected)


@pytest.mark.parametrize("scale", [2.0**-40, Fraction(1, 3), 1e-3, 2**40])
def test_the_ends_of_the_range(scale: Any) -> None:
    samples = samplers.discrete_laplace(scale, 10_000)
    mean = np.abs(samples).mean()
    assert mean <= 1.2 * float(scale)  # ten standard deviations at least, whatever the scale
    assert mean >= 0.8 * float(scale) or scale < 1


@pytest.mark.parametrize(
    "scale",
    [0, -1, 0.0, -0.0, -2.5, float("nan"), float("inf"), 5e-324, 2.0**-41, 2.0**40 * (1 + 2**-52), 2**41, 10**400,
     Fraction(-1, 2), Fraction(2**121 + 1, 2**121 - 1)],
)  # fmt: skip
def test_a_scale_out_of_range_is_refused(scale: Any) -> None:
    with pytest.raises(
        dpnoise.ParameterError, match=r"^scale must be an int, float or Fraction from 2\*\*-40 to 2\*\*40"
    ):
        samplers.discrete_laplace(scale, 3)


@pytest.mark.parametrize("scale", ["1", None, True, 1j, [1.0], np.array([1.0, 2.0])])
def test_a_scale_of_another_type_is_refused(scale: Any) -> None:
    with pytest.raises(TypeError, match="scale must be an int, float or Fraction, got "):
        samplers.discrete_laplace(scale, 3)


@pytest.mark.parametrize(
    ("size", "message"),
    [(-1, "size must not be negative, got -1"), ((2, -3), r"size must not be negative, got \(2, -3\)")],
)
def test_a_negative_size_is_refused(size: Any, message: str) -> None:
    with pytest.raises(dpnoise.ParameterError, match=message):
        samplers.discrete_laplace(1.0, size)


@pytest.mark.parametrize("size", [1.5, "3", (1, 2.0)])
def test_a_size_of_another_type_is_refused(size: Any) -> None:
    with pytest.raises(TypeError, match="size must be None, an int or a tuple of ints"):
        samplers.discrete_laplace(1.0, size)


def test_memory_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MemoryError):
        samplers.discrete_laplace(1.0, 2**58)


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
        samplers.discrete_laplace(1.0, size, out=out)


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_must_be_positive(threads: int) -> None:
    with pytest.raises(dpnoise.ParameterError, match=f"threads must be None or a positive integer, got {threads}"):
        samplers.discrete_laplace(1.0, 3, threads=threads)


def test_a_foreign_generator_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rng must be None .* or a generator of dpnoise.hazmat, got Generator"):
        samplers.discrete_laplace(1.0, 3, rng=np.random.default_rng(1))  # type: ignore[call-overload]


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
        (1, [0, 0, -1, 1, 0, 1]),
        (10, [-4, -2, 5, -11, -10, 11]),
        (1e6, [-345476, -335810, 377581, -655723, -1004222, -301818]),
        (2**40, [284836840836, 460056543981, -544076415143, -771091372794, -1308905728906, 989869830820]),
    ],
)
def test_seeded_values_are_stable(scale: float, expected: list[int]) -> None:
    assert samplers.discrete_laplace(scale, 6, rng=hazmat.SeededRng(2026)).tolist() == expected


def test_random_bytes() -> None:
    assert samplers.random_bytes(0) == b""
    assert len(samplers.random_bytes(1000)) == 1000
    assert samplers.random_bytes(32) != samplers.random_bytes(32)
    with pytest.raises(dpnoise.ParameterError, match="size must not be negative, got -1"):
        samplers.random_bytes(-1)


def test_the_backend_is_one_of_three() -> None:
    assert dpnoise.cpu_backend() in {"portable", "avx2", "avx512"}
