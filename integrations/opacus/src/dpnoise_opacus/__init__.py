"""Training with Opacus and exact noise: `PrivacyEngine` in place of Opacus's, and the optimizers that it makes.

A program imports it instead: ``from dpnoise_opacus import PrivacyEngine``. Arguments, checks, errors and the
accountant are the host's. The basis of the guarantee differs:

- Clipped gradients are added up as integers, on a grid, so that no rounding raises the sensitivity.
- Noise is discrete Gaussian on that grid, of ``noise_multiplier`` times the sensitivity on the grid, from the operating
  system's randomness.
- Batches are exact Poisson subsamples. Each makes a noisy step, also an empty one.

So ``secure_mode=True`` needs no other package and has the same noise. Seeds are refused.

Neighbours differ by one example, added or removed. The number of examples in the data set is public here and for the
host; the size of a batch is private.
"""

from dpnoise_opacus._engine import PrivacyEngine
from dpnoise_opacus._optimizers import (
    AdaClipDPOptimizer,
    DistributedDPOptimizer,
    DPOptimizer,
    DPPerLayerOptimizer,
    SimpleDistributedPerLayerOptimizer,
)

__all__ = [
    "AdaClipDPOptimizer",
    "DPOptimizer",
    "DPPerLayerOptimizer",
    "DistributedDPOptimizer",
    "PrivacyEngine",
    "SimpleDistributedPerLayerOptimizer",
]
