"""The base class of mechanisms: the parameters, which are the whole state, and the cost of a release."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import Any, ClassVar, Final

from dpnoise._arrays import held_numbers
from dpnoise._errors import NoErrorBound, ParameterError, RandomnessError
from dpnoise._native import ScriptedRng
from dpnoise._types import Number, Rng
from dpnoise.accounting import PrivacyCost, PrivacyLoss, ZcdpCost
from dpnoise.sensitivity import Relation

# How many values a release can have.
COUNTS: Final = range(1, 2**60)


class Mechanism:
    """The abstract base class of all mechanisms and queries.

    A mechanism is immutable, and equal to every mechanism of its class with the same parameters. Ledgers and
    accountants charge its `cost`, or the smaller loss that they know of its noise; not the latter for a subclass that
    changes ``cost``, ``epsilon`` or ``delta``.
    """

    __slots__ = ("_native",)

    _native: Any
    _parameters: ClassVar[tuple[str, ...]]
    _reason: ClassVar[str] = "none is known"

    @abstractmethod
    def release(self, x: Any, *, rng: Rng = None) -> Any:
        """Release a value.

        Parameters
        ----------
        x : object
            The value of the query, as the mechanism takes it.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object
            The differentially private release.
        """

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
    def person(self) -> str | None:
        """The name of the column that says whose a row is, whose persons are protected; None: each row is a person."""
        return None

    @property
    def cost(self) -> PrivacyCost:
        """The cost of a release.

        Raises
        ------
        ParameterError
            When there is a ``rho`` and no ``delta``: such a guarantee has an epsilon for every delta.
        """
        if self.epsilon is None or self.delta is None:
            raise ParameterError(
                f"delta must be given for a cost, got None: rho={self.rho!r} has an epsilon for every delta "
                f"(say {type(self).__name__}(..., delta=...), see dpnoise.accounting.zcdp_epsilon, or spend it from a "
                f"Ledger(..., rho=...))"
            )
        return PrivacyCost(self.epsilon, self.delta, self.relation, self.person)

    def error(self, level: Number = 0.95) -> float:
        """Bound the error of a release, or say why it cannot be bounded beforehand.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.

        Raises
        ------
        NoErrorBound
            When the mechanism has no bound.
        """
        raise NoErrorBound(f"{type(self).__name__} has no bound on its error: {self._reason}")

    def _taken(self, x: Any) -> Any:
        """Read ``x`` once, raise the errors of `release` for it, and draw nothing; `release` takes what was read."""
        held = self._held(x)
        with suppress(RandomnessError):
            self.release(held, rng=ScriptedRng(b""))
        return held

    def _held(self, x: Any) -> Any:
        """Return what gives the same whenever `release` reads it: ``x``, unless its class might give something else."""
        return held_numbers(x, "x")

    def _loss(self) -> PrivacyLoss | PrivacyCost:
        """Return the privacy loss of a release, for the accountant."""
        return self.cost

    def _zcdp(self) -> ZcdpCost | None:
        """Return the cost in zero-concentrated differential privacy, if it does not follow from the loss."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the loss of a subclass that changes the cost from that cost, not from its parent."""
        super().__init_subclass__(**options)
        if not {"cost", "epsilon", "delta"}.isdisjoint(vars(cls)):
            for name in {"_loss", "_zcdp"} - vars(cls).keys():
                setattr(cls, name, vars(Mechanism)[name])

    def _values(self) -> dict[str, Any]:
        return {name: value for name in self._parameters if (value := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        """Show the call that makes this mechanism."""
        parameters = ", ".join(f"{name}={_shown(value)}" for name, value in self._values().items())
        return f"{type(self).__name__}({parameters})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), self._values())


def _shown(value: Any) -> str:
    """Show a parameter; of a function only the name, since its content may be private."""
    return str(getattr(value, "__qualname__", type(value).__qualname__)) if callable(value) else repr(value)


def _make(kind: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    return kind(**parameters)
