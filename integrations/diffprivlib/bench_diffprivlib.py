"""What users of diffprivlib get for changing one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diffprivlib import mechanisms

import dpnoise_diffprivlib
from benches import moments
from benches.entrants import LONG, calls, entrants
from benches.machine import OURS

# A classical Gaussian of epsilon 1 has a scale of the sensitivity for it.
DELTA = 1.25 * np.exp(-0.5)

DIFFPRIVLIB = {
    "Laplace": ({"epsilon": 0.1, "sensitivity": 1.0}, 0.0, moments.laplace(10)),
    "Geometric": ({"epsilon": 0.1}, 0, moments.discrete_laplace(10)),
    "Gaussian": ({"epsilon": 1.0, "delta": DELTA, "sensitivity": 10.0}, 0.0, moments.normal(10)),
    "GaussianDiscrete": ({"epsilon": 0.3, "delta": 1e-3}, 0, None),
}


@pytest.mark.parametrize("column", ["scalar", "array"])
@pytest.mark.parametrize("name", DIFFPRIVLIB)
def test_diffprivlib(race: Any, name: str, column: str) -> None:
    parameters, zero, expected = DIFFPRIVLIB[name]
    host, ours = (getattr(library, name)(**parameters) for library in (mechanisms, dpnoise_diffprivlib))
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
