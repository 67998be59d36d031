"""NumPy's own sampling on the bits of `SecureBitGenerator`, beside the bits of its generators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from benches import moments
from benches.machine import OURS
from benches.noise import GENERATORS, N
from benches.timing import Entrant
from dpnoise import SecureBitGenerator

SOURCES = {
    OURS: np.random.Generator(SecureBitGenerator()),
    **{f"NumPy, {bits}": generator for bits, generator in GENERATORS.items()},
}
SAMPLERS: dict[str, tuple[Callable[[np.random.Generator], np.ndarray], moments.Moments]] = {
    "random": (lambda generator: generator.random(N), (1 / 2, 1 / 3)),
    "standard_normal": (lambda generator: generator.standard_normal(N), moments.normal(1)),
    "laplace": (lambda generator: generator.laplace(size=N), moments.laplace(1)),
    "integers below 2^32": (lambda generator: generator.integers(2**32, size=N), (2**31, 2**64 / 3)),
}


@pytest.mark.parametrize("column", SAMPLERS)
def test_numpy_generator(race: Any, column: str) -> None:
    sampler, expected = SAMPLERS[column]
    check = partial(moments.check, expected=expected)
    entrants = [Entrant(name, partial(sampler, generator), check, N) for name, generator in SOURCES.items()]
    race("NumPy's generator", column, "ns per sample", entrants)
