"""The samplers that are measured, and NumPy's nearest ones, which are neither exact nor secure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benches import moments
from dpnoise import DiscreteGaussian, Gaussian, Laplace, samplers

N = 1_000_000
SCALES = {"0.01": 0.01, "1": 1.0, "10": 10.0, "1000": 1e3, "10^6": 1e6, "2^40": 2.0**40}
MIDDLING = {"1": 1.0, "10": 10.0, "1000": 1e3, "10^6": 1e6}
MEANS = {"1": 1.0, "1000": 1e3, "80000": 8e4}
PROBABILITIES = {"0.5": 0.5, "0.1": 0.1, "0.001": 0.001}
GENERATORS = {
    "PCG64": np.random.Generator(np.random.PCG64()),
    "SFC64": np.random.Generator(np.random.SFC64()),
}


class Sampler(NamedTuple):
    """A sampler of ours, called with a parameter, `size` and `threads`."""

    draw: Callable[..., Any]
    moments: Callable[[float], moments.Moments]
    rivals: Sequence[str]
    """The keys of `NUMPY` to compare it with."""
    parameters: Mapping[str, float] = SCALES
    """By the name of their column."""


@cache
def laplace_mechanism(scale: float) -> Laplace:
    return Laplace(epsilon=1.0, sensitivity=scale)


@cache
def gaussian_mechanism(sigma: float) -> Gaussian:
    return Gaussian(rho=0.5, sensitivity=sigma)


@cache
def discrete_gaussian_mechanism(sigma: float) -> DiscreteGaussian:
    return DiscreteGaussian(rho=0.5 / sigma**2)


ZEROS = np.zeros(N)
INTEGER_ZEROS = np.zeros(N, np.int64)


def release_zeros(scale: float, size: int, threads: int | None = None) -> np.ndarray:
    return laplace_mechanism(scale).release(ZEROS[:size], threads=threads)


def release_gaussian(sigma: float, size: int, threads: int | None = None) -> np.ndarray:
    return gaussian_mechanism(sigma).release(ZEROS[:size], threads=threads)


def release_discrete_gaussian(sigma: float, size: int, threads: int | None = None) -> np.ndarray:
    return discrete_gaussian_mechanism(sigma).release(INTEGER_ZEROS[:size], threads=threads)


def staircase_of_20(epsilon: float, size: int, threads: int | None = None) -> np.ndarray:
    return samplers.staircase(epsilon, 20, 5, size=size, threads=threads)


def share_of_10(scale: float, size: int, threads: int | None = None) -> np.ndarray:
    return samplers.negative_binomial_share(scale, 10, size=size, threads=threads)


SAMPLERS = {
    "Discrete Laplace": Sampler(
        samplers.discrete_laplace, moments.discrete_laplace, ["difference of geometrics", "laplace"]
    ),
    "Discrete Gaussian": Sampler(samplers.discrete_gaussian, moments.discrete_gaussian, ["normal"]),
    "Float Laplace": Sampler(samplers.laplace, moments.laplace, ["laplace"]),
    "Float Gaussian": Sampler(samplers.gaussian, moments.normal, ["normal"]),
    "Laplace mechanism": Sampler(release_zeros, moments.laplace, ["laplace"]),
    "Gaussian mechanism": Sampler(release_gaussian, moments.normal, ["normal"]),
    "Discrete Gaussian mechanism": Sampler(release_discrete_gaussian, moments.discrete_gaussian, ["normal"], MIDDLING),
    "Geometric": Sampler(samplers.geometric, moments.geometric, ["geometric"]),
    "Skellam": Sampler(samplers.skellam, moments.skellam, ["difference of Poissons"], MEANS),
    "Staircase of 20": Sampler(staircase_of_20, moments.staircase_of_20, ["laplace"], {"1": 1.0, "8": 8.0}),
    "Negative binomial share of 10": Sampler(
        share_of_10, moments.share_of_10, ["difference of negative binomials"], {"1": 1.0, "10": 10.0}
    ),
    "Bernoulli": Sampler(samplers.bernoulli, moments.bernoulli, ["random() < p"], PROBABILITIES),
}


def geometric(generator: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Sample 1, 2, 3, ..."""
    return generator.geometric(-np.expm1(-1 / scale), size)


def negative_binomial(generator: np.random.Generator, scale: float, size: int) -> np.ndarray:
    return generator.negative_binomial(0.1, -np.expm1(-1 / scale), size)


NUMPY = {
    "difference of geometrics": (
        lambda generator, scale, size: geometric(generator, scale, size) - geometric(generator, scale, size),
        moments.discrete_laplace,
    ),
    "difference of Poissons": (
        lambda generator, mu, size: generator.poisson(mu, size) - generator.poisson(mu, size),
        moments.skellam,
    ),
    "difference of negative binomials": (
        lambda generator, scale, size: (
            negative_binomial(generator, scale, size) - negative_binomial(generator, scale, size)
        ),
        moments.share_of_10,
    ),
    "laplace": (lambda generator, scale, size: generator.laplace(0, scale, size), moments.laplace),
    "normal": (lambda generator, sigma, size: generator.normal(0, sigma, size), moments.normal),
    "geometric": (geometric, moments.geometric_from_one),
    "random() < p": (lambda generator, p, size: generator.random(size) < p, moments.bernoulli),
}
