"""What users of Opacus get for changing one line: the noise of a step, and the sum of clipped gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from opacus import optimizers as host
from opacus.optimizers.optimizer import _generate_noise

import dpnoise_opacus as ours
from benches import moments
from benches.entrants import LONG
from benches.machine import OURS, TWO_THREADS
from benches.timing import Entrant
from dpnoise.sgd import NoisyGradient

# The parameters of a small model, and how many examples a batch has.
MODELS = {
    "64 x 1 001 000": ([(1000, 1000), (1000,)], 64),
    "256 x 101 100": ([(1000, 100), (100,), (1000,)], 256),
}
PARAMETERS = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 1}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """What is compared with one thread of ours."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def optimizer_of(library: Any, shapes: list[tuple[int, ...]]) -> Any:
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    return library.DPOptimizer(torch.optim.SGD(parameters, lr=0.1), **PARAMETERS)


def test_noise(race: Any) -> None:
    """Of a million numbers in single precision, for a sum of zeros."""
    sums, reference = np.zeros(LONG, np.int64), torch.zeros(LONG)
    mechanism = NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0)
    ways: dict[str, Callable[[], Any]] = {
        OURS: partial(mechanism.add_noise, sums, threads=1),
        TWO_THREADS: partial(mechanism.add_noise, sums, threads=2),
        "opacus": partial(_generate_noise, 1.0, reference),
        "opacus, secure_mode with bits that are not": partial(_generate_noise, 1.0, reference, secure_mode=True),
        "torch.normal": partial(torch.normal, 0.0, 1.0, (LONG,)),
    }
    check = partial(moments.check, expected=moments.normal(1))
    race(
        "Noise for Opacus", "float32", "ns per sample", [Entrant(name, way, check, LONG) for name, way in ways.items()]
    )


def test_secure_mode_of_the_host() -> None:
    """It cannot be timed."""
    from opacus import PrivacyEngine

    with pytest.raises(ImportError, match="you must install the torchcsprng package"):
        PrivacyEngine(secure_mode=True)


@pytest.mark.parametrize("model", MODELS)
def test_clip_and_accumulate(race: Any, model: str) -> None:
    shapes, n = MODELS[model]
    gradients = [torch.randn(n, *shape) for shape in shapes]
    rows = np.concatenate([gradient.numpy().reshape(n, -1) for gradient in gradients], axis=1)
    expected = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=0)

    def check(found: Any) -> None:
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)

    def summed(optimizer: Any) -> Any:
        for p, gradient in zip(optimizer.params, gradients, strict=True):
            p.grad_sample, p.summed_grad = gradient.view_as(gradient), None
        optimizer.clip_and_accumulate()
        return torch.cat([p.summed_grad.flatten() for p in optimizer.params])

    def by_numpy() -> Any:
        factors = np.minimum(1, 1 / np.sqrt(np.einsum("ij,ij->i", rows, rows)))
        return factors @ rows

    # Ours are whole steps of 2**-32.
    mine = partial(summed, optimizer_of(ours, shapes))
    entrants = [
        Entrant(TWO_THREADS, mine, lambda found: check(found.numpy() * 2.0**-32), rows.nbytes),
        Entrant("opacus", partial(summed, optimizer_of(host, shapes)), check, rows.nbytes),
        Entrant("NumPy, einsum and matmul", by_numpy, check, rows.nbytes),
    ]
    race("Clip and accumulate for Opacus", model, "GB/s", entrants, rounds=5, rate=True)
