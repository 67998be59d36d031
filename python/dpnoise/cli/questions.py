"""What ``dpnoise release`` is asked: the questions of --query, of whose rows, and in which groups."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from dpnoise import ParameterError, Table, local, queries
from dpnoise._numbers import check_text
from dpnoise.accounting import BudgetExceeded, Ledger
from dpnoise.cli import kinds
from dpnoise.cli.console import InputError
from dpnoise.cli.options import numbers_or_dates, read_domain, read_texts
from dpnoise.cli.tables import Column
from dpnoise.sensitivity import Relation
from dpnoise.tables import Release

# The options of each question, besides epsilon and the relation: those that it needs, and those that it may have.
_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "count": (),
    "sum": ("--column", "--bounds"),
    "mean": ("--column", "--bounds"),
    "variance": ("--column", "--bounds"),
    "standard-deviation": ("--column", "--bounds"),
    "median": ("--column", "--bounds"),
    "quantile": ("--column", "--bounds", "--q"),
    "quantiles": ("--column", "--bounds", "--q"),
    "histogram": ("--column",),
    "keys": ("--column", "--delta"),
    "frequent": ("--column",),
}
_MORE: Final[dict[str, tuple[str, ...]]] = {
    "count": ("--column", "--value"),
    "histogram": ("--edges", "--domain", "--domain-file", "--delta"),
    "frequent": ("--delta", "--threshold", "--sample-rate", "--sampled"),
}
# Those that the text of a question may say in this order, behind colons.
_IN_TEXT: Final[tuple[str, ...]] = ("--column", "--bounds", "--value", "--edges", "--q")

NAMES: Final = tuple(_NEEDED)

_BOUNDED: Final[dict[str, Callable[..., queries.Query]]] = {
    "sum": queries.Sum,
    "mean": queries.Mean,
    "variance": queries.Variance,
    "standard-deviation": queries.StandardDeviation,
    "median": queries.Median,
    "quantile": queries.Quantile,
    "quantiles": queries.Quantiles,
}


@dataclass(frozen=True)
class Question:
    """A question, the column that it is about, which only a count of rows lacks, and what answers it."""

    name: str
    column: Column | None
    query: Any
    """A query with its share of epsilon; or the mechanism of frequent values."""
    mechanism: Any
    """The query for persons, if there are any."""

    @property
    def value(self) -> str | None:
        """The value that is counted, if it is one."""
        return self.column.labels[0] if self.column and self.column.if_equal and self.column.labels else None

    @property
    def title(self) -> str:
        of = "rows" if self.column is None else self.column.name
        return f"{self.name} of {of}{'' if self.value is None else f' = {self.value}'}"

    @property
    def counted(self) -> str:
        """What a count counts, in words."""
        if self.column is None:
            return "rows"
        value = self.value
        return f"rows {'that are neither missing nor false' if value is None else f'with the value {value!r}'}"

    @property
    def key(self) -> str:
        """The name of the answer beside others."""
        name = self.name.replace("-", "_")
        parts = [name] if self.column is None else [name, self.column.name]
        return "_".join(parts if self.value is None else [*parts, self.value])


@dataclass(frozen=True)
class Scope:
    """Whose rows are asked about, and in which groups."""

    person: str | None
    rows: int | None
    missing_person: Literal["drop", "own"]
    by: str | None
    keys: Sequence[str]
    other: bool
    rows_per_group: int | None
    groups: int | None

    @property
    def columns(self) -> list[Column]:
        """The columns that say whose a row is, and of which group."""
        found = [] if self.person is None else [Column(self.person, kinds.PERSONS)]
        return found if self.by is None else [*found, Column(self.by, kinds.LABELS, tuple(self.keys))]

    def table(self, frame: Mapping[Column, Any], ledger: Ledger[Any] | None = None) -> Any:
        """Return the table of these columns, or its groups."""
        names = _names(frame)
        table = Table(
            {names[column]: values for column, values in frame.items()},
            person=self.person,
            rows=self.rows,
            missing_person=self.missing_person,
            ledger=ledger,
        )
        if self.by is None:
            return table
        limits = {"rows_per_group": self.rows_per_group, "groups": self.groups}
        return table.by(names[self.columns[-1]], keys=list(self.keys), other=self.other, **limits)

    def release(
        self,
        asked: Sequence[Question],
        frame: Mapping[Column, Any],
        ledger: Ledger[Any] | None,
        level: float,
        label: str,
    ) -> Release:
        """Pay for the answers to questions, and draw them."""
        table, names = self.table(frame, ledger), _names(frame)
        queried = {
            question.key: (None if question.column is None else names[question.column], question.query)
            for question in asked
        }
        column, query = queried[asked[0].key]
        found: Release
        if isinstance(query, queries.StabilityHistogram):
            found = table.keys(column, epsilon=query.epsilon, delta=query.delta, level=level, label=label)
        else:
            found = table.release(level=level, label=label, **queried)
        # The table has other names for columns that are read in several ways, which nobody should see.
        pairs = zip(asked, found.answers.values(), strict=True)
        named = {question.key: answer._replace(title=question.title) for question, answer in pairs}
        return replace(found, by=self.by, answers=named)

    def check(self, asked: Sequence[Question], level: float, label: str) -> None:
        """Refuse, before rows are read, whatever does not depend on them."""
        of_rows = replace(self, person=None, rows=None, missing_person="drop", rows_per_group=None, groups=None)
        # Without persons the column of groups has its own name, also if it is the column of persons.
        for scope in (self, of_rows) if self.by else (self,):
            columns = [*scope.columns, *(question.column for question in asked if question.column)]
            empty = {column: pa.array([], column.kind.type) for column in columns}
            # A budget of nothing refuses last, after all else has been checked.
            nothing: Ledger[Any] = Ledger(":memory:", epsilon=0.0, person=scope.person)
            with suppress(BudgetExceeded):
                scope.release(asked, empty, nothing, level, label)

    def of_persons(self, query: Any) -> Any:
        """Return the query, for persons if there are any."""
        if self.person is None or self.rows is None or not isinstance(query, queries.Query):
            return query
        return queries.PerPerson(
            query,
            person=self.person,
            rows=self.rows,
            rows_per_group=self.rows_per_group,
            groups=self.groups,
            missing_person=self.missing_person,
        )


def _names(columns: Mapping[Column, Any]) -> dict[Column, str]:
    """Return different names for columns, that of the file if it is not taken: a column may be read in several ways."""
    found: dict[Column, str] = {}
    for column in columns:
        name = column.name
        while name in found.values():
            name += "'"
        found[column] = name
    return found


def read_scope(
    person: str | None,
    rows: int | None,
    missing_person: Literal["drop", "own"],
    by: str | None,
    keys: Path | None,
    other: bool,
    rows_per_group: int | None,
    groups: int | None,
) -> Scope:
    if (person is None) != (rows is None):
        raise InputError("--person and --rows go together: whose a row is, and how many rows of each are used at most")
    limits = {"--rows-per-group": rows_per_group, "--groups": groups}
    for needed, missing, options in (
        ("--person", person is None, {"--missing-person": missing_person == "own" or None, **limits}),
        ("--by", by is None, {"--keys": keys, "--other": other or None, **limits}),
    ):
        for option, value in options.items():
            if missing and value is not None:
                raise InputError(f"{option} is for {needed}")
    texts: Sequence[str] | None = None
    if keys is not None:
        if not keys.exists():
            raise InputError(f"--keys is a file with a key on each line, and there is none at {str(keys)!r}")
        texts = read_texts(None, keys, "--keys")
    elif by is not None:
        by, colon, listed = by.partition(":")
        if not colon:
            raise InputError(
                f"--by takes the public keys of its groups: --keys FILE with one on each line, or --by '{by}:KEY,KEY'"
            )
        texts = read_texts(listed, None, "--by")
    for text in texts or ():
        check_text(text, "keys")
    return Scope(person, rows, missing_person, by, texts or (), other, rows_per_group, groups)


def read_questions(
    texts: Sequence[str], options: Mapping[str, Any], epsilon: float, relation: Relation, scope: Scope
) -> list[Question]:
    """Read questions, which share epsilon equally; the options of --query complete a single one."""
    given = {option: value for option, value in options.items() if value is not None}
    if not 0 < epsilon < math.inf:  # here, since messages about a share would not have the number that was given
        raise InputError(f"epsilon must be positive and finite, got {epsilon!r}")
    for text in texts:
        if len(texts) > 1 and (name := text.partition(":")[0]) in ("keys", "frequent"):
            raise InputError(f"--query {name} must be the only question, got {len(texts)}")
    if len(texts) > 1 and given:
        raise InputError(f"{next(iter(given))} is for a single --query; of several each says all, as in mean:age:0,100")
    share = epsilon / len(texts)
    # As ledgers add, a float is the decimal number that it is printed as.
    while Decimal(repr(share)) * len(texts) > Decimal(repr(epsilon)):
        share = math.nextafter(share, 0.0)
    try:
        asked = [_question(text, dict(given), {"epsilon": share, "relation": relation}, scope) for text in texts]
    except ParameterError as error:
        if len(texts) == 1 or not str(error).startswith("epsilon "):
            raise
        raise InputError(f"{error}: the share of each of {len(texts)} questions, of {epsilon!r}") from None
    keys = [question.key for question in asked]
    for text, question in zip(texts, asked, strict=True):
        if keys.count(question.key) > 1:
            raise InputError(f"two answers would have the name {question.key!r}: ask {text!r} in another release")
    return asked


def _question(text: str, given: dict[str, Any], parameters: dict[str, Any], scope: Scope) -> Question:
    name, *words = text.split(":", 2)  # what follows the column may hold colons, as times do
    if name not in _NEEDED:
        close = get_close_matches(name, NAMES, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(f"--query must be one of {', '.join(NAMES)}, with what follows a colon, got {text!r}{hint}")
    taken = (*_NEEDED[name], *_MORE.get(name, ()))
    parts = [option for option in _IN_TEXT if option in taken]
    # What reads as two bounds has no quantiles behind it, though times have colons.
    if "--q" in parts and len(words) > 1 and numbers_or_dates(words[1].split(",")) is None:
        words[1:] = words[1].rsplit(":", 1)
    if len(words) > len(parts):
        raise InputError(f"--query {name} says nothing after its column, got {text!r}")
    for option, word in zip(parts, words, strict=False):
        said = "--domain" if option == "--edges" and numbers_or_dates(word.split(",")) is None else option
        if said in given:
            raise InputError(f"--query {text} says {said} already, so it must not be given")
        given[said] = word
    for option in given:
        if option not in taken:
            raise InputError(f"--query {name} takes no {option}")
    for option in _NEEDED[name]:
        if option not in given:
            raise InputError(f"--query {name} takes {option}")
    if "--value" in given and "--column" not in given:
        raise InputError("--query count takes --column with --value")
    query, column = _built(name, given, parameters)
    return Question(name, column, query, scope.of_persons(query))


def _built(name: str, given: dict[str, Any], parameters: dict[str, Any]) -> tuple[Any, Column | None]:
    """Return the query of a question, and its column."""
    kind, labels, value = kinds.LABELS, None, given.get("--value")
    if name == "count":
        query: Any = queries.Count(**parameters)
        kind, labels = (kinds.PRESENT, None) if value is None else (kinds.LABELS, (value,))
    elif name == "frequent":
        options = ("--delta", "--threshold", "--sample-rate")
        parameters |= {option[2:].replace("-", "_"): given.get(option) for option in options}
        query = local.SampleAndThreshold(**parameters)
    elif name == "keys":
        query = queries.StabilityHistogram(**parameters, delta=given["--delta"])
    elif name == "histogram":
        parameters |= _groups(given)
        query = (queries.StabilityHistogram if "delta" in parameters else queries.Histogram)(**parameters)
        labels = parameters.get("domain")
        kind = kinds.LABELS if (edges := parameters.get("edges")) is None else _kind_of(edges)
    else:
        bounds = _bounds(name, given["--bounds"])
        if "--q" in given:
            parameters["q"] = _numbers(given["--q"], "--q")
        if name == "quantile":
            if len(parameters["q"]) > 1:
                raise InputError(
                    f"--q must be one number for --query quantile, got {given['--q']!r}: --query quantiles takes more"
                )
            (parameters["q"],) = parameters["q"]
        query, kind = _BOUNDED[name](bounds=bounds, **parameters), _kind_of(bounds)
    column = given.get("--column")
    return query, None if column is None else Column(column, kind, labels, if_equal=value is not None)


def _kind_of(public: Sequence[Any]) -> kinds.Kind:
    """Return how a column is read that is compared with numbers, dates or times."""
    return kinds.times(public[0]) if isinstance(public[0], date) else kinds.NUMBERS


def _bounds(name: str, given: Any) -> Any:
    found = given
    if isinstance(given, str):
        found = numbers_or_dates(given.split(","))
        if found is None or len(found) != 2:
            raise InputError(
                f"--query {name} takes two bounds separated by a comma, numbers or dates as 2020-01-31, got {given!r}"
            )
    if name not in ("median", "quantile", "quantiles") and isinstance(found[0], date):
        raise InputError(f"--query {name} takes bounds that are numbers, got {found[0]} and {found[1]}")
    return tuple(found)


def _groups(given: Mapping[str, Any]) -> dict[str, Any]:
    edges, domain, file, delta = map(given.get, ("--edges", "--domain", "--domain-file", "--delta"))
    if sum((edges is not None, domain is not None or file is not None, delta is not None)) != 1:
        raise InputError("--query histogram takes either --edges, or --domain or --domain-file, or --delta")
    if edges is not None:
        if (found := numbers_or_dates(edges.split(","))) is None:
            raise InputError(f"--edges must be numbers separated by commas, got {edges!r}; dates are as 2020-01-31")
        return {"edges": found}
    return {"delta": delta} if delta is not None else {"domain": read_domain(domain, file)}


def _numbers(given: str, option: str) -> list[float]:
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, got {given!r}") from None
