"""The noise of Opacus's optimizers against that of ours."""

import pytest
import torch
from host_tests.two_samples import ALARM, N, p_value, planted
from opacus import optimizers as host

import dpnoise_opacus as ours

CLIPPINGS = {"DPOptimizer": 2.0, "DPPerLayerOptimizer": [2.0]}


def noise(library, name, factor=1.0):
    """The gradient of a step on a batch without examples, in single precision."""
    parameter = torch.nn.Parameter(torch.zeros(N))
    optimizer = getattr(library, name)(
        torch.optim.SGD([parameter], lr=0.1),
        noise_multiplier=1.5 * factor,
        max_grad_norm=CLIPPINGS[name],
        expected_batch_size=1,
    )
    parameter.grad_sample = torch.zeros(0, N)
    optimizer.step()
    return parameter.grad.numpy()


@pytest.mark.parametrize("name", CLIPPINGS)
def test_distribution_is_the_same(name):
    expected = noise(host, name)
    assert p_value(noise(ours, name), expected) > ALARM
    assert p_value(noise(ours, name, planted(expected.size)), expected) < ALARM
