from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpnoise._display import Record, html_table
from dpnoise._errors import ParameterError
from dpnoise._parameters import real_up
from dpnoise.sensitivity import Relation, check_relation


@dataclass(frozen=True)
class PrivacyCost(Record):
    """A guarantee of (epsilon, delta)-differential privacy, for one neighbouring relation.

    Parameters
    ----------
    epsilon : float
        Zero or more, finite.
    delta : float, default 0
        From 0 up to, but not including, 1.
    relation : {"add/remove", "substitute"}, optional
        The neighbouring relation: one row more or less, or one row replaced by another. None for the relation of a
        sensitivity that the caller has stated. Costs of different relations do not add up.

    Notes
    -----
    A number that no float can hold is rounded up.

    Examples
    --------
    >>> from dpnoise import Laplace
    >>> Laplace(epsilon=0.5).cost
    PrivacyCost(epsilon=0.5, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0
    relation: Relation | None = None

    def __post_init__(self) -> None:
        """Check the ranges of epsilon and delta."""
        epsilon, delta = real_up(self.epsilon, "epsilon"), real_up(self.delta, "delta")
        if not (math.isfinite(epsilon) and epsilon >= 0):
            raise ParameterError(f"epsilon must be zero or more and finite, got {epsilon!r}")
        if not 0 <= delta < 1:
            raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {delta!r}")
        if self.relation is not None:
            check_relation(self.relation)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    def _repr_html_(self) -> str:
        exact = [repr(self.epsilon), repr(self.delta)]  # a rounded cost might be one below it
        names, values = ["epsilon", "delta", "relation"], [*exact, *filter(None, [self.relation])]
        return html_table("PrivacyCost", {"attribute": names[: len(values)], "value": values})

    def __repr__(self) -> str:
        """Show the call that makes this cost."""
        relation = "" if self.relation is None else f", relation={self.relation!r}"
        return f"PrivacyCost(epsilon={self.epsilon!r}, delta={self.delta!r}{relation})"


def common_relation(costs: Iterable[PrivacyCost]) -> Relation | None:
    """Return the common relation of costs, or None if all of them leave it open; refuse a mixture of both relations."""
    found = {cost.relation for cost in costs} - {None}
    if len(found) > 1:
        raise ParameterError(
            'costs must be for one neighbouring relation, got "add/remove" and "substitute": give the queries the same '
            "relation="
        )
    return found.pop() if found else None


def check_same_relation(what: str, relation: Relation | None, expected: Relation, owner: str) -> None:
    """Refuse a cost whose relation is not the relation of a ledger or accountant."""
    if relation not in (None, expected):
        raise ParameterError(
            f'{what} must be for the neighbouring relation of the {owner}, "{expected}", got "{relation}": '
            "a replaced row is one removed and one added"
        )
