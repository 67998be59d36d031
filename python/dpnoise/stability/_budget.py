"""Parts of epsilon and of delta, and the test that they are spent on."""

from __future__ import annotations

from dpnoise._errors import ParameterError
from dpnoise._native import StabilityTest
from dpnoise._parameters import real_down


def part_of(epsilon: float, parts: int) -> float:
    """Give one of 2 or 4 equal parts of epsilon, exactly; a message shows the whole that was given."""
    whole = real_down(epsilon, "epsilon")
    if not parts * 2.0**-40 <= whole <= 2.0**40:
        raise ParameterError(f"epsilon must be from {parts} * 2**-40 to 2**40, got {epsilon!r}")
    return whole / parts


def half_of(delta: float) -> float:
    """Give half of delta, exactly; a message shows the whole that was given."""
    whole = real_down(delta, "delta")
    if not 2.0**-1021 <= whole < 1:
        raise ParameterError(f"delta must be from 2**-1021 up to, but not including, 1, got {delta!r}")
    return whole / 2


def stability_test(epsilon: float, delta: float) -> StabilityTest:
    """Make the test, for no more than a promise of any exact type."""
    return StabilityTest(real_down(epsilon, "epsilon"), real_down(delta, "delta"))
