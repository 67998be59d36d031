"""Mechanisms of the central model: a query's value in, a differentially private release out.

`Laplace` and `DiscreteLaplace` add noise, `TruncatedDiscreteLaplace` bounded noise, `Staircase` noise
for one integer, and `Skellam` and `NegativeBinomialShares` shares of noise; `Exponential`, `ReportNoisyMax` and
`TopK` choose among candidates by their scores; `AboveThreshold` releases which values of a stream are above a
threshold; `PrivateSelection` makes several private runs and releases the best.
`TruncatedGeometric` says which groups may be released; `NoiseBuffer` releases single numbers fast.

A mechanism is immutable and checks its parameters when it is made. Every one has ``release``, ``epsilon``, ``delta``,
``relation`` and ``cost``, and ``error``, which bounds how far a release is off or says why nothing does.
"""

from dpnoise import _calls
from dpnoise.mechanisms._above_threshold import AboveThreshold, AboveThresholdRun
from dpnoise.mechanisms._gaussian import DiscreteGaussian, Gaussian
from dpnoise.mechanisms._laplace import DiscreteLaplace, Laplace
from dpnoise.mechanisms._mechanism import Mechanism
from dpnoise.mechanisms._partition_selection import NoiseBuffer, TruncatedGeometric
from dpnoise.mechanisms._private_selection import PrivateSelection
from dpnoise.mechanisms._selection import Exponential, PermuteAndFlip, ReportNoisyMax, TopK
from dpnoise.mechanisms._tables import NegativeBinomialShares, Skellam, Staircase
from dpnoise.mechanisms._truncated import TruncatedDiscreteGaussian, TruncatedDiscreteLaplace

__all__ = [
    "AboveThreshold",
    "AboveThresholdRun",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NegativeBinomialShares",
    "NoiseBuffer",
    "PermuteAndFlip",
    "PrivateSelection",
    "ReportNoisyMax",
    "Skellam",
    "Staircase",
    "TopK",
    "TruncatedDiscreteGaussian",
    "TruncatedDiscreteLaplace",
    "TruncatedGeometric",
]

_calls.explain(__name__)
