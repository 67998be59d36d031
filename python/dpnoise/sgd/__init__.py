"""Differentially private stochastic gradient descent (DP-SGD), with exact noise.

- `poisson_sample`: the examples of a batch, by Poisson subsampling.
- `clip_and_sum`: the gradient of each example clipped to a norm, and their sum. By itself it is not private.
- `NoisyGradient`: the same with noise: one step.
- `BandedToeplitz`: noise that is correlated over steps, so that sums of steps have less of it; `SingleEpoch`,
  `MinSeparation` and `CyclicPoisson` say in which steps an example takes part.
- `CorrelatedGradient`: a run of steps whose noise is correlated, so that sums over steps have less of it, as
  `BandedToeplitz` says; each example takes part as `SingleEpoch`, `MinSeparation` or `CyclicPoisson` says.
- `FloatSums`, `IntegerSums`: such noise for sums in floating point or of integers, which another library has made.
- `epsilon_spent`, `noise_multiplier_for`: the cost of a number of steps, and the noise for an epsilon.
- `noise_multipliers`: the noise of layers that are clipped to norms of their own.

Neighbours differ by one example, which is added or removed. The size of a batch is private; the expected batch size,
the sampling rate and the number of steps are public.
"""

from dpnoise import _calls
from dpnoise.sgd._accounting import epsilon_spent, noise_multiplier_for
from dpnoise.sgd._correlated_gradient import CorrelatedGradient, CorrelatedGradientRun
from dpnoise.sgd._gradients import clip_and_sum
from dpnoise.sgd._noisy_gradient import NoisyGradient, noise_multipliers
from dpnoise.sgd._sampling import poisson_sample
from dpnoise.sgd._strategy import BandedToeplitz, CyclicPoisson, MinSeparation, SingleEpoch
from dpnoise.sgd._sums import FloatSums, IntegerSums

__all__ = [
    "BandedToeplitz",
    "CorrelatedGradient",
    "CorrelatedGradientRun",
    "CyclicPoisson",
    "FloatSums",
    "IntegerSums",
    "MinSeparation",
    "NoisyGradient",
    "SingleEpoch",
    "clip_and_sum",
    "epsilon_spent",
    "noise_multiplier_for",
    "noise_multipliers",
    "poisson_sample",
]

_calls.explain(__name__)
