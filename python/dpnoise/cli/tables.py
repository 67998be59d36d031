"""Reading columns, writing reports and estimates: a batch at a time, so memory does not grow with rows.

Messages of Arrow are not passed on: those about CSV quote the offending row, and rows are private.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpnoise._domain import listing
from dpnoise._json import read_json
from dpnoise._parquet import PARQUET, native_file
from dpnoise.cli.console import InputError, note, quantity, suffix_of, to_json
from dpnoise.cli.kinds import LABELS, TEXTS, Kind, spelled_as
from dpnoise.cli.lines import BYTE_ORDER_MARK, check_text, not_utf8, opened, row_blocks

Read = TypeVar("Read")

# What a spreadsheet runs; not numbers. Apostrophes before it count, too, so that the first one can be removed again.
_FORMULA: Final = re.compile(r"(?is)'*(?![+-]?[0-9.]+(e[+-]?[0-9]+)?\Z)[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20].")


@dataclass(frozen=True)
class Column:
    """A column that is read once, in batches, each with its share of `total`, in rows or bytes."""

    total: int
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[pa.Array, int]]


def open_column(
    path: Path,
    name: str,
    kind: Kind,
    *,
    labels: Sequence[str] | None,
    strict: bool,
    empty_is_missing: bool,
    quoted_lines: bool,
    batch_rows: int,
) -> Column:
    """Open one column of a Parquet or CSV file; its batches have at most `batch_rows` rows and are converted.

    Values that are equal to one of `labels` are spelled like it; `strict` refuses labels that the column cannot have.
    CSV has no marker for a missing value. So an empty field is the empty string, or, with `empty_is_missing`, a missing
    value unless it is quoted.
    """
    column, found = (
        _open_parquet(path, name, kind, batch_rows)
        if suffix_of(path, (".parquet", ".csv", ".csv.gz"), "the input") == ".parquet"
        else (_open_csv(path, name, kind, empty_is_missing, quoted_lines, batch_rows), None)
    )
    if labels is None:
        return column
    spelled = spelled_as(labels, found, name, strict=strict)
    return replace(column, batches=((spelled(values), amount) for values, amount in column.batches))


def _open_parquet(path: Path, name: str, kind: Kind, batch_rows: int) -> tuple[Column, pa.DataType]:
    file = parquet_file(path)
    _check_column(path, name, file.schema_arrow.names)
    found = file.schema_arrow.field(name).type
    found = found.value_type if pa.types.is_dictionary(found) else found
    if not kind.allows(found):
        raise InputError(f"column {name!r} has the type {found}; it must be {kind.name}")
    columns = columns_of(file, path, name, batch_rows)
    batches = ((kind.of(column, name), len(column)) for column in columns)
    return Column(file.metadata.num_rows, "rows", batches), found


def _open_csv(path: Path, name: str, kind: Kind, empty_is_missing: bool, quoted_lines: bool, batch_rows: int) -> Column:
    raw = native_file(path)  # a missing or unreadable file is the system's error to name, not a damaged one
    stream = pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw
    with _damage_named(path, "CSV file"):
        line, read = opened(stream.read)
    check_text(line, path)
    rows = _each(row_blocks(read, path, quoted_lines=quoted_lines), path, "CSV file")
    first = next(rows, None)
    if first is None:
        raise InputError(f"{str(path)!r} is empty: a CSV file starts with a line of column names")
    with _damage_named(path, "CSV file"):
        names = _parsed(first).column_names
    _check_column(path, name, names)
    # In a file of one column an empty line is a row, and skipping it would lose a person.
    parse = pa.csv.ParseOptions(newlines_in_values=quoted_lines, ignore_empty_lines=len(names) > 1)
    convert = pa.csv.ConvertOptions(
        include_columns=[name],
        column_types={name: pa.large_binary()},  # whose errors are no longer those of the encoding
        strings_can_be_null=empty_is_missing or kind not in (TEXTS, LABELS),
        null_values=[""],
        quoted_strings_can_be_null=False,
    )

    def batches() -> Iterator[tuple[pa.Array, int]]:
        before = 0
        for block in rows:
            with _damage_named(path, "CSV file"):
                table = _parsed(first, block, parse_options=parse, convert_options=convert)
            for batch in table.to_batches(batch_rows):
                now = raw.tell()
                yield kind.of(_texts(batch.column(0), path), name), now - before
                before = now

    return Column(path.stat().st_size, "bytes", batches())


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
        rows = zip(*map(_without_formulas, columns.values()), strict=True)
        # With lines that end in "\n" alone, Python before 3.13 would not quote "\r".
        csv.writer(SimpleNamespace(write=lines.append)).writerows([tuple(columns), *rows])
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
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InputError(f"{str(path)!r} is not a Parquet file") from None


def columns_of(file: pq.ParquetFile, path: Path, name: str, batch_rows: int) -> Iterator[pa.Array]:
    """Yield a column a piece at a time, and refuse a damaged file that has fewer rows than it says."""
    rows = file.metadata.num_rows
    for batch in _each(file.iter_batches(batch_rows, columns=[name]), path, "Parquet file"):
        rows -= batch.num_rows
        yield batch.column(0)
    if rows:
        raise InputError(f"{str(path)!r} is not a well-formed Parquet file: rows are missing")


def _check_column(path: Path, name: str, names: Sequence[str]) -> None:
    if name not in names:
        # The first line of a CSV file without a header is a person's row.
        found = (
            f"columns are {listing(names)}" if path.suffix == ".parquet" else f"first line names {len(names)} columns"
        )
        raise InputError(f"{str(path)!r} has no column {name!r}; its {found}")
    if names.count(name) > 1:
        raise InputError(f"{str(path)!r} has more than one column {name!r}")


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
