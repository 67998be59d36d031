"""What a table releases: answers with the bounds on their errors, what was asked, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise._display import Column, Tabular, escaped, html_table, rounded, text_table
from dpnoise._errors import ParameterError
from dpnoise.accounting import PrivacyCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpnoise.plots import Panel

# More parts of a group have no colours and no names of their own in a chart.
_MOST_PARTS: Final = 6

# Units of times that all libraries read; milliseconds take the place of others.
_UNITS: Final = {"W": "D", "D": "D", "ms": "ms", "us": "us", "ns": "ns"}

# Keys that nobody has are no rows, and have the columns of other keys.
_EMPTY: Final = {"value": np.str_, "count": np.int64}


class Answer(NamedTuple):
    """The answer to one question: a number for each group, or several for each group, one for each part.

    Attributes
    ----------
    title : str
        What was asked, as in "mean of spend".
    part : str
        What the parts are, if the question has several: "q" for quantiles, "bin" for bins, "value" for labels and keys.
        Otherwise empty.
    labels : list
        The parts: quantiles, names of bins, or labels. Empty if there is one number for each group.
    values : list
        The released numbers, dates or times: all parts of the first group, then those of the next.
    errors : list of float, optional
        How far each number is from that for the rows that were used, except with a probability of 1 - level; None for
        quantiles, of which no such bound exists.
    rank_error : float, optional
        By how many rows a quantile is off, except with that probability; None for other questions.
    range : pair of float
        The smallest and the largest number that such an answer can be, infinite if there is none.
    label_type : dtype, optional
        The type of the column that released keys come from, if it has one.
    """

    title: str
    part: str
    labels: list[Any]
    values: list[Any]
    errors: list[float] | None
    rank_error: float | None
    range: tuple[float, float]
    label_type: np.dtype[Any] | None = None

    @property
    def lower(self) -> list[float] | None:
        """The lower ends of the intervals, within ``range``."""
        return self.errors and [max(self.range[0], value - error) for value, error in self._with_errors()]

    @property
    def upper(self) -> list[float] | None:
        """The upper ends of the intervals, within ``range``."""
        return self.errors and [min(self.range[1], value + error) for value, error in self._with_errors()]

    def _with_errors(self) -> Iterable[tuple[Any, float]]:
        return zip(self.values, self.errors or [], strict=True)

    def _columns(self, name: str, prefix: str) -> dict[str, Any]:
        if self.errors is None:
            return {name: self.values, f"{prefix}rank_error": [self.rank_error] * len(self.values)}
        ends = {"error": self.errors, "lower": self.lower or [], "upper": self.upper or []}
        return {name: self.values, **{f"{prefix}{end}": column for end, column in ends.items()}}

    def _errors_of(self, name: str, prefix: str) -> dict[str, Any]:
        """Return the error of each number in the columns, which sets its decimals."""
        if self.errors is None:
            return {f"{prefix}rank_error": [self.rank_error] * len(self.values)}
        return dict.fromkeys((name, *(f"{prefix}{end}" for end in ("error", "lower", "upper"))), self.errors)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Tabular):
    """Answers about a table, which were paid for together, with bounds on their errors.

    As a table it has a column with the groups, if there are any, and then for one answer its parts, the answer,
    ``error``, ``lower`` and ``upper``. Several answers have these columns with their names in front, if all have one
    number for each group; otherwise there is a row for each number, with the columns ``answer``, ``part``, ``value``
    and these three. Quantiles have ``rank_error`` instead of the three. The type of a column does not depend on the
    answers: counts are int64, other numbers float64. Dates beside numbers are texts, as are keys beside "other".
    Printed, numbers have the decimals that two digits of their errors need, and several answers beside each other have
    their errors alone.

    An error is about the noise, and about the rows that were used: what clamping to bounds and leaving out rows do to
    an answer is private.

    Attributes
    ----------
    answers : mapping of str to Answer
        The answers by name; ``release[name]`` is one of them.
    by : str, optional
        The column whose values are the groups; None without groups.
    groups : list
        The groups, in the order of their keys, and "other" if that was asked for; empty without groups.
    level : float
        The probability with which each interval holds, each by itself.
    cost : PrivacyCost
        What the whole release costs a person; or a row, where each row is a person. A ledger of rho or of Rényi orders
        has spent less than this epsilon amounts to.
    rows : int, optional
        The most rows of a person that were used; None where each row is a person.
    missing_person : str
        What a row without a person was, "drop" or "own".
    """

    answers: Mapping[str, Answer]
    by: str | None
    groups: list[Any]
    level: float
    cost: PrivacyCost
    rows: int | None
    missing_person: str

    @property
    def unit(self) -> str:
        """Whose privacy the cost is about: "row", or as in "person: user"."""
        return "row" if self.cost.person is None else f"person: {self.cost.person}"

    @property
    def value(self) -> Any:
        """The answer, if there is one: a number, date or time; by its labels if it has parts, or a list for groups."""
        answer = self._only
        if self.by is None and answer.part:
            return dict(zip(answer.labels, answer.values, strict=True))
        return self._shown(answer.values)

    @property
    def error(self) -> Any:
        """The bound on the error of the answer, if there is one: a number or a list; None for quantiles."""
        return self._shown(self._only.errors)

    @property
    def lower(self) -> Any:
        """The lower end of the interval of the answer, if there is one: a number or a list; None for quantiles."""
        return self._shown(self._only.lower)

    @property
    def upper(self) -> Any:
        """The upper end of the interval of the answer, if there is one: a number or a list; None for quantiles."""
        return self._shown(self._only.upper)

    def __getitem__(self, name: str) -> Answer:
        if name not in self.answers:
            raise KeyError(f"the answers are {', '.join(map(repr, self.answers))}, got {name!r}")
        return self.answers[name]

    @property
    def _only(self) -> Answer:
        if len(self.answers) > 1:
            names = ", ".join(map(repr, self.answers))
            raise ParameterError(f"there are several answers, {names}: take one of them, as in release[name].values")
        (answer,) = self.answers.values()
        return answer

    def _shown(self, found: list[Any] | None) -> Any:
        return found[0] if found and self.by is None and not self._only.part else found

    def _keys(self, column: str) -> list[Any]:
        """Return the keys of a release of the keys of a column."""
        answer = next(iter(self.answers.values()))
        if answer.title != f"keys of {column}":
            raise ParameterError(
                f"keys must be a list, or what Table.keys has released of {column!r}, got {self._title}"
            )
        if not answer.labels:
            raise ParameterError("keys must be one or more, and no key was released: ask with more epsilon or delta")
        return answer.labels

    def _columns(self) -> dict[str, Column]:
        if len(self.answers) == 1:
            ((name, answer),) = self.answers.items()
            labels = answer.labels * self._times
            typed = labels if answer.label_type is None else np.array(labels, answer.label_type)
            parts: dict[str, Any] = {answer.part: typed} if answer.part else {}
            return {**self._group_of_each(answer), **parts, **answer._columns(name, "")}
        found: dict[str, Any] = {}
        if not self._is_long:
            for name, answer in self.answers.items():
                found |= self._group_of_each(answer) | answer._columns(name, f"{name}_")
            return found
        tables = []
        for name, answer in self.answers.items():
            size, labels = len(answer.values), [f"{answer.part} {label}" for label in answer.labels] or [""]
            about = {"answer": [name] * size, "part": labels * self._times}
            tables.append((size, self._group_of_each(answer) | about | answer._columns("value", "")))
        for column in dict.fromkeys(column for _, table in tables for column in table):
            found[column] = [one for size, table in tables for one in table.get(column, [None] * size)]
        return found

    def _errors(self) -> dict[str, Column]:
        if self._is_long:
            columns = self._columns()
            of = {name: "error" for name in ("value", "error", "lower", "upper")} | {"rank_error": "rank_error"}
            return {name: columns[error] for name, error in of.items() if error in columns}
        found: dict[str, Column] = {}
        for name, answer in self.answers.items():
            found |= answer._errors_of(name, f"{name}_" if len(self.answers) > 1 else "")
        return found

    def _copied(self) -> dict[str, Column]:
        """Return columns of one type each, which does not depend on the answers."""
        return {name: _of_one_type(column, _EMPTY.get(name)) for name, column in super()._copied().items()}

    def _printed(self) -> dict[str, Column]:
        """Return the columns that are shown: of several answers beside each other the ends of intervals are not."""
        columns = self._columns()
        if len(self.answers) > 1 and not self._is_long:
            ends = {f"{name}_{end}" for name in self.answers for end in ("lower", "upper")}
            return {name: column for name, column in columns.items() if name not in ends}
        labels = {self.by} | {answer.part for answer in self.answers.values() if not self._is_long}
        # Labels are not rounded.
        return {
            name: list(map(str, column)) if name in labels and any(isinstance(x, float) for x in column) else column
            for name, column in columns.items()
        }

    @property
    def _is_long(self) -> bool:
        """Whether there is a row for each number of several answers, and not one for each group."""
        several = len(self.answers) > 1
        return several and (self.by is None or any(answer.part for answer in self.answers.values()))

    @property
    def _times(self) -> int:
        return 1 if self.by is None else len(self.groups)

    def _group_of_each(self, answer: Answer) -> dict[str, list[Any]]:
        """Return the column of groups, for an answer with its parts."""
        return {} if self.by is None else {self.by: [group for group in self.groups for _ in answer.labels or [None]]}

    @property
    def _title(self) -> str:
        title = ", ".join(answer.title for answer in self.answers.values())
        return escaped(title if self.by is None else f"{title}, by {self.by}")

    def _promise(self, marks: str = "") -> tuple[str, str]:
        """Say what the release costs whom, and what its errors hold for, which a chart shows by marks."""
        delta = f", delta {self.cost.delta}" if self.cost.delta else ""
        whose = "each row is a person"
        if self.cost.person is not None:
            whose = f"person: {self.cost.person}, at most {self.rows} row{'s' * (self.rows != 1)}"
        if self.missing_person == "own":
            whose += "; a row without a person is a person of its own"
        kinds = {"rank error" if answer.errors is None else f"error{marks}" for answer in self.answers.values()}
        likely = f"each answer within its {' or '.join(sorted(kinds))} with a probability of {100 * self.level:.10g} %"
        # Shares of 1 add up to 0.9999999999999999: a chart has what was asked.
        epsilon = f"{self.cost.epsilon:g}" if marks else self.cost.epsilon
        return escaped(f"epsilon {epsilon}{delta} ({whose})"), likely

    def __repr__(self) -> str:
        """Show the table, of more than 60 rows the first and the last five, and what it cost."""
        table = text_table(self._title, self._printed(), self._errors())
        return "\n".join([table, *self._promise()])

    def _repr_html_(self) -> str:
        table = html_table(self._title, self._printed(), self._errors())
        return f"{table}\n<p>{escape('; '.join(self._promise()))}</p>"

    def plot(self, path: str | PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the answers, with their intervals as whiskers; quantiles, which have none, are points.

        Groups are in the order of their keys. Each answer has a chart of its own in the figure. Where the interval has
        every number that is possible, as the mean of a group without rows, there is a whisker and no bar.

        Parameters
        ----------
        path : path-like, optional
            The file to write, whose name ends in .png, .svg or .pdf. Without ``path`` and ``ax`` a notebook shows the
            charts.
        ax : matplotlib.axes.Axes, optional
            The axes to draw a single answer on instead of a new figure. At most one of ``path`` and ``ax`` is given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the first answer; ``axes.figure.axes`` has those of all.
        """
        from dpnoise import plots  # only charts need its imports

        if ax is not None and len(self.answers) > 1:
            raise ParameterError(f"ax must be None for {len(self.answers)} answers, each of which has axes of its own")
        panels = [self._panel(name) for name in self.answers]
        is_beside = self.by is not None and all(len(panel.labels) == len(self.groups) for panel in panels)
        about = self._title, "; ".join(self._promise(" (whiskers)"))
        return plots.panels(panels, *about, beside=is_beside, path=path, ax=ax)[0]

    def _panel(self, name: str) -> Panel:
        """Return the chart of an answer, whose rows are groups, or parts, or each part of each group."""
        from dpnoise.plots import Panel

        answer = self.answers[name]
        axis = answer.title if len(self.answers) == 1 else f"{name}: {answer.title}"
        if answer.rank_error is not None:
            axis += f" (rank error: {rounded(answer.rank_error, answer.rank_error)})"
        if answer.part == "q" and self.by is None:
            return Panel(axis, answer.labels, {"": np.array(answer.values)}, rows="q")
        groups = [""] if self.by is None else list(map(str, self.groups))
        parts = list(map(str, answer.labels)) if answer.part else [""]
        if answer.errors is None:
            numbers = [np.array(answer.values)]
        else:
            values, lower, upper = np.array([answer.values, answer.lower, answer.upper], np.float64)
            is_unknown = (lower <= answer.range[0]) & (upper >= answer.range[1])
            numbers = [np.where(is_unknown, np.nan, values), lower, upper]
        grids = [column.reshape(len(groups), len(parts)) for column in numbers]
        if self.by is None or not answer.part or (len(parts) > _MOST_PARTS and answer.errors is not None):
            rows = [", ".join(filter(None, pair)) for pair in product(groups, parts)]
            return Panel(axis, rows, {"": _series(numbers)})
        if len(parts) > _MOST_PARTS:
            return Panel(axis, groups, {f"q from {min(answer.labels)} to {max(answer.labels)}": grids[0]})
        names = [f"q {part}" if answer.part == "q" else part for part in parts]
        each = {name: _series([grid[:, place] for grid in grids]) for place, name in enumerate(names)}
        return Panel(axis, groups, each)


def _series(columns: list[NDArray[Any]]) -> Any:
    """Return numbers and the ends of their intervals; or what has no intervals as it is."""
    return tuple(columns) if len(columns) > 1 else columns[0]


def _of_one_type(column: Column, empty: Any) -> Column:
    """Return a column in which numbers are of one type, and texts if they stand beside others."""
    if not isinstance(column, list):
        return column
    if not column:
        return np.array([], np.float64 if empty is None else empty)
    kinds = {type(value) for value in column if value is not None}
    if kinds == {np.datetime64} and None not in column:
        times = np.array(column)
        return times.astype(f"datetime64[{_UNITS.get(np.datetime_data(times.dtype)[0], 'ms')}]")
    whole = [int(value) for value in column if isinstance(value, Integral)]
    if len(kinds) < 2 and all(-(2**63) <= value < 2**63 for value in whole):
        return column
    convert: type = str
    if kinds <= {bool, np.bool_}:
        convert = bool
    elif kinds.isdisjoint((bool, np.bool_)) and all(issubclass(kind, Real) for kind in kinds):
        limit, convert = (2**63, int) if len(whole) == len(column) - column.count(None) else (2**53, float)
        convert = convert if all(-limit <= value < limit for value in whole) else str
    return [None if value is None else convert(value) for value in column]
