"""The pictures of a record, for the page of the site."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benches.libraries import KINDS, kind_of, library
from benches.noise import N
from benches.record import Record, Table
from benches.report import number, span
from benches.svg import Mark, Row, of_lines, of_rows

NOISE = ("Discrete Laplace", "Discrete Gaussian", "Float Laplace", "Float Gaussian")
MIDDLE = ("k = 128", "width = 128", "num_bloombits = 128", "epsilon = 1")
"""The columns of local protocols that are compared with each other."""
ANSWERS = (
    "Generalised randomised response",
    "Local hashing",
    "Hadamard response",
    "Subset selection",
    "Unary encoding",
    "Summation with histogram encoding",
)
"""The protocols for one answer of k whose times are drawn by k."""


def pictures(record: Record) -> dict[str, str]:
    """Return the pictures of a record of all benchmarks, by their file names."""
    return {
        **{f"{title.lower().replace(' ', '_')}.svg": noise(record.tables[title]) for title in NOISE},
        **{f"local_{role}.svg": local(record, role) for role in ("client", "server")},
        **{f"by_k_{role}.svg": by_k(record, role) for role in ("client", "server")},
        "by_n.svg": by_n(record),
        "two_threads.svg": two_threads(record),
    }


def noise(table: Table) -> str:
    """Draw all entrants of a sampler, with a mark for each scale."""
    amounts = {entrant: list(by_column.values()) for entrant, by_column in table.amounts.items()}
    rows = [
        Row(entrant, span(amounts[entrant]), [Mark(amount, kind_of(entrant)) for amount in amounts[entrant]])
        for entrant in sorted(amounts, key=lambda entrant: median(amounts[entrant]))
    ]
    kinds = {kind: text for kind, text in KINDS.items() if any(kind_of(entrant) == kind for entrant in amounts)}
    return of_rows(f"{table.title} noise, at several scales", table.unit, kinds, rows)


def per_report(table: Table, column: str, entrant: str) -> float:
    """Return an amount in nanoseconds per report."""
    k = int(column.removeprefix("k = ")) if table.unit == "ns per bit" else 1
    return k * table.amounts[entrant][column]


def of_role(record: Record, role: str) -> Iterator[tuple[str, Table]]:
    """Yield the local protocols and their tables. That of unary encoding which counts from memory has another unit."""
    for title, table in record.tables.items():
        protocol, _, rest = title.partition(f", {role}")
        if rest in ("", ", from cache") and protocol != title:
            yield protocol, table


LOCAL = {"dpnoise": 0, "NumPy": 3, "multi-freq-ldpy": 4, "pure-ldp": 5}
"""The kinds of who has local protocols."""


def local(record: Record, role: str) -> str:
    """Draw the times of all protocols, in one case of each."""
    rows = []
    for protocol, table in of_role(record, role):
        column = next((column for column in MIDDLE if column in table.columns), None)
        if column is None:
            continue
        marks = [
            Mark(per_report(table, column, entrant), LOCAL[library(entrant)])
            for entrant, amounts in table.amounts.items()
            if column in amounts and (entrant == record.ours or not entrant.startswith("dpnoise"))
        ]
        rows.append(Row(protocol, number(marks[0].amount), marks))
    rows.sort(key=lambda row: row.marks[0].amount)
    drawn = {mark.kind for row in rows for mark in row.marks}
    kinds = {kind: name for name, kind in LOCAL.items() if kind in drawn}
    if role == "client":  # a server draws nothing
        promises = {kind: "exact and secure" if kind == 0 else "neither exact nor secure" for kind in kinds}
        kinds = {kind: f"{name}: {promises[kind]}" for kind, name in kinds.items()}
    return of_rows(f"Local protocols, {role}; the numbers are ours", "ns per report", kinds, rows)


def by_k(record: Record, role: str) -> str:
    """Draw how the time of a report grows with the number of possible answers."""
    tables = dict(of_role(record, role))

    def lines(entrant: str) -> dict[int, dict[float, float]]:
        return {
            i: {int(column.removeprefix("k = ")): per_report(table, column, entrant) for column in table.columns}
            for i, table in enumerate(tables[name] for name in ANSWERS)
        }

    numpy = "NumPy, PCG64" if role == "client" else "NumPy"
    titles = "possible answers k", "ns per report"
    return of_lines(
        f"Local protocols by k, {role}", titles, dict(enumerate(ANSWERS)), lines(record.ours), (numpy, lines(numpy))
    )


def by_n(record: Record) -> str:
    """Draw how the time of a sample falls with the number of samples of a call."""
    rival = "NumPy laplace, PCG64"
    entrants: dict[str, tuple[str, str, str | None]] = {
        "Discrete Laplace, dpnoise": ("Calls: discrete Laplace", record.ours, "Discrete Laplace"),
        "the same, a new scale in each call": ("Calls: discrete Laplace", f"{record.ours}, new parameter", None),
        "Laplace mechanism, dpnoise": ("Calls: Laplace mechanism", record.ours, "Laplace mechanism"),
        rival: ("Calls: discrete Laplace", rival, "Discrete Laplace"),
    }

    def line(calls: str, entrant: str, bulk: str | None) -> dict[float, float]:
        amounts = record.tables[calls].amounts[entrant]
        by_n = {float(n): amounts[f"n = {n}"] / n for n in (1, 10, 100, 1000)}
        return by_n if bulk is None else by_n | {N: record.tables[bulk].amounts[entrant]["10"]}

    lines = {i: line(*where) for i, where in enumerate(entrants.values())}
    titles = "samples n of a call", "ns per sample"
    return of_lines("Calls for n samples, of scale 10", titles, dict(enumerate(entrants)), lines)


def two_threads(record: Record) -> str:
    """Draw how many times as fast two threads are, with a mark for each case."""
    rows = []
    for target in record.targets:
        if target.entrant == record.two_threads and target.table in record.tables:
            factors = record.tables[target.table].factors(record.two_threads, record.ours).values()
            rows.append(Row(target.table, span(factors), [Mark(factor, 0) for factor in factors]))
    rows.sort(key=lambda row: -median(mark.amount for mark in row.marks))
    return of_rows("Two threads, times as fast as one", "times as fast", {0: "a mark is a case"}, rows)
