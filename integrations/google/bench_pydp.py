"""What users of PyDP get for changing one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydp.algorithms import numerical_mechanisms, partition_selection

from benches import moments
from benches.entrants import LONG, calls, entrants
from benches.machine import OURS
from dpnoise_google import pydp

MECHANISMS = {
    "LaplaceMechanism": ((0.1,), moments.laplace(10)),
    "GaussianMechanism": ((1.0, 1e-6, 10.0), None),
}
VALUES = {"": 0.0, ", integers": 0}


@pytest.mark.parametrize("column", ["scalar", "array"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_pydp(race: Any, name: str, value: str, column: str) -> None:
    parameters, expected = MECHANISMS[name]
    host, ours = (getattr(library, name)(*parameters) for library in (numerical_mechanisms, pydp))
    if expected is None:
        expected = moments.normal(host.std)
    zero = VALUES[value]
    zeros = np.full(LONG, zero)
    mine = calls(ours.add_noise, zero) if column == "scalar" else (lambda: ours.add_noise(zeros), LONG)
    race(
        f"PyDP {name}{value}",
        column,
        "ns per sample",
        entrants("python-dp, one at a time", {OURS: mine, "": calls(host.add_noise, zero)}, expected),
    )


@pytest.mark.parametrize("name", ["truncated_geometric", "laplace", "gaussian"])
def test_pydp_partition_selection(race: Any, name: str) -> None:
    host, ours = (library.create_partition_strategy(name, 1.0, 1e-5, 1) for library in (partition_selection, pydp))
    people = next(people for people in range(100) if host.probability_of_keep(people) > 0.3)
    pairs = {OURS: calls(ours.should_keep, people), "": calls(host.should_keep, people)}
    expected = moments.bernoulli(host.probability_of_keep(people))
    race("PyDP partition selection", name, "ns per group", entrants("python-dp", pairs, expected))
