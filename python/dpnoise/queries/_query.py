"""What all queries have in common."""

from __future__ import annotations

from dpnoise.mechanisms._mechanism import Mechanism
from dpnoise.sensitivity import Relation


class Query(Mechanism):
    """A mechanism that takes a column."""

    __slots__ = ("_relation",)

    _relation: Relation

    @property
    def relation(self) -> Relation:
        """Which columns are neighbours, "add/remove" or "substitute"."""
        return self._relation
