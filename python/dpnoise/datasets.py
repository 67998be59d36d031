"""Small public data sets that the demonstration, the examples and the tests run on."""

import gzip
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ADULT_ATTRIBUTION", "adult_occupations"]

ADULT_ATTRIBUTION: Final = (
    "Data: Becker, B. and Kohavi, R. (1996), Adult, UCI Machine Learning Repository, DOI 10.24432/C5XW20, "
    "CC BY 4.0; only the column occupation is used."
)
"""The line that has to accompany whatever is made from `adult_occupations`."""


def adult_occupations() -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the occupation of every person in the UCI "Adult" training set.

    Returns
    -------
    codes : ndarray of int64, shape (32561,)
        For every person, in the original row order, the index of their occupation in `labels`.
    labels : tuple of str
        The 15 occupations, sorted. ``"(missing)"`` stands for the people whose occupation is not known.

    Notes
    -----
    The data are Becker, B. and Kohavi, R. (1996), *Adult*, UCI Machine Learning Repository,
    DOI 10.24432/C5XW20, licensed CC BY 4.0; `ADULT_ATTRIBUTION` is the line to put beside results made from them.
    """
    packed = (resources.files("dpnoise") / "data" / "adult_occupations.csv.gz").read_bytes()
    _header, *occupations = gzip.decompress(packed).decode("ascii").removesuffix("\n").split("\n")
    labels, codes = np.unique([occupation or "(missing)" for occupation in occupations], return_inverse=True)
    return codes.astype(np.int64), tuple(labels.tolist())
