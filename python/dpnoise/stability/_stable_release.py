"""Releasing what is stable: Algorithm 13 of the book."""

from __future__ import annotations

import operator
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dpnoise._native import StabilityTest
from dpnoise.accounting import PrivacyCost
from dpnoise.mechanisms._mechanism import Rng
from dpnoise.sensitivity import Relation
from dpnoise.stability._budget import stability_test

NOT_STABLE: Final = "the test of stability failed"


@dataclass(frozen=True)
class Release:
    """A release with what is public about how it came about.

    Attributes
    ----------
    value : object or None
        The answer, or None when it was refused.
    cost : PrivacyCost
        What was spent, on a refusal as well.
    refusal : str or None
        Why there is no answer, as far as that may be known.
    """

    value: Any
    cost: PrivacyCost
    refusal: str | None = None

    def given(self, full_output: bool) -> Any:
        """Give all of it, or the answer alone."""
        return self if full_output else self.value


def release_if_stable(
    value: Any,
    distance: int,
    epsilon: float,
    delta: float,
    *,
    full_output: bool = False,
    rng: Rng = None,
) -> Any:
    """Release a value as it is if the data are far from having another one.

    The distance gets discrete Laplace noise of scale 1 / epsilon, and the value is released when that is above the
    smallest t >= 0 for which the noise alone is above t with a probability of at most delta. The release is (epsilon,
    delta)-differentially private, if `distance` is as below.

    Parameters
    ----------
    value : object
        The exact answer for the data.
    distance : int
        The distance to instability: an integer that changes by at most 1 between neighbours and is 0 or less wherever
        some neighbour has another answer. The relation of neighbours is the one for which that holds.
    epsilon : float
        From 2**-40 to 2**40.
    delta : float
        Between 0 and 1. It should be much smaller than one over the number of people.
    full_output : bool, default False
        Whether to return a `Release` instead of the value alone.
    rng : dpnoise.hazmat generator, optional
        For tests only: such a release is not private.

    Returns
    -------
    object or None, or Release
        The value, or None when the test failed.

    Raises
    ------
    ParameterError
        When `epsilon` or `delta` is out of range. Nothing has been drawn then.
    TypeError
        When `distance` is not an integer.
    RandomnessError
        When the source of randomness fails; nothing is released.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 13 and Theorem 7.3; Smith
    and Thakurta (2013), "Differentially private feature selection via stability arguments, and the robustness of the
    lasso".

    Examples
    --------
    >>> from dpnoise import stability
    >>> votes = {"tea": 9000, "coffee": 4000}
    >>> gap = votes["tea"] - votes["coffee"]  # one vote more or less changes it by at most 1
    >>> stability.release_if_stable("tea", gap - 1, epsilon=1.0, delta=1e-6)
    'tea'
    """
    test = stability_test(epsilon, delta)
    return released(value, integer(distance), test, None, rng).given(full_output)


def released(value: Any, distance: int, test: StabilityTest, relation: Relation | None, rng: Rng) -> Release:
    """Release a value if its distance passes a test, for neighbours by a relation."""
    passed = test.passes(distance, rng)
    cost = PrivacyCost(test.epsilon, test.delta, relation)
    return Release(value, cost) if passed else Release(None, cost, NOT_STABLE)


def warn_of_large(delta: float, n: int, stacklevel: int = 3) -> None:
    """Warn when a delta allows what nobody wants, for data of publicly known size."""
    if delta * n >= 1:
        warnings.warn(
            f"delta={delta!r} is at least 1/n with n={n}: a release that shows a person's row whole would be within it",
            UserWarning,
            stacklevel=stacklevel,
        )


def integer(distance: Any, verb: str = "be") -> int:
    """Take a distance as an int, the nearest one of 64 bits, which moves it no further; no message may show it."""
    found = None
    if not isinstance(distance, bool):
        with suppress(Exception):  # also one of the object's own
            found = operator.index(distance)
    if found is None:
        raise TypeError(f"distance must {verb} an int, got {type(distance).__name__}")
    return max(-(2**63), min(found, 2**63 - 1))
