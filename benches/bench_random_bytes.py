"""Random bytes, beside NumPy's and the operating system's."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
import pytest

from benches import moments
from benches.machine import OURS
from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import samplers

SIZES = {"1 KiB": 2**10, "64 KiB": 2**16, "1 MiB": 2**20, "16 MiB": 2**24}
IN_ALL = 2**24


def draw(source: Callable[[int], bytes], size: int) -> bytes:
    """Draw 16 MiB in pieces of `size` bytes, and return the last."""
    for _ in range(IN_ALL // size):
        piece = source(size)
    return piece


def check(piece: bytes, size: int) -> None:
    assert len(piece) == size
    for end in (piece[: 2**15], piece[-(2**15) :]):
        bits = np.unpackbits(np.frombuffer(end, np.uint8))
        moments.check(bits, moments.bernoulli(0.5))


@pytest.mark.parametrize("column", SIZES)
def test_random_bytes(race: Any, other_instruction_sets: dict[str, Executor], column: str) -> None:
    size = SIZES[column]

    def entrant(name: str, source: Callable[[int], bytes], process: Executor | None = None) -> Entrant:
        return Entrant(name, partial(draw, source, size), partial(check, size=size), IN_ALL, process)

    entrants = [
        entrant(OURS, samplers.random_bytes),
        *(entrant(name, samplers.random_bytes, process) for name, process in other_instruction_sets.items()),
        entrant("operating system", os.urandom),
        *(entrant(f"NumPy, {bits}", generator.bytes) for bits, generator in GENERATORS.items()),
    ]
    race("Random bytes", column, "GB/s", entrants, rate=True)
