"""The time of a single call, for a scalar and for short arrays, beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice, repeat
from typing import Any

import numpy as np
import pytest

from benches.machine import OURS
from benches.noise import GENERATORS
from benches.timing import Entrant
from dpnoise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, samplers

CALLS = 100
ROUNDS = 25
# Numbers that differ, for calls that cannot use the tables of another one; enough for all rounds and the warm-up.
FACTORS = [1 + i * 2.0**-30 for i in range(1, CALLS * (ROUNDS + 1) + 1)]

SIZES = {"scalar": None, "n = 1": 1, "n = 10": 10, "n = 100": 100, "n = 1000": 1000}
NUMPY = GENERATORS["PCG64"]

SAMPLERS = {
    "discrete Laplace": (samplers.discrete_laplace, 10.0, NUMPY.laplace, (0.0, 10.0)),
    "discrete Gaussian": (samplers.discrete_gaussian, 10.0, NUMPY.normal, (0.0, 10.0)),
    "float Laplace": (samplers.laplace, 10.0, NUMPY.laplace, (0.0, 10.0)),
    "float Gaussian": (samplers.gaussian, 10.0, NUMPY.normal, (0.0, 10.0)),
    "geometric": (samplers.geometric, 10.0, NUMPY.geometric, (0.1,)),
    "Bernoulli": (samplers.bernoulli, 0.1, NUMPY.binomial, (1, 0.1)),
}
# By a factor of what they spend, and what NumPy draws.
MECHANISMS = {
    "Laplace mechanism": (lambda factor: Laplace(epsilon=0.1 * factor), float, NUMPY.laplace),
    "discrete Laplace mechanism": (lambda factor: DiscreteLaplace(epsilon=0.1 * factor), int, NUMPY.laplace),
    "Gaussian mechanism": (lambda factor: Gaussian(rho=0.005 * factor), float, NUMPY.normal),
    "discrete Gaussian mechanism": (lambda factor: DiscreteGaussian(rho=0.005 * factor), int, NUMPY.normal),
}

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def entrant(name: str, size: int | None, calls: Iterable[Call]) -> Entrant:
    """Return the entrant that makes the next hundred of `calls`."""
    calls = iter(calls)

    def work() -> Any:
        for function, arguments, named in islice(calls, CALLS):
            result = function(*arguments, **named)
        return result

    def check(result: Any) -> None:
        assert np.isfinite(result).all()
        assert np.shape(result) == (() if size is None else (size,))

    return Entrant(name, work, check, CALLS)


@pytest.mark.parametrize("column", SIZES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sampler(race: Any, sampler: str, column: str) -> None:
    size = SIZES[column]
    shape = {"size": size}
    draw, parameter, numpy_draw, numpy_parameters = SAMPLERS[sampler]
    entrants = [
        entrant(OURS, size, repeat((draw, (parameter,), shape))),
        entrant(f"{OURS}, new parameter", size, [(draw, (parameter * factor,), shape) for factor in FACTORS]),
        entrant(f"NumPy {numpy_draw.__name__}, PCG64", size, repeat((numpy_draw, numpy_parameters, shape))),
    ]
    race(f"Calls: {sampler}", column, "ns", entrants, ROUNDS)


@pytest.mark.parametrize("column", SIZES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanism(race: Any, mechanism: str, column: str) -> None:
    size = SIZES[column]
    make, number, numpy_draw = MECHANISMS[mechanism]
    value = number(0) if size is None else np.zeros(size, number)
    entrants = [
        entrant(OURS, size, repeat((make(1).release, (value,), {}))),
        entrant(f"{OURS}, new length", size, [(make(factor).release, (value,), {}) for factor in FACTORS]),
        entrant(f"NumPy {numpy_draw.__name__}, PCG64", size, repeat((numpy_draw, (0.0, 10.0), {"size": size}))),
    ]
    race(f"Calls: {mechanism}", column, "ns", entrants, ROUNDS)
