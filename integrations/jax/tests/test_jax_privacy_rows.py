"""Rows of integers for JAX Privacy: the norm of each is at most the bound, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpnoise import ParameterError
from dpnoise_jax import jax_privacy as ours

LARGEST = 2**31 - 1


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def squares_with_sum(total: int) -> tuple[int, ...]:
    """Give four numbers whose squares have this sum."""
    if total and total % 4 == 0:
        return tuple(2 * x for x in squares_with_sum(total // 4))
    for a in range(math.isqrt(total), -1, -1):
        for b in range(math.isqrt(total - a * a), -1, -1):
            # The largest third number is enough to try, for some a and b.
            c = math.isqrt(total - a * a - b * b)
            d = math.isqrt(total - a * a - b * b - c * c)
            if a * a + b * b + c * c + d * d == total:
                return a, b, c, d
    raise AssertionError(total)


def signed(row: Any) -> list[np.ndarray]:
    row = np.array(row, np.int64)
    return [row, -row, row * (-1) ** np.arange(len(row))]


def edges() -> Iterator[tuple[np.ndarray, int]]:
    """Give rows and bounds: norms at and beside the bound, and numbers whose squares do not fit."""
    for scale in range(1, 5):
        yield from ((np.array(row), scale) for row in itertools.product(range(-4, 5), repeat=2))
    for scale in (1, 2, 2**15, 2**16 - 1, 2**16, 2**16 + 1, 10**9, LARGEST - 1, LARGEST):
        for total in (scale**2 - 1, scale**2, scale**2 + 1):
            yield from ((row, scale) for row in signed(squares_with_sum(total)))
        for beyond in (scale + 1, 2**31, 2**32, 3_037_000_500, 2**62, 2**63 - 1):
            yield from ((row, scale) for row in signed([0, beyond, 1]))
        yield np.array([-(2**63), 0]), scale
        yield np.array([2**32, 2**32]), scale
        yield np.zeros(0, np.int64), scale
        yield np.zeros(3, np.int64), scale
    # Many numbers, with squares that fill the low part: the norm is 500 times 2**16 - 1, and then one square differs.
    many, scale = np.full(250_000, 2**16 - 1), 500 * (2**16 - 1)
    for by in (-1, 0, 1):
        changed = many.copy()
        changed[1234] += by
        yield changed, scale
    # The sum of these squares is 0 modulo 2**64.
    yield np.full(16, 2**30), LARGEST
    yield np.full(4, LARGEST), LARGEST


EDGES = list(edges())


def is_kept(row: np.ndarray, scale: int) -> bool:
    return sum(int(x) ** 2 for x in row) <= scale**2


EXPECTED = [is_kept(row, scale) for row, scale in EDGES]


def wrong(keeps: Callable[[np.ndarray, int], bool]) -> int:
    return sum(keeps(row, scale) != expected for (row, scale), expected in zip(EDGES, EXPECTED, strict=True))


def keeps(row: np.ndarray, scale: int) -> bool:
    """Say whether our function keeps the row; it changes nothing, or makes all of it zeros."""
    parts = {"a": jnp.asarray(row[:1]), "b": [jnp.asarray(row[1:]).reshape(1, -1), None]}
    found = ours.enforce_norm_bound(parts, scale)
    assert jax.tree.structure(found) == jax.tree.structure(parts)
    flat = np.concatenate([np.ravel(found["a"]), np.ravel(found["b"][0])])
    assert flat.dtype == np.int64
    assert np.array_equal(flat, row) or not flat.any()
    return np.array_equal(flat, row)


def without_carry(row: np.ndarray, scale: int) -> bool:
    if np.any((row > scale) | (row < -scale)):
        return False
    squares = row * row
    high, low = int((squares >> 32).sum()), int((squares & (2**32 - 1)).sum())
    return (high, low) <= divmod(scale**2, 2**32)


FAULTS = {
    "squares added up in float32": lambda row, scale: np.sum(np.float32(row) ** 2) <= np.float32(scale) ** 2,
    "squares added up in float64": lambda row, scale: np.sum(np.float64(row) ** 2) <= float(scale) ** 2,
    "squares modulo 2**64": lambda row, scale: np.sum(row * row) <= scale**2,
    "magnitudes that overflow": lambda row, scale: np.all(np.abs(row) <= scale) and is_kept(row[row > -(2**62)], scale),
    "no carry between the parts": without_carry,
    "below the bound": lambda row, scale: sum(int(x) ** 2 for x in row) < scale**2,
    "one more than the bound": lambda row, scale: is_kept(row, scale) or sum(int(x) ** 2 for x in row) == scale**2 + 1,
    "the largest number alone": lambda row, scale: all(abs(int(x)) <= scale for x in row),
}


def test_rows_up_to_the_bound_are_kept_and_all_others_are_zeros() -> None:
    assert any(EXPECTED)
    assert not all(EXPECTED)
    assert wrong(keeps) == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_other_sums_of_squares_are_noticed(fault: str) -> None:
    with np.errstate(over="ignore"):
        assert wrong(FAULTS[fault]) > 0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_rows_are_looked_at_one_by_one(wrap: Any) -> None:
    chosen = [
        (row, kept) for (row, scale), kept in zip(EDGES, EXPECTED, strict=True) if (scale, len(row)) == (LARGEST, 4)
    ]
    rows, kept = np.array([row for row, _ in chosen]), np.array([kept for _, kept in chosen])
    found = wrap(jax.vmap(lambda row: ours.enforce_norm_bound(row, LARGEST)))(rows)
    np.testing.assert_array_equal(found, np.where(kept[:, np.newaxis], rows, 0))
    assert 0 < kept.sum() < len(kept)


def norms(rows: np.ndarray) -> list[int]:
    return [sum(int(x) ** 2 for x in row) for row in rows]


@pytest.mark.parametrize(("grid_scale", "dtype"), [
    *((scale, np.float32) for scale in (10, 2**22, 10**9, LARGEST)),
    *((LARGEST, dtype) for dtype in (np.float16, jnp.bfloat16, np.float64)),  # all are doubles before they are clipped
])  # fmt: skip
def test_all_clipped_rows_are_kept_and_as_long_as_they_may_be(grid_scale: int, dtype: Any) -> None:
    generator = np.random.default_rng(1)
    given = jnp.asarray(generator.normal(size=(200, 60)) * 10.0 ** generator.uniform(-3, 3, (200, 1)), dtype)
    rows, before = jax.jit(jax.vmap(lambda row: ours.clip_and_round_to_grid(row, 1.5, grid_scale)))(given)
    exact = np.linalg.norm(np.asarray(given, np.float64), axis=1)
    np.testing.assert_allclose(before, exact, rtol=1e-6)
    assert before.dtype == np.float32
    assert rows.dtype == np.int64
    assert max(norms(rows)) <= grid_scale**2
    adjusted = (grid_scale - math.sqrt(60) / 2) * (1 - 2.0**-20)
    factors = np.minimum(grid_scale / 1.5, adjusted / exact)
    expected = np.asarray(given, np.float64) * factors[:, np.newaxis]
    assert np.abs(rows - expected).max() <= 0.5 + 1e-9 * grid_scale
    assert max(norms(rows)) >= (adjusted - math.sqrt(60) / 2) ** 2


def test_a_clip_norm_without_room_would_lose_rows() -> None:
    """As without the part in 2**20: of rows that were clipped in float32, about half are above the bound."""
    rows = np.random.default_rng(2).normal(size=(200, 60)).astype(np.float32)
    clipped = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rounded = jnp.rint(clipped * np.float32(10**9 - math.sqrt(60) / 2)).astype(np.int64)
    kept = jax.vmap(lambda row: ours.enforce_norm_bound(row, 10**9))(rounded)
    assert 20 < np.count_nonzero(np.any(kept != 0, axis=1)) < 180


def test_neighbours_differ_by_no_more_than_the_bound_in_any_order_and_grouping() -> None:
    generator = np.random.default_rng(3)
    gradients = np.float32(generator.normal(size=(64, 5)) * 1e3)
    gradients[7] = 3e38, -3e38, 1.0, 0.0, 1e-40
    make = jax.jit(jax.vmap(lambda row: ours.clip_and_round_to_grid(row, 1.0, 10**9)[0]))
    rows = np.asarray(make(gradients))
    for order in (np.arange(64), generator.permutation(64)):
        whole = rows[order].sum(axis=0)
        np.testing.assert_array_equal(whole, np.asarray(make(gradients[order])).sum(axis=0))
        np.testing.assert_array_equal(whole, np.asarray(make(gradients[order]).reshape(8, 8, 5).sum(0).sum(0)))
    for i in range(64):
        without = gradients.copy()
        without[i] = 0.0
        change = rows.sum(axis=0) - np.asarray(make(without).sum(axis=0))
        assert norms([change])[0] <= 10**18


def test_a_sum_in_floats_moves_by_more_than_the_bound() -> None:
    """4096 rows of one number, and one row fewer: sums in float32 are rounded to multiples of 2**18."""
    row = int(ours.clip_and_round_to_grid(jnp.array([5.0]), 1.0, 10**9)[0][0])
    assert row <= 10**9
    totals = [np.add.accumulate(np.full(n, row, np.float32))[-1] for n in (4095, 4096)]
    assert int(totals[1]) - int(totals[0]) > 10**9


def test_what_is_not_finite_counts_as_zeros() -> None:
    for bad in (np.nan, np.inf, -np.inf, 1e200):
        rounded, _ = ours.clip_and_round_to_grid(jnp.array([1.0, bad, 2.0]), 1.0, 1000)
        assert not np.any(rounded)
    rounded, norm = ours.clip_and_round_to_grid({"a": jnp.zeros(3), "b": (), "c": jnp.zeros((0, 2))}, 1.0, 1)
    assert not np.any(rounded["a"])
    assert norm == 0
    assert ours.clip_and_round_to_grid({}, 1.0, 1)[0] == {}
    huge = jnp.array([3e38, -3e38], np.float32)  # whose squares fit into doubles
    assert ours.clip_and_round_to_grid(huge, 1.0, 1000)[0].tolist() == [707, -707]


def test_bad_rows_are_refused() -> None:
    row, whole = jnp.ones(16), jnp.ones(16, np.int64)
    for given in (0, -1, 2**31, 2**40):
        for call in (
            lambda given: ours.clip_and_round_to_grid(row, 1.0, given),
            partial(ours.enforce_norm_bound, whole),
        ):
            with pytest.raises(
                ParameterError, match=rf"^grid_scale must be an integer from 1 to {LARGEST}, got {given}"
            ):
                call(given)
    for given in (1e3, "1", True, jnp.ones(3, np.int64)):
        with pytest.raises(TypeError, match=r"^grid_scale must be an int, got "):
            ours.enforce_norm_bound(whole, given)
    for scale in (1, 2):
        with pytest.raises(ParameterError, match=rf"^grid_scale must be above 2.0, .* to 16 numbers, got {scale}"):
            ours.clip_and_round_to_grid(row, 1.0, scale)
    ours.clip_and_round_to_grid(row, 1.0, 3)
    for norm in (0.0, -1.0, np.inf, np.nan, 2.0**81, 2.0**-81):
        with pytest.raises(ParameterError, match=r"^l2_clip_norm must be from 2\*\*-80 to 2\*\*80, got "):
            ours.clip_and_round_to_grid(row, norm, 1000)
    for dtype in (np.int64, complex, bool):
        with pytest.raises(TypeError, match=r"^gradient must be real floating-point numbers, got dtype "):
            ours.clip_and_round_to_grid(row.astype(dtype), 1.0, 1000)
    for dtype in (np.float64, np.int32, np.uint64, bool):
        with pytest.raises(TypeError, match=r"^rounded must be integers of dtype int64, got dtype "):
            ours.enforce_norm_bound(row.astype(dtype), 1000)
    many = jax.ShapeDtypeStruct((2**31 + 1,), np.int64)
    with pytest.raises(ParameterError, match=r"^rounded must be of at most 2\*\*31 numbers, got 2147483649"):
        jax.eval_shape(lambda row: ours.enforce_norm_bound(row, 1), many)
    with jax.enable_x64(False):
        for call in (lambda: ours.clip_and_round_to_grid(row, 1.0, 1000), lambda: ours.enforce_norm_bound(whole, 1000)):
            with pytest.raises(ParameterError, match=r"^jax_enable_x64 must be on, "):
                call()
