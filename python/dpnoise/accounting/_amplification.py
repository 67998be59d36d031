"""Costs that grow with the group, and shrink with the sample."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, Overflow

from dpnoise._errors import ParameterError
from dpnoise._parameters import at_least, integer, real_up
from dpnoise.accounting._cost import PrivacyCost, check_same_relation
from dpnoise.accounting._exact import above, exact_product, precise
from dpnoise.sensitivity import Relation


def group_privacy(cost: PrivacyCost, size: int) -> PrivacyCost:
    """Give the protection of a group of people.

    Parameters
    ----------
    cost : PrivacyCost
        What one person is promised.
    size : int
        In how many people the data sets differ, at least 1.

    Returns
    -------
    PrivacyCost
        ``size * epsilon``, and delta times ``(exp(size * epsilon) - 1) / (exp(epsilon) - 1)``, rounded up. The
        neighbour relation is that of ``cost``, taken ``size`` times.

    Raises
    ------
    ParameterError
        When the size is out of range, or nothing is left of the guarantee: the delta would be 1 or more.
    TypeError
        When ``size`` is not an integer.

    References
    ----------
    Vadhan (2017), "The complexity of differential privacy", lemma 2.2, with the geometric sum in full.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, group_privacy
    >>> group_privacy(PrivacyCost(0.25), 3)
    PrivacyCost(epsilon=0.75, delta=0.0)
    """
    people = integer(size, "size", range(1, 2**63))
    with precise():
        each = Decimal(cost.epsilon)
        total = exact_product(people, each)
        delta = 0.0
        if cost.delta:
            try:
                growth = (total.exp() - 1) / (each.exp() - 1) if each else Decimal(people)
            except Overflow:
                growth = Decimal("Infinity")
            delta = above(growth * Decimal(cost.delta)) if people > 1 else cost.delta
    if delta >= 1:
        raise ParameterError(f"size must be smaller for {cost}, got {people}: delta would be 1 or more")
    return PrivacyCost(at_least(total), delta, cost.relation)


def amplify_by_poisson_sampling(cost: PrivacyCost, *, sample_rate: float) -> PrivacyCost:
    """Give the cost of a release from a sample in which each person is, independently, with some probability.

    The sample must be secret.

    Parameters
    ----------
    cost : PrivacyCost
        What the release would cost whoever is in the sample, for neighbours that differ by one person who is added or
        removed.
    sample_rate : float
        The probability of each person to be in the sample, from 0 to 1.

    Returns
    -------
    PrivacyCost
        ``ln(1 + sample_rate * (exp(epsilon) - 1))`` and ``sample_rate * delta``, rounded up, for neighbours that differ
        by one person who is added or removed.

    Raises
    ------
    ParameterError
        When the rate is out of range, or the cost is for "substitute".

    References
    ----------
    Balle, Barthe and Gaboardi (2018), "Privacy amplification by subsampling: tight analyses via couplings and
    divergences", theorem 8.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, amplify_by_poisson_sampling
    >>> round(amplify_by_poisson_sampling(PrivacyCost(1.0, 1e-6), sample_rate=0.01).epsilon, 5)
    0.01704
    """
    share = real_up(sample_rate, "sample_rate")
    if not 0 <= share <= 1:
        raise ParameterError(f"sample_rate must be from 0 to 1, got {share!r}")
    with precise():
        return _amplified(cost, Decimal(share), "add/remove")


def amplify_by_sampling_without_replacement(cost: PrivacyCost, *, size: int, population: int) -> PrivacyCost:
    """Give the cost of a release from a sample of fixed size, every such sample being equally likely.

    The sample must be secret, and the number of people in the data public.

    Parameters
    ----------
    cost : PrivacyCost
        What the release would cost whoever is in the sample, for neighbours that differ by one person who is
        substituted.
    size, population : int
        How many people are in the sample, and of how many; from 1, the size at most the population.

    Returns
    -------
    PrivacyCost
        ``ln(1 + size / population * (exp(epsilon) - 1))`` and ``size / population * delta``, rounded up, for neighbours
        that differ by one person who is substituted.

    Raises
    ------
    ParameterError
        When a number is out of range, or the cost is for "add/remove".
    TypeError
        When ``size`` or ``population`` is not an integer.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), theorem 9.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, amplify_by_sampling_without_replacement
    >>> round(amplify_by_sampling_without_replacement(PrivacyCost(1.0), size=10, population=1000).epsilon, 5)
    0.01704
    """
    people = integer(population, "population", range(1, 2**63))
    chosen = integer(size, "size", range(1, people + 1))
    with precise():
        return _amplified(cost, Decimal(chosen) / people, "substitute")


def _amplified(cost: PrivacyCost, share: Decimal, relation: Relation) -> PrivacyCost:
    check_same_relation("cost", cost.relation, relation, "sample")
    if share == 1:
        return replace(cost, relation=relation)
    try:
        epsilon = above((1 + share * (Decimal(cost.epsilon).exp() - 1)).ln())
    except Overflow:  # beside such a number the share is nothing
        epsilon = cost.epsilon
    return PrivacyCost(min(epsilon, cost.epsilon), min(above(share * Decimal(cost.delta)), cost.delta), relation)
