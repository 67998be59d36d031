"""The base class of the stability mechanisms: an answer, or a refusal where a test fails; and what a test spends."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dpnoise._calls import outside
from dpnoise._errors import ParameterError
from dpnoise._native import StabilityTest
from dpnoise._numbers import real_down
from dpnoise._types import Number, Rng
from dpnoise.mechanisms import Mechanism


def part_of(epsilon: Number, parts: int) -> float:
    """Divide epsilon exactly into 2 or 4 equal parts; an error message shows the epsilon that was given."""
    whole = real_down(epsilon, "epsilon")
    if not parts * 2.0**-40 <= whole <= 2.0**40:
        raise ParameterError(f"epsilon must be from {parts} * 2**-40 to 2**40, got {epsilon!r}")
    return whole / parts


def half_of(delta: Number) -> float:
    """Halve delta exactly; an error message shows the delta that was given."""
    whole = real_down(delta, "delta")
    if not 2.0**-1021 <= whole < 1:
        raise ParameterError(f"delta must be from 2**-1021 up to, but not including, 1, got {delta!r}")
    return whole / 2


def stability_test(epsilon: Number, delta: Number) -> StabilityTest:
    """Make the test; parameters of exact types, such as Fraction, are rounded down to floats."""
    return StabilityTest(real_down(epsilon, "epsilon"), real_down(delta, "delta"))


NOT_STABLE: Final = "the test of stability failed"


@dataclass(frozen=True)
class Attempt:
    """An answer, or the public reason why there is none.

    Attributes
    ----------
    value : object or None
        The answer, or None when it was refused.
    refusal : str or None
        The public reason for a refusal; None when there is an answer.
    """

    value: Any
    refusal: str | None = None


class Parameter:
    """A read-only parameter, as it was given."""

    def __set_name__(self, owner: type[StableMechanism], name: str) -> None:
        self._name = name

    def __get__(self, mechanism: StableMechanism | None, owner: type[StableMechanism]) -> Any:
        return self if mechanism is None else mechanism._given.get(self._name)


class StableMechanism(Mechanism):
    """A mechanism that releases an answer or refuses, at the same cost."""

    __slots__ = ("_given",)

    _given: dict[str, Any]
    _native: StabilityTest
    _reason: ClassVar[str] = "an answer is exact, and the probability of a refusal depends on the data"

    @property
    def delta(self) -> float:
        """The privacy parameter delta."""
        return self._native.delta

    def _held(self, x: Any) -> Any:
        return x  # as the user's functions take it

    @abstractmethod
    def _attempt(self, x: Any, rng: Rng) -> Attempt:
        """Release a value; public methods call this directly, for the stack level of warnings."""

    def attempt(self, x: Any, *, rng: Rng = None) -> Attempt:
        """Release a value, or give the public reason for a refusal.

        Parameters
        ----------
        x : object
            The data, which `release` takes.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        Attempt
            The result of `release` as ``value``, and the public reason for a refusal as ``refusal``. A call is one
            release, and costs as much.
        """
        return self._attempt(x, rng)


def released(value: Any, distance: int, test: StabilityTest, rng: Rng) -> Attempt:
    return Attempt(value) if test.passes(distance, rng) else Attempt(None, NOT_STABLE)


def warn_of_large(delta: float, n: int) -> None:
    """Warn the caller of `release` when delta is at least 1/n, for data of public size n."""
    if delta * n >= 1:
        warnings.warn(
            f"delta={delta!r} is at least 1/n with n={n}: even publishing one random person's row would satisfy it; "
            "use a delta far below 1/n",
            UserWarning,
            stacklevel=outside(),
        )
