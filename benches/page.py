"""What the pages of the site on the benchmarks say of the newest records, and their pictures.

``python -m benches.page`` makes them again from the records that are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from benches import oracles_page
from benches.libraries import LIBRARIES
from benches.pictures import pictures
from benches.record import Loss, Record, kept
from benches.report import busy, instruction_set, span, work

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
PICTURES = DOCS / "benchmarks"
ORACLES = PICTURES / "frequency_oracles.md"


def current(records: list[Record]) -> list[Record]:
    """Return the newest record of all benchmarks, then what those of parts have that none before them has."""
    parts = [record for record in records if record.part]
    seen: set[str] = set()
    found = []
    for record in (newest(records), *sorted(parts, key=lambda record: record.name, reverse=True)):
        tables = {title: table for title, table in record.tables.items() if title not in seen}
        seen |= tables.keys()
        if tables:
            found.append(replace(record, tables=tables))
    return found


def newest(records: list[Record], part: str = "") -> Record:
    """Return the newest record of all benchmarks, or of a part."""
    return max((record for record in records if record.part == part), key=lambda record: record.date)


def parts(records: list[Record]) -> dict[str, str]:
    """Return what stands between the marks of the page."""
    records = current(records)
    return {
        "newest": shown(records[0]),
        "records": about(records),
        "libraries": libraries(records),
        "losses": losses(records),
        "targets": targets(records),
        "instruction sets": instruction_sets(records),
    }


def rows_of(head: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table of the page, whose long cells are not padded."""
    names = head.split(" | ")
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows))


def some(cases: Collection[object]) -> str:
    """Return what is in all cases, once each."""
    return "; ".join(dict.fromkeys(map(str, cases)))


def shown(record: Record) -> str:
    """Return what the pictures show."""
    return f"""The pictures show the record of {record.date}: {record.cpu}, {record.cores} cores, instruction set
{instruction_set(record)}. Other programs took {busy(record)} of the processors' time."""


def about(records: list[Record]) -> str:
    """Return what was measured when, and on what."""
    rows = [
        [
            record.name,
            "all" if record.part == "" else f"{len(record.tables)} works",
            f"{record.cpu}, {record.cores} cores",
            instruction_set(record),
            busy(record),
            ", ".join(f"{name} {record.versions[name]}" for name in ("dpnoise", "CPython", "rustc")),
        ]
        for record in records
    ]
    return rows_of("record | benchmarks | processor | instruction set | other programs took | with", rows)


def libraries(records: list[Record]) -> str:
    """Return who is compared, and which of them are exact and secure."""
    versions = {name: version for record in reversed(records) for name, version in record.versions.items()}
    rows = [
        [name, versions[name], library.exact, library.secure, library.source]
        for name, library in LIBRARIES.items()
        if name in versions
    ]
    return rows_of("library | version | exact | secure | random bits; arithmetic", rows)


def losses(records: list[Record]) -> str:
    """Return a row for every entrant of ours and every work in which another entrant is better, the worst first."""
    found: dict[tuple[str, str], list[Loss]] = {}
    for record in records:
        for loss in record.losses():
            variant = loss.entrant.removeprefix(record.ours)
            found.setdefault((loss.table.title + variant, record.part or "all"), []).append(loss)
    rows = [
        [
            title,
            span(loss.factor for loss in cases),
            some([loss.best for loss in cases]),
            some([loss.column for loss in cases]),
            part,
        ]
        for (title, part), cases in sorted(found.items(), key=lambda item: min(loss.factor for loss in item[1]))
    ]
    return rows_of("work | ours : theirs | who is better | cases | record", rows)


def targets(records: list[Record]) -> str:
    """Return a row for every target that was missed."""
    rows = [
        [
            work(record, target._replace(column=None)),
            str(target),
            span(result.measured for result in missed),
            some([result.column for result in missed]),
            record.part or "all",
        ]
        for record in records
        for target, missed in record.missed()
    ]
    return rows_of("work | target | measured where missed | cases | record", rows)


def instruction_sets(records: list[Record]) -> str:
    """Return a row for every table in which another entrant is better than one of our other instruction sets."""
    rows = [
        [
            entrant.removeprefix("dpnoise, "),
            table.title,
            span(loss.factor for loss in cases),
            some([loss.best for loss in cases]),
            f"{len(cases)} of {len(table.columns)}",
            record.part or "all",
        ]
        for record in records
        for entrant, table, cases in record.losses_of_other_instruction_sets()
    ]
    return rows_of("instruction set | work | ours : theirs | who is better | cases | record", rows)


def fill(page: str, parts: dict[str, str]) -> str:
    """Return a page with what now belongs between its marks."""
    for name, text in parts.items():
        begin, end = f"<!-- from the records: {name} -->\n", "<!-- end -->"
        before, mark, rest = page.partition(begin)
        if not mark or end not in rest:
            raise ValueError(f"the page has no marks of {name}: {begin!r} and {end!r}")
        page = f"{before}{begin}\n{text}\n\n{rest[rest.index(end) :]}"
    return page


def files() -> dict[Path, str]:
    """Return the pages and their pictures, as the records that are kept give them."""
    records = kept()
    whole, oracles = newest(records), newest(records, "oracles")
    filled = {PAGE: parts(records), ORACLES: oracles_page.parts(oracles)}
    drawn = pictures(whole) | oracles_page.pictures(oracles)
    return {
        **{page: fill(page.read_text(encoding="utf-8"), texts) for page, texts in filled.items()},
        **{PICTURES / name: picture for name, picture in drawn.items()},
    }


def write() -> None:
    found = files()
    for path in set(PICTURES.iterdir()) - found.keys():
        path.unlink()
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
