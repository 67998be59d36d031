"""Small public data sets that the demonstration, the examples and the tests run on."""

import gzip
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ADULT_ATTRIBUTION", "adult_ages", "adult_hours_per_week", "adult_occupations"]

ADULT_ATTRIBUTION: Final = (
    "Data: Becker, B. and Kohavi, R. (1996), Adult, UCI Machine Learning Repository, DOI 10.24432/C5XW20, "
    "CC BY 4.0; reduced to the columns age, occupation and hours_per_week."
)
"""The line that has to accompany whatever is made from the functions below."""


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
    labels, codes = np.unique(
        [occupation or "(missing)" for (occupation,) in _rows("occupations")], return_inverse=True
    )
    return codes.astype(np.int64), tuple(labels.tolist())


def adult_ages() -> NDArray[np.int64]:
    """Return the age of every person in the UCI "Adult" training set.

    Returns
    -------
    ndarray of int64, shape (32561,)
        Years, from 17 to 90, in the original row order.

    Notes
    -----
    Source, licence and attribution are those of `adult_occupations`.
    """
    return np.array([int(age) for age, _ in _rows("numbers")], np.int64)


def adult_hours_per_week() -> NDArray[np.int64]:
    """Return how many hours per week every person in the UCI "Adult" training set works.

    Returns
    -------
    ndarray of int64, shape (32561,)
        Hours, from 1 to 99, in the original row order. Nearly half of the people have 40.

    Notes
    -----
    Source, licence and attribution are those of `adult_occupations`.
    """
    return np.array([int(hours) for _, hours in _rows("numbers")], np.int64)


def _rows(kind: str) -> list[list[str]]:
    packed = (resources.files("dpnoise") / "data" / f"adult_{kind}.csv.gz").read_bytes()
    _header, *lines = gzip.decompress(packed).decode("ascii").removesuffix("\n").split("\n")
    return [line.split(",") for line in lines]
