"""The claim of a mechanism, compared with the result of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpnoise._numbers import real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting import PrivacyCost
from dpnoise.audit._lower_bound import EpsilonLowerBound, bound
from dpnoise.audit._report import Report


@dataclass(frozen=True)
class Check(Report):
    """A claim and the lower bound from an experiment.

    Attributes
    ----------
    claimed_epsilon : float
        The claimed epsilon; the bound has the delta of the claim.
    refuted : bool
        Whether the bound is above the claim. A bound below the claim does not prove it.
    bound : EpsilonLowerBound
        The result of the experiment.
    """

    claimed_epsilon: float
    refuted: bool
    bound: EpsilonLowerBound

    def __str__(self) -> str:
        """Say what was claimed, what was found, and what follows."""
        verdict = "REFUTED" if self.refuted else "not refuted"
        return f"the claim of epsilon = {self.claimed_epsilon:g} is {verdict}\n{self.bound}"

    def _draw(self, axes: Any) -> None:
        self.bound._draw(axes)


def check(
    mechanism: Any,
    x: Any,
    x_prime: Any,
    *,
    n: Integer,
    epsilon: Number | None = None,
    delta: Number | None = None,
    level: Number = 0.95,
    vectorized: bool = False,
) -> Check:
    """Test the claim of a mechanism by experiment, on two neighbouring inputs.

    Parameters
    ----------
    mechanism : callable or object with a method ``release`` or ``perturb``
        A mechanism of any library. It is called with an input and returns an outcome: a number, an array, a text, None,
        or a sequence, set or mapping of them. Calls must be independent of each other. A protocol of `dpnoise.local`
        randomises one value.
    x, x_prime : object
        Two neighbouring inputs, by the relation of the claim. A mechanism must not change them.
    n : int
        The number of releases of each input, from 100 to 2**40 - 1.
    epsilon : float, optional
        The claimed epsilon: zero or more, and finite. By default the attribute ``epsilon`` of the mechanism.
    delta : float, optional
        The claimed delta, from 0 up to, but not including, 1. By default the attribute ``delta`` of the mechanism, or 0
        if it has none.
    level : float, default 0.95
        The probability with which the bound holds: between 0 and 1, both excluded. A true claim is refuted with a
        probability of at most 1 - ``level``.
    vectorized : bool, default False
        Whether the mechanism takes an array of inputs, one for each row, and returns as many independent outcomes. It
        is called with blocks of up to 65,536 rows then, which is faster.

    Returns
    -------
    Check
        The verdict and its evidence; as text, as JSON (``to_json``) and as a picture (``plot``).

    Examples
    --------
    >>> from dpnoise import DiscreteLaplace, audit
    >>> count = DiscreteLaplace(epsilon=1.0)
    >>> audit.check(
    ...     lambda patients: count.release(patients.count("flu")),
    ...     ["flu", "flu", "cold"],
    ...     ["flu", "cold"],
    ...     epsilon=1.0,
    ...     n=10_000,
    ...     level=1 - 1e-9,
    ... ).refuted
    False
    """
    claimed = claim_of(mechanism, epsilon, delta)
    return held_against(claimed, mechanism, x, x_prime, n=n, level=level, vectorized=vectorized)


def held_against(claimed: PrivacyCost, mechanism: Any, x: Any, x_prime: Any, **options: Any) -> Check:
    """Compare a claim with the bound; the options are the options of `bound`."""
    found = bound(mechanism, x, x_prime, delta=claimed.delta, **options)
    return Check(claimed.epsilon, found.epsilon > claimed.epsilon, found)


def claim_of(mechanism: Any, epsilon: Number | None, delta: Number | None) -> PrivacyCost:
    """Return the caller's claim, or else the mechanism's own."""
    epsilon = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    if epsilon is None:
        raise TypeError("epsilon must be given for the claim: the mechanism has no attribute epsilon")
    return PrivacyCost(real_up(epsilon, "epsilon"), getattr(mechanism, "delta", 0.0) if delta is None else delta)
