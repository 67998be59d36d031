"""Reading columns, writing reports and estimates: a batch at a time, so memory does not grow with rows.

Messages of Arrow are not passed on: those about CSV quote the offending row, and rows are private.
"""

import csv
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from dpnoise import _numbers
from dpnoise._display import progress
from dpnoise._domain import listing
from dpnoise._json import read_json
from dpnoise._parquet import PARQUET, native_file
from dpnoise.cli.console import InputError, note, quantity, suffix_of, to_json
from dpnoise.cli.kinds import INTEGERS, LABELS, NUMBERS, TEXTS, Kind, spelled_as, with_points
from dpnoise.cli.lines import BYTE_ORDER_MARK, check_text, not_utf8, opened, row_blocks
from dpnoise.cli.sources import STDIN, stdin

Read = TypeVar("Read")

# What the name of a column looks like: no number, date or address, and short.
_NAME: Final = re.compile(r"\s*[^\W\d][^@]{0,63}")

_POINTED: Final = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+\s*")

# What a spreadsheet runs; not numbers. Apostrophes before it count, too, so that the first one can be removed again.
_FORMULA: Final = re.compile(r"(?is)'*(?![+-]?[0-9.]+(e[+-]?[0-9]+)?\Z)[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20].")

_CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

# What separates fields where no option says it, and what it is called.
_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs"}


BATCH_ROWS: Final = 1 << 18
"""Rows to read at a time, where they are not kept as reports."""


@dataclass(frozen=True)
class Layout:
    """How a CSV file is written, as far as its name and its line of names do not say it."""

    quoted_lines: bool = False
    """Whether fields in quotes may cross the ends of lines."""
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    missing: Sequence[str] = ()
    """The fields that are missing values, besides empty ones."""


@dataclass(frozen=True)
class Column:
    """A column to read: what it must hold, and labels. A value that is equal to a label is spelled as the label is."""

    name: str
    kind: Kind
    labels: tuple[str, ...] | None = None
    if_equal: bool = False
    """Whether to read, in place of each value, if it is the label, of which there is one."""


@dataclass(frozen=True)
class Columns:
    """Columns that are read once, in batches, each with its share of `total`, in rows or bytes; stdin has no total."""

    total: int | None
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[Sequence[pa.Array], int]]


def open_columns(
    path: Path,
    columns: Sequence[Column],
    *,
    strict: bool,
    empty_is_missing: bool,
    layout: Layout,
    batch_rows: int,
) -> Columns:
    """Open columns of a Parquet or CSV file, or of CSV from stdin.

    Their batches have at most `batch_rows` rows and are converted.
    `strict` refuses labels that a column cannot have. CSV has no marker for a missing value but those of its `layout`.
    So an empty field is the empty string, or, with `empty_is_missing` and in columns of numbers, a missing value unless
    it is quoted.
    """
    labels = [label for column in columns for label in column.labels or ()]
    for text in (*labels, *layout.missing):
        _numbers.check_text(text, "a label or a word of --na")
    pointed = [label for label in labels if _POINTED.fullmatch(label)]
    if layout.decimal == "," and pointed:
        raise InputError(
            f"labels must be as in the file, where --decimal says that numbers have commas, got {pointed[0]!r}"
        )
    if path == STDIN or suffix_of(path, (".parquet", *_CSV), "the input") != ".parquet":
        opened, types = _open_csv(path, columns, empty_is_missing, layout, batch_rows), [None] * len(columns)
    elif layout == Layout():
        opened, types = _open_parquet(path, columns, batch_rows)
    else:
        options = "--delimiter, --decimal, --na and --quoted-lines"
        raise InputError(f"{str(path)!r} is no CSV file: {options} are for those alone")
    spelled = [
        spelled_as(column.labels or (), found, column.name, strict=strict)
        for column, found in zip(columns, types, strict=True)
    ]

    def read(batch: Sequence[pa.Array]) -> list[pa.Array]:
        found = [spell(one) for spell, one in zip(spelled, batch, strict=True)]
        compared = zip(columns, found, strict=True)
        return [
            pc.equal(one, column.labels[0]) if column.if_equal and column.labels else one for column, one in compared
        ]

    return replace(opened, batches=((read(batch), amount) for batch, amount in opened.batches))


def read(opened: Columns, columns: Sequence[Column]) -> dict[Column, pa.ChunkedArray]:
    """Return the whole columns that were opened."""
    chunks: list[list[pa.Array]] = [[] for _ in columns]
    with progress("reading", opened.total, opened.unit) as advance:
        for batch, amount in opened.batches:
            for found, values in zip(chunks, batch, strict=True):
                found.append(values)
            advance(amount)
    return {
        column: pa.chunked_array(found, type=found[0].type if found else column.kind.type)
        for column, found in zip(columns, chunks, strict=True)
    }


def _open_parquet(path: Path, columns: Sequence[Column], batch_rows: int) -> tuple[Columns, list[pa.DataType]]:
    file = parquet_file(path)
    types = []
    for column in columns:
        _check_column(path, column.name, file.schema_arrow.names, in_csv=False)
        found = file.schema_arrow.field(column.name).type
        found = found.value_type if pa.types.is_dictionary(found) else found
        if not column.kind.allows(found):
            raise InputError(f"column {column.name!r} has the type {found}; it must be {column.kind.name}")
        types.append(found)
    names = [column.name for column in columns]
    batches = (
        ([column.kind.of(one, column.name) for column, one in zip(columns, batch, strict=True)], len(batch[0]))
        for batch in batches_of(file, path, names, batch_rows)
    )
    return Columns(file.metadata.num_rows, "rows", batches), types


def _open_csv(
    path: Path, columns: Sequence[Column], empty_is_missing: bool, layout: Layout, batch_rows: int
) -> Columns:
    # A missing or unreadable file is the system's error to name, not a damaged one.
    raw = stdin() if path == STDIN else native_file(path)
    stream = pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw
    with _damage_named(path, "CSV file"):
        line, read = opened(stream.read)
    check_text(line, path)
    wanted = list(dict.fromkeys(column.name for column in columns))
    given = layout.delimiter or ("\t" if ".tsv" in path.suffixes[-2:] else None)
    delimiter = given or _delimiter_of(line.decode(), wanted)
    quoted_lines = layout.quoted_lines
    rows = _each(row_blocks(read, path, delimiter=delimiter, quoted_lines=quoted_lines), path, "CSV file")
    first = next(rows, None)
    if first is None:
        raise InputError(f"{str(path)!r} is empty: a CSV file starts with a line of column names")
    with _damage_named(path, "CSV file"):
        names = _parsed(first, parse_options=pa.csv.ParseOptions(delimiter=delimiter)).column_names
    for name in wanted:
        _check_column(path, name, names, in_csv=True)
    if given is None and delimiter != ",":
        note(f"the fields of {str(path)!r} are separated by {_DELIMITERS[delimiter]}, as its names are")
    # In a file of one column an empty line is a row, and skipping it would lose a person.
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted_lines, ignore_empty_lines=len(names) > 1)
    convert = pa.csv.ConvertOptions(
        include_columns=wanted,
        column_types=dict.fromkeys(wanted, pa.large_binary()),  # whose errors are no longer those of the encoding
        strings_can_be_null=True,
        null_values=[*layout.missing, *[""] * (empty_is_missing or columns[0].kind not in (TEXTS, LABELS))],
        quoted_strings_can_be_null=False,
    )

    hint = "" if delimiter == "," or layout.decimal == "," else "; decimal commas need `--decimal ,`"
    hint += "" if layout.missing else "; words such as NA for missing values need --na"

    def converted(column: Column, fields: pa.Array) -> pa.Array:
        texts = _texts(fields, path)
        if layout.decimal == "," and column.kind in (INTEGERS, NUMBERS):
            texts = with_points(texts)
        return column.kind.parsed(texts, column.name, hint)

    def batches() -> Iterator[tuple[list[pa.Array], int]]:
        before = done = 0
        for block in rows:
            done += len(block)
            with _damage_named(path, "CSV file"):
                table = _parsed(first, block, parse_options=parse, convert_options=convert)
            for batch in table.to_batches(batch_rows):
                now = done if path == STDIN else raw.tell()  # a pipe has no position
                yield [converted(column, batch.column(column.name)) for column in columns], now - before
                before = now

    return Columns(None if path == STDIN else path.stat().st_size, "bytes", batches())


def _delimiter_of(line: str, wanted: Sequence[str]) -> str:
    """Return what separates the names of a line: what gives all the wanted ones, or else the most."""

    def found(delimiter: str) -> tuple[bool, int]:
        try:
            names = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            names = []
        return set(wanted) <= set(names), len(names)

    return max(_DELIMITERS, key=found)


def _texts(fields: pa.Array, path: Path) -> pa.Array:
    try:
        return fields.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise not_utf8(path) from None


def _parsed(*rows: memoryview, **options: Any) -> pa.Table:
    """Return the rows of blocks of which the first names the columns."""
    # Arrow drops one byte order mark, and one that is a value must not depend on where a block begins.
    source = pa.BufferReader(b"".join((BYTE_ORDER_MARK, *rows)))
    reading = pa.csv.ReadOptions(use_threads=False, block_size=source.size())  # which cannot divide a row
    return pa.csv.open_csv(source, read_options=reading, **options).read_all()  # read_csv would take signals over


def batch_rows(report_bytes: int) -> int:
    """Return the number of rows to hold at a time, so that their reports fill at most 16 MiB."""
    return max(1, min(1 << 18, (1 << 24) // report_bytes))


def records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def write_table(
    target: BinaryIO, suffix: str, columns: Mapping[str, list[Any]], about: Mapping[str, Any], name: str
) -> None:
    """Write columns as ``.csv``, ``.json`` or ``.parquet``; the latter two say `about` what, and JSON their `name`."""
    if suffix == ".parquet":
        metadata = {f"dpnoise.{key}": json.dumps(value) for key, value in about.items()}
        pq.write_table(pa.table(dict(columns)).replace_schema_metadata(metadata), target, write_page_checksum=True)
        return
    if suffix == ".json":
        text = to_json({**about, name: records(columns)}) + "\n"
    else:
        lines: list[str] = []
        rows = zip(*(_without_formulas([name, *column]) for name, column in columns.items()), strict=True)
        # With lines that end in "\n" alone, Python before 3.13 would not quote "\r".
        csv.writer(SimpleNamespace(write=lines.append)).writerows(rows)
        text = "".join(line.removesuffix("\r\n") + "\n" for line in lines)
    target.write(text.encode(errors="backslashreplace"))


def _without_formulas(column: Sequence[Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would run as a formula, and say so."""
    found = [f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value for value in column]
    changed = sum(one is not other for one, other in zip(found, column, strict=True))
    if changed:
        note(
            f"{quantity(changed, 'text')} that a spreadsheet would run as a formula got an apostrophe in front in the "
            f".csv; .json and .parquet have all texts as they are"
        )
    return found


def is_estimate(path: Path, headers: Sequence[Sequence[str]]) -> bool:
    """Return whether the file could be an estimate that `write_table` wrote; as CSV with one of these headers."""
    try:
        if path.suffix.lower() == ".parquet":
            return b"dpnoise.spec_id" in (pq.read_schema(native_file(path)).metadata or {})
        with path.open(encoding="utf-8") as file:
            if path.suffix.lower() == ".csv":
                return file.readline() in {",".join(header) + "\n" for header in headers}
            document = read_json(file.read())
    except (pa.ArrowException, ValueError):
        return False
    return isinstance(document, dict) and {"spec_id", "estimates"} <= set(document)


def parquet_file(path: Path) -> pq.ParquetFile:
    source = native_file(path)
    try:
        return pq.ParquetFile(source, **PARQUET)
    except pa.ArrowNotImplementedError:
        raise InputError(f"{str(path)!r} has a type that Arrow cannot read, such as Int128: cast it first") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InputError(f"{str(path)!r} is not a Parquet file") from None


def batches_of(file: pq.ParquetFile, path: Path, names: Sequence[str], batch_rows: int) -> Iterator[Sequence[pa.Array]]:
    """Yield columns a piece at a time, and refuse a damaged file that has fewer rows than it says."""
    rows = file.metadata.num_rows
    for batch in _each(file.iter_batches(batch_rows, columns=list(dict.fromkeys(names))), path, "Parquet file"):
        rows -= batch.num_rows
        yield [batch.column(name) for name in names]
    if rows:
        raise InputError(f"{str(path)!r} is not a well-formed Parquet file: rows are missing")


def _check_column(path: Path, name: str, names: Sequence[str], *, in_csv: bool) -> None:
    if names.count(name) > 1:
        raise InputError(f"{str(path)!r} has more than one column {name!r}")
    if name in names:
        return
    missing = f"{str(path)!r} has no column {name!r}"
    by_key = {_key(one): one for one in names}
    close = [by_key[one] for one in difflib.get_close_matches(_key(name), by_key)]
    # The first line of a CSV file without a line of names is a person's row.
    if in_csv and not (_key(name) in by_key and all(map(_looks_like_a_name, names))):
        raise InputError(
            f"{missing}; its first line, of {quantity(len(names), 'field')}, may be a row and is not shown: a CSV file "
            "starts with a line of names, with commas or the --delimiter between them"
        )
    if close:
        missing += f" (did you mean {' or '.join(map(repr, close))}?)"
    raise InputError(f"{missing}; its columns are {listing(names)}")


def _key(name: str) -> str:
    """Return the letters and digits of a name, in which spellings of one name agree."""
    return "".join(filter(str.isalnum, name.lower())).removesuffix("s")


def _looks_like_a_name(field: str) -> bool:
    return _NAME.fullmatch(field) is not None and field.lower() not in ("false", "true", "na", "nan", "null", "none")


@contextmanager
def _damage_named(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InputError(f"{str(path)!r} is not a well-formed {kind}; where is not shown, it is private") from None


def _each(batches: Iterator[Read], path: Path, kind: str) -> Iterator[Read]:
    """Yield from `batches`, naming the file if the reader fails; errors of the consumer pass through."""
    with _damage_named(path, kind):
        yield from batches
