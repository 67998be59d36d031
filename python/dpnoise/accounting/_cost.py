"""The cost of releases, and arithmetic that cannot lose privacy: exact sums, and results that are rounded up.

In compositions a float stands for the decimal number that Python prints for it, so 0.1 is one tenth: ten times 0.1 is
exactly 1.0. Elsewhere a float has its exact value. `docs/proofs/accounting.md` has the consequences, and the bounds on
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, Overflow, localcontext
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dpnoise._display import Record, html_table
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real_up
from dpnoise._types import Number
from dpnoise.sensitivity import Relation, check_person, check_relation

_EXACT: Final = Context(prec=1100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, Overflow])
"""Room for every sum of fewer than 10**400 floats, from 1e-340 to 1e309: an inexact one would raise."""

_PRECISE: Final = 400
"""Digits, enough to tell 1 + x from 1 for every float x, with 60 digits to spare."""

QUICK: Final = 100
"""Digits, enough to tell 1 + x from 1 for every x above 1e-60, with 40 digits to spare."""


def decimal_of(value: float) -> Decimal:
    """Return the decimal number that a float stands for."""
    return Decimal(repr(value))


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    """Add without rounding, so that the order does not matter."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    return total


def exact_difference(first: Decimal, second: Decimal) -> Decimal:
    return _EXACT.subtract(first, second)


def exact_product(factor: int, value: Decimal) -> Decimal:
    return _EXACT.multiply(Decimal(factor), value)


def precise(digits: int = _PRECISE) -> AbstractContextManager[Context]:
    """Compute with so many digits within this context."""
    return localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Overflow]))


def up(exact: Decimal | Fraction) -> float:
    """Return the smallest float that stands for `exact` or more; infinity when there is none."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    if math.isinf(nearest) or decimal_of(nearest) >= exact:
        return nearest
    return math.nextafter(nearest, math.inf)


def down(exact: Decimal) -> float:
    """Return the largest float that stands for `exact` or less, for an `exact` that is not negative."""
    nearest = float(exact)
    return nearest if decimal_of(nearest) <= exact else math.nextafter(nearest, 0.0)


def above(approximate: Decimal) -> float:
    """Return a float above the number whose first 60 digits or more are `approximate`; zero for zero."""
    return math.nextafter(float(approximate), math.inf) if approximate else 0.0


class Cost(Record):
    """The base class of costs: dataclasses of amounts, and of the relation and the person that they are for."""

    __slots__ = ()

    def plain(self) -> Any:
        """Return what is charged: the numbers that it was made with, checked again, without what a subclass adds."""
        kind = next(one for one in type(self).__mro__ if one.__module__ == __name__)
        return kind(**{one.name: vars(self)[one.name] for one in fields(kind)})

    def amounts(self) -> str:
        """Show the amounts as they are given to the class."""
        return ", ".join(f"{name}={value}" for name, value in vars(self).items() if name not in ("relation", "person"))

    def _repr_html_(self) -> str:
        # Exact numbers, since a rounded cost might be one below it.
        shown = {name: str(value) for name, value in vars(self).items() if value is not None}
        return html_table(type(self).__name__, {"attribute": list(shown), "value": list(shown.values())})

    def __repr__(self) -> str:
        """Show the call that makes this cost."""
        given = ((name, value) for name, value in vars(self).items() if value is not None)
        shown = (f"{name}={repr(value) if isinstance(value, str) else value}" for name, value in given)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class PrivacyCost(Cost):
    """A guarantee of (epsilon, delta)-differential privacy, for one neighbouring relation.

    Parameters
    ----------
    epsilon : float
        The bound on the privacy loss: zero or more, and finite.
    delta : float, default 0.0
        The probability with which the bound may fail, from 0 up to, but not including, 1.
    relation : str, optional
        Which data sets are neighbours: `"add/remove"`: one row is added or removed; `"substitute"`: one row is
        replaced. By default the relation is that of a sensitivity that the caller has stated. Costs of different
        relations do not add up.
    person : str, optional
        The name of the column that says whose a row is: neighbours then differ by all rows of one person, who is added
        or removed, and ``relation`` is `"add/remove"`. By default each row is a person of its own. Costs for rows and
        for persons do not add up.

    Notes
    -----
    A number that no float can hold is rounded up.

    ``cost + other``, and ``sum`` of an iterable of costs, is the cost of releases from the same data: the sums of the
    epsilons and of the deltas, as by `compose_sequential`, which rounds once where ``sum`` rounds each time. Costs of
    different relations or persons, and costs whose deltas add up to 1, raise a `ParameterError`.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> Laplace(epsilon=0.5).cost
    PrivacyCost(epsilon=0.5, delta=0.0)
    >>> Laplace(epsilon=0.5).cost + Laplace(epsilon=0.1).cost
    PrivacyCost(epsilon=0.6, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0
    relation: Relation | None = None
    person: str | None = None

    if TYPE_CHECKING:  # what it keeps is a float

        def __init__(
            self, epsilon: Number, delta: Number = 0.0, relation: Relation | None = None, person: str | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check the ranges of epsilon and delta."""
        _check(self, "epsilon")

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        """Return the cost of both releases, from the same data."""
        return sum_of([self, other]) if isinstance(other, PrivacyCost) else NotImplemented

    def __radd__(self, other: int) -> PrivacyCost:
        """Return this cost for 0, with which `sum` begins."""
        return self if type(other) is int and other == 0 else NotImplemented


@dataclass(frozen=True, repr=False)
class ZcdpCost(Cost):
    """A guarantee of delta-approximate rho-zero-concentrated differential privacy, for one neighbouring relation.

    Parameters
    ----------
    rho : float
        The parameter of zero-concentrated differential privacy: zero or more, and finite; rounded up to a float.
    delta : float, default 0.0
        The probability with which that guarantee may fail, from 0 up to, but not including, 1; rounded up to a float.
    relation : str, optional
        Which data sets are neighbours: `"add/remove"`: one row is added or removed; `"substitute"`: one row is
        replaced. By default the relation is that of a sensitivity that the caller has stated. Costs of different
        relations do not add up.
    person : str, optional
        The name of the column that says whose a row is: neighbours then differ by all rows of one person, who is added
        or removed, and ``relation`` is `"add/remove"`. By default each row is a person of its own. Costs for rows and
        for persons do not add up.

    References
    ----------
    Bun and Steinke (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds",
    definitions 1.1 and 8.1.
    """

    rho: float
    delta: float = 0.0
    relation: Relation | None = None
    person: str | None = None

    if TYPE_CHECKING:  # what it keeps is a float

        def __init__(
            self, rho: Number, delta: Number = 0.0, relation: Relation | None = None, person: str | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check the ranges of rho and delta."""
        _check(self, "rho")


@dataclass(frozen=True, repr=False)
class RenyiCost(Cost):
    """Bounds on the Rényi divergences of a release, for one neighbouring relation.

    Parameters
    ----------
    divergences : mapping of int to float
        For each order, an integer of at least 2, a bound on the Rényi divergence of that order: zero or more, and
        finite; rounded up to a float. There is at least one. The mapping is copied, and the attribute is read-only.
    relation : str, optional
        Which data sets are neighbours: `"add/remove"`: one row is added or removed; `"substitute"`: one row is
        replaced. By default the relation is that of a sensitivity that the caller has stated. Costs of different
        relations do not add up.
    person : str, optional
        The name of the column that says whose a row is: neighbours then differ by all rows of one person, who is added
        or removed, and ``relation`` is `"add/remove"`. By default each row is a person of its own. Costs for rows and
        for persons do not add up.

    References
    ----------
    Mironov (2017), "Rényi differential privacy", definition 4.
    """

    divergences: Mapping[int, float]
    relation: Relation | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        """Check the orders and the divergences."""
        if not isinstance(self.divergences, Mapping) or not self.divergences:
            raise TypeError(f"divergences must be a mapping of orders to numbers, got {self.divergences!r:.60}")
        checked = {}
        for order, value in sorted(self.divergences.items()):
            name = f"divergences[{order!r}]"
            checked[integer(order, "divergences: an order", range(2, 2**53))] = finite(value, name)
        _check_neighbours(self)
        object.__setattr__(self, "divergences", MappingProxyType(checked))

    def __hash__(self) -> int:
        return hash((tuple(self.divergences.items()), self.relation, self.person))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the divergences as a dict: what protects them from changes cannot be pickled."""
        return type(self), (dict(self.divergences), self.relation, self.person)


def finite(value: Number, name: str, read: Callable[[Any, str], float] = real_up) -> float:
    number = read(value, name)
    if not (math.isfinite(number) and number >= 0):
        raise ParameterError(f"{name} must be zero or more and finite, got {number!r}")
    return number


def _check(cost: PrivacyCost | ZcdpCost, name: str) -> None:
    """Check a cost with a delta, and round its numbers up to floats."""
    amount, delta = finite(getattr(cost, name), name), real_up(cost.delta, "delta")
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {delta!r}")
    _check_neighbours(cost)
    object.__setattr__(cost, name, amount)
    object.__setattr__(cost, "delta", delta)


def _check_neighbours(cost: PrivacyCost | ZcdpCost | RenyiCost) -> None:
    if cost.relation is not None:
        check_relation(cost.relation)
    check_person(cost.person, cost.relation)


def check_cost(cost: PrivacyCost, name: str) -> PrivacyCost:
    if not isinstance(cost, PrivacyCost):
        raise TypeError(f"{name} must be of type PrivacyCost, as `cost` of a mechanism is, got {cost!r:.60}")
    return cost


def sum_of(costs: list[PrivacyCost]) -> PrivacyCost:
    epsilon = up(exact_sum(decimal_of(cost.epsilon) for cost in costs))
    delta = up(exact_sum(decimal_of(cost.delta) for cost in costs))
    return PrivacyCost(epsilon, delta, *common_neighbours(costs))


def common_neighbours(costs: Iterable[PrivacyCost]) -> tuple[Relation | None, str | None]:
    """Return the relation and the person that costs have in common, None where all leave it open; refuse a mixture."""
    found = {(cost.relation, cost.person) for cost in costs if cost.relation is not None}
    if len({relation for relation, _ in found}) > 1:
        raise ParameterError(
            'costs must be for one neighbouring relation, got "add/remove" and "substitute": give the queries the same '
            "relation="
        )
    if len(found) > 1:
        mixture = " and ".join(sorted(unit_of(person) for _, person in found))
        raise ParameterError(f"costs must be all for rows or for the same persons, got {mixture}: ask with one person=")
    return found.pop() if found else (None, None)


def check_neighbours(what: str, given: Any, relation: Relation, person: str | None, owner: str) -> None:
    """Refuse what is for another relation or other persons than a ledger or accountant.

    A sensitivity that the caller has stated goes with all of them.
    """
    if given.relation not in (None, relation):
        raise ParameterError(
            f'{what} must be for the neighbouring relation of the {owner}, "{relation}", got "{given.relation}": '
            "a replaced row is one removed and one added"
        )
    if given.person != person and (given.relation, given.person) != (None, None):
        ask = "a Table without person" if person is None else f"Table(..., person={person!r}, rows=...)"
        raise ParameterError(
            f"{what} must be for {unit_of(person)}, as the {owner} is, got one for {unit_of(given.person)}: ask by "
            f"{ask}, or make the {owner} with person={given.person!r}"
        )


def unit_of(person: str | None) -> str:
    return "rows" if person is None else f"the persons of {person!r}"
