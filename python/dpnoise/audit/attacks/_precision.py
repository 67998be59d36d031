"""The attack of Haney, Desfontaines, Hartman, Shrestha and Hay (2022): a sum has the precision of its larger term."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpnoise._display import Column, caption_of, html_table
from dpnoise._errors import ParameterError
from dpnoise._numbers import real
from dpnoise._types import Integer, Number
from dpnoise.audit._check import claim_of
from dpnoise.audit._lower_bound import EpsilonLowerBound, bound, open_share
from dpnoise.audit._outcomes import Outcomes
from dpnoise.audit._report import Report
from dpnoise.audit._statistics import Statistic, log_ratio, lowest_set_bit

_MAGNITUDES: Final = (0, 1, 2**10, 2**30, 2**50)


@dataclass(frozen=True)
class Precision(Report):
    """What the precision of outcomes reveals about the input.

    Attributes
    ----------
    claimed_epsilon : float
        The claimed epsilon.
    refuted : bool
        Whether any of the bounds is above the claim.
    neighbours : tuple of pairs of float
        The pairs of inputs, ``x`` and ``x_prime``.
    bounds : tuple of EpsilonLowerBound
        The bound of each pair. They hold jointly at the requested level.
    """

    claimed_epsilon: float
    refuted: bool
    neighbours: tuple[tuple[float, float], ...]
    bounds: tuple[EpsilonLowerBound, ...]

    def __str__(self) -> str:
        """Say whether the attack succeeds, and what it shows at each magnitude."""
        verdict = "succeeds" if self.refuted else "does not succeed"
        rows = [
            f"x = {x:g}: epsilon is at least {found.epsilon:.4f}; {found.event}, {found.hits:,} times for x and "
            f"{found.hits_prime:,} times for x_prime of {found.trials:,}"
            for (x, _), found in zip(self.neighbours, self.bounds, strict=True)
        ]
        return "\n".join([f"the attack on precision {verdict}; epsilon = {self.claimed_epsilon:g} is claimed", *rows])

    def _repr_html_(self) -> str:
        columns: dict[str, Column] = {"x": [repr(x) for x, _ in self.neighbours]}
        columns |= {name: [getattr(found, name) for found in self.bounds] for name in ("epsilon", "event")}
        return html_table(caption_of(self), columns)

    def _draw(self, axes: Any) -> None:
        places = np.arange(len(self.bounds))
        axes.bar(places, [found.epsilon for found in self.bounds], label="shown at least")
        axes.axhline(self.claimed_epsilon, color="#222222", linestyle="--", label="claimed")
        axes.set_xticks(places, [f"x = {x:g}" for x, _ in self.neighbours])
        axes.set_ylabel("epsilon")
        axes.set_title("What the precision of the outcomes shows")
        axes.legend(frameon=False)


def precision(
    mechanism: Any,
    *,
    n: Integer = 100_000,
    sensitivity: Number | None = None,
    magnitudes: Sequence[Number] = _MAGNITUDES,
    epsilon: Number | None = None,
    delta: Number | None = None,
    level: Number = 0.999999,
    vectorized: bool = False,
) -> Precision:
    """Attack a mechanism by the precision of its outcomes.

    The sum of two floating-point numbers is a multiple of the last bit of the larger one. So noise that was added to 0
    has bits that a sum with 1 cannot have, even if the noise itself is exact. The attack uses the lowest set bit of an
    outcome, for pairs of neighbours near 0 and at larger magnitudes, where rounding may even remove the noise.

    Parameters
    ----------
    mechanism : callable or object with a method ``release``
        A mechanism of any library that is called with a number and returns one.
    n : int, default 100000
        The number of releases of each input, from 100 to 2**40 - 1, at each magnitude.
    sensitivity : float, optional
        The distance of neighbours: positive and finite. By default the attribute ``sensitivity`` of the mechanism, or 1
        if it has none.
    magnitudes : sequence of float, default (0, 1, 1024, 1073741824, 1125899906842624)
        The magnitudes of the inputs, in sensitivities; by default 0, 1, 2**10, 2**30 and 2**50.
    epsilon : float, optional
        The claimed epsilon: zero or more, and finite. By default the attribute ``epsilon`` of the mechanism.
    delta : float, optional
        The claimed delta, from 0 up to, but not including, 1. By default the attribute ``delta`` of the mechanism, or 0
        if it has none.
    level : float, default 0.999999
        The probability with which the attack does not succeed on a mechanism that keeps its claim: between 0 and 1,
        both excluded. The bounds at all magnitudes hold together.
    vectorized : bool, default False
        Whether the mechanism takes an array and adds independent noise to each element.

    Returns
    -------
    Precision
        The verdict (``refuted``) and the bound at each magnitude; as text, as JSON and as a picture.

    Notes
    -----
    Neighbours are whole multiples of the largest power of two that is at most the sensitivity, so that they are exact;
    whole sensitivities lead to int inputs.

    References
    ----------
    Haney, Desfontaines, Hartman, Shrestha and Hay (2022), "Precision-based attacks and interval refining: how to break,
    then fix, differential privacy on finite computers".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import Laplace
    >>> from dpnoise.audit import attacks
    >>> attacks.precision(Laplace(epsilon=0.5), n=10_000).refuted
    False
    >>> attacks.precision(lambda x: x + np.random.laplace(0, 2), epsilon=0.5, n=10_000).refuted
    True
    """
    claimed = claim_of(mechanism, epsilon, delta)
    sensitivity = getattr(mechanism, "sensitivity", 1.0) if sensitivity is None else sensitivity
    if not 0 < real(sensitivity, "sensitivity") < math.inf:
        raise ParameterError(f"sensitivity must be positive and finite, got {sensitivity!r}")
    # All bounds must hold jointly.
    alarm = (1.0 - open_share(level, "level")) / max(1, len(magnitudes))
    neighbours = tuple(_neighbours(real(magnitude, "every magnitude"), sensitivity) for magnitude in magnitudes)
    bounds = tuple(
        bound(mechanism, *pair, n, 1.0 - alarm, claimed.delta, vectorized, fit=_fit, task=f"precision at {pair[0]:g}")
        for pair in neighbours
    )
    refuted = any(found.epsilon > claimed.epsilon for found in bounds)
    return Precision(claimed.epsilon, refuted, neighbours, bounds)


def _neighbours(magnitude: float, sensitivity: Number) -> tuple[float, float]:
    whole = isinstance(sensitivity, int)
    step = 1 << (int(sensitivity).bit_length() - 1) if whole else math.ldexp(1.0, math.frexp(sensitivity)[1] - 1)
    x = round(magnitude) * step
    return x, x + step


def _fit(x: Outcomes, x_prime: Outcomes) -> Iterator[Statistic]:
    yield Statistic("the exponent of the lowest set bit", lambda y: lowest_set_bit(y.column(0)).astype(np.float64))
    yield log_ratio("the log-likelihood ratio of the lowest set bit", lambda y: lowest_set_bit(y.column(0)), x, x_prime)
