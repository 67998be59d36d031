"""Batches for Opacus by secure randomness."""

from __future__ import annotations

import itertools
import math

import opacus
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

import dpnoise_opacus as ours

from .models import examples, parts_of


def test_batches_are_poisson_samples_that_no_seed_repeats():
    _, _, loader = parts_of(n=2000, batch_size=100)
    assert isinstance(loader, opacus.data_loader.DPDataLoader)
    assert len(loader) == 20
    torch.manual_seed(1)
    first = list(loader.batch_sampler)
    torch.manual_seed(1)
    second = list(loader.batch_sampler)
    assert first != second
    sizes = [len(batch) for batch in first + second]
    # 80 000 coins of 1/20.
    assert abs(sum(sizes) - 4000) < 7 * math.sqrt(4000)
    assert len(set(sizes)) > 5
    assert all(batch == sorted(set(batch)) for batch in first)


def test_the_order_of_batches_in_secure_mode():
    engine = ours.PrivacyEngine(secure_mode=True)
    loader = DataLoader(TensorDataset(*examples(100)), batch_size=30, shuffle=True)
    _, _, prepared = parts_of(engine, loader=loader, poisson_sampling=False)
    torch.manual_seed(1)
    first = list(prepared.batch_sampler)
    torch.manual_seed(1)
    assert first != list(prepared.batch_sampler)
    assert [len(batch) for batch in first] == [30, 30, 30, 10]
    assert sorted(itertools.chain.from_iterable(first)) == list(range(100))


@pytest.mark.parametrize(
    "sampler",
    [
        WeightedRandomSampler([1.0] * 10, num_samples=10),
        RandomSampler(range(10), replacement=True),
        RandomSampler(range(10), num_samples=4),
        RandomSampler(range(10), num_samples=25),
    ],
    ids=["weighted", "with replacement", "some", "some twice"],
)
def test_samplers_that_secure_mode_does_not_know(sampler):
    loader = DataLoader(TensorDataset(*examples(10)), batch_size=5, sampler=sampler)
    with pytest.raises(ValueError, match="data_loader must have the sampler of shuffle=True"):
        parts_of(ours.PrivacyEngine(secure_mode=True), loader=loader, poisson_sampling=False)


def test_an_order_that_is_fixed_is_refused_in_secure_mode_as_by_the_host():
    loader = DataLoader(TensorDataset(*examples(10)), batch_size=5)
    with pytest.raises(ValueError, match="Target sampler doesn't have generator attribute: nothing to switch"):
        parts_of(ours.PrivacyEngine(secure_mode=True), loader=loader, poisson_sampling=False)
