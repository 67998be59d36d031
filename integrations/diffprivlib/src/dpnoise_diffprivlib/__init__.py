"""Mechanisms of diffprivlib with exact, secure noise: its names, its parameters, its checks and its errors.

Each class is a subclass of diffprivlib's class of the same name. They differ in the source of the noise, can be
pickled, and have ``randomise_many``, for arrays. `patched` and `install` make diffprivlib's tools and models use them.

Real values are rounded to the grid of `dpnoise.Laplace` or `dpnoise.Gaussian`, and the noise follows from diffprivlib's
parameters for the sensitivity on the grid, so that they hold in floating point as on paper. If they ask for no noise (a
sensitivity of 0, an infinite epsilon or a delta of 1) a value is returned unchanged, as by diffprivlib.

The caller's sensitivity defines the neighbours. A release costs the mechanism's ``epsilon`` and ``delta``.
"""

from dpnoise_diffprivlib._geometric import (
    Gaussian,
    GaussianAnalytic,
    GaussianDiscrete,
    Geometric,
    GeometricFolded,
    GeometricTruncated,
)
from dpnoise_diffprivlib._laplace import (
    Laplace,
    LaplaceBoundedDomain,
    LaplaceFolded,
    LaplaceTruncated,
    Snapping,
)
from dpnoise_diffprivlib._patch import install, patched
from dpnoise_diffprivlib._selection import Binary, Exponential, PermuteAndFlip

__all__ = [
    "Binary",
    "Exponential",
    "Gaussian",
    "GaussianAnalytic",
    "GaussianDiscrete",
    "Geometric",
    "GeometricFolded",
    "GeometricTruncated",
    "Laplace",
    "LaplaceBoundedDomain",
    "LaplaceFolded",
    "LaplaceTruncated",
    "PermuteAndFlip",
    "Snapping",
    "install",
    "patched",
]
