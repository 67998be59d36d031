"""Parquet files: how Arrow opens them, and what their pages take of memory once they are decompressed.

Arrow believes what a page says about itself. A kilobyte may become gigabytes: by compression, by a dictionary whose one
long value stands in every row, and by values that are written as what they have in common with the value before.

Sources: parquet.thrift of the Parquet format, and the compact protocol of Thrift, in which the headers of pages are.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from os import PathLike
from typing import Any, BinaryIO, Final, NamedTuple

from dpnoise._arrays import require_pyarrow
from dpnoise._errors import ParameterError

PARQUET: Final[dict[str, Any]] = {
    # Arrow's default prefetches the whole file and keeps it; these options read it a piece at a time.
    "pre_buffer": False,
    "buffer_size": 1 << 20,
    # Reports are random bits, so only a checksum detects a damaged page.
    "page_checksum_verification": True,
}
"""The options with which all Parquet files are read."""

LARGEST: Final = 1 << 26
"""The most bytes of a page and of a report, but for pages that are nearly as large in the file.

Most programs write pages of 1 MiB. PyArrow puts up to 1024 reports into a page, whatever their size.
"""

_RATIO: Final = 8

MOST_VALUES: Final = 1 << 24
"""The most values of a page: a few bytes may stand for any number of equal ones."""

_DICTIONARY: Final = 2
_HEADERS: Final = {0: (5, 2), _DICTIONARY: (7, 2), 3: (8, 4)}
"""By the type of a page: the field with the header of that type, and in it the field of the encoding."""

_ENCODINGS: Final = {0, 2, 3, 8}
"""Plain values, dictionaries, and runs of booleans."""

_BOOLEANS, _INT32, _INT64, _BINARY, _STRUCT = (1, 2), 5, 6, 8, 12


class _Page(NamedTuple):
    type: int
    bytes: int
    compressed: int
    values: int
    encoding: int


def native_file(path: str | os.PathLike[str]) -> Any:
    """Open a file for Arrow, which assumes that every text path is UTF-8.

    Arrow waits for a pipe without heeding signals, and reads a file in several places. A missing or unreadable file
    raises the system's own error.
    """
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise ParameterError(f"{os.fspath(path)!r} must be a file, got a pipe or a device: write that to a file first")
    open(path, "rb").close()
    return require_pyarrow().OSFile(os.fsencode(path))


def rows_at_a_time(file: Any, path: str | PathLike[str], name: str, size: int) -> int:
    """Return how many rows of a column to read at a time, so that they take `size` bytes and a few pages at most.

    `file` is a ParquetFile of the file at `path`. A nested column is refused by a ParameterError, and a page that is
    damaged, too large, or encoded otherwise than plainly or with a dictionary.
    """
    number, leaf = next(((i, leaf) for i, leaf in enumerate(file.schema) if leaf.path == name), (0, None))
    if leaf is None or leaf.max_repetition_level:
        found = file.schema_arrow.field(name).type
        raise ParameterError(f"{str(path)!r} cannot be used: its column {name!r} must not be nested, got {found}")
    if leaf.length > LARGEST:
        raise _refusal(path, f"values of at most {LARGEST} bytes", f"{leaf.length} bytes")
    # A row may be the one long value of a dictionary. Plain rows fill their page together, if their size varies.
    widest: float = max(1, leaf.length)
    with open(path, "rb") as raw:
        for group in range(file.num_row_groups):
            for page in _pages(raw, file.metadata.row_group(group).column(number), path):
                if leaf.physical_type == "BYTE_ARRAY":
                    shared = 1 if page.type == _DICTIONARY else max(1, page.values)
                    widest = max(widest, page.bytes / shared)
                _check(page, path)
    return max(1, size // math.ceil(widest))


def _check(page: _Page, path: str | PathLike[str]) -> None:
    if page.bytes > max(LARGEST, _RATIO * page.compressed) or page.values > MOST_VALUES:
        allowed = f"pages of at most {LARGEST} bytes and {MOST_VALUES} values"
        raise _refusal(path, allowed, f"{page.bytes} bytes and {page.values} values")
    if page.encoding not in _ENCODINGS:
        raise _refusal(path, "values that are written plainly or with a dictionary", f"encoding {page.encoding}")


def _refusal(path: str | PathLike[str], allowed: str, found: str) -> ParameterError:
    return ParameterError(f"{str(path)!r} cannot be used: it must have {allowed}, got {found}: write it again")


def _pages(raw: BinaryIO, chunk: Any, path: str | PathLike[str]) -> Iterator[_Page]:
    """Read the headers of the pages of a column in a row group, as many as Arrow reads."""
    start, dictionary, seen = chunk.data_page_offset, chunk.dictionary_page_offset or 0, 0
    length = os.fstat(raw.fileno()).st_size
    try:
        raw.seek(dictionary if 0 < dictionary < start else start)
        while seen < chunk.num_values:
            header = _fields(raw)
            field, encoding = _HEADERS[header[1]]
            about = header[field]
            page = _Page(header[1], header[2], header[3], about[1], about[encoding])
            if min(page.bytes, page.compressed, page.values) < 0 or page.compressed > length - raw.tell():
                raise ValueError
            yield page
            seen += page.values if page.type != _DICTIONARY else 0
            raw.seek(page.compressed, 1)
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ParameterError(f"{str(path)!r} is damaged: the header of a page cannot be read") from None


def _fields(raw: BinaryIO, nested: int = 2) -> dict[int, Any]:
    """Read the fields of a structure that are numbers of 32 bits or structures; a header has no lists and no maps."""
    found: dict[int, Any] = {}
    number = 0
    while kind := (byte := raw.read(1)[0]) & 15:
        if byte < 16:  # the number of the field follows, so that it need not be above the one before
            raise ValueError
        number += byte >> 4
        if kind in (_INT32, _INT64):
            value = _varint(raw)
            if kind == _INT32:
                found[number] = value >> 1 ^ -(value & 1)
        elif kind == _BINARY:
            raw.seek(_varint(raw), 1)
        elif kind == _STRUCT and nested:
            found[number] = _fields(raw, nested - 1)
        elif kind not in _BOOLEANS:
            raise ValueError
    return found


def _varint(raw: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = raw.read(1)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError
