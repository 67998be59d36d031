"""What the pages of the site say of the records.

docs/site/benchmarks.py asks for it when the site is built. That happens without dpnoise, so nothing here imports it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from benches.libraries import LIBRARIES
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
    POSTS,
    PUBLISHED,
    Case,
    by_post_title,
)
from benches.published import FELDMAN_2022, PGR, SS
from benches.record import WHOLE, Loss, Record, Table, kept
from benches.targets import INSTRUCTION_SETS, Target

# --- the page of a record --------------------------------------------------------------------------------------------


def report(record: Record) -> str:
    """Return a whole record in Markdown: the targets, then a table for each work, entrants down and cases across."""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    notes = "".join(f" {note}." for note in record.notes)
    head = f"""# Benchmarks of {record.date}{"" if record.kind is None else f": {record.kind}"}

{record.cpu}, {record.cores} cores, instruction set {record.instruction_set}.
{versions}.
Other programs took {record.busy} of the processors' time.{notes}

Every time or rate is a median, every error a mean. The entrants of a column take turns, so compare within a column; but
the parts of the Rust crate are timed one after the other. dpnoise uses one thread, unless it says otherwise. A busy
machine slows long turns more than short ones, and has no room for a second thread.
"""
    # A run of all benchmarks also tells what was not measured.
    targets = [target for target in record.targets if record.kind == WHOLE or target.table in record.tables]
    if targets:
        rows = [judgement(record, target) for target in targets]
        head += f"\n## Targets\n\n{padded([['work', 'target', 'measured', 'reached'], *rows])}"
    return "\n".join([head, *(of_table(record, table) for table in record.tables.values())])


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
    parts = [f"## {table.title}\n", padded([[table.unit, *table.columns], *amounts])]
    parts += [f"{entrant}: {reason}.\n" for entrant, reason in table.missing.items()]
    return "\n".join([*parts, padded([["times as good", *table.columns], *factors])] if factors else parts)


def number(amount: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{amount:.0f}" if amount >= 99.95 else f"{amount:#.3g}"


def span(amounts: Iterable[float]) -> str:
    ordered = sorted(amounts)
    low, high = number(ordered[0]), number(ordered[-1])
    return low if low == high else f"{low} to {high}"


def padded(rows: list[list[str]]) -> str:
    """Return a table that is read in a terminal, too."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = ("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows)
    return "\n".join([head, "| " + " | ".join("-" * width for width in widths) + " |", *body, ""])


# --- docs/benchmarks.md ----------------------------------------------------------------------------------------------


def current(records: Iterable[Record]) -> list[Record]:
    """Return the record of all benchmarks, then what those of parts have that none before has, the newest first."""
    seen: set[str] = set()
    found = []
    for record in sorted(records, key=lambda record: (record.kind == WHOLE, record.date, record.kind), reverse=True):
        tables = {title: table for title, table in record.tables.items() if title not in seen}
        seen |= tables.keys()
        if tables:
            found.append(replace(record, tables=tables))
    return found


def parts(records: Iterable[Record]) -> dict[str, str]:
    """Return what stands at the marks of the page."""
    records = current(records)
    return {
        "newest": shown(records[0]),
        "records": about(records),
        "libraries": libraries(records),
        "losses": losses(records),
        "targets": targets(records),
        "instruction sets": instruction_sets(records),
    }


def rows_of(head: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "---") -> str:
    """Return a table of a page, whose long cells are not padded; `rule` aligns all columns but the first."""
    lines = (head, ["---", *[rule] * (len(head) - 1)], *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def some(cases: Collection[object]) -> str:
    """Return what is in all cases, once each."""
    return "; ".join(dict.fromkeys(map(str, cases)))


def shown(record: Record) -> str:
    """Return what the pictures show."""
    return f"""The pictures show the record of {record.date}: {record.cpu}, {record.cores} cores, instruction set
{record.instruction_set}. Other programs took {record.busy} of the processors' time."""


def about(records: list[Record]) -> str:
    """Return what was measured when, and on what."""
    rows = [
        [
            f"[{record.kind}](records/{record.kind}.md)",
            record.date,
            str(len(record.tables)),
            f"{record.cpu}, {record.cores} cores",
            record.instruction_set,
            record.busy,
            ", ".join(f"{name} {record.versions[name]}" for name in ("dpnoise", "CPython", "rustc")),
        ]
        for record in records
    ]
    return rows_of(["record", "date", "works", "processor", "instruction set", "other programs took", "with"], rows)


def libraries(records: list[Record]) -> str:
    """Return who is compared, and which of them are exact and secure."""
    versions = {name: version for record in reversed(records) for name, version in record.versions.items()}
    rows = [
        [name, versions[name], library.exact, library.secure, library.source]
        for name, library in LIBRARIES.items()
        if name in versions
    ]
    return rows_of(["library", "version", "exact", "secure", "random bits; arithmetic"], rows)


def losses(records: list[Record]) -> str:
    """Return a row for every entrant of ours and every work in which another entrant is better, the worst first."""
    found: dict[tuple[str, str], list[Loss]] = {}
    for record in records:
        for loss in record.losses():
            variant = loss.entrant.removeprefix(record.ours)
            found.setdefault((loss.table.title + variant, str(record.kind)), []).append(loss)
    rows = [
        [
            title,
            span(loss.factor for loss in cases),
            some([loss.best for loss in cases]),
            some([loss.column for loss in cases]),
            kind,
        ]
        for (title, kind), cases in sorted(found.items(), key=lambda item: min(loss.factor for loss in item[1]))
    ]
    return rows_of(["work", "ours : theirs", "who is better", "cases", "record"], rows)


def targets(records: list[Record]) -> str:
    """Return a row for every target that was missed."""
    rows = [
        [
            work(record, target._replace(column=None)),
            str(target),
            span(result.measured for result in missed),
            some([result.column for result in missed]),
            str(record.kind),
        ]
        for record in records
        for target, missed in record.missed()
    ]
    return rows_of(["work", "target", "measured where missed", "cases", "record"], rows)


def instruction_sets(records: list[Record]) -> str:
    """Return a row for every table in which another entrant is better than one of our other instruction sets."""
    rows = [
        [
            entrant.removeprefix("dpnoise, "),
            table.title,
            span(loss.factor for loss in cases),
            some([loss.best for loss in cases]),
            f"{len(cases)} of {len(table.columns)}",
            str(record.kind),
        ]
        for record in records
        for entrant, table, cases in record.losses_of_other_instruction_sets()
    ]
    return rows_of(["instruction set", "work", "ours : theirs", "who is better", "cases", "record"], rows)


# --- docs/benchmarks/frequency_oracles.md ----------------------------------------------------------------------------


def oracle_parts(record: Record) -> dict[str, str]:
    """Return what stands at the marks of the page on frequency oracles."""
    compared = [case for case in (*PUBLISHED.values(), *LARGE, *LARGEST, *LDP3) if case.libraries or case == LARGEST[2]]
    return {
        "machine": f"""The record is of {record.date}: {record.cpu}, {record.cores} cores, instruction set
{record.instruction_set}; multi-freq-ldpy {record.versions["multi-freq-ldpy"]}, pure-ldp {record.versions["pure-ldp"]}.
Other programs took {record.busy} of the processors' time.""",
        "published squared errors": published(record, MSE, MSE_ERROR),
        "published maximal errors": published(record, MAXIMUM, MAXIMUM_ERROR),
        "errors": "\n\n".join(by_epsilon(record, cases) for cases in (LARGE, LARGEST)),
        "costs": "\n\n".join(costs(record.tables[str(case)]) for case in compared),
        "post-processing": "\n\n".join(by_post(record, case) for case in LDP3),
    }


def titled(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of numbers under its title."""
    return f"**{title}**\n\n{rows_of(head, rows, '---:')}"


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
    return titled(what, head, (list(row(*item)) for item in PUBLISHED.items()))


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
    return titled(f"{case.input}, k = {case.k:,}, n = {case.n:,}", head, rows)


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
    return titled(table.title, ["", *columns], rows)


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
    rows = ([f"`{name}`", *(cell(name, post) for post in columns)] for name in squared)
    return titled(str(case), ["protocol", *columns], rows)


# --- docs/index.md ---------------------------------------------------------------------------------------------------

RIVALS = {"OpenDP": "opendp", "diffprivlib": "diffprivlib", "NumPy": "NumPy laplace, PCG64"}
"""With whom the front page compares dpnoise, and their entrants."""


def front_parts(record: Record) -> dict[str, str]:
    """Return the figures of the front page: how many times as fast ours is as another library, in one case."""
    table = record.tables["Discrete Laplace"]
    factors = {name: number(table.factors(record.ours, rival)["10"]) for name, rival in RIVALS.items()}
    return factors | {"machine": f"{record.date}, {record.cpu}, {record.instruction_set}"}


# --- filling the pages -----------------------------------------------------------------------------------------------


def fill(page: str, parts: dict[str, str]) -> str:
    """Return a page with these parts in place of its marks."""
    for name, text in parts.items():
        mark = f"<!-- from the records: {name} -->"
        if mark not in page:
            raise ValueError(f"the page has no mark of {name}: {mark!r}")
        page = page.replace(mark, text)
    return page


def filled(path: str, page: str) -> str:
    """Return a page of the site with what the records say, by its path below docs."""
    match path:
        case "index.md":
            return fill(page, front_parts(kept()[WHOLE]))
        case "benchmarks.md":
            return fill(page, parts(kept().values()))
        case "benchmarks/frequency_oracles.md":
            return fill(page, oracle_parts(kept()["oracles"]))
    return page
