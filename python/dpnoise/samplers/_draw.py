"""The common path of the samplers: parameters in, samples out."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import Size, output
from dpnoise._native import ScriptedRng, SeededRng

Scale = int | float | Fraction
Rng = SeededRng | ScriptedRng | None
Distribution = Literal["discrete_laplace", "discrete_gaussian", "geometric", "laplace", "gaussian", "bernoulli"]

Item = TypeVar("Item", bound=np.generic)


# Tables are a function of the public parameters, and take longer to compute than a few samples.
@lru_cache(maxsize=256, typed=True)
def _cached(distribution: Distribution, *parameters: Any) -> _native.Sampler:
    make = getattr(_native.Sampler, distribution)
    sampler: _native.Sampler = make(*parameters)
    return sampler


def sampler_of(distribution: Distribution, *parameters: Any) -> _native.Sampler:
    try:
        return _cached(distribution, *parameters)
    except TypeError:  # perhaps only not hashable: the constructor's error names the problem
        return _cached.__wrapped__(distribution, *parameters)


def draw(
    distribution: Distribution,
    parameters: tuple[Any, ...],
    dtype: type[Item],
    size: Size | None,
    out: NDArray[Item] | None,
    threads: int | None,
    rng: Rng,
) -> Any:
    sampler = sampler_of(distribution, *parameters)
    if size is None and out is None:
        return sampler.sample(threads, rng)
    array = output(size, out, dtype)
    sampler.fill(array, threads, rng)
    return array
