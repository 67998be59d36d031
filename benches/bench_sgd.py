"""Per-example clipping and summation, and correlated noise, beside NumPy and beside reading the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest

from benches.timing import Entrant
from dpnoise import sgd

CLIP_NORM = 1.0
# An eighth of the rows of a batch of 1024 for the widest, so that gradients and copies of them fit in 4 GB.
SHAPES = {
    "128 x 1 000 000": (128, 1_000_000),
    "1024 x 100 000": (1024, 100_000),
    "4096 x 10 000": (4096, 10_000),
    "65 536 x 100": (65_536, 100),
}
DTYPES = {"float32": np.float32, "float64": np.float64}
COLUMNS = [(shape, dtype) for shape in SHAPES for dtype in DTYPES]


@lru_cache(maxsize=1)
def gradients_of(shape: str, dtype: str) -> np.ndarray:
    """Rows of normal numbers, half of which are shorter than the norm."""
    n, d = SHAPES[shape]
    rows = np.random.default_rng(1).standard_normal((n, d), np.float32)
    rows *= np.where(np.arange(n) % 2, 3.0, 0.3)[:, np.newaxis].astype(np.float32) / np.float32(np.sqrt(d))
    return rows.astype(DTYPES[dtype], copy=False)


@lru_cache(maxsize=1)
def expected(shape: str, dtype: str) -> np.ndarray:
    return by_einsum_and_matmul(shape, dtype)


def clip_and_sum(shape: str, dtype: str, threads: int) -> np.ndarray:
    return sgd.clip_and_sum(gradients_of(shape, dtype), clip_norm=CLIP_NORM, threads=threads)


def factors(gradients: np.ndarray) -> np.ndarray:
    norms = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    return np.minimum(1, CLIP_NORM / norms).astype(gradients.dtype)


def by_einsum_and_matmul(shape: str, dtype: str) -> np.ndarray:
    gradients = gradients_of(shape, dtype)
    return factors(gradients) @ gradients


def by_einsum(shape: str, dtype: str) -> np.ndarray:
    gradients = gradients_of(shape, dtype)
    return np.einsum("i,ij->j", factors(gradients), gradients)


def as_people_write_it(shape: str, dtype: str) -> np.ndarray:
    gradients = gradients_of(shape, dtype)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients * np.minimum(1, CLIP_NORM / norms).astype(gradients.dtype)).sum(axis=0)


def check(found: np.ndarray, shape: str, dtype: str) -> None:
    np.testing.assert_allclose(found, expected(shape, dtype), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("shape", "dtype"), COLUMNS)
def test_clip_and_sum(race: Any, ours: Callable[..., list[Entrant]], shape: str, dtype: str) -> None:
    gradients = gradients_of(shape, dtype)
    work = partial(check, shape=shape, dtype=dtype)
    words = gradients.view(np.uint64)
    largest = int(words.max())
    numpy_ways = {
        "NumPy, einsum and matmul": by_einsum_and_matmul,
        "NumPy, einsum twice": by_einsum,
        "NumPy, norm, product and sum": as_people_write_it,
    }
    entrants = [
        *ours(partial(clip_and_sum, shape, dtype), work, gradients.nbytes),
        Entrant("reading the memory", words.max, partial(np.testing.assert_equal, desired=largest), gradients.nbytes),
        *(Entrant(name, partial(way, shape, dtype), work, gradients.nbytes) for name, way in numpy_ways.items()),
    ]
    race("Clip and sum", f"{shape} {dtype}", "GB/s", entrants, rounds=5, rate=True)


PARAMETERS = 1_000_000
BANDS = {"1 band": 1, "4 bands": 4, "16 bands": 16, "64 bands": 64}


def coefficients_of(bands: int) -> np.ndarray:
    return 1 / np.sqrt(1 + np.arange(bands))


@lru_cache
def run_of(bands: int) -> sgd.CorrelatedGradientRun:
    return sgd.CorrelatedGradient(
        strategy=sgd.BandedToeplitz(coefficients_of(bands), steps=1000),
        clip_norm=CLIP_NORM,
        noise_multiplier=1.0,
        expected_batch_size=1.0,
        participation=sgd.SingleEpoch(),
    ).start()


def correlated_step(bands: int, threads: int) -> np.ndarray:
    """A step of noise alone."""
    return run_of(bands).step(np.empty((0, PARAMETERS), np.float32), threads=threads)


def check_noise(found: np.ndarray) -> None:
    assert 0.5 < np.std(found) < 9
    assert np.isfinite(found).all()


@pytest.mark.parametrize("column", BANDS)
def test_correlated_noise(race: Any, ours: Callable[..., list[Entrant]], column: str) -> None:
    """NumPy makes it in floats, as one product with the noise of the steps before."""
    bands = BANDS[column]
    history = np.random.default_rng(1).standard_normal((bands - 1, PARAMETERS), np.float32)
    words = np.ones(bands * PARAMETERS, np.uint64)
    normals = np.random.default_rng(1).standard_normal

    def by_numpy() -> np.ndarray:
        return normals(PARAMETERS, np.float32) - coefficients_of(bands)[1:].astype(np.float32) @ history

    entrants = [
        *ours(partial(correlated_step, bands), check_noise, PARAMETERS),
        Entrant("reading the memory", words.max, partial(np.testing.assert_equal, desired=1), PARAMETERS),
        Entrant("NumPy, floats", by_numpy, check_noise, PARAMETERS),
    ]
    race("Correlated noise", column, "ns per parameter", entrants, rounds=5)


def test_a_fast_wrong_answer_is_refused() -> None:
    shape, dtype = "65 536 x 100", "float32"
    check(clip_and_sum(shape, dtype, threads=1), shape, dtype)
    with pytest.raises(AssertionError):
        check(gradients_of(shape, dtype).sum(axis=0), shape, dtype)
