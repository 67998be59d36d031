"""What the page of the site on frequency oracles says of a record of `benches.oracles`, and its pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from benches.oracle_cases import (
    BYTES,
    CLIENT,
    COLLECTOR,
    LARGE,
    LARGEST,
    LAW,
    LDP3,
    MAXIMUM,
    MAXIMUM_ERROR,
    MSE,
    MSE_ERROR,
    MSE_SCALED,
    NO_POST,
    ORACLES,
    POSTS,
    PUBLISHED,
    Case,
    by_post_title,
)
from benches.published import FELDMAN_2022, FELDMAN_2022_BY_EPSILON, PGR, SS
from benches.record import Record, Table
from benches.report import busy, instruction_set, number
from benches.svg import Mark, Row, of_lines, of_rows

LIBRARIES = {"dpnoise": 0, "multi-freq-ldpy": 4, "pure-ldp": 5}
"""Who is drawn, with the kinds of `benches.pictures`."""
DRAWN = [name for name in ORACLES if name != "OptimizedUnaryEncoding"]
"""The protocols whose errors are drawn by epsilon; that of the other one is the error of `LocalHashing`."""


def parts(record: Record) -> dict[str, str]:
    """Return what stands between the marks of the page."""
    compared = [case for case in (*PUBLISHED.values(), *LARGE, *LARGEST, *LDP3) if case.libraries or case == LARGEST[2]]
    return {
        "machine": machine(record),
        "published squared errors": published(record, MSE, MSE_ERROR),
        "published maximal errors": published(record, MAXIMUM, MAXIMUM_ERROR),
        "errors": "\n\n".join(by_epsilon(record, cases) for cases in (LARGE, LARGEST)),
        "costs": "\n\n".join(costs(record.tables[str(case)]) for case in compared),
        "post-processing": "\n\n".join(by_post(record, case) for case in LDP3),
    }


def rows_of(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is words, and whose others are numbers."""
    line = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join([f"**{title}**", "", *(f"| {' | '.join(row)} |" for row in (head, line, *rows))])


def machine(record: Record) -> str:
    return f"""The record is of {record.date}: {record.cpu}, {record.cores} cores, instruction set
{instruction_set(record)}; multi-freq-ldpy {record.versions["multi-freq-ldpy"]}, pure-ldp {record.versions["pure-ldp"]}.
Other programs took {busy(record)} of the processors' time."""


def published(record: Record, what: str, error: str) -> str:
    """Return a row for every published input: our errors, and the published ones."""

    def cell(amount: float, error: float) -> str:
        # Two digits of the error, but not more than the four of the amount that are kept.
        digits = max(0, min(1 - math.floor(math.log10(error)), 3 - math.floor(math.log10(amount))))
        return f"{amount:.{digits}f} ± {error:.{digits}f}"

    def row(name: str, case: Case) -> Iterator[str]:
        yield name if name == case.input else f"{name}: {case}"
        for protocol in (PGR, SS):
            amounts, figures = record.tables[str(case)].amounts[f"dpnoise {protocol}"], FELDMAN_2022[name].get(protocol)
            yield cell(amounts[what], amounts[error])
            if what == MSE:
                yield f"{amounts[LAW]:.4g}"
            yield "" if figures is None else cell(*(figures[:2] if what == MSE else figures[2:]))

    law = ["law"] if what == MSE else []
    head = ["input", f"`{PGR}`", *law, "published", f"`{SS}`", *law, "published"]
    return rows_of(what, head, (list(row(*item)) for item in PUBLISHED.items()))


def of_ours(table: Table) -> dict[str, dict[str, float]]:
    """Return the amounts of our protocols by their names."""
    mine = {name: amounts for name, amounts in table.amounts.items() if name.startswith("dpnoise")}
    return {name.removeprefix("dpnoise "): amounts for name, amounts in mine.items()}


def number_among(amount: float, amounts: Iterable[float]) -> str:
    """Return a number, bold if none of the others is smaller, as far as they are shown."""
    text = number(amount)
    return f"**{text}**" if text == number(min(amounts)) else text


def by_epsilon(record: Record, cases: Sequence[Case]) -> str:
    """Return a row for every protocol of ours, with its errors for every epsilon."""
    tables = [of_ours(record.tables[str(case)]) for case in cases]

    def cell(table: dict[str, dict[str, float]], name: str) -> str:
        # By the law, since what was measured is a little smaller or larger by chance.
        law = number_among(table[name][LAW], (amounts[LAW] for amounts in table.values()))
        return f"{number(table[name][MSE])} ({law}), {number(table[name][MAXIMUM])}"

    head = ["protocol", *(f"ε = {case.epsilon:g}" for case in cases)]
    rows = [[f"`{name}`", *(cell(table, name) for table in tables)] for name in tables[0]]
    case = cases[0]
    rows += [left_out(*item, len(cases)) for item in record.tables[str(case)].missing.items()]
    return rows_of(f"{case.input}, k = {case.k:,}, n = {case.n:,}", head, rows)


def costs(table: Table) -> str:
    """Return a row for every entrant: its errors, the size of a report, and the times."""
    columns = [column for column in (MSE, MSE_SCALED, BYTES, CLIENT, COLLECTOR) if column in table.columns]

    def cell(column: str, amount: float | None) -> str:
        if amount is None:
            return ""
        return f"{amount:,.0f}" if column in (BYTES, CLIENT) else number(amount)

    rows = [
        [entrant_name(entrant), *(cell(column, amounts.get(column)) for column in columns)]
        for entrant, amounts in table.amounts.items()
    ]
    rows += [left_out(entrant, reason, len(columns)) for entrant, reason in table.missing.items()]
    return rows_of(table.title, ["", *columns], rows)


def left_out(entrant: str, reason: str, columns: int) -> list[str]:
    """Return the row of an entrant that was not measured."""
    return [entrant_name(entrant), reason, *[""] * (columns - 1)]


def entrant_name(entrant: str) -> str:
    library, name = entrant.split(" ", 1)
    return f"`{name}`" if library == "dpnoise" else f"{library}, {name}"


def by_post(record: Record, case: Case) -> str:
    """Return a row for every protocol of ours, with its errors for every way of post-processing."""
    squared, largest = (of_ours(record.tables[by_post_title(case, what)]) for what in (MSE, MAXIMUM))
    every = [amount for amounts in squared.values() for amount in amounts.values()]

    def cell(name: str, post: str) -> str:
        return f"{number_among(squared[name][post], every)}, {number(largest[name][post])}"

    columns = (NO_POST, *POSTS)
    return rows_of(
        str(case), ["protocol", *columns], ([f"`{name}`", *(cell(name, post) for post in columns)] for name in squared)
    )


def pictures(record: Record) -> dict[str, str]:
    """Return the pictures by their file names."""
    table = record.tables[str(PUBLISHED["zipf 1.0"])]
    return {
        "oracles_by_epsilon.svg": errors(record),
        "oracles_client.svg": times(table, "client", CLIENT),
        "oracles_collector.svg": times(table, "collector", COLLECTOR),
    }


def errors(record: Record) -> str:
    """Draw the squared error of each protocol by epsilon, and what was published."""
    kinds = dict(enumerate(DRAWN))
    lines = {
        kind: {case.epsilon: record.tables[str(case)].amounts[f"dpnoise {name}"][MSE] for case in LARGE}
        for kind, name in kinds.items()
    }
    dashed = {kind: FELDMAN_2022_BY_EPSILON[name] for kind, name in kinds.items() if name in FELDMAN_2022_BY_EPSILON}
    return of_lines(
        "Squared error for 22,000 values", ("epsilon", "MSE/n"), kinds, lines, ("published, n = 1000", dashed)
    )


def times(table: Table, role: str, column: str) -> str:
    """Draw the time of each protocol, ours and those of other libraries."""
    rows = []
    for name, amounts in of_ours(table).items():
        others = {library: table.amounts.get(f"{library} {name}") for library in LIBRARIES}
        marks = [Mark(found[column], LIBRARIES[library]) for library, found in others.items() if found]
        rows.append(Row(name, number(amounts[column]), marks))
    rows.sort(key=lambda row: row.marks[0].amount)
    kinds = {kind: library for library, kind in LIBRARIES.items()}
    unit = column.removeprefix(f"{role}, ")
    return of_rows(f"22,000 values, {role}; the numbers are ours", unit, kinds, rows)
