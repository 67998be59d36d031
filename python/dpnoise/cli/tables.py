"""Reading columns, writing reports and estimates: a batch at a time, so memory does not grow with rows.

Messages of Arrow are not passed on: those about CSV quote the offending row, and rows are private.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from dpnoise._interchange import PARQUET, native_file
from dpnoise._parameters import listing
from dpnoise.cli.console import InputError, suffix_of, to_json

_BLOCK: Final = 1 << 20  # bytes, Arrow's default; it reads ahead by blocks, so larger ones cost memory
_CSV: Final = "CSV file with lines below 1 MiB"


@dataclass(frozen=True)
class Kind:
    """What a column must hold, and the type that it is converted to."""

    name: str
    allows: Callable[[pa.DataType], bool]
    type: pa.DataType
    texts: str | None = None
    """The kind of text that a CSV file must have, for messages; None for any text."""

    def of(self, values: pa.Array, column: str) -> pa.Array:
        """Convert values of a column; no message shows one."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if self.texts is not None and pa.types.is_large_string(values.type):
            values = pc.utf8_trim_whitespace(values)
        try:
            return values.cast(self.type, safe=not pa.types.is_floating(self.type))
        except pa.ArrowException:
            raise InputError(f"column {column!r} has a value that is no {self.texts}; which one is private") from None


def _is_categorical(kind: pa.DataType) -> bool:
    types = pa.types
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(texts or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind))


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    fractions = types.is_floating(kind) or types.is_decimal(kind)
    return bool(fractions or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind))


TEXTS: Final = Kind("text, integer, boolean or categorical", _is_categorical, pa.large_string())
INTEGERS: Final = Kind("a number or boolean", _is_number, pa.int64(), "whole number")
NUMBERS: Final = Kind("a number or boolean", _is_number, pa.float64(), "number")


@dataclass(frozen=True)
class Column:
    """A column that is read once, in batches, each with its share of `total`, in rows or bytes."""

    total: int
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[pa.Array, int]]


def open_column(path: Path, name: str, kind: Kind, *, empty_is_missing: bool, batch_rows: int) -> Column:
    """Open one column of a Parquet or CSV file; its batches have at most `batch_rows` rows and are converted.

    CSV has no marker for a missing value. So an empty field is the empty string, or, with `empty_is_missing`, a missing
    value unless it is quoted.
    """
    if suffix_of(path, (".parquet", ".csv", ".csv.gz"), "the input") == ".parquet":
        return _open_parquet(path, name, kind, batch_rows)
    return _open_csv(path, name, kind, empty_is_missing, batch_rows)


def _open_parquet(path: Path, name: str, kind: Kind, batch_rows: int) -> Column:
    file = parquet_file(path)
    _check_column(path, name, file.schema_arrow.names)
    found = file.schema_arrow.field(name).type
    if not kind.allows(found.value_type if pa.types.is_dictionary(found) else found):
        raise InputError(f"column {name!r} has the type {found}; it must be {kind.name}")
    columns = columns_of(file, path, name, batch_rows)
    return Column(file.metadata.num_rows, "rows", ((kind.of(column, name), len(column)) for column in columns))


def _open_csv(path: Path, name: str, kind: Kind, empty_is_missing: bool, batch_rows: int) -> Column:
    with path.open("rb") as file:
        if not file.read(1):
            raise InputError(f"{str(path)!r} is empty: a CSV file starts with a line of column names")
    with _damage_named(path, _CSV):
        _, stream = _csv_stream(path)
        names = pa.csv.open_csv(stream, parse_options=pa.csv.ParseOptions(newlines_in_values=True)).schema.names
        _check_column(path, name, names)
        raw, stream = _csv_stream(path)
        reader = pa.csv.open_csv(
            stream,
            read_options=pa.csv.ReadOptions(block_size=_BLOCK),
            # In a file of one column an empty line is a row, and skipping it would lose a person.
            parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
            convert_options=pa.csv.ConvertOptions(
                include_columns=[name],
                column_types={name: pa.large_string()},
                strings_can_be_null=empty_is_missing or kind is not TEXTS,
                null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )

    def batches() -> Iterator[tuple[pa.Array, int]]:
        before = 0
        for number, batch in enumerate(_each(reader, path, _CSV), 1):
            read = min(number * _BLOCK, raw.tell())  # Arrow reads ahead, 32 MiB and more
            for start in range(0, batch.num_rows, batch_rows):
                yield kind.of(batch.column(0).slice(start, batch_rows), name), read - before
                before = read

    return Column(path.stat().st_size, "bytes", batches())


def _csv_stream(path: Path) -> tuple[pa.NativeFile, pa.NativeFile]:
    """Open a file, and a stream of its decompressed content."""
    raw = native_file(path)
    return raw, pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw


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
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([tuple(columns), *zip(*columns.values(), strict=True)])
        text = buffer.getvalue()
    target.write(text.encode(errors="backslashreplace"))


def is_estimate(path: Path, headers: Sequence[Sequence[str]]) -> bool:
    """Return whether the file could be an estimate that `write_table` wrote; as CSV with one of these headers."""
    try:
        if path.suffix.lower() == ".parquet":
            return b"dpnoise.spec_id" in (pq.read_schema(native_file(path)).metadata or {})
        with path.open(encoding="utf-8") as file:
            if path.suffix.lower() == ".csv":
                return file.readline() in {",".join(header) + "\n" for header in headers}
            document = json.load(file)
    except (pa.ArrowException, ValueError):
        return False
    return isinstance(document, dict) and {"spec_id", "estimates"} <= set(document)


def parquet_file(path: Path) -> pq.ParquetFile:
    path.open("rb").close()  # a missing or unreadable file is the system's error to name, not a damaged one
    try:
        return pq.ParquetFile(native_file(path), **PARQUET)
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
    except (pa.ArrowException, OSError):
        raise InputError(f"{str(path)!r} is not a well-formed {kind}; where is not shown, it is private") from None


def _each(batches: Iterator[pa.RecordBatch], path: Path, kind: str) -> Iterator[pa.RecordBatch]:
    """Yield from `batches`, naming the file if the reader fails; errors of the consumer pass through."""
    with _damage_named(path, kind):
        yield from batches
