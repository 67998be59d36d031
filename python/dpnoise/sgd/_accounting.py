"""The privacy cost of DP-SGD, on the dp-accounting package."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from dpnoise._display import progress
from dpnoise._errors import ParameterError
from dpnoise._numbers import check_word, checked_delta, integer, real_down, real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting import Accountant
from dpnoise.sgd._noisy_gradient import NoisyGradient

Method = Literal["pld", "rdp"]

_SMALLEST: Final = 2.0**-20
_LARGEST: Final = 2.0**11
_TOLERANCE: Final = 1e-4


def epsilon_spent(
    *, noise_multiplier: Number, sample_rate: Number, steps: Integer, delta: Number, method: Method = "pld"
) -> float:
    """Return the total epsilon of steps of DP-SGD, for a delta.

    All steps together are (epsilon, delta)-differentially private for neighbours that differ by one example, added or
    removed.

    Parameters
    ----------
    noise_multiplier : float
        The ratio of the noise of a step to its sensitivity, `NoisyGradient.noise_multiplier`; from 2**-20 to 2**11.
    sample_rate : float
        The probability of each example to be in a batch, which `poisson_sample` draws; from 2**-1022 to 1.
    steps : int
        The number of steps, at least 1.
    delta : float
        The delta of all steps together: between 0 and 1, both excluded. Choose it much smaller than one over the number
        of examples.
    method : {"pld", "rdp"}, default "pld"
        "pld" takes the better of privacy-loss distributions, which are tighter as a rule, and of Rényi divergences;
        "rdp" takes the latter alone, which are faster.

    Notes
    -----
    The divergences alone answer where the loss of the steps is so large that its distribution would not fit in memory,
    or delta so small that rounding errors would dominate (below about 2e-13). `dpnoise.accounting.Accountant` refuses
    such steps for "pld".

    The noise is the discrete noise of `NoisyGradient`, and the proved difference from continuous noise is included.
    `dpnoise.accounting.Accountant` computes the result, and documents which of its steps are proved. It also composes a
    `NoisyGradient` with other mechanisms: ``Accountant().compose(noisy, steps, sample_rate=sample_rate)``.

    References
    ----------
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots: tighter discrete approximations of
    privacy loss distributions"; Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
    mechanism".

    Examples
    --------
    >>> from dpnoise.sgd import epsilon_spent
    >>> round(epsilon_spent(noise_multiplier=1.1, sample_rate=0.01, steps=1000, delta=1e-5), 2)
    1.52
    """
    return _spent(noise_multiplier, *_checked(sample_rate, steps, delta, method), method)


def noise_multiplier_for(
    *, epsilon: Number, delta: Number, sample_rate: Number, steps: Integer, method: Method = "pld"
) -> float:
    """Return the noise multiplier for which steps of DP-SGD are jointly (epsilon, delta)-differentially private.

    `epsilon_spent` with this multiplier and the same ``method`` is at most ``epsilon``, and exceeds it with a
    multiplier smaller by one part in 10**4, which is never below 2**-20.

    Parameters
    ----------
    epsilon : float
        The epsilon that all steps together may cost: positive and finite.
    delta : float
        The delta of all steps together: between 0 and 1, both excluded. Choose it much smaller than one over the number
        of examples.
    sample_rate : float
        The probability of each example to be in a batch, which `poisson_sample` draws; from 2**-1022 to 1.
    steps : int
        The number of steps, at least 1.
    method : {"pld", "rdp"}, default "pld"
        "pld" takes the better of privacy-loss distributions, which are tighter as a rule, and of Rényi divergences;
        "rdp" takes the latter alone, which are faster.

    Raises
    ------
    ParameterError
        When no multiplier up to 2**11 suffices.

    Notes
    -----
    The search computes about ten distributions for "pld", which takes seconds, and up to two minutes where a step may
    reveal a loss near 200. On a terminal a bar shows how many are done, if rich is installed. Where the errors of
    distributions are not negligible, at a delta near 1e-12, epsilon is not quite monotone, and the multiplier may be
    one part in 1000 above the least.

    Examples
    --------
    >>> from dpnoise.sgd import noise_multiplier_for
    >>> round(noise_multiplier_for(epsilon=2.0, delta=1e-5, sample_rate=0.01, steps=1000), 2)
    0.96
    """
    goal = real_down(epsilon, "epsilon")
    if not 0 < goal < math.inf:
        raise ParameterError(f"epsilon must be positive and finite, got {goal!r}")
    parameters = _checked(sample_rate, steps, delta, method)

    def least(start: float, by: Method, advance: Callable[[float], None] = lambda _: None) -> float:
        """Search upwards or downwards from a multiplier; infinity when no multiplier suffices."""

        def excess(multiplier: float) -> float:
            """Return the logarithm of the ratio of epsilon to its target."""
            spent = _spent(multiplier, *parameters, by)
            advance(1)
            return math.log(spent / goal) if spent else -math.inf

        low = high = start
        below = above = excess(start)
        while above > 0:
            if high == _LARGEST:
                return math.inf
            low, below, high = high, above, 2 * high
            above = excess(high)
        reach = 1.0
        while below <= 0 and low > _SMALLEST:
            high, above = low, below
            # Epsilon grows at least as fast as the multiplier falls, as a rule: so the next one exceeds the target.
            step = min(reach * max(-above, _TOLERANCE / 2), math.log(2))
            low, reach = max(low * math.exp(-step), _SMALLEST), 2 * reach
            below = excess(low)
        exceeds: bool | None = None
        while high / low > 1 + _TOLERANCE:
            middle = _between(low, below, high, above)
            found = excess(middle)
            again, exceeds = (found > 0) == exceeds, found > 0
            # Halving the excess of an end that stays moves the next multiplier towards it (the Illinois method).
            if exceeds:
                low, below, above = middle, found, above / (1 + again)
            else:
                high, above, below = middle, found, below / (1 + again)
        return high

    multiplier = least(1.0, "rdp")
    if method == "pld":
        with progress("noise multiplier", None, "distributions") as advance:
            multiplier = least(min(multiplier, _LARGEST), "pld", advance)
    if math.isinf(multiplier):
        raise ParameterError(f"epsilon must be larger for these steps, got {goal!r}: no noise up to 2**11 suffices")
    return multiplier


def _spent(noise_multiplier: Number, rate: float, count: int, delta: float, method: Method) -> float:
    noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=noise_multiplier, expected_batch_size=1.0)

    def by(one: Method) -> float:
        return Accountant(method=one).compose(noisy, count, sample_rate=rate).epsilon(delta)

    spent = by("rdp")
    if method == "pld":
        with suppress(ParameterError):  # too large a loss for memory, or so small a delta that rounding decides
            spent = min(spent, by("pld"))
    return spent


def _between(low: float, below: float, high: float, above: float) -> float:
    """Interpolate the multiplier whose epsilon meets the target, and step slightly beyond it from the nearer end."""
    width = math.log(high / low)
    share = below / (below - above) if math.isfinite(below - above) else 0.5
    nudge = _TOLERANCE / 3 / width
    share += nudge if share < 0.5 else -nudge
    return low * math.exp(width * min(max(share, 0.02), 0.98))


def _checked(sample_rate: Number, steps: Integer, delta: Number, method: Method) -> tuple[float, int, float]:
    check_word(method, "method", "pld", "rdp")
    rate, count, target = (
        real_up(sample_rate, "sample_rate"),
        integer(steps, "steps", range(1, 2**53)),
        checked_delta(delta),
    )
    if not sys.float_info.min <= rate <= 1:
        raise ParameterError(f"sample_rate must be from 2**-1022 to 1, got {rate!r}")
    return rate, count, target
