"""Small public data sets for the demonstration, the examples and the tests.

All are from one source, with one licence and attribution: those of `adult_occupations`.
"""

import gzip
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _calls

__all__ = ["ADULT_ATTRIBUTION", "adult_ages", "adult_hours_per_week", "adult_incomes", "adult_occupations"]

ADULT_ATTRIBUTION: Final = (
    "Data: Becker, B. and Kohavi, R. (1996), Adult, UCI Machine Learning Repository, DOI 10.24432/C5XW20, "
    "CC BY 4.0; reduced to some of the columns."
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
    DOI 10.24432/C5XW20, licensed CC BY 4.0; put `ADULT_ATTRIBUTION` beside results that use them.
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
    """
    return np.array([int(age) for age, _ in _rows("numbers")], np.int64)


def adult_hours_per_week() -> NDArray[np.int64]:
    """Return the weekly working hours of every person in the UCI "Adult" training set.

    Returns
    -------
    ndarray of int64, shape (32561,)
        Hours, from 1 to 99, in the original row order. Nearly half of the people have 40.
    """
    return np.array([int(hours) for _, hours in _rows("numbers")], np.int64)


def adult_incomes() -> tuple[NDArray[np.float64], NDArray[np.bool_], tuple[str, ...]]:
    """Return who in the UCI "Adult" training set earns more than 50,000 dollars a year, and features to predict it.

    Returns
    -------
    features : ndarray of float64, shape (32561, 28)
        A row for each person, in the original order: age, hours per week and years of education, and the logarithms of
        capital gain and loss, all scaled to [0, 1] by limits that were chosen independently of the data; and an
        indicator for the sex, and for each marital status and occupation.
    is_high : ndarray of bool, shape (32561,)
        Whether the income is above 50,000 dollars.
    names : tuple of str
        The names of the features.
    """
    education, marital, sex, gain, loss, income = map(np.array, zip(*_rows("incomes"), strict=True))
    statuses, status_codes = np.unique(marital, return_inverse=True)
    occupation_codes, occupations = adult_occupations()
    columns = {
        "age": adult_ages() / 100,
        "hours_per_week": adult_hours_per_week() / 100,
        "education_num": education.astype(np.float64) / 16,
        "capital_gain": np.log1p(gain.astype(np.float64)) / np.log1p(1e5),
        "capital_loss": np.log1p(loss.astype(np.float64)) / np.log1p(1e5),
        "sex: Male": sex == "Male",
        **{f"marital_status: {name}": status_codes == code for code, name in enumerate(statuses.tolist())},
        **{f"occupation: {name}": occupation_codes == code for code, name in enumerate(occupations)},
    }
    return np.stack([*columns.values()], axis=1).astype(np.float64), income == ">50K", tuple(columns)


def _rows(kind: str) -> list[list[str]]:
    packed = (resources.files("dpnoise") / "data" / f"adult_{kind}.csv.gz").read_bytes()
    _header, *lines = gzip.decompress(packed).decode("ascii").removesuffix("\n").split("\n")
    return [line.split(",") for line in lines]


_calls.explain(__name__)
