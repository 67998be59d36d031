"""What users of another library get for changing one line: the host's own noise beside ours, scalars and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benches import moments
from benches.peers import INSTALLED
from benches.targets import OURS
from benches.timing import Entrant

CALLS = 200
SHORT, LONG = 2000, 1_000_000
# A classical Gaussian of epsilon 1 has a scale of the sensitivity for it.
DELTA = 1.25 * np.exp(-0.5)

DIFFPRIVLIB = {
    "Laplace": ({"epsilon": 0.1, "sensitivity": 1.0}, 0.0, moments.laplace(10)),
    "Geometric": ({"epsilon": 0.1}, 0, moments.discrete_laplace(10)),
    "Gaussian": ({"epsilon": 1.0, "delta": DELTA, "sensitivity": 10.0}, 0.0, moments.normal(10)),
    "GaussianDiscrete": ({"epsilon": 0.3, "delta": 1e-3}, 0, None),
}
OPENDP = {
    "make_laplace": (float, "l1_distance", moments.laplace(10)),
    "make_gaussian": (float, "l2_distance", moments.normal(10)),
    "make_laplace, integers": (int, "l1_distance", moments.discrete_laplace(10)),
    "make_gaussian, integers": (int, "l2_distance", moments.discrete_gaussian(10)),
}


def entrants(theirs: str, pairs: dict[str, tuple[Callable[[], Any], int]], expected: Any) -> list[Entrant]:
    """Return entrants by their names, ours first, each with its work and how many samples that makes."""

    def check(samples: Any) -> None:
        if expected is not None:
            moments.check(samples, expected)

    named = {name or theirs: work for name, work in pairs.items()}
    return [Entrant(name, work, check, items) for name, (work, items) in named.items()]


def calls(call: Callable[[Any], Any], value: Any) -> tuple[Callable[[], Any], int]:
    return lambda: [call(value) for _ in range(CALLS)], CALLS


@pytest.mark.skipif("diffprivlib" not in INSTALLED, reason="diffprivlib is not installed")
@pytest.mark.parametrize("column", ["scalar", "array"])
@pytest.mark.parametrize("name", DIFFPRIVLIB)
def test_diffprivlib(race: Any, name: str, column: str) -> None:
    from diffprivlib import mechanisms

    from dpnoise.backends import diffprivlib

    parameters, zero, expected = DIFFPRIVLIB[name]
    host, ours = getattr(mechanisms, name)(**parameters), getattr(diffprivlib, name)(**parameters)
    if expected is None:
        expected = moments.discrete_gaussian(float(host._scale))
    zeros = np.full(LONG, zero)
    mine = calls(ours.randomise, zero) if column == "scalar" else (lambda: ours.randomise_many(zeros), LONG)
    race(
        f"diffprivlib {name}",
        column,
        "ns per sample",
        entrants("diffprivlib, one at a time", {OURS: mine, "": calls(host.randomise, zero)}, expected),
    )


@pytest.mark.skipif("opendp" not in INSTALLED, reason="opendp is not installed")
@pytest.mark.parametrize("column", ["scalar", "vector"])
@pytest.mark.parametrize("name", OPENDP)
def test_opendp(race: Any, name: str, column: str) -> None:
    import opendp.prelude as dp

    from dpnoise.backends import opendp

    dp.enable_features("contrib", "honest-but-curious")
    number, metric, expected = OPENDP[name]
    atom = dp.atom_domain(T=number, nan=False) if number is float else dp.atom_domain(T=number)
    vector = dp.vector_domain(atom), getattr(dp, metric)(T=number)
    space = (atom, dp.absolute_distance(T=number)) if column == "scalar" else vector
    constructor = name.partition(",")[0]
    host, ours = (getattr(library, constructor)(*space, 10.0) for library in (dp.m, opendp))
    if column == "scalar":
        pairs = {OURS: calls(ours, number(0)), "": calls(host, number(0))}
    else:
        long, short = (np.zeros(size, float if number is float else np.int32) for size in (LONG, SHORT))
        pairs = {OURS: (lambda: ours(long), LONG), "": (lambda: host(short), SHORT)}
    race(f"OpenDP {name}", column, "ns per sample", entrants("opendp", pairs, expected), rounds=5)


@pytest.mark.skipif("opendp" not in INSTALLED, reason="opendp is not installed")
def test_opendp_bits(race: Any) -> None:
    import opendp.prelude as dp

    from dpnoise.backends import opendp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    host, ours = (library.make_randomized_response_bitvec(*space, 0.5) for library in (dp.m, opendp))

    def work(measurement: Any, bits: int) -> tuple[Callable[[], Any], int]:
        zeros = bytes(bits // 8)
        return lambda: np.unpackbits(np.frombuffer(measurement(zeros), np.uint8)), bits

    pairs = {OURS: work(ours, LONG), "": work(host, 8 * SHORT)}
    race(
        "OpenDP make_randomized_response_bitvec",
        "bits",
        "ns per bit",
        entrants("opendp", pairs, moments.bernoulli(0.25)),
        rounds=5,
    )
