"""Noise, coins and bytes: exact distribution, constant time, in bulk.

| function | samples |
| --- | --- |
| `discrete_laplace` | int64, P(x) proportional to exp(-abs(x) / scale) |
| `discrete_gaussian` | int64, P(x) proportional to exp(-x**2 / (2 * sigma**2)) |
| `geometric` | int64, P(x) proportional to exp(-x / scale), x = 0, 1, 2, ... |
| `skellam` | int64, the difference of two Poisson variables |
| `staircase` | int64, P(x) falls in steps |
| `negative_binomial_share` | int64, shares whose sum is discrete Laplace |
| `laplace`, `gaussian` | float64, the same over the multiples of a granularity |
| `bernoulli` | bool, P(True) = p |
| `random_bytes` | bytes |

A scale may be an int, a float or a ``Fraction`` and is taken at its exact value. Each call draws a fresh key from the
operating system for each thread and wipes it afterwards.

Time, memory addresses and allocations do not depend on the samples, except in events whose probability the threat model
states. This holds for arrays, and not for the conversion of a sample to a Python number.
"""

from dpnoise import _calls
from dpnoise.samplers._bernoulli import bernoulli
from dpnoise.samplers._bytes import random_bytes
from dpnoise.samplers._integers import discrete_gaussian, discrete_laplace, geometric
from dpnoise.samplers._reals import gaussian, laplace
from dpnoise.samplers._tables import negative_binomial_share, skellam, staircase

__all__ = [
    "bernoulli",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian",
    "geometric",
    "laplace",
    "negative_binomial_share",
    "random_bytes",
    "skellam",
    "staircase",
]

_calls.explain(__name__)
