"""A small model made private by Opacus: its data, parameters and gradients."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import dpnoise_opacus as ours
from dpnoise import hazmat

ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": 5.0,
}
CLIPPINGS = {"flat": {}, "per_layer": {"clipping": "per_layer", "max_grad_norm": [0.5, 0.1]}, "adaptive": ADAPTIVE}


def examples(n: int = 60, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 4, generator=generator)
    return features, (features.sum(1) > 0).long()


def parts_of(engine=None, *, n=60, batch_size=20, loader=None, lr=0.1, **changes):
    """A linear model, its optimizer and its loader, made private."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = loader or DataLoader(TensorDataset(*examples(n)), batch_size=batch_size)
    parameters = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, **changes}
    engine = engine or ours.PrivacyEngine()
    return engine.make_private(module=model, optimizer=optimizer, data_loader=loader, **parameters)


def backward(model, features, labels, reduction="mean"):
    nn.functional.cross_entropy(model(features), labels, reduction=reduction).backward()


def gradient_of(batch, **changes):
    """The gradients of a step on a batch, with known noise."""
    model, optimizer, _ = parts_of(noise_generator=hazmat.SeededRng(1), **changes)
    backward(model, *batch, changes.get("loss_reduction", "mean"))
    optimizer.step()
    return torch.cat([p.grad.flatten() for p in model.parameters()])
