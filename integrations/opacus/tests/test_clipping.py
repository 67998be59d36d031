"""Clipping by operations of torch, as on a GPU: what one example does to the sum, in exact numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer

import dpnoise_opacus as ours
from dpnoise import ParameterError
from dpnoise.sgd import NoisyGradient
from dpnoise_opacus import _clipping
from dpnoise_opacus._clipping import clipped_sums, clipped_sums_on_device

NUMBERS = [0.0, 1e-45, -1e-30, 2.0**-32, 0.3, -0.57735026, 1 / math.sqrt(2), 1.0, -3e19, 3e38, math.inf, math.nan]


def sensitivity(clip_norm, width):
    """That of the noise, in steps of the grid."""
    mechanism = NoisyGradient(clip_norm=clip_norm, noise_multiplier=1.0, expected_batch_size=1.0)
    return Fraction(mechanism.sensitivity(width)) / Fraction(mechanism.granularity)


def length(steps):
    """The square of the L2 norm, in exact integers."""
    return sum(int(step) ** 2 for step in steps)


def tensors(arrays):
    return [torch.from_numpy(array) for array in arrays]


def flat(sums):
    return torch.cat([part.flatten() for part in sums]).numpy()


def on_device(arrays, clip_norm=1.0):
    return flat(clipped_sums_on_device(tensors(arrays), clip_norm)[0])


@pytest.mark.parametrize("clip_norm", [1.0, 0.7, 1e-9])
def test_every_example_changes_the_sum_by_at_most_the_sensitivity(clip_norm):
    """All rows of these numbers, in two tensors: by exactly the same steps in every batch."""
    rows = np.array(list(itertools.product(NUMBERS, repeat=3)), np.float32) * np.float32(clip_norm)
    limit = sensitivity(clip_norm, 3) ** 2
    batch = [np.ascontiguousarray(part) for part in (rows[::-7, :1], rows[::-7, 1:])]
    before = on_device(batch, clip_norm)
    longest = 0
    for row in rows[::3]:
        arrays = [row[np.newaxis, :1], row[np.newaxis, 1:]]
        alone = on_device(arrays, clip_norm)
        for place in (0, len(batch[0])):
            larger = [np.insert(old, place, new, axis=0) for old, new in zip(batch, arrays, strict=True)]
            np.testing.assert_array_equal(on_device(larger, clip_norm) - before, alone)
        longest = max(longest, length(alone))
    granularity = NoisyGradient(clip_norm=clip_norm, noise_multiplier=1.0, expected_batch_size=1.0).granularity
    assert (0.999_999 * clip_norm / granularity) ** 2 < longest <= limit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 5, 33, 1000, 100_000])
def test_no_row_is_longer_than_the_sensitivity(width, dtype):
    """Rows at the norm and far beyond it, whose numbers are equal, or all but one are tiny."""
    even = 1 / math.sqrt(width)
    limit = sensitivity(1.0, width) ** 2
    one = np.eye(1, width)
    shapes = [np.full((1, width), even), np.full((1, width), np.nextafter(even, 2)), one, one + 1e-12, 0.999 * one]
    wild = np.random.default_rng(1).standard_cauchy((3, width))
    for rows in (*shapes, wild):
        for factor in (1.0, 1.5, 1e-6, 1e30, *([1e-300, 1e150] if dtype == np.float64 else [])):
            for row in (rows * factor).astype(dtype):
                assert length(on_device([row[np.newaxis]])) <= limit
    longest = length(on_device([shapes[0].astype(dtype) * 3]))
    assert longest > (1 - 1e-6) ** 2 * 2**64


@pytest.mark.parametrize("numbers", [1, 40, 2**24])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_agrees_with_the_sum_in_memory(dtype, numbers, monkeypatch):
    monkeypatch.setattr(_clipping, "_NUMBERS", numbers)
    generator = np.random.default_rng(1)
    scales = 2.0 ** generator.integers(-20, 20, 100)  # rows of very different norms
    shapes = [(), (3,), (2, 5), (1, 1, 4)]
    wide = [generator.normal(size=(100, *shape)) * scales.reshape(100, *(1 for _ in shape)) for shape in shapes]
    arrays = [array.astype(dtype) for array in wide]
    sums, unclipped = clipped_sums_on_device(tensors(arrays), 0.5)
    in_memory = clipped_sums(tensors(arrays), 0.5)
    for one, other, array in zip(sums, in_memory, arrays, strict=True):
        assert one.dtype == other.dtype == torch.int64
        assert one.shape == other.shape == array.shape[1:]
        # Factors agree but for a part in 2**28.
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=0, atol=100 * 2**4 + 100)
    norms = np.linalg.norm(np.concatenate([array.reshape(100, -1) for array in arrays], axis=1).astype(float), axis=1)
    assert unclipped == (norms <= 0.5).sum()


def test_it_is_exact_where_no_row_is_clipped():
    rows = (np.random.default_rng(2).normal(size=(50, 7)) * 0.1).astype(np.float32)
    step = Fraction(NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0).granularity)
    expected = [sum(round(Fraction(float(x)) / step) for x in column) for column in rows.T]  # half to even
    assert on_device([rows]).tolist() == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e160])
def test_rows_that_are_not_finite_count_as_zeros(bad):
    rows = np.random.default_rng(3).normal(size=(5, 9))
    spoilt = np.insert(rows, 2, 0.001, axis=0)
    spoilt[2, 4] = bad
    sums, unclipped = clipped_sums_on_device(tensors([spoilt[:, :6], spoilt[:, 6:]]), 100.0)
    np.testing.assert_array_equal(flat(sums), on_device([rows], 100.0))
    assert unclipped == 5


@pytest.mark.parametrize("sums_of", [clipped_sums, clipped_sums_on_device])
def test_how_many_rows_differ_is_not_told(sums_of):
    with pytest.raises(ParameterError, match=r"^gradients must have the same number of rows in all arrays$"):
        sums_of([torch.ones(2, 3), torch.ones(5)], 1.0)


def test_empty_batches_and_empty_parameters():
    sums, unclipped = clipped_sums_on_device([torch.zeros(0, 3), torch.zeros(0)], 1.0)
    assert (flat(sums) == 0).all()
    assert unclipped == 0
    assert on_device([np.ones((2, 0)), np.full((2, 1), 0.5)]).tolist() == [2**32]


def test_the_hosts_sum_exceeds_the_sensitivity_and_ours_does_not():
    """Virtual batches of one example: above 1024 every small number is rounded up to twice its size."""
    small = 2.0**-14 * (1 + 2.0**-10)
    changes = {}
    for kind, granularity in (
        (DPOptimizer, 1.0),
        (ours.DPOptimizer, NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0).granularity),
    ):
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = kind(
            torch.optim.SGD([parameter], lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=1
        )
        found = []
        for neighbour in ([], [-1.0]):
            parameter.summed_grad = None
            for row in [*[0.999] * 1025, 1024 - 1025 * 0.999, *neighbour, *[small] * 4096]:
                parameter.grad_sample = torch.tensor([[row]])
                optimizer.clip_and_accumulate()
            found.append(parameter.summed_grad.double().item() * granularity)
        changes[kind] = abs(found[1] - found[0])
    assert changes[ours.DPOptimizer] <= 1.0
    assert changes[DPOptimizer] > 1.2
