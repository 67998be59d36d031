"""A million samples of each sampler: every instruction set, two threads, NumPy's samplers and other libraries'."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from benches import moments, noise, peers
from benches.noise import N
from benches.timing import Entrant

# What other libraries take microseconds for is measured with fewer samples, at fewer scales.
PEER_SAMPLES = 1000
PEER_SCALES = (1, 10, 1000)

CASES = [(title, column) for title, sampler in noise.SAMPLERS.items() for column in sampler.parameters]


def numpy_entrants(sampler: noise.Sampler, parameter: float) -> list[Entrant]:
    return [
        Entrant(f"NumPy {rival}, {bits}", partial(draw, generator, parameter, N), check(expected(parameter)), N)
        for rival in sampler.rivals
        for draw, expected in [noise.NUMPY[rival]]
        for bits, generator in noise.GENERATORS.items()
    ]


def peer_entrants(title: str, scale: float, expected: moments.Moments) -> list[Entrant]:
    return [
        Entrant(peer, partial(makers[title](scale), PEER_SAMPLES), check(expected), PEER_SAMPLES)
        for peer, makers in peers.INSTALLED.items()
        if title in makers and scale in PEER_SCALES
    ]


def check(expected: moments.Moments) -> partial[None]:
    return partial(moments.check, expected=expected)


@pytest.mark.parametrize(("title", "column"), CASES)
def test_noise(race: Any, ours: Any, title: str, column: str) -> None:
    sampler = noise.SAMPLERS[title]
    parameter = sampler.parameters[column]
    expected = sampler.moments(parameter)
    entrants = [
        *ours(partial(sampler.draw, parameter, size=N), check(expected), N),
        *numpy_entrants(sampler, parameter),
        *peer_entrants(title, parameter, expected),
    ]
    race(title, column, "ns per sample", entrants)


@pytest.mark.parametrize(
    "wrong",
    [lambda x: 1.02 * x, lambda x: x + 0.02, np.abs, lambda x: 0 * x, lambda x: np.where(x == 0, 1, x)],
    ids=["scale", "shift", "sign", "zeros", "one value"],
)
def test_a_fast_wrong_answer_is_refused(wrong: Any) -> None:
    sampler = noise.SAMPLERS["Discrete Laplace"]
    samples, check_samples = sampler.draw(1, size=N), check(sampler.moments(1))
    check_samples(samples)
    with pytest.raises(AssertionError):
        check_samples(wrong(samples))
