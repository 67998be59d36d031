"""What a run measured, and what follows: ratios, the targets that are reached, and where another entrant is better.

A record is a JSON file in benches/records, one of each kind; a new one replaces it. The site is built from records
without dpnoise, so nothing here imports it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benches import hosts
from benches.targets import INSTRUCTION_SETS, PLAIN, TARGETS, Target

FOLDER = Path(__file__).parent / "records"
WHOLE = "all"
"""The kind of a record of all benchmarks. Other kinds are of parts."""
IDLE = 0.05
"""A second thread has a core of its own only where other programs take no more of the processors' time than this."""
PARTIAL = {"reading the memory", "NumPy sort", "NumPy partition", PLAIN}
"""Entrants that do only a part of the work: bounds, and no alternatives."""


class Result(NamedTuple):
    """How a target was met in a column."""

    column: str
    measured: float
    """In the unit of the target: a ratio, or an amount."""
    reached: bool


class Loss(NamedTuple):
    """A column in which another entrant is better than one of ours."""

    table: Table
    column: str
    entrant: str
    best: str
    """The best other entrant."""
    factor: float
    """How many times as good as that ours is."""


@dataclass
class Table:
    """The amounts that entrants reach at a piece of work, by case."""

    title: str
    unit: str = ""
    higher_is_better: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    """Why an entrant has no amounts."""
    amounts: dict[str, dict[str, float]] = field(default_factory=dict)
    """By entrant and column, to four digits."""

    def add(self, column: str, amounts: dict[str, float]) -> None:
        for entrant, amount in amounts.items():
            self.amounts.setdefault(entrant, {})[column] = float(f"{amount:.4g}")

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for amounts in self.amounts.values() for column in amounts))

    def factors(self, entrant: str, against: str | float) -> dict[str, float]:
        """Return how many times as good an entrant is as another, or as an amount, in every column of both."""
        ours = self.amounts.get(entrant, {})
        theirs = self.amounts.get(against, {}) if isinstance(against, str) else dict.fromkeys(ours, against)
        pairs = {column: (amount, theirs[column]) for column, amount in ours.items() if column in theirs}
        return {column: a / b if self.higher_is_better else b / a for column, (a, b) in pairs.items()}

    def losses(self, entrant: str) -> Iterator[Loss]:
        """Yield the columns in which an entrant of ours is not as good as the best of the others."""
        others = [other for other in self.amounts if not other.startswith("dpnoise") and other not in PARTIAL]
        for column in self.columns:
            against = {other: self.factors(entrant, other).get(column, float("inf")) for other in others}
            best = min(against, key=against.__getitem__, default="")
            if best and against[best] < 1:
                yield Loss(self, column, entrant, best, against[best])

    def to_json(self) -> str:
        """Return the table with a line for each entrant."""
        head = {name: value for name, value in vars(self).items() if value and name != "amounts"}
        columns = self.columns
        rows = (
            f"\n   {_json(entrant)}: {_json([amounts.get(column) for column in columns])}"
            for entrant, amounts in self.amounts.items()
        )
        return f'{_json(head | {"columns": columns})[:-1]}, "amounts": {{{",".join(rows)}}}}}'

    @classmethod
    def from_fields(cls, columns: list[str], amounts: dict[str, list[float | None]], **fields: Any) -> Table:
        rows = {entrant: zip(columns, row, strict=True) for entrant, row in amounts.items()}
        known = {entrant: {name: x for name, x in row if x is not None} for entrant, row in rows.items()}
        return cls(amounts=known, **fields)


@dataclass
class Record:
    """A run on one machine."""

    kind: str | None
    """None for a run that is not kept."""
    date: str
    cpu: str
    cores: int
    ours: str
    """The entrant that uses one thread, and the best instruction set of the machine."""
    versions: dict[str, str]
    others: float | None = None
    """The share of the processors' time that other programs took, where anything tells."""
    notes: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    targets: Sequence[Target] = field(default=TARGETS, compare=False)
    """Those of today, which are not kept with the record."""

    def __post_init__(self) -> None:
        self.targets = [target.of(self.ours) for target in self.targets]

    def table(self, title: str, unit: str, higher_is_better: bool = False) -> Table:
        return self.tables.setdefault(title, Table(title, unit, higher_is_better))

    @property
    def two_threads(self) -> str:
        return f"{self.ours}, 2 threads"

    @property
    def instruction_set(self) -> str:
        return self.ours.removeprefix("dpnoise, ")

    @property
    def busy(self) -> str:
        """The share of other programs, in words."""
        return "an unknown share" if self.others is None else f"{self.others:.0%}"

    def is_judged(self, target: Target) -> bool:
        """Return whether the machine allowed to judge a target: two threads need a core each."""
        idle = self.cores >= 2 and self.others is not None and self.others <= IDLE
        return idle or target.entrant != self.two_threads

    def results(self, target: Target) -> list[Result]:
        """Return how a target was met, in the columns that it is about and that were measured."""
        table = self.tables.get(target.table, Table(""))
        factors = table.factors(target.entrant, target.against)
        measured = factors if isinstance(target.against, str) else table.amounts.get(target.entrant, {})
        return [
            Result(column, measured[column], factor >= target.factor)
            for column, factor in factors.items()
            if target.column in (None, column)
        ]

    def missed(self) -> Iterator[tuple[Target, list[Result]]]:
        """Yield the targets that were judged and missed, each with the columns where that was."""
        for target in self.targets:
            missed = [result for result in self.results(target) if not result.reached]
            if missed and self.is_judged(target):
                yield target, missed

    def losses(self) -> Iterator[Loss]:
        """Yield where another entrant is better than one of ours. Two threads count where one was not measured."""
        for table in self.tables.values():
            ours = [entrant for entrant in table.amounts if entrant.startswith(self.ours)]
            for entrant in ours:
                if entrant != self.two_threads or ours == [entrant]:
                    yield from table.losses(entrant)

    def losses_of_other_instruction_sets(self) -> Iterator[tuple[str, Table, list[Loss]]]:
        """Yield the tables in which another entrant is better than ours by another instruction set of the machine."""
        for entrant in INSTRUCTION_SETS.values():
            for table in self.tables.values():
                losses = [] if entrant == self.ours else list(table.losses(entrant))
                if losses:
                    yield entrant, table, losses

    def keep(self) -> Path:
        """Write the record in place of the one of its kind."""
        path = place(self.kind)
        path.write_text(self.to_json(), encoding="utf-8")
        return path

    def to_json(self) -> str:
        fields = {name: value for name, value in vars(self).items() if name not in ("tables", "targets")}
        lines = [f" {_json(name)}: {_json(value)}" for name, value in fields.items()]
        tables = ",\n  ".join(table.to_json() for table in self.tables.values())
        return "{\n" + ",\n".join([*lines, f' "tables": [\n  {tables}\n ]']) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        fields = json.loads(text)
        fields["tables"] = {table["title"]: Table.from_fields(**table) for table in fields["tables"]}
        return cls(**fields)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def kept() -> dict[str, Record]:
    """Return all records by their kinds."""
    kinds = {path.stem for path in FOLDER.glob("*.json")}
    kinds |= {folder.name for folder in hosts.FOLDERS if (folder / "record.json").exists()}
    return {kind: Record.from_json(place(kind).read_text(encoding="utf-8")) for kind in sorted(kinds)}


def place(kind: str) -> Path:
    """Return the file of the record of a kind: an integration has its own beside it."""
    folder = hosts.FOLDER / kind
    return folder / "record.json" if folder.is_dir() else FOLDER / f"{kind}.json"
