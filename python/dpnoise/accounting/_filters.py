"""Privacy filters: the rules by which a ledger grants releases whose costs may depend on the answers so far.

`docs/proofs/filters.md` has the theorems and their conditions.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic

from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, items_of, real_down
from dpnoise._types import Integer, Number
from dpnoise.accounting._accountant import Accountant
from dpnoise.accounting._cost import (
    QUICK,
    Cost,
    PrivacyCost,
    RenyiCost,
    ZcdpCost,
    above,
    amount_of,
    decimal_of,
    down,
    exact_of,
    finite,
    precise,
    read_amount,
    text_of,
    up,
)
from dpnoise.accounting._losses import ApproximateLoss, Mechanism, PrivacyLoss, charged, loss_of
from dpnoise.sensitivity import Relation

Amounts = tuple[Fraction, ...]
Guarantee = PrivacyCost | ZcdpCost | RenyiCost | PrivacyLoss | Mechanism
"""What a release may cost."""

if TYPE_CHECKING:  # which know defaults, and so take `Ledger` for a ledger of epsilon
    from typing_extensions import TypeVar

    AnyCost = TypeVar("AnyCost", PrivacyCost, ZcdpCost, RenyiCost, default=PrivacyCost)
else:
    from typing import TypeVar

    AnyCost = TypeVar("AnyCost", PrivacyCost, ZcdpCost, RenyiCost)

_ORDERS: Final = range(2, 2**10 + 1)
_MOST_ORDERS: Final = 64
_RATES: Final = (1, 2, 4, 8)
"""An odometer is tight when so many-th parts of the budget, squared, have been spent."""

_SLACK: Final = 1 + 2.0**-30  # above the rounding errors of a slack
_LARGEST: Final = 1e200  # of a Rényi divergence, so that every sum is a float


@dataclass(frozen=True)
class Filter(ABC, Generic[AnyCost]):
    """A rule that grants releases while their total stays within a budget; the amounts are exact numbers in text."""

    relation: Relation
    person: str | None
    budget: tuple[str, ...]

    kind: ClassVar[str]

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the amounts."""

    @property
    def limits(self) -> Amounts:
        return tuple(map(read_amount, self.budget))

    @property
    def description(self) -> str:
        """The budget as it is given to `Ledger`."""
        return ", ".join(
            f"{name}={amount_of(limit, name)!r}" for name, limit in zip(self.names, self.limits, strict=True)
        )

    @property
    def terms(self) -> str:
        """Everything that a ledger keeps of the rule."""
        return json.dumps({"filter": self.kind, **asdict(self)})

    def grants(self, totals: Amounts) -> bool:
        return all(total <= limit for total, limit in zip(totals, self.limits, strict=True))

    @abstractmethod
    def price(self, cost: Guarantee) -> Amounts:
        """Return the cost of a release, exactly or rounded up; refuse a cost of which no amount is known."""

    @abstractmethod
    def cost(self, amounts: Sequence[float]) -> AnyCost: ...

    @abstractmethod
    def odometer(self, totals: Amounts) -> PrivacyCost:
        """Bound the privacy loss of all releases so far, at every time at once."""


@dataclass(frozen=True)
class SequentialFilter(Filter[PrivacyCost]):
    """Sums of epsilons and of deltas (Rogers, Roth, Ullman and Vadhan 2016)."""

    kind = "epsilon"
    names = ("epsilon", "delta")

    @classmethod
    def of(cls, relation: Relation, person: str | None, epsilon: Number, delta: Number) -> SequentialFilter:
        budget = PrivacyCost(amount_of(epsilon, "epsilon", real_down), amount_of(delta, "delta", real_down))
        return cls(relation, person, _texts(budget.epsilon, budget.delta))

    def price(self, cost: Guarantee) -> Amounts:
        found: Any = cost if isinstance(cost, PrivacyCost) else loss_of(cost)
        if getattr(found, "epsilon", math.inf) == math.inf and not isinstance(cost, Cost | PrivacyLoss):
            found = cost.cost  # for the delta that the mechanism has
        if getattr(found, "epsilon", math.inf) == math.inf:
            raise ParameterError(
                f"cost must have an epsilon for a ledger of epsilon, got {cost!r}: it has one for every delta "
                f"(see dpnoise.accounting.zcdp_epsilon); a ledger of rho or of Rényi orders takes such costs"
            )
        return _exact(found.epsilon), _exact(found.delta)

    def cost(self, amounts: Sequence[float]) -> PrivacyCost:
        epsilon, delta = amounts
        return PrivacyCost(epsilon, delta, self.relation, self.person)

    def odometer(self, totals: Amounts) -> PrivacyCost:
        return self.cost([up(totals[0]), up(self.limits[1])])


@dataclass(frozen=True)
class ZcdpFilter(Filter[ZcdpCost]):
    """Sums of rhos and of deltas (Whitehouse, Ramdas, Rogers and Wu 2023)."""

    odometer_delta: str | None
    rates: tuple[str, ...]

    kind = "zcdp"
    names = ("rho", "delta")

    @classmethod
    def of(
        cls, relation: Relation, person: str | None, rho: Number, delta: Number, odometer_delta: Number | None
    ) -> ZcdpFilter:
        _positive(rho, "rho")
        budget = ZcdpCost(amount_of(rho, "rho", real_down), amount_of(delta, "delta", real_down))
        if odometer_delta is None:
            return cls(relation, person, _texts(budget.rho, budget.delta), None, ())
        failure = real_down(odometer_delta, "odometer_delta")
        if not 0 < failure < 1 or up(exact_of(failure) + exact_of(budget.delta)) >= 1:
            raise ParameterError(f"odometer_delta must be above 0 and below 1 - delta, got {failure!r}")
        best = math.sqrt(-math.log(failure)) / math.sqrt(budget.rho)
        rates = _texts(*(factor * best for factor in _RATES))
        return cls(relation, person, _texts(budget.rho, budget.delta), repr(failure), rates)

    def price(self, cost: Guarantee) -> Amounts:
        found: Any = _stated(cost) or loss_of(cost)
        if getattr(found, "rho", math.inf) == math.inf:
            raise ParameterError(
                f"cost must have a rho for a ledger of rho, got {cost!r}, for which none is known; a ledger of Rényi "
                f"orders takes such costs"
            )
        return _exact(found.rho), _exact((cost if isinstance(cost, PrivacyCost) else found).delta)

    def cost(self, amounts: Sequence[float]) -> ZcdpCost:
        rho, delta = amounts
        return ZcdpCost(rho, delta, self.relation, self.person)

    def odometer(self, totals: Amounts) -> PrivacyCost:
        if self.odometer_delta is None:
            raise ParameterError("odometer_delta must be given when a ledger of rho is made, for an odometer")
        with precise(QUICK):
            bounds = [((1 + rate) * _decimal(totals[0]), rate) for rate in map(Decimal, self.rates)]
            epsilon = 0.0 if not totals[0] else above(_at_any_time(bounds, Decimal(self.odometer_delta)))
            failure = Fraction(self.odometer_delta) + self.limits[1]
            return PrivacyCost(epsilon, up(failure), self.relation, self.person)


@dataclass(frozen=True)
class RenyiFilter(Filter[RenyiCost]):
    """Sums of Rényi divergences, of which one must stay within its budget; each order has its share of delta."""

    epsilon: str
    delta: str
    orders: tuple[int, ...]

    kind = "renyi"

    @classmethod
    def of(
        cls, relation: Relation, person: str | None, epsilon: Number, delta: Number, orders: Iterable[Integer]
    ) -> RenyiFilter:
        chosen = tuple(sorted({integer(order, "orders", _ORDERS) for order in items_of(orders, "orders", "integers")}))
        if not 1 <= len(chosen) <= _MOST_ORDERS:
            raise ParameterError(f"orders must be from 1 to {_MOST_ORDERS} different integers, got {len(chosen)}")
        target, failure = _positive(epsilon, "epsilon"), real_down(delta, "delta")
        if not 0 < failure < 1:
            raise ParameterError(f"delta must be above 0 and below 1 for a ledger of Rényi orders, got {failure!r}")
        with precise(QUICK):
            share, budget = decimal_of(failure) / len(chosen), []
            for order in map(Decimal, chosen):
                room = decimal_of(target) + (order * share).ln() / (order - 1) - (1 - 1 / order).ln()
                if room <= 0:
                    raise ParameterError(
                        f"orders must be larger for epsilon={target!r} and delta={failure!r}, got {order}: no release "
                        f"has so small a divergence of this order"
                    )
                budget.append(repr(math.nextafter(down(room), 0.0)))
        return cls(relation, person, tuple(budget), repr(target), repr(failure), chosen)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"order_{order}" for order in self.orders)

    @property
    def description(self) -> str:
        return f"epsilon={self.epsilon}, delta={self.delta}, orders={self.orders!r}"

    def grants(self, totals: Amounts) -> bool:
        return any(total <= limit for total, limit in zip(totals, self.limits, strict=True))

    def price(self, cost: Guarantee) -> Amounts:
        found: Any = loss_of(cost)
        if isinstance(found, ApproximateLoss):
            found = _stated(cost) or found
        divergences: list[Any]
        if isinstance(found, RenyiCost):
            if not set(self.orders) <= set(found.divergences):
                raise ParameterError(f"cost must have the ledger's orders, {self.orders}, got {cost!r}")
            divergences = [found.divergences[order] for order in self.orders]
        elif found.delta:
            raise ParameterError(
                f"cost must have a delta of 0 for a ledger of Rényi orders, got {cost!r}; a ledger of epsilon or of "
                f"rho takes such costs"
            )
        elif isinstance(found, ZcdpCost):
            divergences = [order * exact_of(found.rho) for order in self.orders]
        else:
            divergences = [_divergence(found, order) for order in self.orders]
        if max(divergences) > _LARGEST:
            raise ParameterError(f"cost must have Rényi divergences up to {_LARGEST:g}, got {cost!r}")
        return tuple(map(_exact, divergences))

    def cost(self, amounts: Sequence[float]) -> RenyiCost:
        return RenyiCost(dict(zip(self.orders, amounts, strict=True)), self.relation, self.person)

    def odometer(self, totals: Amounts) -> PrivacyCost:
        with precise(QUICK):
            bounds = [(_decimal(total), Decimal(order - 1)) for total, order in zip(totals, self.orders, strict=True)]
            epsilon = 0.0 if not any(totals) else above(_at_any_time(bounds, Decimal(self.delta)))
            return PrivacyCost(epsilon, float(self.delta), self.relation, self.person)


_FILTERS: Final[dict[str, type[Filter[Any]]]] = {
    rule.kind: rule for rule in (SequentialFilter, ZcdpFilter, RenyiFilter)
}


@lru_cache(maxsize=64)
def filter_of(terms: str) -> Filter[Any]:
    """Make the rule again from what a ledger has kept of it."""
    values = json.loads(terms)
    rule: Any = _FILTERS[values.pop("filter")]
    made: Filter[Any] = rule(**{name: tuple(one) if isinstance(one, list) else one for name, one in values.items()})
    return made


def checked_cost(cost: Any) -> Any:
    """Return what `charged` does; refuse an accountant."""
    if isinstance(cost, Accountant):
        raise TypeError(
            "cost must be a PrivacyCost or a mechanism, got Accountant: its total bounds releases that are fixed "
            "beforehand, and is no filter. Spend PrivacyCost(accountant.epsilon(delta), delta) before the first of them"
        )
    return charged(cost, "cost")


def _stated(cost: Any) -> ZcdpCost | None:
    """Return what a mechanism was made with, a decimal number: its loss has the scale, a binary one."""
    return cost._zcdp() if hasattr(cost, "_zcdp") else None


def _exact(amount: Number) -> Fraction:
    return exact_of(finite(amount, "cost", amount_of))


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / exact.denominator


@lru_cache(maxsize=4096)
def _divergence(loss: PrivacyLoss, order: int) -> float:
    """Add the error of a divergence: a factor of at most exp(slack) in every probability."""
    divergence, slack = loss.divergence(order), loss.rdp_slack * _SLACK
    if math.inf in (divergence, slack) or not slack:
        return divergence + slack
    return up(Fraction(divergence) + Fraction(slack) * (2 * order - 1) / (order - 1))


def _at_any_time(bounds: list[tuple[Decimal, Decimal]], failure: Decimal) -> Decimal:
    """Return the least of the bounds by Ville's inequality: divergences of orders, and the orders less 1."""
    spread = (len(bounds) / failure).ln()
    return min(divergence + spread / rate for divergence, rate in bounds)


def _positive(value: Number, name: str) -> float:
    number = real_down(value, name)
    if not 0 < number < math.inf:
        raise ParameterError(f"{name} must be positive and finite, got {number!r}")
    return number


def _texts(*amounts: float) -> tuple[str, ...]:
    return tuple(text_of(exact_of(amount)) for amount in amounts)
