"""A record as Markdown: the targets, then a table for each work, entrants down and cases across."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benches.record import Record, Table
from benches.targets import INSTRUCTION_SETS, Target


def report(record: Record) -> str:
    """Return the whole record."""
    notes = "".join(f" {note}." for note in record.notes)
    head = f"""# Benchmarks of {record.date}

{machine(record)}{notes}

Every time or rate is a median, every error a mean. The entrants of a column take turns, so compare within a column; but
the parts of the Rust crate are timed one after the other. dpnoise uses one thread, unless it says otherwise. A busy
machine slows long turns more than short ones, and has no room for a second thread.
"""
    # A run of all benchmarks also tells what was not measured.
    targets = [target for target in record.targets if record.part == "" or target.table in record.tables]
    if targets:
        rows = [judgement(record, target) for target in targets]
        judged = markdown([["work", "target", "measured", "reached"], *rows])
        head = f"{head}\n## Targets\n\n{judged}"
    texts = (f"## {title}\n\n{text}\n" for title, text in record.texts.items())
    return "\n".join([head, *(of_table(record, table) for table in record.tables.values()), *texts])


def machine(record: Record) -> str:
    """Return what the record is of."""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return f"""{record.cpu}, {record.cores} cores, instruction set {instruction_set(record)}.
{versions}.
Other programs took {busy(record)} of the processors' time."""


def instruction_set(record: Record) -> str:
    return record.ours.removeprefix("dpnoise, ")


def busy(record: Record) -> str:
    """Return the share of other programs."""
    return "an unknown share" if record.others is None else f"{record.others:.0%}"


def judgement(record: Record, target: Target) -> list[str]:
    """Return the row that says whether a target is reached."""
    results = record.results(target)
    if not results:
        return [work(record, target), str(target), "not measured", ""]
    reached = sum(result.reached for result in results)
    verdict = {len(results): "yes", 0: "no"}.get(reached, f"in {reached} of {len(results)} cases")
    if not record.is_judged(target):
        verdict = "not judged: the cores were not idle"
    return [work(record, target), str(target), span(result.measured for result in results), verdict]


def work(record: Record, target: Target) -> str:
    """Return what a target is about."""
    cases = "" if target.column is None else f", {target.column}"
    by = "" if target.entrant == record.ours else f", {target.entrant.removeprefix('dpnoise, ')}"
    return f"{target.table}{cases}{by}"


def of_table(record: Record, table: Table) -> str:
    """Return the amounts, and how many times as good ours are, with the targets that were judged."""
    targets = [target for target in record.targets if target.table == table.title and record.is_judged(target)]
    wanted = {target.against for target in targets if target.entrant == record.ours}
    rivals = [entrant for entrant in table.amounts if not entrant.startswith("dpnoise")]
    slower = [name for name in INSTRUCTION_SETS.values() if name != record.ours]
    pairs = [
        *((record.ours, rival) for rival in rivals),
        *((name, rival) for name in slower for rival in rivals if rival in wanted),
        (record.two_threads, record.ours),
    ]

    def row(name: str, numbers: dict[str, float], aims: Sequence[Target] = ()) -> list[str]:
        def cell(column: str) -> str:
            aim = next((aim.factor for aim in aims if aim.column in (None, column)), None)
            mark = "" if aim is None else " ✓" if numbers[column] >= aim else " ✗"
            return number(numbers[column]) + mark

        return [name, *(cell(column) if column in numbers else "" for column in table.columns)]

    factors = []
    for entrant, against in pairs:
        aims = [target for target in targets if (target.entrant, target.against) == (entrant, against)]
        name = f"{entrant} : {against}" + (f" (target {aims[0].factor:g})" if aims else "")
        factors.append(row(name, table.factors(entrant, against), aims))
    factors = [row for row in factors if any(row[1:])]
    amounts = [row(entrant, amounts) for entrant, amounts in table.amounts.items()]
    parts = [f"## {table.title}\n", markdown([[table.unit, *table.columns], *amounts])]
    parts += [f"{entrant}: {reason}.\n" for entrant, reason in table.missing.items()]
    return "\n".join([*parts, markdown([["times as good", *table.columns], *factors])] if factors else parts)


def number(amount: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{amount:.0f}" if amount >= 99.95 else f"{amount:#.3g}"


def span(amounts: Iterable[float]) -> str:
    ordered = sorted(amounts)
    low, high = number(ordered[0]), number(ordered[-1])
    return low if low == high else f"{low} to {high}"


def markdown(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows)
    return "\n".join([head, "| " + " | ".join("-" * width for width in widths) + " |", *body, ""])
