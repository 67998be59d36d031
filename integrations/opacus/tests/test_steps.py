"""Steps of Opacus's optimizers with sums and noise of dpnoise, bit by bit: batches, clippings and workers."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn

import dpnoise_opacus as ours
from dpnoise import hazmat
from dpnoise.sgd import NoisyGradient, noise_multipliers

from .models import ADAPTIVE, CLIPPINGS, backward, examples, gradient_of, parts_of

# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_the_order_of_a_batch_does_not_matter(clipping):
    features, labels = examples(32)
    expected = gradient_of((features, labels), **CLIPPINGS[clipping])
    turned = gradient_of((features.flip(0), labels.flip(0)), **CLIPPINGS[clipping])
    torch.testing.assert_close(turned, expected, rtol=0, atol=0)


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_batches_in_parts_make_the_step_of_the_whole(clipping):
    """Only integers are added up; the last bits of an example's gradient may depend on the size of its batch."""
    features, labels = examples(32)
    changes = {"loss_reduction": "sum", **CLIPPINGS[clipping]}
    expected = gradient_of((features, labels), **changes)
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **changes)
    for part in (slice(0, 8), slice(8, 9), slice(9, 9), slice(9, 32)):
        optimizer.zero_grad()
        optimizer.signal_skip_step(part.stop < 32)
        backward(model, features[part], labels[part], "sum")
        optimizer.step()
        assert all(p.summed_grad.dtype == torch.int64 for p in model.parameters())
    found = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_virtual_steps():
    engine = ours.PrivacyEngine()
    model, optimizer, loader = parts_of(engine, n=200, batch_size=50)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
        for features, labels in small:
            assert len(features) <= 8
            optimizer.zero_grad()
            backward(model, features, labels)
            optimizer.step()
    assert engine.accountant.history == [(1.0, 0.25, 4)]


@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_an_empty_batch_makes_a_step_of_noise(clipping):
    features, labels = examples(0)
    found = gradient_of((features, labels), **CLIPPINGS[clipping])
    assert (found != 0).all()
    assert found.abs().max() < 10 / 20  # of the expected batch size


def test_batches_may_be_empty():
    engine = ours.PrivacyEngine()
    model, optimizer, loader = parts_of(engine, n=10, batch_size=1)  # every third is
    sizes = []
    for features, labels in itertools.chain.from_iterable([loader] * 20):
        optimizer.zero_grad()
        backward(model, features, labels)
        weights = next(model.parameters())
        before = weights.clone()
        optimizer.step()
        sizes.append(len(features))
        assert (weights != before).all()
    assert 0 in sizes
    assert sum(steps for _, _, steps in engine.accountant.history) == len(sizes) == 200


def test_what_is_frozen_before_a_step_stays_as_it_is():
    """Its gradient has no noise, and the base optimizer would follow it."""
    model, optimizer, _ = parts_of()
    weight = next(model.parameters())
    before = weight.detach().clone()
    backward(model, *examples())
    assert weight.grad.abs().max() > 0
    weight.requires_grad_(False)
    optimizer.step()
    torch.testing.assert_close(weight, before, rtol=0, atol=0)


def test_an_example_that_is_not_finite_counts_as_zeros():
    features, labels = examples(8)
    features[3] = math.nan
    kept = [i for i in range(8) if i != 3]
    found = gradient_of((features, labels), loss_reduction="sum")
    torch.testing.assert_close(found, gradient_of((features[kept], labels[kept]), loss_reduction="sum"), rtol=0, atol=0)


def test_gradients_are_divided_as_the_loss_is_reduced():
    zero = torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)
    mean, whole = gradient_of(zero), gradient_of(zero, loss_reduction="sum")
    torch.testing.assert_close(mean, whole / 20)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_gradients_have_the_dtype_of_the_parameters(dtype):
    parameter = nn.Parameter(torch.zeros(3, 2, dtype=dtype))
    optimizer = ours.DPOptimizer(
        torch.optim.SGD([parameter], lr=0.1),
        noise_multiplier=0.5,
        max_grad_norm=1.0,
        expected_batch_size=4,
        generator=hazmat.SeededRng(1),
    )
    parameter.grad_sample = torch.randn(5, 3, 2).to(dtype)
    rows = parameter.grad_sample.double().numpy()
    optimizer.step()
    assert parameter.grad.dtype == dtype
    assert parameter.grad.shape == (3, 2)
    wide = np.float64 if dtype == torch.float64 else np.float32
    mechanism = NoisyGradient(clip_norm=1.0, noise_multiplier=0.5, expected_batch_size=1)
    noisy = mechanism.add_noise(mechanism.clipped_sum([rows.astype(wide)]), dtype=wide, rng=hazmat.SeededRng(1))
    expected = torch.from_numpy(noisy).to(dtype).view(3, 2) / 4
    torch.testing.assert_close(parameter.grad, expected, rtol=0, atol=0)


def test_layers_are_clipped_apart_and_have_the_same_noise():
    parameters = [nn.Parameter(torch.zeros(size)) for size in (50_000, 50_000)]
    optimizer = ours.DPPerLayerOptimizer(
        torch.optim.SGD(parameters, lr=0.1), noise_multiplier=2.0, max_grad_norm=[3.0, 4.0], expected_batch_size=1
    )
    for p, norm in zip(parameters, (3.0, 4.0), strict=True):
        p.grad_sample = torch.full((1, 50_000), 1e6)
        p.expected = norm / math.sqrt(50_000)
    optimizer.step()
    for p in parameters:
        noise = p.grad - p.expected
        # 50 000 normal numbers: their deviation is off by 7 of its standard errors once in 10**11 times.
        assert abs(noise.std().item() / (2.0 * 5.0) - 1) < 7 / math.sqrt(2 * 50_000)
        assert abs(noise.mean().item()) < 7 * 10 / math.sqrt(50_000)


def test_the_noise_of_a_layer_is_its_share():
    """A parameter of the noise, and so exact: the losses of all layers make that of the whole."""
    _, optimizer, _ = parts_of(**CLIPPINGS["per_layer"])
    assert optimizer._noise_multipliers() == noise_multipliers([0.5, 0.1], [8, 2], 1.0)


# --- adaptive clipping --------------------------------------------------------------------------------------------


def test_the_count_is_noisy_and_divided_by_a_public_number():
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **ADAPTIVE)
    seen = []
    for _ in range(200):
        for p in model.parameters():
            p.grad_sample = torch.cat([torch.full((3, *p.shape), 1e6), torch.zeros(5, *p.shape)])
        optimizer.max_grad_norm = 1.0
        optimizer.step()
        assert optimizer.sample_size == 20
        seen.append(optimizer.unclipped_num.item())
        optimizer.zero_grad()
    # Five were not clipped and three were, of twenty expected: 11, and noise of a standard deviation of 5.
    assert all(np.mod(seen, 2.0**-21) == 0)
    assert abs(np.mean(seen) - 11) < 7 * 5 / math.sqrt(200)
    assert abs(np.std(seen) / 5 - 1) < 7 / math.sqrt(400)


def test_gradient_and_count_lose_no_more_than_is_claimed():
    for noise_multiplier, deviation in ((1.0, 5.0), (9.99, 5.0), (0.3, 0.2)):
        _, optimizer, _ = parts_of(**{**ADAPTIVE, "noise_multiplier": noise_multiplier, "unclipped_num_std": deviation})
        (found,) = optimizer._noise_multipliers()
        loss = 1 / Fraction(found) ** 2 + 1 / Fraction(2 * deviation) ** 2
        assert 0.999 / Fraction(noise_multiplier) ** 2 < loss <= 1 / Fraction(noise_multiplier) ** 2


def test_the_norm_adapts():
    model, optimizer, loader = parts_of(n=400, batch_size=100, **{**ADAPTIVE, "min_clipbound": 1e-4})
    for batch in itertools.chain.from_iterable([loader] * 10):
        optimizer.zero_grad()
        backward(model, *batch)
        optimizer.step()
    assert 0.05 < float(optimizer.max_grad_norm) < 0.95


# --- several workers ----------------------------------------------------------------------------------------------

WORKER = """
import sys
import torch
from torch import nn
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from torch.utils.data import DataLoader, TensorDataset
from dpnoise import hazmat
import dpnoise_opacus as ours

folder, rank = sys.argv[1], int(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
features, labels = torch.load(f"{folder}/examples")
part = slice(0, 12) if rank == 0 else slice(12, 32)
found = {}
for name, changes in torch.load(f"{folder}/clippings").items():
    torch.manual_seed(0)
    model = DPDDP(nn.Linear(4, 2))
    model, optimizer, loader = ours.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(features, labels), batch_size=20),
        noise_generator=hazmat.SeededRng(1),
        **changes,
    )
    loss = nn.functional.cross_entropy(model(features[part]), labels[part])
    loss.backward()
    optimizer.step()
    found[name] = torch.cat([p.grad.flatten() for p in model.parameters()])
rare = type(loader.batch_sampler)(total_size=60, sample_rate=1 / 200)
torch.save((found, list(loader.batch_sampler), [len(batch) for batch in rare]), f"{folder}/found.{rank}")
torch.distributed.destroy_process_group()
"""


def test_two_workers_make_the_step_of_one(tmp_path):
    features, labels = examples(60)
    torch.save((features, labels), tmp_path / "examples")
    clippings = {name: CLIPPINGS[name] for name in ("flat", "per_layer")}
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    torch.save({name: {**parameters, **changes} for name, changes in clippings.items()}, tmp_path / "clippings")
    program = [sys.executable, "-W", "ignore", "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen([*program, str(rank)]) for rank in range(2)]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    (first, batches, rare), (second, others, _) = (torch.load(tmp_path / f"found.{rank}") for rank in range(2))
    for name, changes in clippings.items():
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=0)
        # Another batch size makes other roundings of each gradient.
        whole = gradient_of((features[:32], labels[:32]), **changes)
        torch.testing.assert_close(first[name], whole, rtol=0, atol=1e-6)
    assert len(batches) == len(others) == 3
    assert not set(itertools.chain(*batches)) & set(itertools.chain(*others))
    # 200 batches with an example each in seven.
    assert 0 in rare
    assert len(rare) == 200
