"""Databases and neighbours by the textbook's definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._errors import ParameterError
from dpnoise._numbers import integer
from dpnoise._types import Integer
from dpnoise.sensitivity import Relation, check_relation, histogram_distance

_COUNTS: Final = range(2**63)


class Database:
    """A database as counts over a universe: the number of records of each kind.

    The identity and the order of people do not matter, so it is a multiset, or a histogram: a point of N^X for the
    universe X of all possible records. It is immutable.

    Parameters
    ----------
    records : iterable of hashable, default ()
        The records, one for each person. `from_counts` takes their numbers instead.

    References
    ----------
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", section 2.3.

    Examples
    --------
    >>> from dpnoise.audit import Database
    >>> database = Database(["flu", "flu", "cold"])
    >>> database.count("flu"), len(database)
    (2, 3)
    """

    __slots__ = ("_counts",)

    _counts: Mapping[Hashable, int]

    def __init__(self, records: Iterable[Hashable] = ()) -> None:
        self._counts = MappingProxyType(dict(Counter(records)))

    @classmethod
    def from_counts(cls, counts: Mapping[Any, Integer]) -> Database:
        """Make a database from the number of records of each kind, zero or more.

        Parameters
        ----------
        counts : mapping of hashable to int
            The number of records of each kind: zero or more, and below 2**63.
        """
        database = cls()
        checked = {record: integer(count, "every count", _COUNTS) for record, count in counts.items()}
        database._counts = MappingProxyType({record: count for record, count in checked.items() if count})
        return database

    @property
    def counts(self) -> Mapping[Hashable, int]:
        """The number of records of each kind that occurs."""
        return self._counts

    def count(self, record: Hashable) -> int:
        """Return the number of records of one kind, zero if there are none.

        Parameters
        ----------
        record : hashable
            The kind of record that is counted.
        """
        return self._counts.get(record, 0)

    def histogram(self, universe: Sequence[Hashable]) -> NDArray[np.int64]:
        """Count the records of each kind in the order of a universe, as an int64 array of shape (k,).

        Parameters
        ----------
        universe : sequence of hashable, length k
            The universe: all possible records, each once.
        """
        if len(set(universe)) != len(universe):
            raise ParameterError("universe must list every possible record once, but one is repeated")
        if not self._counts.keys() <= set(universe):
            raise ParameterError("universe must list every possible record, but one of the database is missing")
        return np.array([self.count(record) for record in universe], np.int64)

    def add(self, record: Hashable) -> Database:
        """Return the neighbour that has one record more, of any kind.

        Parameters
        ----------
        record : hashable
            The record that is added, of any kind.
        """
        return self._changed(Counter({record: 1}))

    def remove(self, record: Hashable) -> Database:
        """Return the neighbour that lacks one of the records.

        Parameters
        ----------
        record : hashable
            The record that is removed, one of the database.
        """
        if not self.count(record):
            raise ParameterError("record must be in the database to be removed")
        return self._changed(Counter({record: -1}))

    def substitute(self, record: Hashable, other: Hashable) -> Database:
        """Return the neighbour in which one of the records is replaced by another.

        Parameters
        ----------
        record : hashable
            The record that is replaced, one of the database.
        other : hashable
            The record that takes its place, of any kind.
        """
        return self.remove(record).add(other)

    def _changed(self, by: Counter[Hashable]) -> Database:
        sums = Counter(self._counts)
        sums.update(by)
        return Database.from_counts(sums)

    def __len__(self) -> int:
        """Count all records: the L1 norm."""
        return sum(self._counts.values())

    def __eq__(self, other: object) -> bool:
        """Compare the counts."""
        return self._counts == other._counts if isinstance(other, Database) else NotImplemented

    def __hash__(self) -> int:
        """Hash the counts."""
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        """Show the size only: records are private."""
        return f"<Database of {len(self)} records>"


def are_neighbours(x: Database, x_prime: Database, relation: Relation = "add/remove") -> bool:
    """Say whether two databases differ in the data of at most one person.

    Parameters
    ----------
    x, x_prime : Database
        The two databases.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which databases are neighbours: `"add/remove"`: one has at most one record more than the other, and has all of
        its records: a distance of at most 1 (Dwork and Roth). `"substitute"`: they are of the same size, and at most
        one record of them differs: a distance of 0 or 2.

    Examples
    --------
    >>> from dpnoise.audit import Database, are_neighbours
    >>> are_neighbours(Database("aab"), Database("ab"))
    True
    >>> are_neighbours(Database("aab"), Database("abc"), relation="substitute")
    True
    """
    check_relation(relation)
    for name, database in (("x", x), ("x_prime", x_prime)):
        if not isinstance(database, Database):
            raise TypeError(f"{name} must be a Database, got {type(database).__name__}")
    distance = histogram_distance(x.counts, x_prime.counts)
    return distance <= 1 if relation == "add/remove" else distance <= 2 and len(x) == len(x_prime)
