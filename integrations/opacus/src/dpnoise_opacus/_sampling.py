"""Poisson subsampling and shuffling with secure randomness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from opacus.utils import uniform_sampler as samplers
from torch.utils import data

from dpnoise import SecureBitGenerator
from dpnoise.sgd import poisson_sample


class PoissonSampler(samplers.UniformWithReplacementSampler):
    """Opacus's ``UniformWithReplacementSampler`` with exact, secret coins."""

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.steps):
            yield poisson_sample(self.num_samples, self.sample_rate).tolist()


class DistributedPoissonSampler(samplers.DistributedUniformWithReplacementSampler):
    """Opacus's ``DistributedUniformWithReplacementSampler`` with such coins, which gives empty batches, too.

    Otherwise workers would make different numbers of steps, which would reveal the members of a batch.
    """

    def __iter__(self) -> Iterator[list[int]]:
        indices = np.arange(self.total_size)
        if self.shuffle:  # with a public seed that all workers share
            generator = torch.Generator().manual_seed(self.shuffle_seed + self.epoch)
            indices = torch.randperm(self.total_size, generator=generator).numpy()
        own = indices[self.rank :: self.num_replicas]
        for _ in range(self.num_batches):
            yield own[poisson_sample(len(own), self.sample_rate)].tolist()


class Shuffler(data.Sampler):
    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        yield from np.random.Generator(SecureBitGenerator()).permutation(self._size).tolist()


def secure(loader: Any) -> Any:
    """Make a data loader of the host draw its batches with secure randomness."""
    sampler = loader.batch_sampler
    if isinstance(sampler, samplers.UniformWithReplacementSampler):
        ours = PoissonSampler(num_samples=sampler.num_samples, sample_rate=sampler.sample_rate, steps=sampler.steps)
    elif isinstance(sampler, samplers.DistributedUniformWithReplacementSampler):
        ours = DistributedPoissonSampler(
            total_size=sampler.total_size,
            sample_rate=sampler.sample_rate,
            shuffle=sampler.shuffle,
            shuffle_seed=sampler.shuffle_seed,
            steps=sampler.num_batches,
        )
    elif type(sampler) is data.BatchSampler and _shuffles_all(sampler.sampler):
        ours = data.BatchSampler(Shuffler(len(sampler.sampler)), sampler.batch_size, sampler.drop_last)
    else:
        raise ValueError("data_loader must have the sampler of shuffle=True in secure_mode, which replaces no other")
    # A loader refuses a new sampler because iterations may have changed the old one; there were none yet.
    object.__setattr__(loader, "batch_sampler", ours)
    return loader


def _shuffles_all(sampler: Any) -> bool:
    """Say whether this is the sampler of ``shuffle=True``: each example once, in a random order."""
    return type(sampler) is data.RandomSampler and not sampler.replacement and len(sampler) == len(sampler.data_source)
