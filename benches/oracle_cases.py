"""Frequency oracles, and the published settings at which `benches.oracles` measures them.

The settings are those of Feldman et al. (2022), arXiv 2203.00194 (`benches.published`), and of LDP^3, Balioglu, Khodaie
and Gursoy (2025), arXiv 2507.05872, as far as its data can be had. Inputs are drawn by their definitions, or Adult.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def protocol(name: str, **parameters: Any) -> Callable[..., Any]:
    """Return what makes one of our protocols. The pages read these cases without dpnoise."""

    def make(**more: Any) -> Any:
        from dpnoise import local

        return getattr(local, name)(**parameters, **more)

    return make


class Oracle(NamedTuple):
    """A protocol of ours."""

    make: Callable[..., Any]
    peer: str = ""
    """What `benches.peers` calls it."""
    largest: int = 1 << 24
    """The largest k that it is measured with."""
    reason: str = ""
    """Why not more."""


BITS = "a report has k bits"
ORACLES = {
    "ProjectiveGeometryResponse": Oracle(protocol("ProjectiveGeometryResponse")),
    "SubsetSelection": Oracle(protocol("SubsetSelection"), "Subset selection", 1 << 16, BITS),
    "LocalHashing": Oracle(protocol("LocalHashing"), "Local hashing", 1 << 16, "its collector takes n k steps"),
    "HadamardResponse": Oracle(protocol("HadamardResponse"), "Hadamard response of Acharya et al."),
    "OptimizedUnaryEncoding": Oracle(protocol("OptimizedUnaryEncoding"), "Unary encoding", 1 << 16, BITS),
    "SymmetricUnaryEncoding": Oracle(protocol("SymmetricUnaryEncoding"), "Symmetric unary encoding", 1 << 16, BITS),
    "GeneralizedRandomizedResponse": Oracle(
        protocol("GeneralizedRandomizedResponse"), "Generalised randomised response"
    ),
}
LDP3_ORACLES = ORACLES | {"LocalHashing(g=2)": Oracle(protocol("LocalHashing", g=2))}
"""LDP^3 has binary local hashing, too."""
POSTS = ("base-cut", "norm", "norm-mul", "norm-sub", "norm-cut")
NO_POST = "none"
"""How counts are made consistent, or are not: then they are unbiased. LDP^3 also has Base-Pos, Power and Power-NS."""


class Case(NamedTuple):
    """What people have, and the epsilon of a report."""

    input: str
    k: int
    n: int
    epsilon: float
    libraries: bool = False
    """Whether other libraries are measured, too."""

    def __str__(self) -> str:
        return f"{self.input}, k = {self.k:,}, n = {self.n:,}, epsilon = {self.epsilon:g}"

    def values(self) -> np.ndarray:
        """Return the value of every person."""
        return INPUTS[self.input.split()[0]](self)


def zipf(case: Case) -> np.ndarray:
    """Draw each value with a probability that falls with its rank as rank**-s."""
    weights = np.arange(1, case.k + 1) ** -float(case.input.split()[1])
    return np.random.default_rng(1).choice(case.k, case.n, p=weights / weights.sum())


def junta(case: Case) -> np.ndarray:
    """Spread people evenly over the first few values."""
    return np.arange(case.n) % int(case.input.split()[1])


def gaussian(case: Case) -> np.ndarray:
    """Draw values of a normal distribution in the middle of the range, six standard deviations wide."""
    drawn = np.random.default_rng(1).normal(case.k / 2, case.k / 6, case.n)
    return np.clip(drawn, 0, case.k - 1).astype(np.int64)


def adult(case: Case) -> np.ndarray:
    """Return the occupations, or the years above 17, of the people of Adult."""
    from dpnoise import datasets

    return datasets.adult_occupations()[0] if case.input == "occupation" else datasets.adult_ages() - 17


INPUTS: dict[str, Callable[[Case], np.ndarray]] = {
    "zipf": zipf,
    "junta": junta,
    "spike": lambda case: np.zeros(case.n, np.int64),
    "occupation": adult,
    "age": adult,
    "gaussian": gaussian,
}

PUBLISHED = {
    **{
        name: Case(name, 22_000, 1000, 5.0, libraries=name == "zipf 1.0")
        for name in (
            *(f"zipf {s}" for s in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0)),
            *(f"junta {size}" for size in (4, 16, 64, 256, 1024)),
        )
    },
    "spike1": Case("spike", 1024, 1000, 5.0),
    "spike5": Case("spike", 22_000, 50_000, 5.0),
    "spike7": Case("spike", 22_000, 10_000, 5.0),
    "spike8": Case("spike", 22_000, 10_000, 1.386),
}
"""The settings of Feldman et al. by the names of their files."""
EPSILONS = (1.0, 3.0, 5.0, 7.0)
LARGE = [Case("zipf 1.0", 22_000, 100_000, epsilon, libraries=epsilon == 5) for epsilon in EPSILONS]
LARGEST = [Case("zipf 1.0", 1_000_000, 1_000_000, epsilon) for epsilon in EPSILONS]
LDP3 = [
    Case(name, k, n, epsilon, libraries=name == "age" and epsilon == 1)
    for name, k, n in (("occupation", 15, 32_561), ("age", 74, 32_561), ("gaussian", 100, 100_000))
    for epsilon in (1.0, 4.0)
]


MSE, MSE_ERROR, LAW = "MSE/n", "standard error of MSE/n", "MSE/n by the law"
MAXIMUM, MAXIMUM_ERROR = "maximal error", "standard error of the maximal error"
MSE_SCALED = "MSE/n, norm-mul"
"""With the post-processing that one of the libraries always does."""
BYTES, CLIENT, COLLECTOR = "bytes", "client, ns per report", "collector, ms"
"""The columns of the table of a case, whose title is the case."""


def by_post_title(case: Case, what: str) -> str:
    """Return the title of the table of an error by the way of post-processing."""
    return f"{case}: {what} by post-processing"
