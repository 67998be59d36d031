"""The cost of releases, and arithmetic that cannot lose privacy: exact sums, and results that are rounded up.

In compositions a float stands for the decimal number that Python prints for it, so 0.1 is one tenth: ten times 0.1 is
exactly 1.0. What no float stands for, such as a third, is a fraction. Elsewhere a float has its exact value.
`docs/proofs/accounting.md` has the consequences, and the bounds on rounding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, Overflow, localcontext
from fractions import Fraction
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dpnoise._display import Record, html_table
from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, fraction_of, integer, real_up
from dpnoise._types import Integer, Number
from dpnoise.sensitivity import Relation, check_person, check_relation

_EXACT: Final = Context(prec=800, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact])
"""Room for every decimal number below 1e309 of 400 decimals or fewer: an inexact one would raise."""

FINEST: Final = 10**400
"""The largest denominator of an amount: every decimal number that a float stands for has a smaller one."""

_WRITTEN: Final = re.compile(r"[0-9]{1,800}((\.[0-9]{1,800})?(E[+-]?[0-9]{1,3})?|/[1-9][0-9]{0,400})")
"""The decimal numbers and quotients that amounts are written as."""

_MOST_PARTS: Final = 10**6

_LARGEST_DELTA: Final = 1 - Fraction(1, 10**16)  # the number that the float below 1 stands for

_PRECISE: Final = 400
"""Digits, enough to tell 1 + x from 1 for every float x, with 60 digits to spare."""

QUICK: Final = 100
"""Digits, enough to tell 1 + x from 1 for every x above 1e-60, with 40 digits to spare."""


def decimal_of(value: float) -> Decimal:
    """Return the decimal number that a float stands for."""
    return Decimal(repr(value))


def exact_of(amount: float | Fraction) -> Fraction:
    """Return the number that an amount stands for."""
    return amount if isinstance(amount, Fraction) else Fraction(decimal_of(amount))


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Add without rounding, so that the order does not matter; above a denominator of `FINEST`, round up to it."""
    total = sum(amounts, Fraction())
    return total if total.denominator <= FINEST else Fraction(math.ceil(total * FINEST), FINEST)


def text_of(exact: Fraction) -> str:
    """Write a decimal number as such, and every other fraction as a quotient."""
    with localcontext(_EXACT):
        return str(Decimal(exact.numerator) / exact.denominator) if FINEST % exact.denominator == 0 else str(exact)


def read_amount(text: str) -> Fraction:
    """Return the amount that `text_of` has written; other text raises ValueError, before a huge power is computed."""
    if not _WRITTEN.fullmatch(text):
        raise ValueError("no amount")
    return Fraction(text)


def seen(exact: Fraction, rounded: Callable[[Fraction], float]) -> float:
    """Return an amount as people see it: a rounded float, but a fraction for what a cost keeps as one."""
    kept = exact.denominator <= FINEST and FINEST % exact.denominator
    return exact if kept else rounded(exact)  # type: ignore[return-value] # as in a cost


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


def down(exact: Decimal | Fraction) -> float:
    """Return the largest float that stands for `exact` or less, for an `exact` that is not negative."""
    nearest = float(exact)
    return nearest if decimal_of(nearest) <= exact else math.nextafter(nearest, 0.0)


def upward(exact: Decimal | Fraction) -> float:
    """Round up, whether the float is then read as the number that it is or as the decimal number that it stands for."""
    return max(up(exact), at_least(exact))


def above(approximate: Decimal) -> float:
    """Return a float above the number whose first 60 digits or more are `approximate`; zero for zero."""
    return math.nextafter(float(approximate), math.inf) if approximate else 0.0


_NEIGHBOURS: Final = ("relation", "person")


class Cost(Record):
    """The base class of costs: dataclasses of amounts, and of the relation and the person that they are for."""

    __slots__ = ()

    def plain(self) -> Any:
        """Return what is charged: the numbers that it was made with, checked again, without what a subclass adds."""
        kind = next(one for one in type(self).__mro__ if one.__module__ == __name__)
        return kind(**{one.name: vars(self)[one.name] for one in fields(kind)})

    def split(self, parts: Integer) -> list[Any]:
        """Divide the cost, or the budget that it is, into parts that add up to it exactly.

        The parts are as equal as short decimal numbers can be: they differ by one unit of the 15th digit. So each is a
        float that a mechanism can have, and a `Ledger` of the whole grants all of them. What has more than 15 digits,
        or is a fraction, is divided into equal fractions.

        Parameters
        ----------
        parts : int
            The number of parts, from 1 to 10**6.

        Returns
        -------
        list of PrivacyCost, ZcdpCost or RenyiCost
            The parts, of the class, the relation and the person of this cost.

        Raises
        ------
        ParameterError
            When a part would be a fraction with a denominator above 10**400, which no cost keeps.

        Examples
        --------
        >>> from dpnoise.accounting import PrivacyCost
        >>> PrivacyCost(1.0).split(3)  # doctest: +NORMALIZE_WHITESPACE
        [PrivacyCost(epsilon=0.333333333333334, delta=0.0),
         PrivacyCost(epsilon=0.333333333333333, delta=0.0),
         PrivacyCost(epsilon=0.333333333333333, delta=0.0)]
        """
        count, whole = integer(parts, "parts", range(1, _MOST_PARTS + 1)), self.plain()
        shares = {name: _shares(value, count) for name, value in vars(whole).items() if name not in _NEIGHBOURS}
        return [replace(whole, **dict(zip(shares, one, strict=True))) for one in zip(*shares.values(), strict=True)]

    def numbers(self) -> list[float]:
        """Return the amounts."""
        return [value for name, value in vars(self).items() if name not in _NEIGHBOURS]

    def amounts(self) -> str:
        """Show the amounts as they are given to the class."""
        return ", ".join(f"{name}={_shown(value)}" for name, value in vars(self).items() if name not in _NEIGHBOURS)

    def _repr_html_(self) -> str:
        # Exact numbers, since a rounded cost might be one below it.
        shown = {name: str(value) for name, value in vars(self).items() if value is not None}
        return html_table(type(self).__name__, {"attribute": list(shown), "value": list(shown.values())})

    def __repr__(self) -> str:
        """Show the call that makes this cost."""
        given = (f"{name}={_shown(value)}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class PrivacyCost(Cost):
    """A guarantee of (epsilon, delta)-differential privacy, for one neighbouring relation.

    Parameters
    ----------
    epsilon : float or Fraction
        The bound on the privacy loss: zero or more, and finite. A fraction is kept, unless a float stands for it.
    delta : float or Fraction, default 0.0
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
    A float stands for the decimal number that Python prints for it. A number of another type that no float can hold is
    rounded up, and so is a fraction whose denominator is above 10**400.

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

    if TYPE_CHECKING:  # what it keeps is a float, or a fraction where one was given

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
    rho : float or Fraction
        The parameter of zero-concentrated differential privacy: zero or more, and finite. A fraction is kept, unless a
        float stands for it; a number of another type is rounded up to a float.
    delta : float or Fraction, default 0.0
        The probability with which that guarantee may fail, from 0 up to, but not including, 1.
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

    if TYPE_CHECKING:  # what it keeps is a float, or a fraction where one was given

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
    divergences : mapping of int to float or Fraction
        For each order, an integer of at least 2, a bound on the Rényi divergence of that order: zero or more, and
        finite. A fraction is kept, unless a float stands for it; a number of another type is rounded up to a float.
        There is at least one. The mapping is copied, and the attribute is read-only.
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
            checked[integer(order, "divergences: an order", range(2, 2**53))] = finite(value, name, amount_of)
        _check_neighbours(self)
        object.__setattr__(self, "divergences", MappingProxyType(checked))

    def numbers(self) -> list[float]:
        """Return the divergences, by rising orders."""
        return [*self.divergences.values()]

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


def amount_of(value: Number, name: str, read: Callable[[Any, str], float] = real_up) -> Any:
    """Keep a fraction, unless a float stands for it; round all else to a float, in both meanings of one."""
    if isinstance(value, Fraction):
        value = Fraction(value)  # of a class of the caller's
    rounded = read(value, name)
    if isinstance(value, float) or not math.isfinite(rounded):
        return rounded
    if isinstance(value, Fraction) and value.denominator <= FINEST:
        return nearest if exact_of(nearest := float(value)) == value else value
    exact = fraction_of(value)
    return upward(exact) if rounded > exact else rounded


def _check(cost: PrivacyCost | ZcdpCost, name: str) -> None:
    """Check a cost with a delta, and keep or round its numbers."""
    amount, delta = finite(getattr(cost, name), name, amount_of), amount_of(cost.delta, "delta")
    if not 0 <= delta <= _LARGEST_DELTA:
        raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {delta!r}")
    _check_neighbours(cost)
    object.__setattr__(cost, name, amount)
    object.__setattr__(cost, "delta", delta)


def _shares(whole: Any, count: int) -> list[Any]:
    """Divide an amount, or each of several."""
    if isinstance(whole, Mapping):
        columns = [_shares(value, count) for value in whole.values()]
        return [dict(zip(whole, one, strict=True)) for one in zip(*columns, strict=True)]
    if isinstance(whole, float) and whole:
        unit = Fraction(10) ** (math.floor(math.log10(whole) - math.log10(count)) - 14)
        each, more = divmod(exact_of(whole) / unit, count)
        if more.denominator == 1:
            return [(each + (index < more)) * unit for index in range(count)]
    share = exact_of(whole) / count
    if share.denominator > FINEST:
        raise ParameterError(f"parts must be fewer for an amount with so large a denominator, got {count}")
    return [share] * count


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | Fraction) else str(value)


def _check_neighbours(cost: PrivacyCost | ZcdpCost | RenyiCost) -> None:
    if cost.relation is not None:
        check_relation(cost.relation)
    check_person(cost.person, cost.relation)


def check_cost(cost: PrivacyCost | Number, name: str) -> PrivacyCost:
    """Return a cost; a number is the epsilon of one whose delta is 0."""
    if isinstance(cost, Real) and not isinstance(cost, bool):
        return PrivacyCost(finite(cost, name, amount_of))
    if not isinstance(cost, PrivacyCost):
        raise TypeError(
            f"{name} must be of type PrivacyCost, as `cost` of a mechanism is, or an epsilon, got {cost!r:.60}"
        )
    return cost


def rounded_cost(cost: PrivacyCost | Number, name: str) -> PrivacyCost:
    """Return a cost in floats, rounded up, for a conversion."""
    rounded: PrivacyCost = in_floats(check_cost(cost, name))
    return rounded


def in_floats(cost: Cost) -> Any:
    """Return a cost of any kind in floats, rounded up."""
    plain = cost.plain()
    return replace(plain, **{name: _in_floats(value) for name, value in vars(plain).items()})


def _in_floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {order: _in_floats(divergence) for order, divergence in value.items()}
    return upward(value) if isinstance(value, Fraction) else value


def sum_of(costs: list[PrivacyCost]) -> PrivacyCost:
    epsilon, delta = total_of([cost.epsilon for cost in costs]), total_of([cost.delta for cost in costs])
    return PrivacyCost(epsilon, delta, *common_neighbours(costs))


def total_of(amounts: list[float]) -> Number:
    """Add amounts, exactly if one is a fraction, and otherwise rounded up to a float."""
    total = exact_sum(map(exact_of, amounts))
    return total if any(isinstance(amount, Fraction) for amount in amounts) else up(total)


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
