"""Proposing a bound on what one person can change, testing it, and releasing with noise for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from dpnoise._errors import ParameterError, RandomnessError
from dpnoise._parameters import real
from dpnoise.accounting import PrivacyCost
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.stability._budget import part_of, stability_test
from dpnoise.stability._functions import interruptible, without_warnings
from dpnoise.stability._stable_release import Release, integer, warn_of_large

Data = TypeVar("Data")

_REFUSED: Final = "the test of the proposed bound failed, or the release did"


def propose_test_release(
    data: Data,
    *,
    propose: float | Callable[[int], float],
    distance: Callable[[Data, float], int],
    release: Callable[[Data, float, float], Any],
    epsilon: float,
    delta: float,
    full_output: bool = False,
    rng: Rng = None,
) -> Any:
    """Release an answer with noise for a proposed bound on its local sensitivity, if a test finds that the bound holds.

    The local sensitivity is the most that a neighbour's answer differs from the answer for the data at hand. It may be
    far smaller than for the worst data, but depends on the data itself, so it is not used: a bound on it is proposed,
    and tested by the distance to data that exceed it. The release is (epsilon, delta)-differentially private, if
    `distance` and `release` are as below: half of epsilon is for the test, half for the release, whose delta is 0.

    Parameters
    ----------
    data : object
        What `distance` and `release` take.
    propose : float or callable
        The bound, positive and finite, or ``propose(n)``, which gives it for the public number of rows, ``len(data)``:
        then neighbours must have equally many rows.
    distance : callable
        ``distance(data, bound)``: how many rows have to change until the local sensitivity is above the bound, 0 if it
        is already, or anything smaller that changes by at most 1 between neighbours. Less than 0 counts as 0.
    release : callable
        ``release(data, bound, epsilon)``: the answer with noise. Its laws for any two neighbours whose answers differ
        by at most `bound` must be epsilon-indistinguishable, for the epsilon that it is given.
    epsilon : float
        From 2**-39 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people.
    full_output : bool, default False
        Whether to return a `Release` instead of the value alone.
    rng : dpnoise.hazmat generator, optional
        For tests only: the noise of the test. Such a release is not private.

    Returns
    -------
    object or None, or Release
        What `release` returned, or None when the test failed, or `release` did.

    Raises
    ------
    ParameterError
        When `epsilon`, `delta` or the bound is out of range, or `propose` is to be called for no rows.
    TypeError
        When `distance` or `release` cannot be called, or `distance` does not return an int. That is so whatever the
        data are, or the error would tell something of them.
    RandomnessError
        When the source of randomness fails; nothing is released.

    Warns
    -----
    UserWarning
        When `delta` is at least one over the number of rows, and `propose` is called with it.

    Notes
    -----
    An exception would depend on the data, and so would its message. One that `distance` raises counts as a
    distance of 0, which nearly always means a refusal; one that `release` raises is a refusal with the same reason.
    Neither is shown: try both functions on made-up data first. They are part of what must be as above: no neighbour of
    data for which `distance` raises one may have a distance above 1. A refusal costs as much as a release.

    Warnings are not shown either. What the functions print or write elsewhere is, as is how long they take: none of
    that may depend on the data.

    References
    ----------
    Dwork and Lei (2009), "Differential privacy and robust statistics"; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", section 7.2.

    Examples
    --------
    The median of ages from 0 to 100. When k people change it stays between the values k places below and above
    it. So if these are no further apart than the bound, nobody can move it by more, not even after k - 1 others have
    changed.

    >>> import numpy as np
    >>> from dpnoise import Laplace, datasets, stability
    >>> def distance(ages, bound):
    ...     x, middle = np.sort(np.clip(ages, 0, 100)), (len(ages) - 1) // 2
    ...     below, above = np.append(x[:middle][::-1], 0), np.append(x[middle + 1 :], 100)
    ...     return np.count_nonzero(above[: middle + 1] - below <= bound)
    >>> def release(ages, bound, epsilon):
    ...     middle = np.sort(np.clip(ages, 0, 100))[(len(ages) - 1) // 2]
    ...     return Laplace(epsilon=epsilon, sensitivity=bound).release(float(middle))
    >>> about_37 = stability.propose_test_release(
    ...     datasets.adult_ages(), propose=1, distance=distance, release=release, epsilon=1.0, delta=1e-6
    ... )
    """
    part = part_of(epsilon, 2)
    test = stability_test(part, delta)
    for name, function in (("distance", distance), ("release", release)):
        if not callable(function):
            raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    bound = _proposed(propose, data)
    if callable(propose):
        warn_of_large(test.delta, _rows(data))
    # A number of rows that is public is that of all neighbours.
    cost = PrivacyCost(2 * part, test.delta, "substitute" if callable(propose) else None)
    refused = Release(None, cost, _REFUSED).given(full_output)
    with interruptible(partial(_found, distance, data)) as finding:
        if not test.passes(finding(bound), rng):
            return refused
    with interruptible(partial(_answered, release, data, part)) as answering:
        answer = answering(bound)
    return Release(answer[0], cost).given(full_output) if answer else refused


def _proposed(propose: float | Callable[[int], float], data: Any) -> float:
    bound = real(propose(_rows(data)) if callable(propose) else propose, "propose")
    if not 0 < bound < math.inf:
        raise ParameterError(f"propose must be, or give, a positive finite number, got {bound!r}")
    return bound


def _rows(data: Any) -> int:
    if not hasattr(data, "__len__"):
        raise TypeError(f"data must have a length if propose is to be called with it, got {type(data).__name__}")
    if not len(data):
        raise ParameterError("data must have at least one row if propose is to be called, got none")
    return len(data)


def _found(distance: Callable[[Any, float], int], data: Any, bound: float) -> int:
    """Give the distance as the test takes it; nothing it raises and no value may show."""
    try:
        with without_warnings():
            found = distance(data, bound)
    except BaseException:  # as in `answer_of`
        return 0
    return max(0, integer(found, "return"))


def _answered(
    release: Callable[[Any, float, float], Any], data: Any, epsilon: float, bound: float
) -> tuple[Any] | None:
    """Give what is released, or None; nothing it raises may show, but for what has nothing to do with the data."""
    try:
        with without_warnings():
            return (release(data, bound, epsilon),)
    except RandomnessError:
        raise
    except BaseException:  # as in `answer_of`
        return None
