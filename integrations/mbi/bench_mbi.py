"""Marginals for models of mbi: counts and exact noise, beside the host's counts with NumPy's noise; and choices."""

from __future__ import annotations

from typing import Any

import mbi
import numpy as np

from benches import moments
from benches.entrants import CALLS, LONG, entrants
from benches.machine import OURS
from dpnoise_mbi import choose, measure

THEIRS = "mbi with NumPy"


def test_marginal(race: Any) -> None:
    """One marginal of a million numbers, of a data set without rows: most cells of a large marginal are empty."""
    data = mbi.Dataset({"cell": np.zeros(0, np.int64)}, mbi.Domain(["cell"], [LONG]))
    generator = np.random.default_rng()
    pairs = {
        OURS: (lambda: measure(data, [("cell",)], rho=1 / 200)[0].noisy_measurement, LONG),
        THEIRS: (lambda: data.datavector() + generator.normal(0, 10, LONG), LONG),
    }
    race("Marginals for mbi", "a million", "ns per number", entrants("", pairs, moments.normal(10)), 9)


def test_choice(race: Any) -> None:
    """Among 20 marginals of 100,000 rows, of a model with one table."""
    names = [f"a{number}" for number in range(20)]
    domain = mbi.Domain(names, [4] * 20)
    generator = np.random.default_rng()
    data = mbi.Dataset({name: generator.integers(0, 4, 100_000) for name in names}, domain)
    cliques = [(name,) for name in names]
    model = mbi.CliqueVector(domain, cliques, {clique: data.project(clique) for clique in cliques})

    def in_floats() -> int:
        differences = [data.project(clique).datavector() - model.project(clique).datavector() for clique in cliques]
        scores = np.array([np.abs(each).sum() for each in differences])
        odds = np.exp(0.5 * (scores - scores.max()))
        return int(generator.choice(len(odds), p=odds / odds.sum()))

    pairs = {
        OURS: (lambda: [choose(data, cliques, model, epsilon=1.0) for _ in range(CALLS // 20)], CALLS // 20),
        THEIRS: (lambda: [in_floats() for _ in range(CALLS // 20)], CALLS // 20),
    }
    race("Choices for mbi", "20 marginals", "ns per choice", entrants("", pairs, None), 5)
