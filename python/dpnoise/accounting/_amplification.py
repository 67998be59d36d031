"""Group privacy, and amplification by subsampling and by shuffling."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, Overflow
from fractions import Fraction

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, integer, real_down, real_up
from dpnoise._types import Integer, Number
from dpnoise.accounting._cost import PrivacyCost, above, check_neighbours, precise, rounded_cost
from dpnoise.sensitivity import Relation


def group_privacy(cost: PrivacyCost | Number, size: Integer) -> PrivacyCost:
    """Return the cost to a group of people.

    Parameters
    ----------
    cost : PrivacyCost or float
        The cost to one person; a number is an epsilon, without a delta.
    size : int
        The number of people in whom the data sets differ, at least 1.

    Returns
    -------
    PrivacyCost
        ``size * epsilon``, and delta times ``(exp(size * epsilon) - 1) / (exp(epsilon) - 1)``, rounded up. Neighbours
        are data sets that the relation of ``cost`` connects in ``size`` steps.

    Raises
    ------
    ParameterError
        When the guarantee becomes void: the delta would be 1 or more.

    References
    ----------
    Vadhan (2017), "The complexity of differential privacy", lemma 2.2, with the geometric sum in full.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, group_privacy
    >>> group_privacy(PrivacyCost(0.25), 3)
    PrivacyCost(epsilon=0.75, delta=0.0)
    >>> group_privacy(1.0, 4)
    PrivacyCost(epsilon=4.0, delta=0.0)
    """
    people = integer(size, "size", range(1, 2**63))
    cost = rounded_cost(cost, "cost")
    with precise():
        each = Decimal(cost.epsilon)
        total = people * each
        delta = 0.0
        if cost.delta:
            try:
                growth = (total.exp() - 1) / (each.exp() - 1) if each else Decimal(people)
            except Overflow:
                growth = Decimal("Infinity")
            delta = above(growth * Decimal(cost.delta)) if people > 1 else cost.delta
    if delta >= 1:
        raise ParameterError(f"size must be smaller for {cost}, got {people}: delta would be 1 or more")
    return PrivacyCost(at_least(people * Fraction(cost.epsilon)), delta, cost.relation, cost.person)


def amplify_by_poisson_sampling(cost: PrivacyCost | Number, *, sample_rate: Number) -> PrivacyCost:
    """Return the cost of a release from a sample in which each person is, independently, with some probability.

    The sample must be secret.

    Parameters
    ----------
    cost : PrivacyCost or float
        The cost of the release to a person in the sample, for neighbours that differ by one person who is added or
        removed; a number is an epsilon, without a delta.
    sample_rate : float
        The probability of each person to be in the sample, with all rows, from 0 to 1.

    Returns
    -------
    PrivacyCost
        ``ln(1 + sample_rate * (exp(epsilon) - 1))`` and ``sample_rate * delta``, rounded up, for neighbours that differ
        by one person who is added or removed.

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


def amplify_by_sampling_without_replacement(
    cost: PrivacyCost | Number, *, size: Integer, population: Integer
) -> PrivacyCost:
    """Return the cost of a release from a sample of fixed size, every such sample being equally likely.

    The sample must be secret, and the number of people in the data public.

    Parameters
    ----------
    cost : PrivacyCost or float
        The cost of the release to a person in the sample, for neighbours that differ by one person who is substituted;
        a number is an epsilon, without a delta.
    size : int
        The number of people in the sample, from 1 to ``population``.
    population : int
        The number of people from whom the sample is drawn, at least 1.

    Returns
    -------
    PrivacyCost
        ``ln(1 + size / population * (exp(epsilon) - 1))`` and ``size / population * delta``, rounded up, for neighbours
        that differ by one person who is substituted.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), "Privacy amplification by subsampling: tight analyses via couplings and
    divergences", theorem 9.

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


@dataclass(frozen=True, kw_only=True, repr=False)
class ShuffledCost(PrivacyCost):
    """The cost of shuffled reports, with the bound that gave its epsilon: the smallest one that holds.

    It takes the place of a `PrivacyCost` wherever one is asked for.

    Attributes
    ----------
    epsilon : float
        The bound on the privacy loss: zero or more, and finite.
    delta : float
        The probability with which the bound may fail, from 0 up to, but not including, 1.
    relation : str
        The neighbouring relation, ``"substitute"`` for shuffled reports: one person has another value.
    person : None
        Each report is a person of its own.
    bound : str
        ``"blanket"``, the part that a protocol's reports on all values have in common, from its exact probabilities;
        ``"binary"``, that of every randomiser of one of two values; ``"clones"``, that of every randomiser; or
        ``"local"``, the epsilon of a single report, where none of these is below it.
    """

    bound: str


def amplify_by_shuffling(cost: PrivacyCost | Number, *, n: Integer, delta: Number) -> ShuffledCost:
    """Return the cost of all reports of a local randomiser when a shuffler has removed their senders and their order.

    The shuffled reports together lose less about one person than that person's report alone. The shuffler must be
    trusted to shuffle, and the n reports must be from people who follow the protocol. The bound holds for every
    randomiser that is fixed in advance. A protocol of `dpnoise.local` has a smaller cost: its ``shuffled_cost``.

    Parameters
    ----------
    cost : PrivacyCost or float
        The local guarantee of each report: the ``epsilon`` of a protocol, above 0 and at most 32, and a delta of 0. A
        number is an epsilon.
    n : int
        The number of reports that are shuffled, at least 1.
    delta : float
        The delta of the guarantee, above 0 and below 1. It should be far below 1/n.

    Returns
    -------
    ShuffledCost
        An epsilon, at most the ``epsilon`` of a report, and ``delta``. Neighbours differ by one person who is
        substituted: in what that person has. The ``bound`` is ``"clones"``, or ``"local"`` for the ``epsilon`` of a
        report.

    Raises
    ------
    ParameterError
        When the cost is for "add/remove", or a parameter is out of range.

    Notes
    -----
    The privacy of the two distributions of the reference is computed from above: truncated tails are counted in delta,
    and every rounding error is bounded. The result is larger than the exact epsilon of these distributions by less than
    one part in 10**7. But it is at least 2**-50 times the epsilon of a report, and it is that epsilon where that is
    below 2**-21 or delta below 2**-900. More than 2**33 reports get the epsilon of 2**33.

    References
    ----------
    Feldman, McMillan and Talwar (2021), "Hiding among the clones: a simple and nearly optimal analysis of privacy
    amplification by shuffling", theorem 3.2.

    Examples
    --------
    >>> from dpnoise.accounting import PrivacyCost, amplify_by_shuffling
    >>> round(amplify_by_shuffling(PrivacyCost(1.0), n=10**4, delta=1e-6).epsilon, 3)
    0.053
    """
    cost = rounded_cost(cost, "cost")
    check_neighbours("cost", cost, "substitute", None, "shuffled reports")
    if not 0 < cost.epsilon <= 32:
        raise ParameterError(f"cost must have an epsilon above 0 and at most 32, got {cost.epsilon!r}")
    if cost.delta:
        raise ParameterError(f"cost must have a delta of 0, got {cost.delta!r}")
    failure, people = real_down(delta, "delta"), integer(n, "n", range(1, 2**64))
    epsilon, bound = _native.shuffled_epsilon(cost.epsilon, people, failure)
    return ShuffledCost(epsilon, failure, "substitute", bound=bound)


def _amplified(cost: PrivacyCost | Number, share: Decimal, relation: Relation) -> PrivacyCost:
    cost = rounded_cost(cost, "cost")
    check_neighbours("cost", cost, relation, cost.person, "sample")
    try:
        epsilon = above((1 + share * (Decimal(cost.epsilon).exp() - 1)).ln())
    except Overflow:  # beside such a number the share is negligible
        epsilon = cost.epsilon
    delta = min(above(share * Decimal(cost.delta)), cost.delta)
    return PrivacyCost(min(epsilon, cost.epsilon), delta, relation, cost.person)
