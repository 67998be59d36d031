"""The common path of the samplers: parameters in, samples out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._draws import output, sampler_of
from dpnoise._types import Rng, Size

Scale = int | float | Fraction

Item = TypeVar("Item", bound=np.generic)


def draw(
    distribution: str,
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
