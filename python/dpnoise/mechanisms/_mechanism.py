"""The base of all mechanisms: parameters, which are all of the state, and the cost of a release."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import Any, ClassVar, Final, NoReturn

from dpnoise._errors import NoErrorBound, RandomnessError
from dpnoise._native import ScriptedRng, SeededRng
from dpnoise._parameters import ByName
from dpnoise.accounting import PrivacyCost
from dpnoise.accounting._losses import ApproximateLoss, Loss
from dpnoise.sensitivity import Relation

Rng = SeededRng | ScriptedRng | None

# How many values a release can have.
COUNTS: Final = range(1, 2**60)


class Mechanism(ByName):
    """A mechanism that is defined by its parameters; by default pure differential privacy."""

    __slots__ = ("_native",)

    _native: Any
    _parameters: ClassVar[tuple[str, ...]]

    @abstractmethod
    def release(self, x: Any, *, rng: Rng = None) -> Any:
        """Release a value."""

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon."""
        return float(self._native.epsilon)

    @property
    def delta(self) -> float:
        """The privacy parameter delta."""
        return 0.0

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation; None for the relation of the given sensitivity."""
        return None

    @property
    def cost(self) -> PrivacyCost:
        """The cost of a release."""
        return PrivacyCost(self.epsilon, self.delta, self.relation)

    def _check(self, x: Any) -> None:
        """Raise the errors of `release` for ``x``, and draw nothing."""
        with suppress(RandomnessError):
            self.release(x, rng=ScriptedRng(b""))

    def _loss(self) -> Loss:
        """Return the privacy loss of a release, for the accountant."""
        return ApproximateLoss(self.epsilon, self.delta)

    def _values(self) -> dict[str, Any]:
        return {name: value for name in self._parameters if (value := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        """Show the call that makes this mechanism."""
        parameters = ", ".join(f"{name}={_shown(value)}" for name, value in self._values().items())
        return f"{type(self).__name__}({parameters})"

    def __eq__(self, other: object) -> bool:
        """Compare kind and parameters."""
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        """Hash kind and parameters."""
        return hash((type(self), *self._values().values()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters; there is no other state."""
        return _make, (type(self), self._values())


class WithoutErrorBound(Mechanism):
    """A mechanism whose error cannot be bounded beforehand, for a reason."""

    __slots__ = ()

    _reason: ClassVar[str]

    def error(self, level: float = 0.95) -> NoReturn:
        """Say why the error of a release cannot be bounded beforehand.

        Raises
        ------
        NoErrorBound
            Always.
        """
        raise NoErrorBound(f"{type(self).__name__} has no bound on its error: {self._reason}")


def _shown(value: Any) -> str:
    """Show a parameter; of a function the name alone, since what it holds may be private."""
    return str(getattr(value, "__qualname__", type(value).__qualname__)) if callable(value) else repr(value)


def _make(kind: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    return kind(**parameters)
