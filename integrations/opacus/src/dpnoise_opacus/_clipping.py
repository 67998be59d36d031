"""Clipped sums of per-sample gradients in whole steps of a grid; tensors stay on their device."""

from __future__ import annotations

from typing import Any, Final

import torch

from dpnoise import ParameterError
from dpnoise.sgd import NoisyGradient

Tensor = Any  # torch.Tensor

# Devices process rows as doubles, this many numbers at a time.
_NUMBERS: Final = 2**24
# A factor further below 1 than all roundings of doubles together can raise a norm.
_SHRINKAGE: Final = 1 - 2.0**-48
# Rows with a larger number count as zeros, as rows with a NaN do.
_LARGEST: Final = 2.0**511
_SMALLEST_EXPONENT: Final = -1000


def mechanism(clip_norm: float, noise_multiplier: float) -> NoisyGradient:
    """Make the mechanism of sums that are not divided."""
    return NoisyGradient(clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=1.0)


def clipped_sums(gradients: list[Tensor], clip_norm: float) -> list[Tensor]:
    """Clip each example over all tensors together, and give their sums as tensors of int64, in steps of the grid."""
    if any(tensor.device.type == "cuda" for tensor in gradients):
        return clipped_sums_on_device(gradients, clip_norm)[0]
    arrays = [_in_memory(tensor) for tensor in gradients]
    sums = torch.from_numpy(mechanism(clip_norm, 1.0).clipped_sum(arrays))
    return [
        part.reshape(tensor.shape[1:]).to(tensor.device)
        for part, tensor in zip(sums.split([_width(tensor) for tensor in gradients]), gradients, strict=True)
    ]


def clipped_sums_on_device(gradients: list[Tensor], clip_norm: float) -> tuple[list[Tensor], int]:
    """Clip and add up with operations of torch, and count the examples that were not clipped.

    The steps of an example depend on nothing but its own gradient: over its numbers, too, integers are added up.
    """
    if len(set(map(len, gradients))) > 1:
        raise ParameterError("gradients must have the same number of rows in all arrays")  # their number is private
    sums = [torch.zeros(tensor.shape[1:], dtype=torch.int64, device=tensor.device) for tensor in gradients]
    unit = 1 / mechanism(clip_norm, 1.0).granularity  # exact, a power of two
    width, unclipped = sum(map(_width, gradients)), 0
    several = max(1, _NUMBERS // width)
    for first in range(0, len(gradients[0]), several):
        rows = [tensor[first : first + several].unsqueeze(-1).flatten(1).double() for tensor in gradients]
        device = rows[0].device
        largest = torch.stack([row.abs().amax(1).to(device) for row in rows if row.shape[1]]).amax(0)
        finite = largest < _LARGEST  # and no NaN
        rows = [torch.where(finite.to(row.device)[:, None], row, 0.0) for row in rows]
        norms = _norms(rows, torch.where(finite, largest, 0.0), width)
        unclipped += int((finite & (norms <= clip_norm)).sum())
        factors = torch.clamp(clip_norm * unit * _SHRINKAGE / norms, max=unit)
        for total, row in zip(sums, rows, strict=True):
            total += (row * factors.to(row.device)[:, None]).round().long().sum(0).view_as(total)
    return sums, unclipped


def _norms(rows: list[Tensor], largest: Tensor, width: int) -> Tensor:
    """Return the norm of each example, rounded up but for less than `_SHRINKAGE` allows."""
    scales = torch.exp2(-torch.frexp(largest).exponent.clamp(min=_SMALLEST_EXPONENT).double())
    # Squares of numbers up to 1, in steps of a size whose sum stays below 2**63, rounded up.
    steps = 2.0 ** (62 - width.bit_length())
    squares = torch.zeros(len(largest), dtype=torch.int64, device=largest.device)
    for row in rows:
        scaled = row * scales.to(row.device)[:, None]
        squares += (scaled.square() * steps).ceil().long().sum(1).to(largest.device)
    return (squares.double() / steps).sqrt() / scales


def _width(tensor: Tensor) -> int:
    width: int = tensor.shape[1:].numel()
    return width


def _in_memory(tensor: Tensor) -> Any:
    wide = tensor.dtype == torch.float64
    return tensor.detach().to("cpu", torch.float64 if wide else torch.float32).numpy()
