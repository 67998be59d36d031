"""Marginals with exact noise, and exact choices of marginals, for models of mbi (private-pgm).

mbi fits models to noisy marginals, and draws no noise for privacy: programs bring their own. `measure` takes the place
of a marginal plus NumPy's noise, and `choose` the place of an exponential mechanism over the errors of a model, which
are the two private steps of algorithms such as AIM and MWEM+PGM. What mbi makes of the results is post-processing.

Both count rows in integers, from the data set's columns. A person has at most ``rows`` rows. Neighbours differ by one
person who is added or removed, or under "substitute" by one person whose rows are replaced.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import mbi
import numpy as np
from numpy.typing import NDArray

import dpnoise
from dpnoise import ParameterError, sensitivity
from dpnoise.extend import generator_for_tests, integer, real, root
from dpnoise.hazmat import Rng
from dpnoise.mechanisms import Mechanism
from dpnoise.sensitivity import Relation

__all__ = ["choose", "measure"]

Clique = tuple[str | int, ...]
Spend = Callable[[Mechanism], object]

_CELLS: Final = 2**32
_ROWS: Final = range(1, 2**31)
_UNIT: Final = 64
"""Errors are in 64ths of a row: a marginal of a thousand cells has many of less than half a row."""
_WEIGHTS: Final = range(1, 2**14 + 1)
# In units. Weighted errors and penalties stay below 2**53, which scores must, whatever the data are.
_LARGEST_ERROR: Final = 2**32 * _UNIT


def measure(
    data: Any,
    cliques: Sequence[Clique],
    *,
    rho: float,
    rows: int = 1,
    relation: Relation = "add/remove",
    spend: Spend | None = None,
    rng: Rng = None,
) -> list[Any]:
    """Measure marginals of a data set with discrete Gaussian noise.

    All marginals together are one release of `dpnoise.DiscreteGaussian`, which is ``rho``-zero-concentrated
    differentially private.

    Parameters
    ----------
    data : mbi.Dataset
        The private data, whose weights must all be 1.
    cliques : sequence of tuples
        The public attributes of each marginal, at least one tuple of different attributes; a marginal has at most 2**32
        cells. ``()`` is the number of rows.
    rho : float
        The cost of all marginals together under zero-concentrated differential privacy: positive and finite.
    rows : int, default 1
        The most rows that a person has, from 1 to 2**31 - 1.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one person with up to ``rows`` rows is added or removed, and the
        number of rows is private; `"substitute"`: the rows of one person are replaced, and the number of rows is
        public.
    spend : callable, optional
        Called with the mechanism after all checks and before anything is drawn: what it raises ends the call. Such as
        `dpnoise.accounting.Accountant.compose`, or ``list.append`` to collect each mechanism's ``rho``. By default
        nothing is charged.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
        default each call draws a fresh key from the operating system.

    Returns
    -------
    list of mbi.LinearMeasurement
        One for each clique, in their order. ``noisy_measurement`` has whole numbers as float64, of shape
        ``(data.domain.size(clique),)`` in the order of ``Factor.datavector``. ``stddev`` is the scale of the noise,
        ``rows * sqrt(len(cliques) / (2 * rho))``, times ``sqrt(2)`` under "substitute", rounded up.

    Raises
    ------
    ParameterError, TypeError
        When a weight is not one, a value or a clique is not in the domain, a clique has more than 2**32 cells, a
        parameter is out of its range, or ``data`` is no mbi.Dataset. No message shows a value of the data.

    Notes
    -----
    Counts are int64, since counts in float32 are exact up to 16,777,216 only.

    References
    ----------
    Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", theorem 14; McKenna, Miklau
    and Sheldon (2021), "Winning the NIST contest: a scalable and general approach to differentially private synthetic
    data".

    Examples
    --------
    >>> import mbi
    >>> from dpnoise_mbi import measure
    >>> domain = mbi.Domain(["smokes", "region"], [2, 3])
    >>> columns = {"smokes": [0, 1, 0, 0], "region": [2, 0, 1, 2]}
    >>> first, second = measure(mbi.Dataset(columns, domain), [("smokes",), ("smokes", "region")], rho=0.25)
    >>> round(first.stddev, 9), second.noisy_measurement.shape
    (2.0, (6,))
    """
    listed = _cliques_of(data, cliques)
    generator_for_tests(rng=rng)
    square = integer(rows, "rows", _ROWS) ** 2 * sensitivity.histogram(relation) * len(listed)
    mechanism = dpnoise.DiscreteGaussian(rho=real(rho, "rho"), sensitivity=root(Fraction(square)))
    counts = [_counts(data, clique) for clique in listed]
    if spend is not None:
        spend(mechanism)
    released = mechanism.release(np.concatenate(counts), rng=rng).astype(np.float64)
    ends = itertools.accumulate(map(len, counts[:-1]))
    return [
        mbi.LinearMeasurement(noisy, clique, stddev=mechanism.scale)
        for noisy, clique in zip(np.split(released, list(ends)), listed, strict=True)
    ]


def choose(
    data: Any,
    candidates: Mapping[Clique, int] | Sequence[Clique],
    model: Any,
    *,
    epsilon: float,
    stddev: float = 0.0,
    rows: int = 1,
    relation: Relation = "add/remove",
    spend: Spend | None = None,
    rng: Rng = None,
) -> Clique:
    """Choose a marginal that a model approximates badly.

    It is the exponential mechanism: a clique with a probability proportional to ``exp(epsilon * score / (2 * s))``. The
    score is the clique's weight times the difference of its error and a penalty. The error is the L1 distance of the
    marginal of the data and the marginal of the model, and ``s`` the largest weight times ``rows``, and times 2 under
    "substitute". One person may raise the score of one clique and lower the score of another, so the mechanism is never
    `monotonic`. The choice is epsilon-differentially private and has bounded range: it costs ``epsilon**2 / 8`` under
    zero-concentrated differential privacy.

    Parameters
    ----------
    data : mbi.Dataset
        The private data, whose weights must all be 1.
    candidates : mapping of tuples to int, or sequence of tuples
        The public cliques, at least one, each a tuple of different attributes whose marginal has at most 2**32 cells;
        and their weights, from 1 to 2**14. Without weights, each has the weight 1. Only ratios of weights matter, so
        fractions are given as their numerators over a common denominator.
    model : mbi.MarkovRandomField or another with ``project``
        The public model. Its marginals are rounded to 64ths and clipped to zero, so that errors are whole numbers of
        64ths and exact. They must be finite and add up to at most 2**32.
    epsilon : float
        The privacy parameter: positive and finite.
    stddev : float, default 0.0
        The standard deviation of the noise that the chosen marginal is going to get: not negative. The penalty is the
        expected L1 norm of this noise, ``sqrt(2 / pi) * stddev`` for each number of a marginal, rounded to 64ths; at
        most 2**32.
    rows : int, default 1
        The most rows that a person has, from 1 to 2**31 - 1.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: `"add/remove"`: one person with up to ``rows`` rows is added or removed, and the
        number of rows is private; `"substitute"`: the rows of one person are replaced, and the number of rows is
        public.
    spend : callable, optional
        Called with the mechanism after all checks and before anything is drawn: what it raises ends the call. Such as
        `dpnoise.accounting.Accountant.compose`, or ``list.append`` to collect each mechanism's ``epsilon``. By default
        nothing is charged.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the call reproducible, on one thread. Who knows its seed can repeat the choice. By default
        each call draws a fresh key from the operating system.

    Returns
    -------
    tuple
        The chosen clique, as it was given.

    Raises
    ------
    ParameterError, TypeError
        When a weight of ``data`` is not one, a value or a clique is not in the domain, a parameter is out of its range
        or of a wrong type, or the marginals of the model cannot be used. No message shows a value of the data.

    Notes
    -----
    Errors above 2**32 count as 2**32.

    References
    ----------
    McKenna, Mullins, Sheldon and Miklau (2022), "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data", equation 1; Cesar and Rogers (2021), "Bounding, concentrating, and truncating: unifying privacy
    loss composition for data analytics".

    Examples
    --------
    >>> import mbi
    >>> from dpnoise_mbi import choose, measure
    >>> data = mbi.Dataset({"a": [0, 1] * 400, "b": [0, 1] * 400}, mbi.Domain(["a", "b"], [2, 2]))
    >>> model = mbi.estimation.MirrorDescent().estimate(data.domain, measure(data, [("a",), ("b",)], rho=0.5))
    >>> choose(data, {("a",): 1, ("a", "b"): 2}, model, epsilon=1.0, stddev=2.0)
    ('a', 'b')
    """
    listed = _cliques_of(data, candidates, "candidates")
    generator_for_tests(rng=rng)
    given = candidates if isinstance(candidates, Mapping) else dict.fromkeys(listed, 1)
    weights = [integer(given[clique], "every weight of candidates", _WEIGHTS) for clique in listed]
    most = integer(rows, "rows", _ROWS) * sensitivity.histogram(relation)
    mechanism = dpnoise.Exponential(epsilon=epsilon, sensitivity=max(weights) * most * _UNIT)
    penalties = [_penalty(stddev, data.domain.size(clique)) for clique in listed]
    estimates = [_estimate(model, clique, data.domain.size(clique)) for clique in listed]
    errors = [_error(_counts(data, clique), each) for clique, each in zip(listed, estimates, strict=True)]
    scores = [w * (error - each) for w, error, each in zip(weights, errors, penalties, strict=True)]
    if spend is not None:
        spend(mechanism)
    return listed[mechanism.release(scores, rng=rng)]


def _cliques_of(data: Any, cliques: Any, name: str = "cliques") -> list[Clique]:
    """Check the data set except for its values, and the cliques."""
    if not isinstance(data, mbi.Dataset):
        raise TypeError(f"data must be an mbi.Dataset, got {type(data).__name__}")
    if np.any(data.weights != 1):
        raise ParameterError("data must have weights that are all 1: a heavier row changes a count by more than 1")
    if not isinstance(cliques, Mapping | Sequence) or isinstance(cliques, str):
        raise TypeError(f"{name} must be a sequence of tuples, got {type(cliques).__name__}")
    listed = list(cliques)
    if not listed:
        raise ParameterError(f"{name} must have at least one clique, got none")
    for clique in listed:
        is_tuple = isinstance(clique, tuple) and all(isinstance(attribute, str | int) for attribute in clique)
        if not is_tuple or len(set(clique)) < len(clique) or not data.domain.supports(clique):
            raise ParameterError(
                f"every clique of {name} must be a tuple of different attributes of {data.domain.attributes}, "
                f"got {clique!r}"
            )
        if data.domain.size(clique) > _CELLS:
            raise ParameterError(f"every clique of {name} must have at most 2**32 cells, got {clique!r}")
    return listed


def _counts(data: Any, clique: Clique) -> NDArray[np.int64]:
    """Count the rows of each cell of a marginal, in the host's order."""
    cells = np.zeros(data.records, np.int64)
    for attribute in clique:
        column, size = data.data[attribute], data.domain[attribute]
        if len(column) and not (column.min() >= 0 and column.max() < size):
            raise ParameterError(
                f"data must have values from 0 to {size - 1} for {attribute!r}; which value is not, and where, is "
                "private and not shown"
            )
        cells = cells * size + column.astype(np.int64)
    return np.bincount(cells, minlength=data.domain.size(clique)).astype(np.int64)


def _estimate(model: Any, clique: Clique, size: int) -> NDArray[np.int64]:
    """Round the model's marginal to units."""
    if not hasattr(model, "project"):
        raise TypeError(f"model must have the method project of mbi.MarkovRandomField, got {type(model).__name__}")
    found = np.asarray(model.project(clique).datavector(), np.float64)
    counts = np.clip(np.rint(found * _UNIT), 0, None)
    # A NaN is not at most anything.
    if found.shape != (size,) or np.isinf(found).any() or not counts.sum() <= _LARGEST_ERROR:
        raise ParameterError(
            f"model must have marginals of {size} finite numbers for {clique!r} that add up to at most 2**32, "
            f"got shape {found.shape} and the sum {counts.sum() / _UNIT}"
        )
    return counts.astype(np.int64)


def _penalty(stddev: float, size: int) -> int:
    expected = math.sqrt(2 / math.pi) * real(stddev, "stddev") * size * _UNIT
    if not 0 <= expected <= _LARGEST_ERROR:
        raise ParameterError(f"stddev must be from 0 to 2**32 / sqrt(2 / pi) / {size}, got {stddev!r}")
    return round(expected)


def _error(counts: NDArray[np.int64], estimate: NDArray[np.int64]) -> int:
    return min(int(np.abs(counts * _UNIT - estimate).sum()), _LARGEST_ERROR)
