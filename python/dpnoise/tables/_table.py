"""Tables and groups: what is read of them, and the release of answers that are paid for together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from re import sub
from typing import Any, Final, Literal

import numpy as np

from dpnoise._codes import Coded, coded
from dpnoise._columns import distinct_labels
from dpnoise._errors import ParameterError
from dpnoise._numbers import check_text, checked_level
from dpnoise._types import Integer, Labels, Number, Rng
from dpnoise.accounting import Ledger, PrivacyCost, compose_sequential
from dpnoise.queries import (
    Count,
    Histogram,
    PerPerson,
    Quantile,
    Quantiles,
    Query,
    StabilityHistogram,
)
from dpnoise.tables._frame import Frame
from dpnoise.tables._questions import Questioned, Questions
from dpnoise.tables._release import Answer, Release

_OTHER: Final = "other"

# What other columns of releases are called.
_COLUMNS: Final = frozenset(("answer", "part", "value", "error", "lower", "upper", "rank_error", "q", "bin"))


class Table(Questions):
    """A table of which questions are asked, with the persons whose rows it has, and the ledger that pays.

    Each answer uses at most ``rows`` rows of each person, and has the guarantee of `queries.PerPerson` for whole
    persons. Without ``person`` one row is one person.

    Parameters
    ----------
    frame : table
        A data frame of pandas or Polars, also a lazy one, an Arrow table, a DuckDB relation, or another table that
        Narwhals reads; or a dict of arrays. Only the columns that a question is about are read, when it is asked.
        Filter and join rows beforehand.
    person : str, optional
        The column of the ids of the persons, of texts or integers. By default each row is a person. It is given
        together with ``rows``. Rows with a float of 2**53 or more are left out, since it may stand for several persons.
    rows : int, optional
        The most rows of a person that an answer uses, from 1 to 2**20. It is given together with ``person``.
    ledger : Ledger, optional
        The budget that pays, for the same persons: ``Ledger(path, epsilon=..., person="user")``. By default nothing is
        refused, and `spent` adds up the costs.
    missing_person : {"drop", "own"}, default "drop"
        What a row without a person is: left out, or the only row of a person of its own, who has the guarantee of one
        row.

    Raises
    ------
    ImportError
        When Narwhals is not installed, and the frame is no dict.
    ParameterError
        When there is no such column, or the ledger is for others than the persons of the table.

    Notes
    -----
    The names and types of columns are public, values and the number of rows are not. What an answer looks like, its
    cost, and errors depend on names, types and parameters alone. Objects and lists have the types of their values; with
    none, no type is wrong.

    Examples
    --------
    >>> from dpnoise import Table
    >>> from dpnoise.accounting import Ledger
    >>> visits = {
    ...     "user": ["ann", "ben", "ann", "eve"] * 100,
    ...     "region": ["North", "South", "South", "North"] * 100,
    ...     "spend": [20.0, 35.0, 12.0, 80.0] * 100,
    ... }
    >>> ledger = Ledger(":memory:", epsilon=2.0, person="user")
    >>> table = Table(visits, person="user", rows=3, ledger=ledger)
    >>> answer = table.by("region", keys=["North", "South"]).mean("spend", bounds=(0, 500), epsilon=0.5)
    >>> table.spent
    PrivacyCost(epsilon=0.5, delta=0.0, relation='add/remove', person='user')
    """

    __slots__ = ("_frame", "_ledger", "_missing", "_person", "_rows", "_spent")

    def __init__(
        self,
        frame: Any,
        *,
        person: str | None = None,
        rows: Integer | None = None,
        ledger: Ledger[Any] | None = None,
        missing_person: Literal["drop", "own"] = "drop",
    ) -> None:
        if (person is None) != (rows is None):
            raise ParameterError(
                "person and rows must be given together: the column of the persons, and how many rows of each are used"
            )
        if person is None and missing_person != "drop":
            raise ParameterError(f'missing_person must be "drop" without person, got {missing_person!r:.60}')
        self._frame = Frame(frame)
        self._person, self._missing = person, missing_person
        self._rows: int | None = None
        self._spent: list[PrivacyCost] = []
        if person is not None and rows is not None:
            self._frame.check(person, "person")
            checked = PerPerson(Count(epsilon=1), person=person, rows=rows, missing_person=missing_person)
            self._rows = checked.rows
        if ledger is not None and not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}")
        if ledger is not None and (ledger.relation, ledger.person) != ("add/remove", person):
            whose = "rows" if ledger.person is None else f"persons ({ledger.person})"
            make = "Ledger(..., epsilon=...)" if person is None else f"Ledger(..., epsilon=..., person={person!r})"
            raise ParameterError(
                f'ledger must be for the neighbours of the table: {make}, got one for {whose} by "{ledger.relation}"'
            )
        self._ledger = ledger

    def __repr__(self) -> str:
        """Show whose rows the table has, and what pays."""
        person = "" if self._person is None else f", person={self._person!r}, rows={self._rows}"
        return f"Table(...{person}{'' if self._ledger is None else f', ledger={self._ledger!r}'})"

    @property
    def spent(self) -> Any:
        """What the ledger has spent; without a ledger what the answers of this table cost together."""
        if self._ledger is not None:
            return self._ledger.spent
        return compose_sequential([PrivacyCost(0.0, 0.0, "add/remove", self._person), *self._spent])

    def by(
        self,
        column: Any,
        *,
        keys: Labels | Release,
        other: bool = False,
        rows_per_group: Integer | None = None,
        groups: Integer | None = None,
    ) -> Questions:
        """Ask about each group of rows: those with the same value in a column.

        A row is in one group, so all groups together cost what one does. The keys are public: each has an answer,
        whether there are rows or not.

        Parameters
        ----------
        column : str
            The column whose values are the groups: texts, numbers or booleans.
        keys : sequence of str, int, float or bool, or Release
            The values whose groups are asked about, one or more, all different; None among them stands for missing
            values. Or a release of `keys`. Never take them from the data in another way.
        other : bool, default False
            Whether all rows with other values, or none, are one more group, "other". Otherwise they are left out.
        rows_per_group : int, optional
            The most rows of a person that are used in each group. By default only ``rows`` limits them. With fewer
            rows in all, there is less noise for the same epsilon.
        groups : int, optional
            The most groups in which rows of a person are used. By default only ``rows`` limits them.

        Returns
        -------
        Questions
            The methods of a table that ask, for groups.
        """
        limits = {"rows_per_group": rows_per_group, "groups": groups}
        if self._person is None and (rows_per_group is not None or groups is not None):
            raise ParameterError("rows_per_group and groups must be None without person: they are of rows of a person")
        return Grouped(self, column, keys, other, limits)

    def keys(
        self, column: Any, *, epsilon: Number, delta: Number, level: Number = 0.95, label: str | None = None
    ) -> Release:
        """Release the values of a column that many persons have, and how many rows of theirs, for `by`.

        It is a `queries.StabilityHistogram`: the rows that a single person contributes are released with a probability
        of at most delta.

        Parameters
        ----------
        column : str
            The column of texts, numbers or booleans.
        epsilon : float
            The privacy parameter: positive and finite.
        delta : float
            The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
            people.
        level : float, default 0.95
            The probability with which the noise of each count stays within its error: between 0 and 1, both excluded.
        label : str, optional
            A name for the release in the ledger, which must not be private; by default "keys".
        """
        query = StabilityHistogram(epsilon=epsilon, delta=delta)
        return self._release({"count": (column, query)}, level, label, None)

    def _release(self, questions: Questioned, level: Number, label: str | None, rng: Rng) -> Release:
        return self._answered(None, questions, level, label, rng)

    def _mechanism(self, query: Query, limits: Mapping[str, Integer | None]) -> Query | PerPerson:
        """Return the mechanism that answers a question, for persons or rows."""
        if self._person is None or self._rows is None:
            return query
        return PerPerson(query, person=self._person, rows=self._rows, missing_person=self._missing, **limits)

    def _answered(
        self, grouped: Grouped | None, questions: Questioned, level: Number, label: str | None, rng: Rng
    ) -> Release:
        _check_names(list(questions), None if grouped is None else str(grouped._column))
        checked, label = checked_level(level), ", ".join(questions) if label is None else label
        check_text(label, "label")
        limits = {} if grouped is None else grouped._limits
        mechanisms = {name: self._mechanism(query, limits) for name, (_, query) in questions.items()}
        rows, groups, persons = self._read(grouped, questions, mechanisms)
        for mechanism in mechanisms.values():
            (mechanism.row_level if isinstance(mechanism, PerPerson) else mechanism)._check_level(checked)
        cost = compose_sequential([mechanism.cost for mechanism in mechanisms.values()])
        if self._ledger is None:
            self._spent.append(cost)
        else:
            self._ledger.spend(list(mechanisms.values()), label)
        answers, parts = {}, _parts_of(groups)
        for name, mechanism in mechanisms.items():
            column, query = questions[name]
            used = rows[name]
            if isinstance(mechanism, PerPerson):
                used = mechanism._chosen(used, persons, groups, rng)
                mechanism = mechanism.row_level
            found = [mechanism._released_with_error(part, checked, rng) for part in parts(used)]
            answers[name] = _answer(column, query, mechanism, found, checked, used)
        return Release(
            by=None if grouped is None else str(grouped._column),
            groups=[] if grouped is None else grouped.groups,
            answers=answers,
            level=checked,
            cost=cost,
            rows=self._rows,
            missing_person=self._missing,
        )

    def _read(
        self, grouped: Grouped | None, questions: Questioned, mechanisms: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Coded | None, Any]:
        """Read all columns that are needed, once, and check their types."""
        for column, _ in questions.values():
            if column is not None:
                self._frame.check(column, "column")
        names = [column for column, _ in questions.values()] + [self._person, grouped and grouped._column]
        columns, count = self._frame.read([name for name in dict.fromkeys(names) if name is not None])
        rows: dict[str, Any] = {}
        for name, (column, query) in questions.items():
            values = np.ones(count, np.bool_) if column is None else columns[column]
            rows[name] = query._read(values, f"column {column!r}")
        groups = None if grouped is None else grouped._coded(columns[grouped._column])
        asked = (mechanism for mechanism in mechanisms.values() if isinstance(mechanism, PerPerson))
        persons = next((one._persons(columns[self._person], f"column {self._person!r}") for one in asked), None)
        others = [groups] if persons is None else [groups, persons.ids]
        if len({count, *(len(one) for one in (*rows.values(), *others) if one is not None)}) > 1:
            raise ParameterError("frame must have columns of one length")
        return rows, groups, persons


class Grouped(Questions):
    """The groups of a table's rows: each answer has a row for each group."""

    __slots__ = ("_column", "_has_other", "_keys", "_limits", "_plain", "_table")

    def __init__(
        self,
        table: Table,
        column: Any,
        keys: Labels | Release,
        other: bool,
        limits: Mapping[str, Integer | None],
    ) -> None:
        table._frame.check(column, "column")
        if column in _COLUMNS:
            raise ParameterError(f"column must not be {column!r}, which answers have a column of: rename it")
        if isinstance(keys, Release):
            keys = keys._keys(str(column))
        self._keys, self._plain = distinct_labels(keys, "keys", none=True)
        if not isinstance(other, bool):
            raise TypeError(f"other must be a bool, got {type(other).__name__}")
        if other and _OTHER in self._keys:
            raise ParameterError(f"other must be False where {_OTHER!r} is a key: it names the group of other rows")
        self._table, self._column, self._has_other, self._limits = table, column, other, limits
        table._mechanism(Count(epsilon=1), limits)  # checks the limits

    @property
    def groups(self) -> list[Any]:
        """The groups, in the order of their answers."""
        return [*self._keys, *[_OTHER] * self._has_other]

    def _release(self, questions: Questioned, level: Number, label: str | None, rng: Rng) -> Release:
        return self._table._answered(self, questions, level, label, rng)

    def _coded(self, column: Any) -> Coded:
        """Return the number of each row's group; -1 for a row in none."""
        name = f"column {self._column!r}"
        found = coded(column, name)
        codes = found.found_in([key for key in self._plain if key is not None], name, "keys").codes
        if None in self._plain:
            place = self._plain.index(None)
            codes = np.where(found.codes < 0, np.int32(place), codes + (codes >= place).astype(np.int32))
        if self._has_other:
            codes = np.where(codes < 0, np.int32(len(self._keys)), codes)
        return Coded(codes, self.groups)


def _check_names(names: list[str], by: str | None) -> None:
    """Refuse names with which one column of a release would take the place of another."""
    if by in names:
        raise ParameterError(f"answers must not have the name of the column of the groups, {by!r}")
    ends = ("error", "lower", "upper", "rank_error")
    taken = _COLUMNS if len(names) == 1 else {f"{name}_{end}" for name in names for end in ends}
    for name in (*names, by):
        if name in taken:
            raise ParameterError(f"{name!r} must not name an answer or groups: another column has that name")


def _parts_of(groups: Coded | None) -> Callable[[Any], list[Any]]:
    """Return what divides rows into those of each group, in the order of the groups."""
    if groups is None:
        return lambda rows: [rows]
    count = len(groups.values)
    order = np.argsort(groups.codes.astype(np.int16) if count < 2**15 else groups.codes, kind="stable")
    ends = np.cumsum(np.bincount(groups.codes + 1, minlength=count + 1)).tolist()

    def parts(rows: Any) -> list[Any]:
        in_order = rows[order]
        return [in_order[first:last] for first, last in pairwise(ends)]

    return parts


def _answer(
    column: Any, query: Query, row_level: Query, found: list[tuple[Any, float | None]], level: float, rows: Any
) -> Answer:
    """Make an answer of what was released for each group of rows."""
    values: list[Any] = []
    errors: list[float] = []
    for released, error in found:
        numbers = released
        if isinstance(released, dict):
            numbers = list(released.values())
        elif isinstance(released, np.ndarray):
            numbers = released.tolist()
        elif not isinstance(released, list):
            numbers = [released]
        values += numbers
        errors += [] if error is None else [error] * len(numbers)
    part, labels, label_type = "", [], None
    if isinstance(query, Quantiles):
        part, labels = "q", list(query.q)
    elif isinstance(query, Histogram):
        part, labels = "value" if query.edges is None else "bin", query.labels
    elif isinstance(query, StabilityHistogram):
        part, labels, label_type = "value", list(found[0][0]), _type_of(rows.values)
    ranks = row_level.rank_error(level) if isinstance(row_level, Quantile | Quantiles) else None
    title = _title(column, query)
    return Answer(title, part, labels, values, errors if ranks is None else None, ranks, query._range, label_type)


def _type_of(values: Any) -> np.dtype[Any] | None:
    """Return the type of released keys: whole ones are of type int, and others float, whichever there are."""
    dtype = getattr(values, "dtype", None)
    return np.dtype(np.float64) if dtype is not None and dtype.kind == "f" else dtype


def _title(column: Any, query: Query) -> str:
    name = sub(r"(?<=[a-z])(?=[A-Z])", " ", type(query).__name__).lower()
    if isinstance(query, StabilityHistogram):
        name = "keys"
    return f"{name} of {'rows' if column is None else column}"
