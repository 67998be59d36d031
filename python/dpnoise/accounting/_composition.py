"""The joint cost of several releases."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any, Final, Literal, TypeAlias

from dpnoise._errors import ParameterError
from dpnoise._numbers import check_word, integer, items_of, real_down
from dpnoise._types import Integer, Number
from dpnoise.accounting._cost import (
    PrivacyCost,
    above,
    check_cost,
    common_neighbours,
    decimal_of,
    exact_of,
    precise,
    rounded_cost,
    sum_of,
    total_of,
    up,
)

Costs: TypeAlias = Iterable[PrivacyCost | Number] | PrivacyCost
"""The costs of several releases, or the cost of one."""

_MOST: Final = 10**6
"""Compositions that the optimal bound is summed over; it takes seconds for so many."""

_HUGE: Final = 10**9
"""Epsilons whose exponentials are no longer computed: the sum of all epsilons is given, which is nearly the best."""


def compose_sequential(costs: Costs, *more: PrivacyCost) -> PrivacyCost:
    """Add up the costs of releases from the same data, each of which may depend on those before it.

    Parameters
    ----------
    costs : iterable of PrivacyCost or float
        The cost of each release, for one neighbouring relation; a number is an epsilon, without a delta. Without any
        the sum is zero. Or the cost of the first release.
    *more : PrivacyCost
        The costs of the other releases, where ``costs`` is that of the first.

    Returns
    -------
    PrivacyCost
        The sums of the epsilons and of the deltas, as decimal numbers: three times 0.1 is 0.3. A sum of floats that no
        float represents is rounded up, and one with a fraction is exact. The costs and their sum have one neighbouring
        relation.

    Raises
    ------
    ParameterError
        When the deltas sum to 1 or more, or the epsilons to more than a float holds, or the costs are not all for one
        neighbouring relation.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov and Naor (2006), "Our data, ourselves", theorem 2; Dwork and Roth (2014), "The
    algorithmic foundations of differential privacy", theorem 3.16.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, compose_sequential
    >>> compose_sequential([PrivacyCost(0.1), PrivacyCost(0.2, 1e-6)])
    PrivacyCost(epsilon=0.3, delta=1e-06)
    >>> compose_sequential([0.1, 0.2])
    PrivacyCost(epsilon=0.3, delta=0.0)
    """
    return sum_of(_checked(costs, more))


def compose_parallel(costs: Costs, *more: PrivacyCost) -> PrivacyCost:
    """Return the joint cost of releases from disjoint parts of the data, one release from each part.

    Parameters
    ----------
    costs : iterable of PrivacyCost or float
        The cost of the release from each part, for one neighbouring relation; at least one. A number is an epsilon,
        without a delta. All rows of a person of a cost with a ``person`` are in one part. Or the cost of the first
        release.
    *more : PrivacyCost
        The costs of the other releases, where ``costs`` is that of the first.

    Returns
    -------
    PrivacyCost
        Under "add/remove" the largest epsilon and the largest delta, provided that a person's part does not depend on
        the other people. Under "substitute" two parts may change, so it is the sum of the two largest.

    References
    ----------
    McSherry (2009), "Privacy integrated queries", theorem 4.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, compose_parallel
    >>> compose_parallel([PrivacyCost(0.5), PrivacyCost(0.2, 1e-6)])
    PrivacyCost(epsilon=0.5, delta=1e-06, relation='add/remove')
    """
    all_costs = _checked(costs, more)
    if not all_costs:
        raise ParameterError("costs must have at least one element, got none")
    found, person = common_neighbours(all_costs)
    relation = found or "add/remove"
    changed = 1 if relation == "add/remove" else 2
    epsilons = sorted((cost.epsilon for cost in all_costs), key=exact_of)
    deltas = sorted((cost.delta for cost in all_costs), key=exact_of)
    return PrivacyCost(total_of(epsilons[-changed:]), total_of(deltas[-changed:]), relation, person)


def compose_advanced(
    cost: PrivacyCost | Number,
    count: Integer,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    method: Literal["optimal", "drv"] = "optimal",
) -> PrivacyCost:
    """Return the joint cost of many releases of the same cost, with a smaller epsilon for some delta.

    Exactly one of ``delta`` and ``epsilon`` is given; the other is computed, and never too small.

    Parameters
    ----------
    cost : PrivacyCost or float
        The cost of each release; a number is an epsilon, without a delta. Each release may depend on those before it.
    count : int
        The number of releases, from 1 to 10**6.
    delta : float, optional
        The delta of all releases together, from 0 and below 1. It must be at least the joint delta of the releases.
    epsilon : float, optional
        The epsilon of all releases together: zero or more, and finite.
    method : {"optimal", "drv"}, default "optimal"
        The best bound that holds for all releases of that cost (Kairouz, Oh and Viswanath), or the well-known one of
        Dwork, Rothblum and Vadhan, which is never better.

    Returns
    -------
    PrivacyCost
        The cost of all releases together, with the ``delta`` or ``epsilon`` that was given, for the neighbouring
        relation of ``cost``.

    Raises
    ------
    ParameterError
        When no epsilon suffices for so small a delta, or no delta below 1 for so small an epsilon.

    Notes
    -----
    For k releases of cost (epsilon, delta) the optimal bound is, for every e >= 0, ``(e, 1 - (1 - delta)^k (1 - d))``
    with ``d = sum over l of C(k, l) max(0, exp((k - l) epsilon) - exp(e + l epsilon)) / (1 + exp(epsilon))^k``.
    Kairouz, Oh and Viswanath state it for e = (k - 2i) epsilon; their proof gives it in between, where it is linear in
    exp(e). The other bound is ``epsilon sqrt(2 k ln(1/d)) + k epsilon (exp(epsilon) - 1)`` for a delta of
    ``k delta + d``, or the sum of the epsilons if that is less. Both are computed with 400 digits and rounded up.

    References
    ----------
    Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", theorem 3.3; Murtagh and
    Vadhan (2016), "The complexity of computing the optimal composition of differential privacy", theorem 1.4; Dwork,
    Rothblum and Vadhan (2010), "Boosting and differential privacy", theorem III.3.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, compose_advanced
    >>> round(compose_advanced(PrivacyCost(0.1), 100, delta=1e-6).epsilon, 3)
    4.775
    """
    cost = rounded_cost(cost, "cost")
    times = integer(count, "count", range(1, _MOST + 1))
    check_word(method, "method", "optimal", "drv")
    if (delta is None) == (epsilon is None):
        raise ParameterError("one of delta and epsilon must be given, and not both")
    with precise():
        if delta is not None:
            target = PrivacyCost(0.0, real_down(delta, "delta"))
            return PrivacyCost(_epsilon(cost, times, target.delta, method), target.delta, cost.relation, cost.person)
        target = PrivacyCost(real_down(epsilon, "epsilon"))
        return PrivacyCost(target.epsilon, _delta(cost, times, target.epsilon, method), cost.relation, cost.person)


def _checked(costs: Costs, more: tuple[PrivacyCost, ...]) -> list[PrivacyCost]:
    apart: tuple[Any, ...] = (costs, *more)
    if any(isinstance(cost, Real) for cost in apart):
        # Two numbers apart may be meant as the epsilon and the delta of one release.
        raise TypeError(
            "costs must be PrivacyCost, or one list of numbers, each an epsilon; got a number outside a list"
        )
    is_one = more or isinstance(costs, PrivacyCost)
    given: list[Any] = [*apart] if is_one else items_of(costs, "costs", "PrivacyCost or epsilons")
    return [check_cost(cost, "costs") for cost in given]


def _failure(cost: PrivacyCost, count: int, method: str) -> Decimal:
    """Return the joint delta of the releases themselves."""
    each = decimal_of(cost.delta)
    return count * each if method == "drv" else 1 - (1 - each) ** count


def _epsilon(cost: PrivacyCost, count: int, delta: float, method: str) -> float:
    each = decimal_of(cost.epsilon)
    total = count * each
    failure, target = _failure(cost, count, method), decimal_of(delta)
    if up(failure) > delta:
        raise ParameterError(f"delta must be at least {up(failure)!r} for {count} releases of {cost}, got {delta!r}")
    room = target - failure
    if room <= 0 or total > _HUGE:
        return up(total)
    if method == "drv":
        bound = each * (2 * count * (1 / room).ln()).sqrt() + total * (each.exp() - 1)
    else:
        bound = _optimal_epsilon(each, count, room / (1 - failure))
    return min(above(bound), up(total))


def _delta(cost: PrivacyCost, count: int, epsilon: float, method: str) -> float:
    each = decimal_of(cost.epsilon)
    total = count * each
    failure, target = _failure(cost, count, method), decimal_of(epsilon)
    if target >= total:
        slack = Decimal(0)
    elif total > _HUGE:
        slack = Decimal(1)
    elif method == "drv":
        spare = target - total * (each.exp() - 1)
        slack = (-spare * spare / (2 * count * each * each)).exp() if spare > 0 else Decimal(1)
    else:
        slack = _optimal_delta(each, count, target)
    delta = above(failure + slack if method == "drv" else failure + (1 - failure) * slack)
    if delta >= 1:
        raise ParameterError(
            f"epsilon must be larger for {count} releases of {cost}, got {epsilon!r}: delta would be 1"
        )
    return delta


def _optimal_epsilon(each: Decimal, count: int, delta: Decimal) -> Decimal:
    """Solve for the smallest epsilon: between two losses delta is linear in exp(epsilon)."""
    loss = count * each
    growth = each.exp()
    ratio = growth * growth
    first = (1 + 1 / growth) ** -count  # the probability of the largest loss, under one data set
    second = (1 + growth) ** -count  # and under its neighbour
    below = (loss - 2 * each).exp()  # exp of the next smaller loss
    more, less = first, second
    for taken in range(1, count // 2 + 1):
        if more - below * less >= delta:
            break
        first *= Decimal(count - taken + 1) / (taken * growth)
        second *= Decimal(count - taken + 1) * growth / taken
        more, less, below = more + first, less + second, below / ratio
    return max(((more - delta) / less).ln(), Decimal(0)) if more > delta else Decimal(0)


def _optimal_delta(each: Decimal, count: int, epsilon: Decimal) -> Decimal:
    """Sum over the losses above epsilon."""
    growth, threshold = each.exp(), epsilon.exp()
    first, second = (1 + 1 / growth) ** -count, (1 + growth) ** -count
    delta = Decimal(0)
    for taken in range(1, count + 2):
        if (count - 2 * (taken - 1)) * each <= epsilon:
            break
        delta += first - threshold * second
        first *= Decimal(count - taken + 1) / (taken * growth)
        second *= Decimal(count - taken + 1) * growth / taken
    return delta
