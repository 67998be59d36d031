"""What others published of frequency oracles, to stand beside what `benches.oracles` measures.

Feldman, Nelson, Nguyen and Talwar (2022), "Private frequency estimation via projective geometry", arXiv 2203.00194. The
figures are means of the result files of its repository, github.com/minilek/private_frequency_oracles, commit f043e0c,
300 collections each. Their Hadamard response is that of Acharya, Sun and Zhang (2019), ours that of Bassily and Smith
(2015), so these two are not compared.
"""

from __future__ import annotations

from typing import NamedTuple


class Figures(NamedTuple):
    """Errors of one protocol for one input."""

    mse: float
    """The mean over collections and values of the squared error of a count, per person."""
    mse_error: float
    """The standard error of that mean."""
    maximum: float
    """The mean of the largest error of a collection, in people."""
    maximum_error: float


PGR, SS = "ProjectiveGeometryResponse", "SubsetSelection"
FELDMAN_2022: dict[str, dict[str, Figures]] = {
    "zipf 0.1": {PGR: Figures(0.02729, 1.5e-5, 25.43, 0.13), SS: Figures(0.02731, 1.6e-5, 25.83, 0.14)},
    "zipf 0.5": {PGR: Figures(0.02729, 1.4e-5, 25.72, 0.13), SS: Figures(0.02731, 1.6e-5, 25.79, 0.14)},
    "zipf 1.0": {PGR: Figures(0.02725, 1.9e-5, 25.79, 0.14), SS: Figures(0.02731, 1.6e-5, 25.89, 0.15)},
    "zipf 1.5": {PGR: Figures(0.02723, 3.9e-5, 27.47, 0.30), SS: Figures(0.02731, 1.6e-5, 27.36, 0.28)},
    "zipf 2.0": {PGR: Figures(0.02736, 6.3e-5, 30.02, 0.55), SS: Figures(0.02731, 1.6e-5, 30.14, 0.48)},
    "zipf 3.0": {PGR: Figures(0.02731, 7.8e-5, 31.60, 0.71), SS: Figures(0.02731, 1.7e-5, 32.02, 0.63)},
    "junta 4": {PGR: Figures(0.02720, 4.9e-5, 29.07, 0.36), SS: Figures(0.02731, 1.6e-5, 29.24, 0.32)},
    "junta 16": {PGR: Figures(0.02726, 2.8e-5, 25.78, 0.13), SS: Figures(0.02731, 1.6e-5, 26.14, 0.15)},
    "junta 64": {PGR: Figures(0.02728, 2.0e-5, 25.63, 0.13), SS: Figures(0.02731, 1.6e-5, 25.90, 0.15)},
    "junta 256": {PGR: Figures(0.02729, 1.7e-5, 25.89, 0.15), SS: Figures(0.02731, 1.6e-5, 25.83, 0.15)},
    "junta 1024": {PGR: Figures(0.02726, 1.6e-5, 25.52, 0.13), SS: Figures(0.02731, 1.6e-5, 25.81, 0.14)},
    "spike1": {PGR: Figures(0.02777, 4.5e-4, 29.34, 0.97), SS: Figures(0.02617, 9.6e-5, 29.91, 0.86)},
    "spike5": {PGR: Figures(0.02757, 9.7e-5, 222.6, 6.3)},
    "spike7": {PGR: Figures(0.02727, 9.1e-5, 100.0, 2.6), SS: Figures(0.02728, 1.6e-5, 118.1, 3.6)},
    "spike8": {PGR: Figures(1.777, 1.2e-3, 560.9, 2.3), SS: Figures(1.829, 1.1e-3, 3325.0, 10.1)},
}
"""By the name of the input in the repository, and by our name of the protocol."""

FELDMAN_2022_BY_EPSILON: dict[str, dict[float, float]] = {
    PGR: {
        2: 0.7459,
        2.286: 0.5052,
        2.571: 0.3624,
        2.857: 0.2592,
        3.143: 0.1903,
        3.429: 0.1396,
        3.714: 0.1021,
        4: 0.07603,
    },
    SS: {
        2: 0.7221,
        2.286: 0.5045,
        2.571: 0.3587,
        2.857: 0.2586,
        3.143: 0.1890,
        3.429: 0.1394,
        3.714: 0.1033,
        4: 0.07648,
    },
}
"""The squared error per person by epsilon for the input zipf 1.0, 10 collections each."""
