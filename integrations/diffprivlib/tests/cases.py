"""Mechanisms of diffprivlib that dpnoise replaces, with parameters and a value for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import dpnoise_diffprivlib as ours


class Case(NamedTuple):
    """Parameters, and what to randomise."""

    parameters: dict[str, Any]
    value: Any = None


BOUNDS = {"lower": -1, "upper": 9}
UTILITY = [1.0, 2.0, 3.0, 2.5]

ARRAYS = {
    "Laplace": Case({"epsilon": 0.7, "delta": 0.1, "sensitivity": 1.5}, 1),
    "LaplaceTruncated": Case({"epsilon": 0.7, "sensitivity": 1.5, **BOUNDS}, 1),
    "LaplaceFolded": Case({"epsilon": 0.7, "sensitivity": 1.5, **BOUNDS}, 1),
    "LaplaceBoundedDomain": Case({"epsilon": 0.7, "delta": 0.01, "sensitivity": 1.5, **BOUNDS}, 1),
    "Snapping": Case({"epsilon": 0.7, "sensitivity": 1.5, "lower": -10, "upper": 20}, 1),
    "Geometric": Case({"epsilon": 0.7, "sensitivity": 2}, 1),
    "GeometricTruncated": Case({"epsilon": 0.7, "sensitivity": 2, **BOUNDS}, 1),
    "GeometricFolded": Case({"epsilon": 0.7, "sensitivity": 2, "lower": -1.5, "upper": 9}, 1),
    "Gaussian": Case({"epsilon": 0.7, "delta": 1e-3, "sensitivity": 2.0}, 1),
    "GaussianAnalytic": Case({"epsilon": 1.7, "delta": 1e-3, "sensitivity": 2.0}, 1),
    "GaussianDiscrete": Case({"epsilon": 1.7, "delta": 1e-3, "sensitivity": 2}, 1),
    "Binary": Case({"epsilon": 1.0, "value0": "no", "value1": "yes"}, "no"),
}
CHOICES = {
    "Exponential": Case({"epsilon": 2.0, "sensitivity": 1.0, "utility": UTILITY, "measure": [0.5, 0.1, 0.1, 0.0]}),
    "PermuteAndFlip": Case({"epsilon": 2.0, "sensitivity": 1.0, "utility": UTILITY, "monotonic": True}),
}
ALL = ARRAYS | CHOICES


def make(name, library=ours, **changes):
    """Make the mechanism of this name with its parameters, but for those that are given."""
    return getattr(library, name)(**{**ALL[name].parameters, **changes})
