"""What users of OpenDP get for changing one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benches import moments
from benches.entrants import LONG, SHORT, calls, entrants
from benches.machine import OURS

OPENDP = {
    "make_laplace": (float, "l1_distance", moments.laplace(10)),
    "make_gaussian": (float, "l2_distance", moments.normal(10)),
    "make_laplace, integers": (int, "l1_distance", moments.discrete_laplace(10)),
    "make_gaussian, integers": (int, "l2_distance", moments.discrete_gaussian(10)),
}


@pytest.mark.parametrize("column", ["scalar", "vector"])
@pytest.mark.parametrize("name", OPENDP)
def test_opendp(race: Any, name: str, column: str) -> None:
    import opendp.prelude as dp

    import dpnoise_opendp

    dp.enable_features("contrib", "honest-but-curious")
    number, metric, expected = OPENDP[name]
    atom = dp.atom_domain(T=number, nan=False) if number is float else dp.atom_domain(T=number)
    vector = dp.vector_domain(atom), getattr(dp, metric)(T=number)
    space = (atom, dp.absolute_distance(T=number)) if column == "scalar" else vector
    constructor = name.partition(",")[0]
    host, ours = (getattr(library, constructor)(*space, 10.0) for library in (dp.m, dpnoise_opendp))
    if column == "scalar":
        pairs = {OURS: calls(ours, number(0)), "": calls(host, number(0))}
    else:
        long, short = (np.zeros(size, float if number is float else np.int32) for size in (LONG, SHORT))
        pairs = {OURS: (lambda: ours(long), LONG), "": (lambda: host(short), SHORT)}
    race(f"OpenDP {name}", column, "ns per sample", entrants("opendp", pairs, expected), rounds=5)


def test_opendp_bits(race: Any) -> None:
    import opendp.prelude as dp

    import dpnoise_opendp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    host, ours = (library.make_randomized_response_bitvec(*space, 0.5) for library in (dp.m, dpnoise_opendp))

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
