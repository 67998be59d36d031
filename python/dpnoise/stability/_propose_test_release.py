"""Propose-test-release: propose a bound on the local sensitivity, test it, and release with noise for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from dpnoise._arrays import read_by
from dpnoise._errors import ParameterError, RandomnessError
from dpnoise._numbers import real
from dpnoise._silence import interruptible, without_warnings
from dpnoise._types import Integer, Number, Rng
from dpnoise.sensitivity import Relation
from dpnoise.stability._mechanism import Attempt, Parameter, StableMechanism, part_of, stability_test, warn_of_large
from dpnoise.stability._median_and_mode import integer

_REFUSAL: Final = Attempt(None, "the test of the proposed bound failed, or the release did")


class ProposeTestRelease(StableMechanism):
    """An answer with noise for a proposed bound on its local sensitivity, if a test finds that the bound holds.

    The local sensitivity is the largest difference between the answer for the data at hand and a neighbour's answer.
    It may be far below the worst case over all data. But it depends on the data, so noise in proportion to it is not
    private. Instead a bound is proposed, and tested by the distance to data whose local sensitivity exceeds it. The
    release is (epsilon, delta)-differentially private if `distance` and `answer` have the properties below. Half of
    epsilon is for the test and half for the answer, whose delta is 0.

    Parameters
    ----------
    propose : float or callable
        The proposed bound, positive and finite; or ``propose(n)``, which returns it for the number of rows,
        ``len(data)``. Then n is public, and neighbours must have equally many rows.
    distance : callable
        ``distance(data, bound)``, an int: how many rows have to change until the local sensitivity is above the bound,
        0 if it already is. A smaller number may be returned if it changes by at most 1 between neighbours. Less than 0
        counts as 0.
    answer : callable
        ``answer(data, bound, epsilon)``: the answer with noise. For two neighbours whose exact answers differ by at
        most `bound`, its distributions must be epsilon-indistinguishable, for the epsilon that it is given.
    epsilon : float
        The privacy parameter, of the test and the answer together: from 2**-39 to 2**40.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people.

    Notes
    -----
    Exceptions and warnings of the functions are not shown, since they depend on the data: try both functions on made-up
    data first, by `try_on`. An exception in `distance` counts as a distance of 0, which nearly always means a refusal,
    and must respect the condition above: where `distance` raises one, it must be at most 1 for all neighbours. An
    exception in `answer` is a refusal with the same reason. A refusal costs as much as a release.

    What the functions print or write, and how long they take, is not hidden: none of that may depend on the data.

    References
    ----------
    Dwork and Lei (2009), "Differential privacy and robust statistics"; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", section 7.2.

    Examples
    --------
    The median of ages from 0 to 100. After k people change, it is still between the values k places below and above it.
    So if these two are no further apart than the bound, nobody can move it by more than the bound, even after k - 1
    others have changed.

    >>> import numpy as np
    >>> from dpnoise import Laplace, datasets, stability
    >>> def distance(ages: np.ndarray, bound: float) -> np.integer:
    ...     x, middle = np.sort(np.clip(ages, 0, 100)), (len(ages) - 1) // 2
    ...     below = np.append(x[:middle][::-1], 0)
    ...     above = np.append(x[middle + 1 :], 100)
    ...     return np.count_nonzero(above[: middle + 1] - below <= bound)
    >>> def answer(ages: np.ndarray, bound: float, epsilon: float) -> float:
    ...     middle = np.sort(np.clip(ages, 0, 100))[(len(ages) - 1) // 2]
    ...     return Laplace(epsilon=epsilon, sensitivity=bound).release(float(middle))
    >>> median = stability.ProposeTestRelease(propose=1, distance=distance, answer=answer, epsilon=1.0, delta=1e-6)
    >>> about_37 = median.release(datasets.adult_ages())
    """

    __slots__ = ()

    _parameters = ("propose", "distance", "answer", "epsilon", "delta")
    _reason = "the noise comes from the function `answer`, whose distribution is not known"

    propose: Any = Parameter()
    distance: Any = Parameter()
    answer: Any = Parameter()

    def __init__(
        self,
        *,
        propose: Number | Callable[[int], Number],
        distance: Callable[[Any, float], Integer],
        answer: Callable[[Any, float, float], Any],
        epsilon: Number,
        delta: Number,
    ) -> None:
        self._native = stability_test(part_of(epsilon, 2), delta)
        for name, function in (("distance", distance), ("answer", answer)):
            if not callable(function):
                raise TypeError(f"{name} must be callable, got {type(function).__name__}")
        bound = propose if callable(propose) else _bound(propose)
        self._given = {"propose": bound, "distance": distance, "answer": answer}

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon, of the test and the answer together."""
        return 2 * self._native.epsilon

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation: "substitute" if `propose` is called; otherwise None, as `distance` defines it."""
        return "substitute" if callable(self.propose) else None

    def release(self, data: Any, *, rng: Rng = None) -> Any:
        """Release the answer with noise for the proposed bound, if the test finds that the bound holds.

        Parameters
        ----------
        data : object
            The argument of `distance` and `answer`.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object or None
            What `answer` returned, or None when the test failed, or `answer` did.

        Raises
        ------
        ParameterError
            When the bound that `propose` gives is out of range, or `propose` is to be called for no rows.

        Warns
        -----
        UserWarning
            When `propose` is called, and `delta` is at least 1/n for n rows.
        """
        return self._attempt(data, rng).value

    def try_on(self, example: Any) -> tuple[float, int, Any]:
        """Call the functions on MADE-UP data, and let their errors through, which a release hides.

        Nothing of this is private: never give it the private data, nor data that were copied or computed from them.

        Parameters
        ----------
        example : object
            Made-up or public data, of the kind that `release` takes.

        Returns
        -------
        (float, int, object)
            The proposed bound, the distance that `distance` returned, 0 for less than 0, and what `answer` returned.
        """
        bound = self._proposed(example)
        distance = max(0, integer(self.distance(example, bound), "return"))
        return bound, distance, self.answer(example, bound, self._native.epsilon)

    def _proposed(self, data: Any) -> float:
        if not callable(self.propose):
            return float(self.propose)
        rows = _rows(data)
        bound = _bound(self.propose(rows))
        warn_of_large(self.delta, rows)
        return bound

    def _attempt(self, data: Any, rng: Rng) -> Attempt:
        bound = self._proposed(data)
        with interruptible(partial(_found, self.distance, data)) as finding:
            if not self._native.passes(finding(bound), rng):
                return _REFUSAL
        with interruptible(partial(_answered, self.answer, data, self._native.epsilon)) as answering:
            answer = answering(bound)
        return Attempt(*answer) if answer else _REFUSAL


def _bound(proposed: Any) -> float:
    bound = real(proposed, "propose")
    if not 0 < bound < math.inf:
        raise ParameterError(f"propose must be, or return, a positive finite number, got {bound!r}")
    return bound


def _rows(data: Any) -> int:
    if not hasattr(type(data), "__len__"):
        raise TypeError(f"data must have a length if propose is to be called with it, got {type(data).__name__}")
    rows = read_by(len, data, "data")
    if not rows:
        raise ParameterError("data must have at least one row if propose is to be called, got none")
    return rows


def _found(distance: Callable[[Any, float], int], data: Any, bound: float) -> int:
    """Compute the distance for the test; neither an exception nor the distance may be shown."""
    try:
        with without_warnings():
            found = distance(data, bound)
    except BaseException:  # as in `answer_of`
        return 0
    return max(0, integer(found, "return"))


def _answered(answer: Callable[[Any, float, float], Any], data: Any, epsilon: float, bound: float) -> tuple[Any] | None:
    """Compute the release; None for an exception, unless the source of randomness failed, which reveals no data."""
    try:
        with without_warnings():
            return (answer(data, bound, epsilon),)
    except RandomnessError:
        raise
    except BaseException:  # as in `answer_of`
        return None
