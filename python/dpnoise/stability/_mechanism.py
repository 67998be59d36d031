"""What the mechanisms of stability have in common: an answer, or none where a test fails."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dpnoise._native import StabilityTest
from dpnoise.mechanisms._mechanism import Rng, WithoutErrorBound

NOT_STABLE: Final = "the test of stability failed"


@dataclass(frozen=True)
class Release:
    """A release with what is public about how it came about.

    Attributes
    ----------
    value : object or None
        The answer, or None when it was refused.
    refusal : str or None
        Why there is no answer, as far as that may be known.
    """

    value: Any
    refusal: str | None = None


class Parameter:
    """A parameter that is kept as it was given."""

    def __set_name__(self, owner: type[StableMechanism], name: str) -> None:
        self._name = name

    def __get__(self, mechanism: StableMechanism | None, owner: type[StableMechanism]) -> Any:
        return self if mechanism is None else mechanism._given.get(self._name)


class StableMechanism(WithoutErrorBound):
    """A mechanism whose answer, or that there is none, costs the same."""

    __slots__ = ("_given",)

    _given: dict[str, Any]
    _native: StabilityTest
    _reason: ClassVar[str] = "what is released is exact, and how often something is released depends on the data"

    @property
    def delta(self) -> float:
        """The privacy parameter delta."""
        return self._native.delta

    @abstractmethod
    def _attempt(self, x: Any, rng: Rng) -> Release:
        """Release a value; the caller of the caller is the user."""

    def attempt(self, x: Any, *, rng: Rng = None) -> Release:
        """Release a value, and say why when there is none.

        Parameters
        ----------
        x : object
            What `release` takes.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a release is not private.

        Returns
        -------
        Release
            What `release` returns as ``value``, and a public reason as ``refusal``. Both are of one release, with one
            cost.

        Raises
        ------
        ParameterError, TypeError, RandomnessError
            As `release` does.
        """
        return self._attempt(x, rng)


def released(value: Any, distance: int, test: StabilityTest, rng: Rng) -> Release:
    """Release a value if its distance passes a test."""
    return Release(value) if test.passes(distance, rng) else Release(None, NOT_STABLE)


def warn_of_large(delta: float, n: int) -> None:
    """Warn the caller of `release` when a delta allows what nobody wants, for data of publicly known size."""
    if delta * n >= 1:
        warnings.warn(
            f"delta={delta!r} is at least 1/n with n={n}: a release that shows a person's row whole would be within it",
            UserWarning,
            stacklevel=4,
        )
