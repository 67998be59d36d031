"""Releasing the median and the mode where they are stable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpnoise.mechanisms._mechanism import Rng
from dpnoise.sensitivity import Relation
from dpnoise.stability._budget import stability_test
from dpnoise.stability._distances import Found, median, mode
from dpnoise.stability._stable_release import NOT_STABLE, released, warn_of_large


def release_median(
    x: Any,
    epsilon: float,
    delta: float,
    *,
    relation: Relation = "add/remove",
    full_output: bool = False,
    rng: Rng = None,
) -> Any:
    """Release the median of data as it is, if it is stable.

    The median is the lower one, of rank ceil(n/2). It is released when its distance to instability, `median_distance`,
    passes the test of `release_if_stable`. The release is (epsilon, delta)-differentially private.

    Parameters
    ----------
    x : array_like
        Finite numbers, one dimension. Integers beyond 2**53 count as the nearest double.
    epsilon : float
        From 2**-40 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people. Under "substitute", where that is
        public, a warning says so; under "add/remove" it would tell that number.
    relation : {"add/remove", "substitute"}
        "add/remove": one of two neighbours has a value more, and the number of values is private; without any values
        nothing is ever released. "substitute": neighbours differ in one value, and their number is public.
    full_output : bool, default False
        Whether to return a `Release` instead of the value alone.
    rng : dpnoise.hazmat generator, optional
        For tests only: such a release is not private.

    Returns
    -------
    float or None, or Release
        The median, a value of the data, or None when the test failed.

    Raises
    ------
    ParameterError
        When `epsilon`, `delta` or `relation` is out of range, or `x` has a missing or infinite value, not one
        dimension, or, under "substitute", no values. Nothing has been drawn then. A missing value is data of one
        person: replace such values first, by a rule that looks at no other one.
    TypeError
        When the values of `x` are of no real numbers.
    RandomnessError
        When the source of randomness fails; nothing is released.

    Warns
    -----
    UserWarning
        When `delta` is at least one over the number of values, under "substitute".

    Notes
    -----
    The time depends on the data, as that of partitioning does.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.release_median([39.0] * 90 + [52.0] * 10, epsilon=1.0, delta=1e-6)
    39.0
    """
    return _release(median, x, epsilon, delta, relation, full_output, rng)


def release_mode(
    x: Any,
    epsilon: float,
    delta: float,
    *,
    relation: Relation = "add/remove",
    full_output: bool = False,
    rng: Rng = None,
) -> Any:
    """Release the most frequent value of data as it is, if it is stable.

    The mode is the most frequent value, the smallest of those if there are several. It is released when its distance to
    instability, `mode_distance`, passes the test of `release_if_stable`. The release is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    x : array_like
        All finite numbers, all texts, all bytes or all booleans; one dimension.
    epsilon : float
        From 2**-40 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people. Under "substitute", where that is
        public, a warning says so; under "add/remove" it would tell that number.
    relation : {"add/remove", "substitute"}
        "add/remove": one of two neighbours has a value more, and the number of values is private; without any values
        nothing is ever released. "substitute": neighbours differ in one value, and their number is public.
    full_output : bool, default False
        Whether to return a `Release` instead of the value alone.
    rng : dpnoise.hazmat generator, optional
        For tests only: such a release is not private.

    Returns
    -------
    object or None, or Release
        The mode, a value of the data; a whole number is an int, whatever its type, or None when the test failed.

    Raises
    ------
    ParameterError
        When `epsilon`, `delta` or `relation` is out of range, or `x` has a missing or infinite value, not one
        dimension, or, under "substitute", no values. Nothing has been drawn then. A missing value is data of one
        person: replace such values first, by a rule that looks at no other one.
    TypeError
        When the values of `x` are of several kinds, or of another one.
    RandomnessError
        When the source of randomness fails; nothing is released.

    Warns
    -----
    UserWarning
        When `delta` is at least one over the number of values, under "substitute".

    Notes
    -----
    The time depends on the data, as that of sorting does.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13.

    Examples
    --------
    >>> from dpnoise import stability
    >>> stability.release_mode(["tea"] * 90 + ["coffee"] * 10, epsilon=1.0, delta=1e-6)
    'tea'
    """
    return _release(mode, x, epsilon, delta, relation, full_output, rng)


def _release(
    find: Callable[[Any, Relation], Found],
    x: Any,
    epsilon: float,
    delta: float,
    relation: Relation,
    full_output: bool,
    rng: Rng,
) -> Any:
    test = stability_test(epsilon, delta)
    found = find(x, relation)
    if relation == "substitute":
        warn_of_large(test.delta, found.n, stacklevel=4)
    release = released(found.value, found.distance, test, relation, rng)
    # Of no values there is none to release, and the same is said of them as of others that are not stable.
    return (release if found.n else replace(release, value=None, refusal=NOT_STABLE)).given(full_output)
