"""The common path of the samplers: parameters in, samples out."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise._calls import REQUIRED, misfit
from dpnoise._draws import output, sampler_of
from dpnoise._types import Rng, Size

Item = TypeVar("Item", bound=np.generic)


def draw(
    distribution: str,
    parameters: tuple[Any, ...],
    given: tuple[Any, ...],
    named: dict[str, Any],
    dtype: type[Item],
    size: Size | None,
    out: NDArray[Item] | None,
    threads: int | None,
    rng: Rng,
) -> Any:
    if given or named:
        raise misfit(_function(distribution), given and (*parameters, *given), named)
    try:
        sampler = sampler_of(distribution, parameters)
    except TypeError:
        parts = [part for one in parameters for part in (one if type(one) is tuple else (one,))]
        if any(part is REQUIRED for part in parts):
            function = _function(distribution)
            by_name = zip(signature(function).parameters, parts, strict=False)
            raise misfit(function, (), {name: part for name, part in by_name if part is not REQUIRED}) from None
        raise
    if size is None and out is None:
        return sampler.sample(threads, rng)
    array = output(size, out, dtype)
    sampler.fill(array, threads, rng)
    return array


def _function(distribution: str) -> Any:
    return getattr(import_module("dpnoise.samplers"), distribution)
