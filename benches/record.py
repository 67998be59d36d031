"""What a run measured, as Markdown: the targets, then a table for each work, entrants down and cases across."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import dpnoise
from benches import machine, peers
from benches.targets import IDLE, INSTRUCTION_SETS, OURS, TARGETS, TWO_THREADS, Target

FOLDER = Path(__file__).parent / "records"


class Table:
    """The amounts that entrants reach at a piece of work, by case."""

    def __init__(self, title: str, unit: str, higher_is_better: bool) -> None:
        self.title = title
        self.unit = unit
        self.higher_is_better = higher_is_better
        self.amounts: dict[str, dict[str, float]] = {}
        self.columns: list[str] = []

    def add(self, column: str, amounts: dict[str, float]) -> None:
        if column not in self.columns:
            self.columns.append(column)
        for entrant, amount in amounts.items():
            self.amounts.setdefault(entrant, {})[column] = amount

    def factors(self, entrant: str, against: str | float) -> dict[str, float]:
        """Return how many times as good an entrant is as another, or as an amount, in every column of both."""
        ours = self.amounts.get(entrant, {})
        theirs = self.amounts.get(against, {}) if isinstance(against, str) else dict.fromkeys(ours, against)
        pairs = {column: (amount, theirs[column]) for column, amount in ours.items() if column in theirs}
        return {column: a / b if self.higher_is_better else b / a for column, (a, b) in pairs.items()}

    def text(self, idle: bool) -> str:
        """Return the amounts, and how many times as good ours are; two threads are marked where the cores are idle."""
        amounts = [self.row(entrant, self.amounts[entrant]) for entrant in self.amounts]
        aims = {
            (target.entrant, target.against): target
            for target in TARGETS
            if target.table == self.title and (idle or target.entrant != TWO_THREADS)
        }
        wanted = [against for entrant, against in aims if entrant == OURS and isinstance(against, str)]
        pairs = [
            *((OURS, entrant) for entrant in self.amounts if not entrant.startswith("dpnoise")),
            *((entrant, against) for entrant in INSTRUCTION_SETS.values() if entrant != OURS for against in wanted),
            (TWO_THREADS, OURS),
        ]
        factors = []
        for entrant, against in pairs:
            target = aims.get((entrant, against))
            name = f"{entrant} : {against}" + (f" (target {target.factor:g})" if target else "")
            factors.append(self.row(name, self.factors(entrant, against), target))
        factors = [row for row in factors if any(row[1:])]
        parts = [f"## {self.title}\n", markdown([[self.unit, *self.columns], *amounts])]
        return "\n".join([*parts, markdown([["times as good", *self.columns], *factors])] if factors else parts)

    def row(self, name: str, numbers: dict[str, float], target: Target | None = None) -> list[str]:
        def cell(column: str) -> str:
            if column not in numbers:
                return ""
            mark = "" if target is None else " ✓" if numbers[column] >= target.factor else " ✗"
            return number(numbers[column]) + mark

        return [name, *map(cell, self.columns)]


class Record:
    """The tables of a run, and what has a form of its own. A whole run also tells what was not measured."""

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.others = machine.Watch()
        self.notes: list[str] = []
        self.tables: dict[str, Table] = {}
        self.texts: dict[str, str] = {}

    def table(self, title: str, unit: str, higher_is_better: bool = False) -> Table:
        return self.tables.setdefault(title, Table(title, unit, higher_is_better))

    def is_idle(self) -> bool:
        """Return whether the processors were idle but for this run, as far as it is known."""
        share = self.others.share()
        return (os.cpu_count() or 1) >= 2 and share is not None and share <= IDLE

    def __str__(self) -> str:
        """Return the whole record."""
        share = self.others.share()
        others = "an unknown share" if share is None else f"{share:.0%}"
        versions = {name: peers.version(name) for name in (*peers.PEERS, *peers.LOCAL_PEERS, *peers.HOSTS)}
        here = "".join(f", {name} {found}" for name, found in versions.items() if found != "not installed")
        targets = [target for target in TARGETS if self.whole or target.table in self.tables]
        head = f"""# Benchmarks of {today()}

{machine.cpu()}, {os.cpu_count()} cores; {machine.rust_version()}, CPython {platform.python_version()}.
dpnoise {dpnoise.__version__}, instruction set {dpnoise.instruction_set()}. Beside it: NumPy {np.__version__}{here}.
Other programs took {others} of the processors' time.{"".join(f" {note}." for note in self.notes)}

Every amount is a median. The entrants of a column take turns, so compare within a column; but the parts of the Rust
crate are timed one after the other. dpnoise uses one thread, unless it says otherwise. A busy machine slows long turns
more than short ones, and has no room for a second thread.
"""
        if targets:
            judged = markdown([["work", "target", "measured", "reached"], *map(self.judged, targets)])
            head = f"{head}\n## Targets\n\n{judged}"
        texts = (f"## {title}\n\n{text}\n" for title, text in self.texts.items())
        return "\n".join([head, *(table.text(self.is_idle()) for table in self.tables.values()), *texts])

    def judged(self, target: Target) -> list[str]:
        """Return the row that says whether a target is reached."""
        work = target.table if target.entrant == OURS else f"{target.table}, {target.entrant.removeprefix('dpnoise, ')}"
        table = self.tables.get(target.table)
        factors = table.factors(target.entrant, target.against) if table else {}
        factors = {column: factor for column, factor in factors.items() if target.column in (None, column)}
        if table is None or not factors:
            return [work, str(target), "not measured", ""]
        amounts = factors if isinstance(target.against, str) else table.amounts[target.entrant]
        measured = span(amounts[column] for column in factors)
        reached = sum(factor >= target.factor for factor in factors.values())
        if target.entrant == TWO_THREADS and not self.is_idle():
            return [work, str(target), measured, "not judged: the cores were not idle"]
        verdict = {len(factors): "yes", 0: "no"}.get(reached, f"in {reached} of {len(factors)} cases")
        return [work, str(target), measured, verdict]

    def write(self, part: str) -> Path:
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{'-'.join(filter(None, (today(), part)))}.md"
        path.write_text(str(self), encoding="utf-8")
        return path


def today() -> str:
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


def number(amount: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{amount:.0f}" if amount >= 100 else f"{amount:#.3g}"


def span(amounts: Iterable[float]) -> str:
    ordered = sorted(amounts)
    low, high = number(ordered[0]), number(ordered[-1])
    return low if low == high else f"{low} to {high}"


def markdown(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows)
    return "\n".join([head, "| " + " | ".join("-" * width for width in widths) + " |", *body, ""])
