"""Queries for tables in which a person may have several rows. `docs/proofs/tables.md` has the theorems."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._codes import Coded, coded_persons
from dpnoise._columns import held_column
from dpnoise._errors import ParameterError
from dpnoise._numbers import at_least, check_text, check_word, integer
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.accounting import BoundedRangeLoss, LaplaceLoss, PrivacyLoss, ZcdpCost, pure_zcdp_rho
from dpnoise.mechanisms import Mechanism
from dpnoise.queries._query import Query
from dpnoise.sensitivity import Relation

# Of rows and groups of a person.
_COUNTS: Final = range(1, 2**20 + 1)


@dataclass(frozen=True)
class Contribution:
    """How many rows of a person are kept: in all, in each group, and in how many groups."""

    rows: int
    rows_per_group: int | None
    groups: int | None

    @property
    def most(self) -> int:
        """The most rows of a person that are kept."""
        full, each, rest = self._corner
        return full * each + rest

    @property
    def squares(self) -> int:
        """The largest sum over the groups of the squares of the numbers of rows of a person that are kept."""
        full, each, rest = self._corner
        return full * each**2 + rest**2

    @property
    def _corner(self) -> tuple[int, int, int]:
        """Where both sums are largest: how many groups are full, the rows in each of them, and in one more."""
        each = min(self.rows, self.rows_per_group or self.rows)
        full, rest = divmod(self.rows, each)
        return (full, each, rest) if self.groups is None or self.groups > full else (self.groups, each, 0)


@dataclass(frozen=True)
class Persons:
    """The persons of a table's rows as codes, and the rows that are kept without a choice."""

    ids: Coded
    alone: NDArray[np.bool_] | None

    def kept(
        self, contribution: Contribution, present: NDArray[np.bool_], groups: Coded | None, rng: Rng
    ) -> NDArray[np.bool_]:
        """Choose the rows to keep of those that are present: uniformly, and independently between persons."""
        codes, count = np.where(present, self.ids.codes, np.int32(-1)), len(self.ids.values)
        if groups is not None and (contribution.groups or contribution.rows_per_group):
            width = len(groups.values)
            in_cells = codes.astype(np.int64) * width + groups.codes
            in_cells[codes < 0] = -1
            cells, found = _native.codes(in_cells)
            if contribution.groups:
                of_cells = np.where(found < 0, -1, found // width).astype(np.int32)
                chosen = _native.keep_rows(of_cells, count, contribution.groups, rng).view(np.bool_)
                codes = np.where(chosen[cells], codes, np.int32(-1))
            if contribution.rows_per_group:
                cells = np.where(codes < 0, np.int32(-1), cells)
                chosen = _native.keep_rows(cells, len(found), contribution.rows_per_group, rng).view(np.bool_)
                codes = np.where(chosen, codes, np.int32(-1))
        kept: NDArray[np.bool_] = _native.keep_rows(codes, count, contribution.rows, rng).view(np.bool_)
        return kept if self.alone is None else kept | (self.alone & present)


def only(rows: Any, kept: NDArray[np.bool_]) -> Any:
    """Return rows that a query has read, with those that are not kept as missing values."""
    if isinstance(rows, Coded):
        return rows.only(kept)
    return rows & kept if rows.dtype == np.bool_ else np.where(kept, rows, np.nan)


class PerPerson(Mechanism):
    """A query whose guarantee is for persons, of whom each may have several rows.

    At most ``rows`` rows of each person are kept: which ones is drawn anew for each release, uniformly and
    independently between persons. The query runs on these rows, with noise for persons instead of rows. Rows that the
    query leaves out anyway, such as missing values, are left out before the choice. So the release is about the rows
    that are kept: a sum is not scaled up to all rows, and `error` bounds the noise alone.

    Two tables are neighbours if one has all rows of one more person. For these the release has the ``epsilon`` and
    ``delta`` of the query. There is no "substitute": the number of rows that are kept is private, and a person who is
    replaced may change twice as many rows. What is ``epsilon / 2``-private by this relation is ``epsilon``-private if a
    person is replaced.

    Parameters
    ----------
    query : Query
        What to ask, under "add/remove". Its epsilon and delta are those of a person.
    person : str
        What ledgers call the persons, such as the name of the column of their ids. Costs for different names do not add
        up.
    rows : int
        The most rows of a person that are kept, from 1 to 2**20. More rows need more noise, fewer leave out more of
        what frequent persons have.
    rows_per_group : int, optional
        For answers by group: the most rows of a person that are kept in each group, from 1 to 2**20. By default only
        ``rows`` limits them.
    groups : int, optional
        For answers by group: the most groups in which rows of a person are kept, from 1 to 2**20. By default only
        ``rows`` limits them.
    missing_person : {"drop", "own"}, default "drop"
        What a row without a person is: left out, or the only row of a person of its own, who has the guarantee of one
        row.

    References
    ----------
    Amin, Kulesza, Munoz Medina and Vassilvitskii (2019), "Bounding user contributions: a bias-variance trade-off in
    differential privacy". The proof page "Tables" has the theorems.

    Examples
    --------
    >>> from dpnoise import queries
    >>> spend = queries.Mean(bounds=(0, 500), epsilon=1.0)
    >>> spends = queries.PerPerson(spend, person="user", rows=2)
    >>> answer = spends.release([20, 35, 12, 250], ["ann", "ben", "ann", "ann"])
    """

    __slots__ = ("_contribution", "_missing", "_person", "_query", "_row_level")

    _parameters = ("query", "person", "rows", "rows_per_group", "groups", "missing_person")

    def __init__(
        self,
        query: Query,
        *,
        person: str,
        rows: Integer,
        rows_per_group: Integer | None = None,
        groups: Integer | None = None,
        missing_person: Literal["drop", "own"] = "drop",
    ) -> None:
        if not isinstance(query, Query):
            raise TypeError(f"query must be a query, such as queries.Count(epsilon=1.0), got {type(query).__name__}")
        query._check_own("query")
        if query.relation != "add/remove":
            raise ParameterError(
                f'query must have the relation "add/remove", got "{query.relation}": the number of rows that are kept '
                "is private; a release with half the epsilon by add/remove has the epsilon if a person is replaced"
            )
        check_text(person, "person")
        if not person:
            raise ParameterError("person must name the persons, got an empty text")
        check_word(missing_person, "missing_person", "drop", "own")
        self._query, self._person, self._missing = query, person, missing_person
        self._contribution = Contribution(
            integer(rows, "rows", _COUNTS),
            None if rows_per_group is None else integer(rows_per_group, "rows_per_group", _COUNTS),
            None if groups is None else integer(groups, "groups", _COUNTS),
        )
        most = self._contribution.most
        try:
            self._row_level = query._of_rows(most)
        except ParameterError as error:
            raise ParameterError(
                f"rows must be fewer, or epsilon larger, which {most} rows of a person share: {error}"
            ) from None

    @property
    def query(self) -> Query:
        """What is asked."""
        return self._query

    @property
    def person(self) -> str:
        """What ledgers call the persons."""
        return self._person

    @property
    def rows(self) -> int:
        """The most rows of a person that are kept."""
        return self._contribution.rows

    @property
    def rows_per_group(self) -> int | None:
        """The most rows of a person that are kept in a group, if that is limited."""
        return self._contribution.rows_per_group

    @property
    def groups(self) -> int | None:
        """The most groups in which rows of a person are kept, if that is limited."""
        return self._contribution.groups

    @property
    def missing_person(self) -> str:
        """What a row without a person is, "drop" or "own"."""
        return self._missing

    @property
    def row_level(self) -> Query:
        """The query that runs on the rows that are kept, with the noise that persons need."""
        return self._row_level

    @property
    def epsilon(self) -> float:
        """The privacy parameter epsilon, of a person."""
        return self._query.epsilon

    @property
    def delta(self) -> float:
        """The privacy parameter delta, of a person."""
        return self._query.delta

    @property
    def relation(self) -> Relation:
        """The neighbouring relation, "add/remove"."""
        return "add/remove"

    def error(self, level: Number = 0.95, *, rows: Integer | None = None) -> float:
        """Bound the error from the noise, for the rows that are kept, as `error` of the query does.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        rows : int, optional
            For means, variances and standard deviations, which need it: the number of rows that are kept and have a
            value, from 1 to 2**53 - 1.
        """
        bound: Any = self._row_level.error
        return float(bound(level) if rows is None else bound(level, rows=rows))

    def release(
        self,
        column: Values | tuple[Values, Values],
        persons: Values | None = None,
        *,
        threads: int | None = None,
        rng: Rng = None,
    ) -> Any:
        """Release the answer of the query for the rows that are kept.

        Parameters
        ----------
        column : array_like
            One value for each row, as the query takes them. Or a pair of the column and the persons, which is how
            `Ledger.release` takes them.
        persons : array_like, optional
            Whose each row is: texts or integers, in any order, as many as the column has values. Two ids are of one
            person if they are equal: "Ann" and "ann" are two. Of floats those count that hold an integer below 2**53 in
            magnitude (2**24 for float32): any other might stand for several persons, and its row is left out.
        threads : int, optional
            The number of threads that share the work, at least 1, as the query takes it.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        object
            The differentially private answer, as the query gives it.
        """
        if self._contribution.rows_per_group or self._contribution.groups:
            raise ParameterError("rows_per_group and groups must be None here: they are for answers by group")
        column, persons = _pair(column) if persons is None else (column, persons)
        rows, found = self._query._read(column), self._persons(persons, "persons")
        if len(found.ids) != len(rows):
            raise ParameterError("persons must be as many as the rows of column, one for each row")
        return self._row_level._released(self._chosen(rows, found, None, rng), threads, rng)

    def _persons(self, ids: Values, name: str) -> Persons:
        """Read the ids of the persons, once; a row without an id is kept if it is its own person."""
        found, has_none = coded_persons(ids, name)
        return Persons(found, has_none if self._missing == "own" else None)

    def _chosen(self, rows: Any, persons: Persons, groups: Coded | None, rng: Rng) -> Any:
        """Return rows that the query has read, with those that are not kept as missing values."""
        present = self._query._present(rows)
        if groups is not None:
            present = present & (groups.codes >= 0)
        return only(rows, persons.kept(self._contribution, present, groups, rng))

    def _held(self, x: Any) -> Any:
        column, persons = _pair(x)
        return self._query._held(column), held_column(persons, "persons")

    def _loss(self) -> Any:
        loss = self._row_level._loss()
        if isinstance(loss, LaplaceLoss):
            # A vector that moves by so many steps in all loses no more than a number that does. Fewer steps lose more.
            return type(loss)(self.epsilon, min(loss.sensitivity * self._contribution.most, 2**63 - 1))
        return BoundedRangeLoss(self.epsilon) if isinstance(loss, BoundedRangeLoss) else self.cost

    def _zcdp(self) -> ZcdpCost | None:
        """Return the least of what a group of rows costs at most, and what each mechanism of this epsilon does."""
        if self.delta:
            return None
        stated, loss = self._row_level._zcdp(), self._row_level._loss()
        rho = stated.rho if stated else loss.rho if isinstance(loss, PrivacyLoss) else pure_zcdp_rho(loss.epsilon)
        of_rows = at_least(Fraction(rho) * self._contribution.squares)
        found = self._loss()
        whole = found.rho if isinstance(found, PrivacyLoss) else pure_zcdp_rho(self.epsilon)
        return ZcdpCost(min(of_rows, whole), 0.0, "add/remove", self._person)


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"persons must be given, one for each row of column, got {type(given).__name__} alone")
    return given
