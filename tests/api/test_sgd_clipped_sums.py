"""What integrations of training frameworks build on: sums of several arrays on a grid, sensitivities, and noise."""

from __future__ import annotations

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError, _native, hazmat
from dpnoise.extend import root
from dpnoise.sgd import NoisyGradient, _gradients, clip_and_sum, noise_multipliers

SHAPES = [(), (3,), (2, 5), (1, 1, 4)]


def gradients(n: int, dtype: Any = np.float32, seed: int = 1) -> list[np.ndarray]:
    """Arrays of a small model, with rows of very different norms."""
    generator = np.random.default_rng(seed)
    scales = 2.0 ** generator.integers(-20, 20, n)
    numbers = [generator.normal(size=(n, *shape)) * scales.reshape(n, *(1 for _ in shape)) for shape in SHAPES]
    with np.errstate(over="ignore"):  # of half precision: such rows count as zeros
        return [array.astype(dtype) for array in numbers]


def mechanism(clip_norm: float, noise_multiplier: float) -> NoisyGradient:
    return NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1.0)


def clipped_sum(arrays: Any, *, clip_norm: float, threads: int | None = None) -> np.ndarray:
    return mechanism(clip_norm, 1.0).clipped_sum(arrays, threads=threads)


def noisy(sums: Any, *, clip_norm: float, noise_multiplier: float, **how: Any) -> np.ndarray:
    return mechanism(clip_norm, noise_multiplier).add_noise(sums, **how)


def side_by_side(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)


def sensitivity(clip_norm: float, width: int) -> int:
    """In steps of the grid, as the theorem has it."""
    granularity = NoisyGradient(clip_norm=clip_norm, noise_multiplier=1.0, expected_batch_size=1.0).granularity
    root = math.isqrt(width - 1) + 1  # rounded up
    return math.ceil(Fraction(clip_norm) / Fraction(granularity)) + (root + 1) // 2


def length(steps: np.ndarray) -> int:
    """The square of the L2 norm, in exact integers."""
    return sum(int(step) ** 2 for step in steps)


# --- the sum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_the_norm_spans_all_arrays(dtype, n):
    arrays = gradients(n, dtype)
    matrix = side_by_side(arrays).astype(np.float64 if dtype == np.float64 else np.float32)
    granularity = NoisyGradient(clip_norm=0.5, noise_multiplier=1.0, expected_batch_size=1.0).granularity
    expected = clip_and_sum(matrix, clip_norm=0.5)
    # Squares are added up in another order, which the 29 digits of a factor do not show here.
    np.testing.assert_array_equal((clipped_sum(arrays, clip_norm=0.5) * granularity).astype(expected.dtype), expected)


def not_ready(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers, laid out in ways that cannot be read in place."""
    shifted = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    shifted[:] = array
    return {
        "columns first": np.asfortranarray(array),
        "backwards": array[:, ::-1].copy()[:, ::-1],
        "other bytes": array.astype(array.dtype.newbyteorder()),
        "not aligned": shifted,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_layout_does_not_matter(dtype):
    first, second = (np.random.default_rng(k).normal(size=(50, 9)).astype(dtype) for k in (1, 2))
    expected = clipped_sum([first, second], clip_norm=1.0)
    first.setflags(write=False)
    np.testing.assert_array_equal(clipped_sum([first, second], clip_norm=1.0), expected)
    for name, array in not_ready(first).items():
        np.testing.assert_array_equal(clipped_sum([array, second], clip_norm=1.0), expected, name)


def test_the_widest_dtype_is_that_of_all():
    half, single, double = (np.full((3, 2), 0.1).astype(dtype) for dtype in (np.float16, np.float32, np.float64))
    sums = clipped_sum([half, single, double], clip_norm=1.0)
    steps = [float(array[0, 0]) / mechanism(1.0, 1.0).granularity for array in (half, single, double)]
    np.testing.assert_array_equal(sums, 3 * np.repeat(np.rint(steps).astype(np.int64), 2))


def test_no_row_is_counted_twice_between_parts():
    many = np.zeros((131, 2**21), np.float32)  # of which 127 rows are added up at a time
    ones = np.ones((131, 1), np.float32)
    assert clipped_sum([many, ones], clip_norm=4.0)[-1] == 131 * 2**30


def test_the_norm_spans_a_hundred_arrays():
    arrays = [np.full((1, 1), 3.0, np.float32)] * 100
    steps = clipped_sum(arrays, clip_norm=1.0)
    np.testing.assert_allclose(steps * mechanism(1.0, 1.0).granularity, 0.1, rtol=1e-8)


def test_no_number_shows_in_a_warning():
    signalling = np.array([[0x7FA0_0000]], np.uint32).view(np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        sums = clipped_sum([signalling, np.ones((1, 1))], clip_norm=1.0)
    np.testing.assert_array_equal(sums, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_it_does_not_matter_how_many_rows_are_copied_at_a_time(monkeypatch, dtype):
    arrays = gradients(50, dtype)
    expected = clipped_sum(arrays, clip_norm=1.0)
    for numbers in (1, 20, 150, 10**6):
        monkeypatch.setattr(_gradients, "_NUMBERS", numbers)
        np.testing.assert_array_equal(clipped_sum(arrays, clip_norm=1.0), expected)


def peak(gradients: list[np.ndarray]) -> int:
    """How many bytes their sum takes meanwhile."""
    tracemalloc.start()
    try:
        clipped_sum(gradients, clip_norm=1.0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_gradients_are_read_in_place():
    arrays = [np.ones((1000, 30, 10), np.float32), np.ones((1000, 7), np.float32)]
    assert peak(arrays) < 50_000
    assert peak([np.asfortranarray(arrays[0]), arrays[1]]) > arrays[0].nbytes


def test_little_is_copied_at_a_time(monkeypatch):
    last = np.ones((30, 10, 1000), np.float32).transpose(2, 0, 1)
    monkeypatch.setattr(_gradients, "_NUMBERS", 10_000)
    assert peak([last]) < last.nbytes / 5


def test_an_empty_batch_has_a_sum():
    arrays = [array[:0] for array in gradients(3)]
    np.testing.assert_array_equal(clipped_sum(arrays, clip_norm=1.0), np.zeros(18, np.int64))


def test_sums_of_parts_of_a_batch_add_up():
    arrays = gradients(40)
    parts = [clipped_sum([array[part] for array in arrays], clip_norm=1.0) for part in (slice(13), slice(13, None))]
    np.testing.assert_array_equal(sum(parts), clipped_sum(arrays, clip_norm=1.0))


# --- the sensitivity ----------------------------------------------------------------------------------------------

NUMBERS = [0.0, 1e-45, -1e-30, 2.0**-32, 0.3, -0.57735026, 1 / math.sqrt(2), 1.0, -3e19, 3e38, math.inf, math.nan]


@pytest.mark.parametrize("clip_norm", [1.0, 0.7, 1e-9])
def test_every_example_changes_the_sum_by_at_most_the_sensitivity(clip_norm):
    """All rows of these numbers, in two arrays: by exactly the same steps in every batch."""
    rows = np.array(list(itertools.product(NUMBERS, repeat=3)), np.float32) * np.float32(clip_norm)
    limit = sensitivity(clip_norm, 3) ** 2
    batch = [array[:20] for array in (rows[::-7, :1], rows[::-7, 1:])]
    before = clipped_sum(batch, clip_norm=clip_norm)
    longest = 0
    for row in rows:
        arrays = [row[np.newaxis, :1], row[np.newaxis, 1:]]
        alone = clipped_sum(arrays, clip_norm=clip_norm)
        for place in (0, 9, 20):
            larger = [np.insert(old, place, new, axis=0) for old, new in zip(batch, arrays, strict=True)]
            np.testing.assert_array_equal(clipped_sum(larger, clip_norm=clip_norm) - before, alone)
        longest = max(longest, length(alone))
    assert (0.999_999 * clip_norm / mechanism(clip_norm, 1.0).granularity) ** 2 < longest <= limit


def summed_in_floats(rows: np.ndarray) -> float:
    """What is to be found out: one after the other in single precision, each of norm 1 or less."""
    return float(np.cumsum(rows, dtype=np.float32)[-1])


def test_floats_exceed_the_sensitivity_where_the_grid_does_not():
    """Above 1024 every small number is rounded up to twice its size, and below it is not: one example decides."""
    small = np.float32(2.0**-14 * (1 + 2.0**-10))
    rows = np.concatenate([np.ones(1024, np.float32), np.full(16_384, small)])
    neighbour = np.insert(rows, 1024, np.float32(-1.0))
    limit = sensitivity(1.0, 1)
    granularity = mechanism(1.0, 1.0).granularity
    assert abs(summed_in_floats(neighbour) - summed_in_floats(rows)) > 1.9 * limit * granularity
    change = clipped_sum([neighbour], clip_norm=1.0) - clipped_sum([rows], clip_norm=1.0)
    assert abs(int(change[0])) <= limit


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 9, 10, 1000])
def test_the_sensitivity_is_that_of_the_theorem(width):
    native = mechanism(0.7, 1.0)
    assert Fraction(native.sensitivity(width)) == sensitivity(0.7, width) * Fraction(native.granularity)


# --- the noise ----------------------------------------------------------------------------------------------------


def test_noise_is_added_on_the_grid():
    granularity = mechanism(0.7, 1.5).granularity
    sums = clipped_sum(gradients(9), clip_norm=0.7)
    released = noisy(sums, clip_norm=0.7, noise_multiplier=1.5, dtype=np.float64, rng=hazmat.SeededRng(1))
    again = noisy(2 * sums, clip_norm=0.7, noise_multiplier=1.5, dtype=np.float64, rng=hazmat.SeededRng(1))
    np.testing.assert_array_equal(np.mod(released, granularity), 0)
    np.testing.assert_array_equal((again - released) / granularity, sums)


def test_noise_is_that_of_a_noisy_gradient():
    rows = np.random.default_rng(5).normal(size=(6, 100)).astype(np.float32)
    expected = NoisyGradient(clip_norm=0.7, noise_multiplier=1.5, expected_batch_size=1.0).release(
        rows, rng=hazmat.SeededRng(2)
    )
    released = noisy(
        clipped_sum([rows[:, :40], rows[:, 40:]], clip_norm=0.7),
        clip_norm=0.7,
        noise_multiplier=1.5,
        rng=hazmat.SeededRng(2),
    )
    assert released.dtype == np.float32
    np.testing.assert_array_equal(released, expected)


def test_sums_wrap_around():
    most = np.full(3, np.iinfo(np.int64).max)
    wrapped = noisy(most, clip_norm=1.0, noise_multiplier=2.0**11, dtype=np.float64, rng=hazmat.SeededRng(3))
    noise = noisy(0 * most, clip_norm=1.0, noise_multiplier=2.0**11, dtype=np.float64, rng=hazmat.SeededRng(3))
    assert (noise > 0).any()
    np.testing.assert_allclose(wrapped, np.where(noise > 0, noise - 2.0**31, noise + 2.0**31))


def test_noise_never_repeats():
    zeros = np.zeros(1000, np.int64)
    first, second = (noisy(zeros, clip_norm=1.0, noise_multiplier=1.0) for _ in range(2))
    assert not np.array_equal(first, second)


# --- parts with norms of their own --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_multiplier", [2.0**-20, 0.37, 1.1, 2.0**11])
def test_one_part_has_the_multiplier_of_the_whole(noise_multiplier):
    assert noise_multipliers([0.7], [1000], noise_multiplier) == [noise_multiplier]


@pytest.mark.parametrize(("clip_norms", "widths"), [([1.0, 1.0], [3, 5]), ([0.1, 3.0, 1.1], [10**6, 1, 7])])
def test_parts_lose_no_more_than_the_whole(clip_norms, widths):
    """rho of all parts together in exact numbers, and noise of one standard deviation."""
    found = noise_multipliers(clip_norms, widths, 1.1)
    losses = [1 / (2 * Fraction(multiplier) ** 2) for multiplier in found]
    whole = 1 / (2 * Fraction(1.1) ** 2)
    assert whole * (1 - Fraction(1, 2**48)) < sum(losses) <= whole
    deviations = [
        multiplier * mechanism(norm, 1.0).sensitivity(width)
        for multiplier, norm, width in zip(found, clip_norms, widths, strict=True)
    ]
    np.testing.assert_allclose(deviations, deviations[0], rtol=1e-14)
    assert math.isclose(deviations[0], 1.1 * math.hypot(*clip_norms), rel_tol=1e-6)


def test_parts_that_need_too_much_noise_are_refused():
    with pytest.raises(ParameterError, match=r"noise_multiplier must be from 2\*\*-20 to 2\*\*11, got 9999"):
        noise_multipliers([1.0, 1e-5], [3, 3], 1.0)


def test_roots_are_rounded_up():
    for square in [Fraction(2), Fraction(1, 3), Fraction(10**40, 7), Fraction(4), Fraction(0.1) ** 2]:
        assert Fraction(math.nextafter(root(square), 0.0)) ** 2 < square <= Fraction(root(square)) ** 2


# --- bad input ----------------------------------------------------------------------------------------------------

ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("given", "clip_norm", "error", "message"),
    [
        ([], 1.0, ParameterError, "gradients must have at least one coordinate for each example, got none"),
        (
            [np.ones((2, 0))],
            1.0,
            ParameterError,
            "gradients must have at least one coordinate for each example, got none",
        ),
        ([ONES, ONES[:1]], 1.0, ParameterError, "gradients must have the same number of rows in all arrays"),
        ([ONES.astype(complex)], 1.0, TypeError, "gradients must be real numbers of at most 64 bits, got dtype"),
        ([ONES], 0.0, ParameterError, r"clip_norm must be from 2\*\*-80 to 2\*\*80, got 0.0"),
        ([ONES[:0]], math.nan, ParameterError, "clip_norm must be from"),
        ([ONES], "1", TypeError, "clip_norm must be a number"),
    ],
)
def test_bad_gradients(given, clip_norm, error, message):
    with pytest.raises(error, match=message):
        clipped_sum(given, clip_norm=clip_norm)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"noise_multiplier": 0.0}, ParameterError, r"noise_multiplier must be from 2\*\*-20 to 2\*\*11, got 0.0"),
        ({"noise_multiplier": math.inf}, ParameterError, "noise_multiplier must be from"),
        ({"clip_norm": -1.0}, ParameterError, "clip_norm must be from"),
        ({"rng": 1}, TypeError, "rng must be"),
        ({"dtype": np.float16}, TypeError, "dtype must be float32 or float64"),
    ],
)
def test_bad_parameters_of_noise(changes, error, message):
    with pytest.raises(error, match=message):
        noisy(np.zeros(3, np.int64), **{"clip_norm": 1.0, "noise_multiplier": 1.0, **changes})


def test_the_sums_must_fit():
    with pytest.raises(ParameterError, match="sums must be as many as out, got 3 for 2"):
        mechanism(1.0, 1.0)._native.release(np.zeros(3, np.int64), np.zeros(2), None)
    with pytest.raises(TypeError, match="sums must be an array of int64"):
        noisy(np.zeros(3), clip_norm=1.0, noise_multiplier=1.0)


@pytest.mark.parametrize(
    "matrices",
    [
        [ONES, ONES[:1]],
        [ONES],
        [ONES[:, :0]],
        [ONES[0]],
        [],
        [np.empty((0, 2**60), np.float32)] * 16,
        [np.asfortranarray(ONES)] * 2,
    ],
)
def test_matrices_must_fit_the_sums(matrices):
    with pytest.raises(ParameterError, match="gradients must"):
        _native.add_clipped(matrices, np.zeros(6, np.int64), 1.0, None)
    with pytest.raises(TypeError, match="gradients must be a NumPy array of dtype float32"):
        _native.add_clipped([ONES, ONES.astype(np.float64)], np.zeros(6, np.int64), 1.0, None)
