"""The privacy cost of DP-SGD, on the dp-accounting package."""

from __future__ import annotations

import math
import sys
from typing import Final, Literal

from dpnoise._errors import ParameterError
from dpnoise._numbers import checked_delta, integer, real_down, real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting import Accountant, PrivacyCost
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
        Privacy-loss distributions, which are tighter, or Rényi divergences, which are faster.

    Raises
    ------
    ParameterError
        For "pld", when the loss of the steps is so large that its distribution would not fit in memory, or delta is so
        small that rounding errors dominate (below about 2e-13).

    Notes
    -----
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
    rate, count, target = _checked(sample_rate, steps, delta)
    return _composed(noise_multiplier, rate, count, method).epsilon(target)


def noise_multiplier_for(
    *, epsilon: Number, delta: Number, sample_rate: Number, steps: Integer, method: Method = "pld"
) -> float:
    """Return the noise multiplier for which steps of DP-SGD are jointly (epsilon, delta)-differentially private.

    The `epsilon_spent` of a `NoisyGradient` with this multiplier is at most ``epsilon``. A multiplier smaller by one
    part in 10**4 exceeds ``epsilon`` or is refused.

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
        Privacy-loss distributions, which are tighter, or Rényi divergences, which are faster.

    Raises
    ------
    ParameterError
        When no multiplier up to 2**11 suffices; for "pld", when delta is so small that rounding errors dominate (below
        about 2e-13).

    Examples
    --------
    >>> from dpnoise.sgd import noise_multiplier_for
    >>> round(noise_multiplier_for(epsilon=2.0, delta=1e-5, sample_rate=0.01, steps=1000), 2)
    0.96
    """
    goal = PrivacyCost(real_down(epsilon, "epsilon")).epsilon
    if not goal:
        raise ParameterError(f"epsilon must be positive and finite, got {goal!r}")
    rate, count, target = _checked(sample_rate, steps, delta)
    Accountant(method=method)
    # The divergence of order 2 bounds epsilon (Mironov 2017, proposition 3), and for "pld" it is limited. Twice as much
    # leaves room for the upward rounding of distributions.
    suffices = method == "pld" and goal > 2 * (Accountant.LARGEST_DIVERGENCE - math.log(target))

    def excess(multiplier: float) -> float:
        """Return the logarithm of the ratio of epsilon to its target."""
        try:
            accountant = _composed(multiplier, rate, count, method)
        except ParameterError:  # too little noise for a finite epsilon
            return math.inf
        if suffices:
            return -math.inf
        spent = accountant.epsilon(target)
        return math.log(spent / goal) if spent else -math.inf

    high, above = 1.0, excess(1.0)
    low, below = high, above
    while above > 0:
        if high == _LARGEST:
            raise ParameterError(f"epsilon must be larger for these steps, got {goal!r}: no noise up to 2**11 suffices")
        low, below, high = high, above, 2 * high
        above = excess(high)
    while below <= 0 and low > _SMALLEST:
        high, above, low = low, below, low / 2
        below = excess(low)
    while high / low > 1 + _TOLERANCE:
        middle = _between(low, below, high, above)
        found = excess(middle)
        if found <= 0:
            high, above = middle, found
        else:
            low, below = middle, found
    return high


def _composed(noise_multiplier: Number, rate: float, count: int, method: Method) -> Accountant:
    """Compose the steps; refuse noise that is too little for the method."""
    noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=noise_multiplier, expected_batch_size=1.0)
    accountant = Accountant(method=method)
    try:
        return accountant.compose(noisy, count, sample_rate=rate)
    except ParameterError:
        raise ParameterError(
            f"noise_multiplier must be larger for so many steps and method {method!r}, got {noisy.noise_multiplier!r}"
        ) from None


def _between(low: float, below: float, high: float, above: float) -> float:
    """Interpolate the multiplier whose epsilon meets the target, and step slightly beyond it from the nearer end."""
    width = math.log(high / low)
    share = below / (below - above) if math.isfinite(below - above) else 0.5
    nudge = _TOLERANCE / 3 / width
    share += nudge if share < 0.5 else -nudge
    return low * math.exp(width * min(max(share, 0.02), 0.98))


def _checked(sample_rate: Number, steps: Integer, delta: Number) -> tuple[float, int, float]:
    rate, count, target = (
        real_up(sample_rate, "sample_rate"),
        integer(steps, "steps", range(1, 2**53)),
        checked_delta(delta),
    )
    if not sys.float_info.min <= rate <= 1:
        raise ParameterError(f"sample_rate must be from 2**-1022 to 1, got {rate!r}")
    return rate, count, target
