"""Parts of epsilon and delta, and the stability test that spends them."""

from __future__ import annotations

from dpnoise._errors import ParameterError
from dpnoise._native import StabilityTest
from dpnoise._parameters import real_down


def part_of(epsilon: float, parts: int) -> float:
    """Divide epsilon exactly into 2 or 4 equal parts; an error message shows the epsilon that was given."""
    whole = real_down(epsilon, "epsilon")
    if not parts * 2.0**-40 <= whole <= 2.0**40:
        raise ParameterError(f"epsilon must be from {parts} * 2**-40 to 2**40, got {epsilon!r}")
    return whole / parts


def half_of(delta: float) -> float:
    """Halve delta exactly; an error message shows the delta that was given."""
    whole = real_down(delta, "delta")
    if not 2.0**-1021 <= whole < 1:
        raise ParameterError(f"delta must be from 2**-1021 up to, but not including, 1, got {delta!r}")
    return whole / 2


def stability_test(epsilon: float, delta: float) -> StabilityTest:
    """Make the test; parameters of exact types, such as Fraction, are rounded down to floats."""
    return StabilityTest(real_down(epsilon, "epsilon"), real_down(delta, "delta"))
